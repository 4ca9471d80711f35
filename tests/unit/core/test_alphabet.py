"""Letters, codes and columns of alignments."""

import random
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from Bio.Seq import (
    reverse_complement as biopython_reverse_complement,
    reverse_complement_rna as biopython_reverse_complement_rna,
)
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare, entropy

from seqray.core.alphabet import (
    ALPHABETS,
    ANY_LETTERS,
    DNA,
    PROTEIN,
    RNA,
    dinucleotide_shuffle,
    infer_alphabet,
    kmer_counts,
    kmer_indices,
    kmer_starts,
    reverse_complement,
    stack_codes,
    stack_sequences,
)
from seqray.core.errors import InputError
from seqray.core.records import (
    Alignment,
    choose_columns,
    choose_rows,
    conservation,
    crop_alignment,
    looks_unaligned,
    occupancy,
    omits_letters,
)

IUPAC = "ACGTRYSWKMBDHVN"


def test_alphabets_are_found_by_name():
    assert {name: alphabet.letters for name, alphabet in ALPHABETS.items()} == {
        "dna": "ACGT",
        "rna": "ACGU",
        "protein": "ACDEFGHIKLMNPQRSTVWY",
    }


@pytest.mark.parametrize(
    ("alphabet", "text", "folded"),
    [(DNA, "acguN", "ACGTN"), (DNA, IUPAC.lower(), IUPAC), (PROTEIN, "mkvXbzJuO*", "MKVXBZJUO")],
)
def test_normalize_folds_case_and_u(alphabet, text, folded):
    assert alphabet.normalize(text) == folded


@pytest.mark.parametrize(
    ("alphabet", "text", "letter", "position"),
    [
        (DNA, "ACGTACGTACGTEACGT", "E", 13),
        (DNA, "AC-GT", "-", 3),
        (DNA, "ACéGT", "é", 3),
        (PROTEIN, "MK*V", "*", 3),
        (PROTEIN, "MKV**", "*", 4),
    ],
)
def test_unknown_letter_is_named_with_its_position(alphabet, text, letter, position):
    with pytest.raises(InputError) as caught:
        alphabet.normalize(text, where="x.fa: record 'a'")
    assert str(caught.value).startswith(
        f"x.fa: record 'a': unknown letter {letter!r} at position {position};"
    )
    assert "\n" not in str(caught.value)


def test_unknown_letter_keeps_the_case_of_the_file():
    with pytest.raises(InputError, match="unknown letter 'e' at position 6"):
        DNA.normalize("acgtaeacgt")


def test_utf8_bytes_are_told_as_the_letter_that_they_are():
    with pytest.raises(InputError, match="unknown letter 'é' at position 3"):
        DNA.normalize_bytes("ACéGT".encode())


def test_codes_follow_the_order_of_the_letters():
    assert DNA.encode("ACGTNRY").tolist() == [0, 1, 2, 3, 4, 4, 4]
    assert RNA.encode("ACGU").tolist() == [0, 1, 2, 3]
    assert PROTEIN.encode("ACDEFGHIKLMNPQRSTVWYXU").tolist() == [*range(20), 20, 20]
    assert DNA.encode("acgu").tolist() == [0, 1, 2, 3]


def test_encode_refuses_what_has_no_code():
    with pytest.raises(InputError, match="unknown letter 'Z' at position 3"):
        DNA.encode("ACZGTACGT")


def test_decode_writes_the_unknown_letter_and_checks_its_input():
    assert DNA.decode([0, 4, 3]) == "ANT"
    assert PROTEIN.decode([0, 20]) == "AX"
    assert RNA.decode(np.array([], dtype=np.uint8)) == ""
    for wrong in ([5], [-1]):
        with pytest.raises(ValueError, match="between 0 and 4"):
            DNA.decode(wrong)
    with pytest.raises(ValueError, match="shape"):
        DNA.decode([[0]])


def test_reverse_complement_agrees_with_biopython_on_every_iupac_code():
    sequence = "".join(random.Random(1).choices(IUPAC, k=300))
    assert reverse_complement(sequence) == biopython_reverse_complement(sequence)
    rna = sequence.replace("T", "U")
    assert reverse_complement(rna, RNA) == biopython_reverse_complement_rna(rna)


def test_reverse_complement_of_a_protein_is_refused():
    with pytest.raises(InputError, match="no reverse complement"):
        reverse_complement("MKV", PROTEIN)


@pytest.mark.parametrize(
    "protein",
    [
        "MKVLAAGIVGLLLAQPSFE",
        "mskgeelftgvvpilveldgdvnghkfsvsge*",
        "ACDGHKMNRSTVWYACDGHKMNRSTVWY",  # no letter outside the nucleotide codes
    ],
)
@pytest.mark.parametrize("alphabet", [DNA, RNA])
def test_protein_is_refused_by_content(alphabet, protein):
    with pytest.raises(InputError, match=f"looks like protein, but {alphabet.name.upper()} is expected"):
        alphabet.normalize(protein)


@pytest.mark.parametrize(
    "sequence",
    [
        "N" * 100,
        "ACGTNNKACGTNNKACGTNNKACGTNNK",  # degenerate oligonucleotide
        "GAATTCRYKM",
        "ACGT" * 10 + "RYSWKMBDHV",
    ],
)
def test_degenerate_nucleotides_are_no_protein(sequence):
    assert DNA.normalize(sequence) == sequence


def test_nucleotides_given_as_protein_are_refused():
    with pytest.raises(InputError, match="looks like nucleotides, but protein is expected"):
        PROTEIN.normalize("ACGTN" * 4)
    with pytest.raises(InputError, match="looks like nucleotides"):
        PROTEIN.normalize("acgu" * 5)


@pytest.mark.parametrize("peptide", ["ACGTACGTACGTACGTACG", "AAT" * 20, "GA" * 40, "GATTACA" * 8 + "M"])
def test_plain_peptides_pass_as_protein(peptide):
    assert PROTEIN.normalize(peptide) == peptide


@pytest.mark.parametrize(
    ("sequences", "alphabet"),
    [
        (["acgt", "ACGTNNRY"], DNA),
        (["ACGU", "GGGUUT"], RNA),
        (["ACGUTT"], DNA),
        (["ACGG"], DNA),
        (["GAGA", "MKVLAAGIT*"], PROTEIN),  # 6 of 14 letters are no bases
        (["NNNN"], DNA),
        ([], DNA),
    ],
)
def test_the_alphabet_is_told_by_the_letters(sequences, alphabet):
    assert infer_alphabet(ANY_LETTERS.normalize(sequence) for sequence in sequences) is alphabet


def test_letters_of_no_known_alphabet_are_refused():
    with pytest.raises(InputError, match="unknown letter '1' at position 3; a sequence has the letters ABC"):
        ANY_LETTERS.normalize("AC1")
    with pytest.raises(InputError, match="remove the gaps"):
        ANY_LETTERS.normalize("AC-")


def test_a_stop_alone_is_no_protein():
    assert PROTEIN.normalize("MK*") == "MK"
    with pytest.raises(InputError, match=r"unknown letter '\*' at position 1"):
        PROTEIN.normalize("*")


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


CODES = np.array(
    [  # all alike; four kinds; half and half; one letter; N only; nothing
        [0, 0, 1, 5, 4, 5],
        [0, 1, 1, 2, 5, 6],
        [0, 2, 3, 6, 5, 5],
        [0, 3, 3, 5, 5, 6],
    ],
    dtype=np.uint8,
)


def test_occupancy_counts_letters():
    assert occupancy(CODES, RNA).tolist() == [1, 1, 1, 0.25, 0.25, 0]


def test_conservation_by_hand():
    found = conservation(CODES, RNA)
    assert found[:4] == pytest.approx([1, 0, 0.5, 1])
    assert np.isnan(found[4:]).all()


def test_conservation_of_residues_is_entropy_over_its_largest():
    codes = np.random.default_rng(0).integers(0, 20, (50, 6)).astype(np.uint8)
    expected = [1 - entropy(np.bincount(column, minlength=20)) / np.log(20) for column in codes.T]
    assert conservation(codes, PROTEIN) == pytest.approx(expected)


def test_rows_that_share_no_more_than_chance_look_unaligned():
    latin = np.array([np.roll(np.arange(4), i) for i in range(4)], dtype=np.uint8)  # no two rows ever agree
    family = np.repeat(np.arange(4, dtype=np.uint8)[None], 4, axis=0)
    assert looks_unaligned(latin, RNA)
    assert not looks_unaligned(family, RNA)
    gapped = latin.copy()
    gapped[0, 0] = RNA.unknown + 1
    assert not looks_unaligned(gapped, RNA)
    assert not looks_unaligned(latin[:1], RNA)
    mixed = np.array([[0, 0, 1, 1]] * 2 + [[1, 1, 0, 0]] * 2, dtype=np.uint8)
    assert looks_unaligned(mixed, RNA)  # 1/3 of the pairs agree
    assert not looks_unaligned(np.array([[0, 1]] * 11 + [[1, 0]], dtype=np.uint8), RNA)  # 55 of 66


def test_rows_of_one_letter_are_no_reason_to_doubt():
    assert not looks_unaligned(np.zeros((3, 5), dtype=np.uint8), RNA)  # identical, as chance would have it


LETTERS = RNA.unknown + 1
some_codes = arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 90)), elements=st.integers(0, 6))


@given(some_codes, st.integers(1, 14), st.sampled_from(["diverse", "random"]), st.integers(0, 3))
def test_the_query_stays_and_rows_keep_their_order(codes, depth, choice, seed):
    rows = choose_rows(codes, depth, choice, seed)
    assert rows[0] == 0
    assert len(rows) == min(depth, len(codes))
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == choose_rows(codes, depth, choice, seed).tolist()


def test_random_rows_depend_on_the_seed_and_all_are_drawn():
    codes = np.zeros((8, 3), dtype=np.uint8)
    drawn = [tuple(choose_rows(codes, 4, "random", seed).tolist()) for seed in range(200)]
    assert len(set(drawn)) > 20
    counts = np.bincount(np.concatenate(drawn), minlength=8)
    assert counts[0] == 200
    # each of 7 rows is drawn with probability 3/7: 86 times of 200, with a standard deviation of 7
    assert (np.abs(counts[1:] - 200 * 3 / 7) < 35).all()


def test_the_most_different_rows_by_hand():
    """From 0000: 1111 differs most; then 2200 with 2 + 4 against 4 and 4; then 0011 with 8 against 7."""
    codes = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 1, 1], [2, 2, 0, 0]], dtype=np.uint8)
    assert choose_rows(codes, 2).tolist() == [0, 2]
    assert choose_rows(codes, 3).tolist() == [0, 2, 4]
    assert choose_rows(codes, 4).tolist() == [0, 2, 3, 4]


def test_copies_of_the_query_are_chosen_last():
    codes = np.zeros((50, 6), dtype=np.uint8)
    codes[37], codes[45] = 1, 2
    assert choose_rows(codes, 3).tolist() == [0, 37, 45]


def test_columns_with_the_fewest_letters_go_first():
    codes = np.array([[0, 5, 1, 5, 2], [0, 5, 5, 1, 2], [0, 6, 5, 5, 4]], dtype=np.uint8)
    assert choose_columns(codes, LETTERS, 9).tolist() == [0, 2, 3, 4]  # column 1 is empty
    assert choose_columns(codes, LETTERS, 3).tolist() == [0, 2, 4]
    assert choose_columns(codes, LETTERS, 1).tolist() == [0]


def test_an_alignment_is_cut_to_what_a_model_reads():
    codes = np.array([[0, 5, 1], [0, 3, 1], [1, 5, 2]], dtype=np.uint8)
    alignment = Alignment("a", ("q", "b", "c"), codes, RNA, ss_cons="(.)")
    cut = crop_alignment(alignment, 2, 9)
    assert cut.names == ("q", "c")
    assert cut.codes.tolist() == [[0, 1], [1, 2]]  # the two rows have only gaps in column 1
    assert cut.ss_cons == "()"


def test_letters_are_omitted_only_in_columns_of_rows_that_are_read():
    codes = np.array([[0, 5, 1], [0, 3, 1], [1, 6, 2]], dtype=np.uint8)
    alignment = Alignment("a", ("q", "b", "c"), codes, RNA)
    assert not omits_letters(alignment, np.array([0, 2]), np.array([0, 2]))  # gap and missing in column 1
    assert omits_letters(alignment, np.array([0, 1]), np.array([0, 2]))
    assert omits_letters(alignment, np.array([0, 2]), np.array([2]))
