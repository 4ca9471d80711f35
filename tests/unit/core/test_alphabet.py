"""Letters: folding, validation, codes, complement, and refusal by content."""

import random

import numpy as np
import pytest
from Bio.Seq import (
    reverse_complement as biopython_reverse_complement,
    reverse_complement_rna as biopython_reverse_complement_rna,
)

from seqray.core.alphabet import ALPHABETS, ANY_LETTERS, DNA, PROTEIN, RNA, infer_alphabet, reverse_complement
from seqray.core.errors import InputError

IUPAC = "ACGTRYSWKMBDHVN"


def test_alphabets_are_found_by_name():
    assert {name: alphabet.letters for name, alphabet in ALPHABETS.items()} == {
        "dna": "ACGT",
        "rna": "ACGU",
        "protein": "ACDEFGHIKLMNPQRSTVWY",
    }


@pytest.mark.parametrize(
    ("alphabet", "text", "folded"),
    [
        (DNA, "acguN", "ACGTN"),
        (DNA, IUPAC.lower(), IUPAC),
        (PROTEIN, "mkvXbzJuO*", "MKVXBZJUO"),
    ],
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
