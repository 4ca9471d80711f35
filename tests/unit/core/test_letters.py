"""k-mers and shuffles of letters."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from seqray.core.alphabet import (
    DNA,
    PROTEIN,
    dinucleotide_shuffle,
    kmer_counts,
    kmer_indices,
    kmer_starts,
    stack_codes,
    stack_sequences,
)


def words_by_loop(sequence, k, letters):
    found = (sequence[i : i + k] for i in range(len(sequence) - k + 1))
    return [(i, word) for i, word in enumerate(found) if set(word) <= set(letters)]


SEQUENCES = ["ACGTACGT", "", "NACNGT", "AC", "GGGGGGGGGGGGN"]


@pytest.mark.parametrize("k", [1, 2, 3, 8, 20])
def test_words_are_those_of_each_sequence_alone(k):
    stack = stack_sequences(SEQUENCES, DNA)
    start, owner, position = kmer_starts(stack, k, 4)
    text = "".join(SEQUENCES)
    found = [(int(o), int(p), text[s : s + k]) for s, o, p in zip(start, owner, position, strict=True)]
    expected = [(n, i, word) for n, s in enumerate(SEQUENCES) for i, word in words_by_loop(s, k, "ACGT")]
    assert found == expected


@pytest.mark.parametrize(("alphabet", "sequence"), [(DNA, "ACGTTGCANACGT"), (PROTEIN, "MKVLWAALLXVTF")])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_word_numbers_are_base_n_numerals(alphabet, sequence, k):
    letters = alphabet.letters
    stack = stack_sequences([sequence], alphabet)
    start, _, _ = kmer_starts(stack, k, len(letters))
    expected = [
        sum(letters.index(c) * len(letters) ** (k - 1 - i) for i, c in enumerate(word))
        for _, word in words_by_loop(sequence, k, letters)
    ]
    assert kmer_indices(stack, start, k, len(letters)).tolist() == expected


def test_counts_are_per_sequence():
    counts = kmer_counts(stack_sequences(["AACN", "", "TT"], DNA), 1, 4)
    assert counts.tolist() == [[2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]


def test_a_matrix_and_a_list_of_rows_stack_alike():
    matrix = np.random.default_rng(0).integers(0, 5, (6, 9)).astype(np.uint8)
    whole, rows = stack_codes(matrix), stack_codes(list(matrix))
    assert (whole.codes == rows.codes).all()
    assert (whole.lengths == rows.lengths).all()
    assert len(stack_codes([])) == 0


def dinucleotides(sequence: str) -> Counter[str]:
    return Counter(sequence[i : i + 2] for i in range(len(sequence) - 1))


def all_shuffles(sequence: str) -> set[str]:
    """Every sequence with the same first letter and dinucleotides, by trying all orders of the letters."""
    wanted = dinucleotides(sequence)
    tries = {sequence[0] + "".join(rest) for rest in permutations(sequence[1:])}
    return {t for t in tries if dinucleotides(t) == wanted}


@pytest.mark.parametrize("sequence", ["ACAGACGA", "AACAGTAGC", "ACGTNACNT", "AAACAAGA", "CATCGATC"])
def test_every_possible_sequence_is_drawn_equally_often(sequence):
    possible = sorted(all_shuffles(sequence))
    rng, codes = np.random.default_rng(7), DNA.encode(sequence)
    draws = Counter(DNA.decode(dinucleotide_shuffle(codes, rng)) for _ in range(400 * len(possible)))
    assert sorted(draws) == possible
    assert chisquare([draws[s] for s in possible]).pvalue > 1e-3


def test_same_state_same_shuffle_and_the_input_is_left_alone():
    codes = DNA.encode("ACGTTGCAACGGTTACGATCGATTACA" * 20)
    before = codes.copy()
    first, second = (dinucleotide_shuffle(codes, np.random.default_rng(9)) for _ in range(2))
    other = dinucleotide_shuffle(codes, np.random.default_rng(10))
    assert first.tolist() == second.tolist() != other.tolist()
    assert codes.tolist() == before.tolist()


@pytest.mark.parametrize("sequence", ["", "A", "AC", "ACG", "AAAA", "NNNNNNNN"])
def test_what_has_one_order_only_is_returned_as_a_copy(sequence):
    codes = DNA.encode(sequence)
    shuffled = dinucleotide_shuffle(codes, np.random.default_rng(0))
    assert DNA.decode(shuffled) == sequence
    assert not np.shares_memory(shuffled, codes)
