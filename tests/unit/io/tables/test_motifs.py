"""Motif files, read back by Biopython and by hand."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from Bio import motifs as bio_motifs

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import Motif
from seqray.io.explanations import MOTIF_COLUMNS, write_motifs

COUNTS = np.array([[0, 0, 0, 8], [6, 1, 1, 0], [0, 2, 2, 4]], dtype=float)  # 8 sites of T, A, T
BACKGROUND = [0.3, 0.2, 0.2, 0.3]


def motif(name="motif_1", **changes):
    fields = {
        "letters": "ACGT",
        "counts": COUNTS,
        "bits": np.array([1.5, 0.5, 0.25]),
        "sites": 8,
        "positions": np.arange(8),
        "consensus": "TAT",
        "known": "-10 box",
        "similarity": 0.75,
    }
    return Motif(name, **{**fields, **changes})


def written(tmp_path, ending, motifs, **options):
    path = tmp_path / f"found{ending}"
    write_motifs(path, motifs, options.pop("alphabet", DNA), **options)
    return path.read_text()


def read(text, kind):
    return bio_motifs.parse(StringIO(text), kind)


def test_biopython_reads_meme(tmp_path):
    text = written(
        tmp_path, ".meme", [motif(), motif("motif_2")], background=BACKGROUND, provenance=["seqray 1"]
    )
    record = read(text, "minimal")
    assert [m.name for m in record] == ["motif_1", "motif_2"]
    assert record.version == "4"
    assert record[0].num_occurrences == 8
    assert [record.background[letter] for letter in "ACGT"] == BACKGROUND
    np.testing.assert_array_equal([record[0].counts[letter] for letter in "ACGT"], COUNTS.T)


def test_provenance_in_meme_follows_the_version_and_precedes_the_alphabet(tmp_path):
    lines = written(
        tmp_path, ".meme", [motif()], provenance=["seqray 1", "model: m\nALPHABET= XYZ"]
    ).splitlines()
    assert lines[0] == "MEME version 4"
    assert lines[2:4] == ["# seqray 1", "# model: m ALPHABET= XYZ"]  # no entry can start a line
    assert lines[4] == "ALPHABET= ACGT"
    assert "strands: +" in lines


def test_meme_of_a_protein(tmp_path):
    counts = np.zeros((2, 20))
    counts[:, 3] = 4
    text = written(
        tmp_path, ".meme", [motif(letters=PROTEIN.letters, counts=counts, sites=4)], alphabet=PROTEIN
    )
    assert f"ALPHABET= {PROTEIN.letters}" in text
    assert "strands" not in text
    assert "alength= 20 w= 2 nsites= 4 E= 0" in text
    assert "A 0.05000" in text


def test_a_place_of_unknown_letters_keeps_meme_a_distribution(tmp_path):
    counts = np.vstack([COUNTS, np.zeros(4)])
    lines = written(tmp_path, ".meme", [motif(counts=counts)], background=BACKGROUND).splitlines()
    assert lines[-2] == "0.300000 0.200000 0.200000 0.300000"


def test_biopython_reads_jaspar(tmp_path):
    record = read(written(tmp_path, ".jaspar", [motif(), motif("motif_2")]), "jaspar")
    assert [m.matrix_id for m in record] == ["motif_1", "motif_2"]
    np.testing.assert_array_equal([record[0].counts[letter] for letter in "ACGT"], COUNTS.T)


def test_jaspar_is_for_dna(tmp_path):
    with pytest.raises(InputError, match="is for DNA, not protein"):
        written(tmp_path, ".jaspar", [], alphabet=PROTEIN)
    assert list(tmp_path.iterdir()) == []


def test_table(tmp_path):
    lines = written(tmp_path, ".tsv", [motif()], provenance=["seqray 1"]).splitlines()
    assert lines[0] == "# seqray 1"
    row = dict(zip(lines[1].split("\t"), lines[2].split("\t"), strict=True))
    assert tuple(row) == MOTIF_COLUMNS
    assert row == {
        "motif": "motif_1",
        "consensus": "TAT",
        "sites": "8",
        "width": "3",
        "information": "2.25",
        "known": "-10 box",
        "similarity": "0.75",
        "position_q25": "1.75",
        "position_median": "3.5",
        "position_q75": "5.25",
    }


def test_unknown_ending(tmp_path):
    with pytest.raises(ConfigError, match=r"use \.meme, \.jaspar or \.tsv"):
        written(tmp_path, ".txt", [motif()])
    assert list(tmp_path.iterdir()) == []
