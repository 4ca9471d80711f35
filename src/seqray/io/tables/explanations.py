"""Explanations as tables and tracks, and what was found about their worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqray.core.results import Check, Explanation, HeadFigures
from seqray.io.files import open_output
from seqray.io.tables.examples import comment_lines, format_number
from seqray.io.tracks import TrackWriter

EXPLANATION_COLUMNS = (
    *("record", "position", "contig", "genomic_position", "strand", "base", "method", "member", "class"),
    *("score", "rank", "sign", "ism_delta", "p", "q"),
)
CHECK_COLUMNS = ("method", "measure", "against", "value", "low", "high", "records")
HEAD_COLUMNS = ("member", "layer", "head", "entropy", "distance", "cls_mass", "importance")
Values = dict[str, tuple[int, dict[int, float]]]
"""By contig: its length, and the score of each position."""


def ranks(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Rank of each letter (n,), 1 for the highest score; ties in the order of the sequence."""
    order = np.argsort(-scores, kind="stable")
    result = np.empty(len(scores), dtype=np.int64)
    result[order] = np.arange(1, len(scores) + 1)
    return result


def open_rows(explanation: Explanation, top: int | None = None) -> Iterator[str]:
    """Lines of the table for one explanation, in the order of the positions.

    Parameters
    ----------
    explanation
        One record by one method.
    top
        Give the lines of that many best ranks only.
    """
    e = explanation
    count = len(e.scores)
    places = e.place.positions().tolist() if e.place else ["."] * count
    contig, strand = (e.place.contig, e.place.strand) if e.place else (".", ".")
    deltas = _cells(None if e.effects is None else e.effects.sum(axis=1) / (e.effects.shape[1] - 1), count)
    columns = zip(
        _cells(e.scores, count), ranks(e.scores), deltas, _cells(e.p, count), _cells(e.q, count), strict=True
    )
    for i, (score, rank, delta, p, q) in enumerate(columns):
        if top is None or rank <= top:
            sign = "." if not e.signed else ("+" if e.scores[i] > 0 else "-" if e.scores[i] < 0 else "0")
            cells = (e.id, i, contig, places[i], strand, e.sequence[i], e.method, e.member, e.target)
            yield "\t".join(map(str, (*cells, score, rank, sign, delta, p, q))) + "\n"


def _cells(values: npt.NDArray[np.float64] | None, count: int) -> list[str]:
    """Numbers as text; ``.`` for none."""
    if values is None:
        return ["."] * count
    return [format_number(v) if np.isfinite(v) else "." for v in values.tolist()]


def write_explanations(
    path: str | Path,
    explanations: Iterable[Explanation],
    provenance: Sequence[str] = (),
    top: int | None = None,
) -> int:
    """Write a line per position, method and member, and return the number of explanations."""
    count = 0
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + ("\t".join(EXPLANATION_COLUMNS) + "\n").encode())
        for explanation in explanations:
            handle.write("".join(open_rows(explanation, top)).encode())
            count += 1
    return count


def write_checks(path: str | Path, checks: Iterable[Check], provenance: Sequence[str] = ()) -> None:
    """Write the figures on faithfulness, a line each."""
    rows = [(c.method, c.measure, c.against, c.value, c.low, c.high, c.records) for c in checks]
    _write_rows(path, CHECK_COLUMNS, rows, provenance)


def write_heads(path: str | Path, heads: Iterable[HeadFigures], provenance: Sequence[str] = ()) -> None:
    """Write the figures of each attention head, a line each."""
    rows = [(h.member, h.layer, h.head, h.entropy, h.distance, h.cls_mass, h.importance) for h in heads]
    _write_rows(path, HEAD_COLUMNS, rows, provenance)


def _write_rows(
    path: str | Path, columns: Sequence[str], rows: Iterable[Sequence[object]], provenance: Sequence[str]
) -> None:
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + ("\t".join(columns) + "\n").encode())
        for row in rows:
            handle.write(("\t".join(map(_text, row)) + "\n").encode())


def _text(value: object) -> str:
    if isinstance(value, float):
        return format_number(value) if np.isfinite(value) else "."
    return str(value)


class ScoreTrack:
    """Scores of one method along contigs, gathered from explanations and written at the end.

    A record without a place is a contig of its own. Where calls overlap, a position keeps the highest score.
    """

    def __init__(self) -> None:
        self._strands: dict[str, Values] = {"+": {}, "-": {}}

    def add(self, explanation: Explanation) -> None:
        """Add the scores of one explanation."""
        e = explanation
        place = e.place
        contig, length = (place.contig, place.length) if place else (e.id, len(e.sequence))
        positions = place.positions().tolist() if place else range(length)
        for values in self._strands.values():
            values.setdefault(contig, (length, {}))
        _, known = self._strands[place.strand if place else "+"][contig]
        for position, score in zip(positions, e.scores.tolist(), strict=True):
            known[position] = max(score, known.get(position, score))

    def write(self, path: str | Path, provenance: Sequence[str], name: str) -> None:
        """Write one file per strand, as `TrackWriter` names them."""
        with TrackWriter(path, provenance, name) as track:
            for contig, (length, _) in self._strands["+"].items():
                track.begin(contig, length)
                for strand, contigs in self._strands.items():
                    for start, values in _runs(contigs[contig][1]):
                        track.add(contig, strand, start, values)


def _runs(scores: Mapping[int, float]) -> Iterator[tuple[int, list[float]]]:
    """Stretches of neighbouring positions: start and values."""
    run: list[float] = []
    first = 0
    for position in sorted(scores):
        if run and position != first + len(run):
            yield first, run
            run = []
        if not run:
            first = position
        run.append(scores[position])
    if run:
        yield first, run
