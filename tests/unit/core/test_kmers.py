"""Words of many sequences at once against one sequence at a time."""

import numpy as np
import pytest

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.letters import kmer_counts, kmer_indices, kmer_starts, stack_codes, stack_sequences


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
