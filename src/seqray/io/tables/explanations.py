"""Tables of explained sequences: scores of positions, figures of faithfulness, of heads and of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from seqray.core import Floats, Ints
from seqray.core.results import Check, Explanation, HeadFigures, InputShares
from seqray.io.tables.writing import write_table

EXPLANATION_COLUMNS = (
    *("record", "position", "contig", "genomic_position", "strand", "base", "method", "member", "class"),
    *("score", "rank", "sign", "ism_delta", "p", "q"),
)
SHARE_COLUMNS = (
    *("record", "contig", "site", "strand", "class", "score", "log_odds", "letters", "genes"),
    *("without_genes", "letters_shuffled", "first_track", "first_effect"),
)
CHECK_COLUMNS = ("method", "measure", "against", "value", "low", "high", "records")
HEAD_COLUMNS = ("member", "layer", "head", "entropy", "distance", "cls_mass", "importance")


def ranks(scores: Floats) -> Ints:
    """Rank of each position (n,), 1 for the highest score; ties in the order of the sequence."""
    order = np.argsort(-scores, kind="stable")
    result = np.empty(len(scores), dtype=np.int64)
    result[order] = np.arange(1, len(scores) + 1)
    return result


def ranked_scores(scores: Floats, signed: bool) -> Iterator[tuple[float | None, int | None, str]]:
    """Score, rank and sign of each position; None and ``.`` if there is no score."""
    known = np.isfinite(scores)
    rank = iter(ranks(scores[known]).tolist())
    for score, scored in zip(scores.tolist(), known.tolist(), strict=True):
        sign = "+" if score > 0 else "-" if score < 0 else "0"
        yield (score, next(rank), sign if signed else ".") if scored else (None, None, ".")


def explanation_rows(explanation: Explanation, top: int | None = None) -> Iterator[tuple[object, ...]]:
    """Cells of the table for one explanation, in the order of the positions.

    ``top`` limits them to that many of the best ranks.
    """
    e = explanation
    none = [None] * len(e.scores)
    places = [p if p >= 0 else None for p in e.place.positions().tolist()] if e.place else none
    contig, strand = (e.place.contig, e.place.strand) if e.place else (None, None)
    deltas = none if e.effects is None else (e.effects.sum(axis=1) / (e.effects.shape[1] - 1)).tolist()
    p_values, q_values = (none if values is None else values.tolist() for values in (e.p, e.q))
    ranked = ranked_scores(e.scores, e.signed)
    columns = zip(places, e.sequence, ranked, deltas, p_values, q_values, strict=True)
    for i, (place, letter, (score, rank, sign), delta, p, q) in enumerate(columns):
        if top is None or (rank is not None and rank <= top):
            record = (e.id, i, contig, place, strand, letter, e.method, e.member, e.target)
            yield (*record, score, rank, sign, delta, p, q)


def write_checks(path: str | Path, checks: Iterable[Check], provenance: Sequence[str] = ()) -> None:
    """Write one row per faithfulness figure.

    Parameters
    ----------
    path
        File to write.
    checks
        Rows of the table.
    provenance
        Comment lines of the file.
    """
    write_table(path, CHECK_COLUMNS, _cells(checks, CHECK_COLUMNS), provenance)


def write_shares(path: str | Path, shares: Iterable[InputShares], provenance: Sequence[str] = ()) -> None:
    """Write one row per call: what its letters and genes add to its score.

    Parameters
    ----------
    path, provenance
        See `write_checks`.
    shares
        Rows of the table.
    """
    write_table(path, SHARE_COLUMNS, map(_share_cells, shares), provenance)


def _share_cells(s: InputShares) -> tuple[object, ...]:
    site = int(s.place.positions()[(s.place.end - s.place.start) // 2])
    track, effect = max(s.tracks.items(), key=lambda pair: abs(pair[1]), default=(None, None))
    first = (track, effect) if effect else (None, None)
    record = (s.id, s.place.contig, site, s.place.strand, s.target, s.probability, s.score)
    return (*record, s.letters, 1 - s.letters, s.without_genes, s.shuffled, *first)


def write_heads(path: str | Path, heads: Iterable[HeadFigures], provenance: Sequence[str] = ()) -> None:
    """Write one row per attention head.

    Parameters
    ----------
    path, provenance
        See `write_checks`.
    heads
        Rows of the table.
    """
    write_table(path, HEAD_COLUMNS, _cells(heads, HEAD_COLUMNS), provenance)


def _cells(results: Iterable[object], columns: Sequence[str]) -> Iterator[list[object]]:
    """The attributes of results that are named like the columns."""
    return ([getattr(result, name) for name in columns] for result in results)
