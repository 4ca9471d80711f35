"""Provenance, numbers and cells of every table: `seqray.io.tables`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seqray.core.alphabet import DNA, PROTEIN
from seqray.io.tables import describe_alphabet, format_cell, provenance_lines


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("./a/b/", "b"),
        ("/", ""),
        ("chr1:5-10", "chr1:5-10"),
        ("/x y/z =1/my a.fa", "my a.fa"),
        ("folder/a.fa", "a.fa"),
        ("--class=promoter=../pa th/p.fa", "--class=promoter=p.fa"),
        ("lane1/s 3", "lane1/s 3"),
        ("/dev/fd/63", "pipe"),
    ],
)
def test_only_the_last_part_of_a_path_is_kept(word, kept, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert provenance_lines([word], "", "", "")[1].removeprefix("command:").strip().strip("'") == kept


def test_alphabet_policy_says_what_is_folded():
    assert describe_alphabet(DNA) == "dna ACGT, case folded, U read as T; RYSWKMBDHVN read as unknown"
    assert describe_alphabet(PROTEIN) == "protein ACDEFGHIKLMNPQRSTVWY, case folded; XBZJUO read as unknown"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, "."),
        (math.nan, "."),
        (-math.inf, "."),
        (True, "yes"),
        (False, "no"),
        (1234567, "1234567"),
        (1234567.0, "1.23457e+06"),
        (np.float64(0.1) + 0.2, "0.3"),
        ("a b", "a b"),
    ],
)
def test_cells_by_hand(value, cell):
    assert format_cell(value) == cell
