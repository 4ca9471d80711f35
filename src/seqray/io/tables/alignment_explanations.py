"""Explanations of alignments as tables: a line for each column, each row, or each pair of columns.

Columns, rows and positions in the query are counted from 1, as alignments and their structures are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqray.core.msa import conservation, occupancy
from seqray.core.results import AlignmentExplanation, ColumnPair
from seqray.io.files import open_output
from seqray.io.tables.examples import comment_lines, format_number
from seqray.io.tables.explanations import ranks

COLUMN_COLUMNS = (
    *("record", "column", "query_position", "letter", "method", "class", "score", "rank", "sign"),
    *("occupancy", "conservation"),
)
ROW_COLUMNS = ("record", "row", "name", "method", "class", "score", "rank", "sign", "read")
PAIR_COLUMNS = (
    *("record", "i", "j", "query_i", "query_j", "letter_i", "letter_j"),
    *("score", "rank", "covariation", "helix", "ss_cons"),
)
NONE = "."

Writer = Callable[[Iterable[str]], object]
"""Takes lines and writes them."""


def column_lines(explanation: AlignmentExplanation, top: int | None = None) -> Iterator[str]:
    """Lines of the table of columns, in the order of the columns, method by method.

    Parameters
    ----------
    explanation
        Of one alignment.
    top
        Give the lines of that many best ranks only. Columns that weren't read have no rank.
    """
    e, alignment = explanation, explanation.alignment
    places = [NONE if place < 0 else str(place + 1) for place in alignment.query_positions().tolist()]
    full = [format_number(share) for share in occupancy(alignment.codes, alignment.alphabet).tolist()]
    kept = _cells(conservation(alignment.codes, alignment.alphabet))
    letters = alignment.text(0)
    for found in e.scores:
        scores = e.by_column(found)
        for c, (score, rank, sign) in enumerate(_scored(scores, found.signed)):
            if top is None or (rank != NONE and int(rank) <= top):
                cells = (e.id, str(c + 1), places[c], letters[c], found.method, e.target)
                yield "\t".join((*cells, score, rank, sign, full[c], kept[c])) + "\n"


def row_lines(explanation: AlignmentExplanation) -> Iterator[str]:
    """Lines of the table of rows, in the order of the rows, method by method."""
    e = explanation
    read = set(e.rows.tolist())
    for found in e.scores:
        for r, (score, rank, sign) in enumerate(_scored(e.by_row(found), found.signed)):
            seen = "yes" if r in read else "no"
            name = " ".join(e.alignment.names[r].split()) or NONE
            yield "\t".join((e.id, str(r + 1), name, found.method, e.target, score, rank, sign, seen)) + "\n"


def pair_lines(explanation: AlignmentExplanation, pairs: Iterable[ColumnPair]) -> Iterator[str]:
    """Lines of the table of pairs, in the order given."""
    e = explanation
    places, letters = e.alignment.query_positions().tolist(), e.alignment.text(0)
    for rank, pair in enumerate(pairs, start=1):
        both = (pair.left, pair.right)
        query = (NONE if places[c] < 0 else str(places[c] + 1) for c in both)
        paired = NONE if pair.paired is None else "yes" if pair.paired else "no"
        cells = (e.id, *(str(c + 1) for c in both), *query, *(letters[c] for c in both))
        helix = NONE if pair.helix is None else format_number(pair.helix)
        numbers = (format_number(pair.score), str(rank), format_number(pair.covariation), helix)
        yield "\t".join((*cells, *numbers, paired)) + "\n"


@contextmanager
def open_table(path: str | Path, columns: Sequence[str], provenance: Sequence[str]) -> Iterator[Writer]:
    """Open a table whose lines come one alignment at a time."""
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + ("\t".join(columns) + "\n").encode())
        yield lambda lines: handle.write("".join(lines).encode())


def _scored(scores: npt.NDArray[np.float64], signed: bool) -> Iterator[tuple[str, str, str]]:
    """Score, rank and sign of each place as text; ``.`` where there is no score."""
    known = np.flatnonzero(np.isfinite(scores))
    rank = dict(zip(known.tolist(), ranks(scores[known]).tolist(), strict=True))
    for place, text in enumerate(_cells(scores)):
        value = scores[place]
        sign = NONE if not signed or place not in rank else "+" if value > 0 else "-" if value < 0 else "0"
        yield text, str(rank.get(place, NONE)), sign


def _cells(values: npt.NDArray[np.float64]) -> list[str]:
    """Numbers as text; ``.`` for none."""
    return [format_number(v) if np.isfinite(v) else NONE for v in values.tolist()]
