"""Pairs of columns as a square map: row attention above the diagonal; helices, or covariation, below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from seqray.core.results import AlignmentExplanation, ColumnPair
from seqray.explanations.attribution import PairTable
from seqray.report.html import compact, escape, number, table, templates
from seqray.report.pages.explained import MAX_RANKED
from seqray.report.svg import heat_map, shade_steps, tick_label, tick_step

_SIZE = 420  # px
_LEFT, _TOP_SPACE, _RIGHT, _BOTTOM = 40, 24, 8, 8
_MAX_TICKS = 8
NO_POSITION = "gap"  # where the query has no letter


def pair_map(explanation: AlignmentExplanation, found: PairTable) -> Markup:
    """Draw the map; empty where there are no pairs."""
    e = explanation
    if e.pairs is None or not found.best:
        return Markup()
    far = np.abs(e.columns[:, None] - e.columns) >= found.separation
    other = found.covariation if found.helices is None else found.helices
    shades = [np.where(far, scores, 0.0) for scores in (e.pairs, other)]
    above, below = (shade_steps(scores, float(scores.max(initial=0.0))) for scores in shades)
    image = heat_map(np.where(np.triu(np.ones(above.shape, dtype=bool), k=1), above, below), _SIZE, _SIZE)
    slot = _SIZE / len(e.columns)
    frame = f'<path class=axis d="M0 0h{_SIZE}v{_SIZE}h-{_SIZE}z"/>'
    middles = {column: (i + 0.5) * slot for i, column in enumerate(e.columns.tolist())}
    body = f"{image}{frame}{_ticks(e, middles)}{_structure(middles, found, slot)}"
    body += _best(e, middles, found.best[:MAX_RANKED], slot)
    wide = _LEFT + _SIZE + _RIGHT
    drawing = (
        f'<svg class=plot viewBox="{-_LEFT} {-_TOP_SPACE} {wide} {_TOP_SPACE + _SIZE + _BOTTOM}" '
        f'width={wide} role=img aria-label="Scores of the pairs of columns">{body}</svg>'
    )
    return templates("alignments.html").pairs(found, min(MAX_RANKED, len(found.best)), Markup(drawing))


def _ticks(e: AlignmentExplanation, middles: Mapping[int, float]) -> str:
    """Positions of the query along both sides."""
    positions = e.alignment.query_positions()[e.columns].tolist()
    step = tick_step(max(1, max(positions) + 1), _MAX_TICKS)
    numbered = zip(middles.values(), (p + 1 for p in positions), strict=True)
    spots = [(at, p) for at, p in numbered if p > 0 and p % step == 0]
    return "".join(
        tick_label(compact(at), -8, p) + tick_label(-8, compact(at + 4), p, "end") for at, p in spots
    )


def _structure(middles: Mapping[int, float], found: PairTable, slot: float) -> str:
    """Circles at both places of the pairs of the structure that were read."""
    size = compact(max(2.5, slot))
    pairs = [pair for pair in sorted(found.structure or ()) if middles.keys() >= set(pair)]
    return "".join(
        f"<circle class=paired cx={compact(middles[x])} cy={compact(middles[y])} r={size} />"
        for left, right in pairs
        for x, y in ((left, right), (right, left))
    )


def _best(
    e: AlignmentExplanation, middles: Mapping[int, float], best: Sequence[ColumnPair], slot: float
) -> str:
    size = max(6.0, slot + 3)
    return "".join(
        f"<rect class=best x={compact(middles[pair.right] - size / 2)} "
        f"y={compact(middles[pair.left] - size / 2)} width={compact(size)} "
        f"height={compact(size)}><title>{escape(_title(e, pair))}</title></rect>"
        for pair in best
    )


def _title(e: AlignmentExplanation, pair: ColumnPair) -> str:
    return (
        f"columns {pair.left + 1} and {pair.right + 1}; query {_position(e, pair.left)} and "
        f"{_position(e, pair.right)}; score {number(pair.score)}"
    )


def _position(e: AlignmentExplanation, column: int) -> str:
    """Position and letter of the query in a column of the file."""
    position = int(e.alignment.query_positions()[column])
    return f"{position + 1} {e.alignment.text(0)[column]}" if position >= 0 else NO_POSITION


def pair_ranks(explanation: AlignmentExplanation, found: PairTable) -> Markup:
    """List the best pairs."""
    if not found.best:
        return Markup()
    paired = {None: "", True: "yes", False: "no"}
    head = ["rank", "columns", "query", "score", "covariation"]
    head += ["helix"] if found.helices is not None else []
    head += ["SS_cons"] if found.structure is not None else []
    rows = [
        [
            str(rank),
            f"{pair.left + 1}\N{EN DASH}{pair.right + 1}",
            f"{_position(explanation, pair.left)}\N{EN DASH}{_position(explanation, pair.right)}",
            number(pair.score),
            number(pair.covariation),
            *([number(pair.helix)] if pair.helix is not None else []),
            *([paired[pair.paired]] if found.structure is not None else []),
        ]
        for rank, pair in enumerate(found.best[:MAX_RANKED], start=1)
    ]
    return table(head, rows, caption="best pairs of columns")
