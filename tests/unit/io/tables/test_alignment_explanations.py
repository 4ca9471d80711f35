"""Tables of explained alignments: every number stands in the coordinates of the file and of the query."""

from __future__ import annotations

import numpy as np

from seqray.core.alphabet import RNA
from seqray.core.explanation import AlignmentExplanation, AlignmentScores
from seqray.core.records import Alignment
from seqray.io.explanations import ROW_COLUMNS, column_lines, row_lines
from seqray.io.tables import format_cell


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
