"""Pairs of columns as a square map: row attention above the diagonal; helices, or covariation, below it."""

from __future__ import annotations

import numpy as np

from seqray.core import Floats
from seqray.core.results import AlignmentExplanation, ColumnPair
from seqray.explanations.attribution import PairTable
from seqray.report.html import compact, escape, number, table
from seqray.report.svg import SHADES, picture, scaled, shades_to

SIZE = 420  # px
TOP = 12  # pairs in the table, and marked on the map
_LEFT, _TOP_SPACE, _RIGHT, _BOTTOM = 40, 24, 8, 8
_DARKEST = (0x2B, 0x1B, 0x5A)
_MOST_TICKS = 8
NO_PLACE = "gap"  # in place of a position, where the query has no letter
STYLE = (
    ".pairs { margin-top: 28px; } .paired { fill: none; stroke: #0f7f86; } "
    ".best { fill: none; stroke: #d97706; stroke-width: 1.6; }"
)


def pair_map(explanation: AlignmentExplanation, found: PairTable) -> str:
    """Draw the map; empty where there is no pair to look at."""
    e = explanation
    if e.pairs is None or not found.best:
        return ""
    far = np.abs(e.columns[:, None] - e.columns) >= found.separation
    beside = found.covariation if found.helices is None else found.helices
    above, below = (_shades(np.where(far, scores, 0.0)) for scores in (e.pairs, beside))
    upper = np.triu(np.ones(above.shape, dtype=bool), k=1)
    cells = np.where(upper, above, below)
    image = (
        f'<image href="{picture(cells, shades_to(_DARKEST))}" width={SIZE} height={SIZE} '
        "preserveAspectRatio=none />"
    )
    slot = SIZE / len(e.columns)
    frame = f'<path class=axis d="M0 0h{SIZE}v{SIZE}h-{SIZE}z"/>'
    body = image + frame + _ticks(e, slot) + _structure(e, found, slot) + _best(e, found.best[:TOP], slot)
    box = f"{-_LEFT} {-_TOP_SPACE} {_LEFT + SIZE + _RIGHT} {_TOP_SPACE + SIZE + _BOTTOM}"
    return (
        "<figure class=pairs><figcaption><b>Pairs of columns.</b> Above the diagonal row attention, below it "
        f"{'covariation' if found.helices is None else 'the probability of a base pair'}"
        f"{'; circles: pairs of SS_cons' if found.structure else ''}; squares: the best "
        f"{min(TOP, len(found.best))}; white where columns are fewer than {found.separation} apart."
        f'</figcaption><svg class=plot viewBox="{box}" width={_LEFT + SIZE + _RIGHT} role=img '
        f'aria-label="Scores of the pairs of columns">{body}</svg></figure>'
    )


def _shades(scores: Floats) -> np.ndarray:
    return scaled(scores, SHADES, float(scores.max(initial=0.0))).clip(min=0).astype(np.uint8)


def _ticks(e: AlignmentExplanation, slot: float) -> str:
    """Positions of the query along both sides."""
    places = e.alignment.query_positions()[e.columns].tolist()
    letters = max(1, max(places) + 1)
    step = 10 * max(1, -(-letters // (10 * _MOST_TICKS)))
    spots = [((i + 0.5) * slot, p + 1) for i, p in enumerate(places) if p >= 0 and (p + 1) % step == 0]
    return "".join(
        f'<text class="tick mid" x={compact(at)} y=-8>{p}</text>'
        f'<text class="tick end" x=-8 y={compact(at + 4)}>{p}</text>'
        for at, p in spots
    )


def _structure(e: AlignmentExplanation, found: PairTable, slot: float) -> str:
    index = {column: i for i, column in enumerate(e.columns.tolist())}
    drawn = []
    for left, right in sorted(found.structure or ()):
        if left in index and right in index:
            near, far = (compact((index[column] + 0.5) * slot) for column in (left, right))
            size = compact(max(2.5, slot))
            drawn += [
                f"<circle class=paired cx={x} cy={y} r={size} />" for x, y in ((near, far), (far, near))
            ]
    return "".join(drawn)


def _best(e: AlignmentExplanation, best: tuple[ColumnPair, ...], slot: float) -> str:
    index = {column: i for i, column in enumerate(e.columns.tolist())}
    size = max(6.0, slot + 3)
    return "".join(
        f"<rect class=best x={compact((index[pair.right] + 0.5) * slot - size / 2)} "
        f"y={compact((index[pair.left] + 0.5) * slot - size / 2)} width={compact(size)} "
        f"height={compact(size)}><title>{escape(_told(e, pair))}</title></rect>"
        for pair in best
    )


def _told(e: AlignmentExplanation, pair: ColumnPair) -> str:
    return (
        f"columns {pair.left + 1} and {pair.right + 1}; query {_place(e, pair.left)} and "
        f"{_place(e, pair.right)}; score {number(pair.score)}"
    )


def _place(e: AlignmentExplanation, column: int) -> str:
    """Position and letter of the query in a column of the file."""
    place = int(e.alignment.query_positions()[column])
    return f"{place + 1} {e.alignment.text(0)[column]}" if place >= 0 else NO_PLACE


def pair_ranks(explanation: AlignmentExplanation, found: PairTable) -> str:
    """List the best pairs."""
    if not found.best:
        return ""
    paired = {None: "", True: "yes", False: "no"}
    head = ["rank", "columns", "query", "score", "covariation"]
    head += ["helix"] if found.helices is not None else []
    head += ["SS_cons"] if found.structure is not None else []
    rows = [
        [
            str(rank),
            f"{pair.left + 1}\N{EN DASH}{pair.right + 1}",
            f"{_place(explanation, pair.left)}\N{EN DASH}{_place(explanation, pair.right)}",
            number(pair.score),
            number(pair.covariation),
            *([number(pair.helix)] if pair.helix is not None else []),
            *([paired[pair.paired]] if found.structure is not None else []),
        ]
        for rank, pair in enumerate(found.best[:TOP], start=1)
    ]
    return table(head, rows, "", "best pairs of columns")
