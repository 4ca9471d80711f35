"""Explanations of alignments as tables: a line for each column, each row, or each pair of columns.

Columns, rows and positions in the query are counted from 1, as alignments and their structures are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seqray.core.msa import conservation, occupancy
from seqray.core.results import AlignmentExplanation, ColumnPair
from seqray.io.tables.explanations import ranked_scores
from seqray.io.tables.writing import one_line

COLUMN_COLUMNS = (
    *("record", "column", "query_position", "letter", "method", "class", "score", "rank", "sign"),
    *("occupancy", "conservation"),
)
ROW_COLUMNS = ("record", "row", "name", "method", "class", "score", "rank", "sign", "read")
PAIR_COLUMNS = (
    *("record", "i", "j", "query_i", "query_j", "letter_i", "letter_j"),
    *("score", "rank", "covariation", "helix", "ss_cons"),
)


def column_lines(explanation: AlignmentExplanation, top: int | None = None) -> Iterator[tuple[object, ...]]:
    """Cells of the table of columns, in the order of the columns, method by method.

    ``top`` limits them to that many of the best ranks; columns that the model did not read have no rank.
    """
    e, alignment = explanation, explanation.alignment
    positions = _query_positions(e)
    occupied = occupancy(alignment.codes, alignment.alphabet).tolist()
    conserved = conservation(alignment.codes, alignment.alphabet).tolist()
    letters = alignment.text(0)
    for found in e.scores:
        for c, ranked in enumerate(ranked_scores(e.by_column(found), found.signed)):
            if top is None or (ranked[1] is not None and ranked[1] <= top):
                cells = (e.id, c + 1, positions[c], letters[c], found.method, e.target)
                yield (*cells, *ranked, occupied[c], conserved[c])


def row_lines(explanation: AlignmentExplanation) -> Iterator[tuple[object, ...]]:
    """Cells of the table of rows, in the order of the rows, method by method."""
    e = explanation
    read = set(e.rows.tolist())
    for found in e.scores:
        for r, ranked in enumerate(ranked_scores(e.by_row(found), found.signed)):
            name = one_line(e.alignment.names[r]) or None
            yield (e.id, r + 1, name, found.method, e.target, *ranked, r in read)


def pair_lines(
    explanation: AlignmentExplanation, pairs: Iterable[ColumnPair]
) -> Iterator[tuple[object, ...]]:
    """Cells of the table of pairs, in the order given."""
    positions, letters = _query_positions(explanation), explanation.alignment.text(0)
    for rank, pair in enumerate(pairs, start=1):
        i, j = pair.left, pair.right
        columns = (i + 1, j + 1, positions[i], positions[j], letters[i], letters[j])
        helix = None if pair.helix is None else float(pair.helix)
        paired = None if pair.paired is None else bool(pair.paired)
        yield (explanation.id, *columns, float(pair.score), rank, float(pair.covariation), helix, paired)


def _query_positions(explanation: AlignmentExplanation) -> list[int | None]:
    """Position in the query of each column, from 1."""
    return [place + 1 if place >= 0 else None for place in explanation.alignment.query_positions().tolist()]
