"""Tables that are written: of all kinds, of motifs, of explanations."""

import math
from io import StringIO

import numpy as np
import pytest
from Bio import motifs as bio_motifs

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import AlignmentExplanation, AlignmentScores, Motif
from seqray.core.records import Alignment
from seqray.io.explanations import MOTIF_COLUMNS, ROW_COLUMNS, column_lines, row_lines, write_motifs
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


def explained(codes, rows, columns, scores, row_scores, signed=False, names=None):
    names = names or tuple(f"s{r}" for r in range(len(codes)))
    found = AlignmentScores("occlusion" if signed else "rollout", signed, scores, row_scores)
    alignment = Alignment("a", names, codes, RNA)
    return AlignmentExplanation(
        0, alignment, "x", "y", (0.2, 0.8), 0.8, np.array(rows), np.array(columns), (found,)
    )


def texts(rows):
    return [[format_cell(cell) for cell in row] for row in rows]


def cells(rows, header):
    return [dict(zip(header, row, strict=True)) for row in texts(rows)]


BY_HAND = np.array([[5, 0, 6, 3, 5, 1], [2, 0, 5, 3, 4, 1], [2, 5, 5, 2, 5, 1]], dtype=np.uint8)


def test_columns_by_hand():
    e = explained(BY_HAND, [0, 2], [0, 1, 3, 5], np.array([0.25, -0.5, 0.25, 0]), np.array([np.nan, 1]), True)
    assert texts(column_lines(e)) == [
        ["a", "1", ".", "-", "occlusion", "y", "0.25", "1", "+", "0.666667", "1"],
        ["a", "2", "1", "A", "occlusion", "y", "-0.5", "4", "-", "0.666667", "1"],
        ["a", "3", ".", "~", "occlusion", "y", ".", ".", ".", "0", "."],
        ["a", "4", "2", "U", "occlusion", "y", "0.25", "2", "+", "1", "0.540852"],
        ["a", "5", ".", "-", "occlusion", "y", ".", ".", ".", "0.333333", "."],
        ["a", "6", "3", "C", "occlusion", "y", "0", "3", "0", "1", "1"],
    ]
    assert [row[1] for row in column_lines(e, top=2)] == [1, 4]
    assert texts(row_lines(e)) == [
        ["a", "1", "s0", "occlusion", "y", ".", ".", ".", "yes"],
        ["a", "2", "s1", "occlusion", "y", ".", ".", ".", "no"],
        ["a", "3", "s2", "occlusion", "y", "1", "1", "+", "yes"],
    ]


def test_names_keep_to_their_cell():
    e = explained(BY_HAND, [0], [0], np.ones(1), np.ones(1), names=("a\tb", "  ", "c\nd"))
    assert [row["name"] for row in cells(row_lines(e), ROW_COLUMNS)] == ["a b", ".", "c d"]
