"""A call with its surroundings: genes, scores of both strands, and the letters around its boxes.

Everything is drawn in the reading direction of the call, so that transcription goes to the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Floats
from seqray.report.html import MINUS, compact, escape, offset, offset_ticks
from seqray.report.svg.genes import arrow_path, named_arrow, outline, strongest
from seqray.report.svg.rows import tick_label

CALL_REACH = 400  # letters on either side of a call
STRIP_START, STRIP_END = -46, 6  # letters drawn, relative to the site, the end excluded

_LEFT, _WIDTH, _MARGIN = 28, 400, 18
_TOTAL = _LEFT + _WIDTH + _MARGIN
_SCORE_HEIGHT = 46  # of a score of 1
_UP = 62  # line from which the scores of the strand of the call rise
_LANE = 16
_DOWN = _UP + 2 * _LANE + 12  # line from which those of the other strand hang
_BOTTOM = _DOWN + _SCORE_HEIGHT
_TOTAL_HEIGHT = _BOTTOM + 20
_SLOT = _TOTAL / (STRIP_END - STRIP_START)
_TICKS = (0.1, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class NearbyGene:
    """A gene near a call: edges relative to the site in reading direction, half-open.

    ``same`` says whether it lies on the strand of the call.
    """

    start: int
    end: int
    same: bool
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class MarkedBox:
    """A box of the promoter: its name, first letter relative to the site, letters in reading direction."""

    name: str
    start: int
    letters: str


def draw_surroundings(
    genes: Iterable[NearbyGene],
    profiles: tuple[Floats, Floats] | None,
    boxes: Sequence[MarkedBox],
    threshold: float | None,
    name: str,
) -> Markup:
    """Draw the surroundings of a call.

    Parameters
    ----------
    genes
        That overlap the drawing.
    profiles
        Scores of the strand of the call and of the other one, (2 * CALL_REACH + 1,) each in reading
        direction; None if they are not known.
    boxes
        Of the promoter.
    threshold
        Above which sites are called.
    name
        Of the drawing, for readers who do not see it.
    """
    body = _scale(threshold) + _scores(profiles) if profiles else ""
    body += _strand_lines() + "".join(map(_gene, genes))
    body += "".join(_mark(box) for box in boxes) + _call(profiles) + _axis()
    return Markup(
        f'<svg class=callmap viewBox="0 0 {_TOTAL} {_TOTAL_HEIGHT}" role=img '
        f'aria-label="{escape(name)}">{body}</svg>'
    )


def _x(place: float) -> float:
    """Place of an edge between letters, relative to the left edge of the site, px."""
    return _LEFT + (place + CALL_REACH) / (2 * CALL_REACH + 1) * _WIDTH


def _height(score: float) -> float:
    """Weak peaks would be invisible beside a score of 1, so heights are square roots."""
    return _SCORE_HEIGHT * min(1.0, max(0.0, score)) ** 0.5


def _scale(threshold: float | None) -> str:
    texts, rules = "", ""
    for score in _TICKS:
        up, down = _UP - _height(score), _DOWN + _height(score)
        texts += tick_label(_LEFT - 5, compact(up + 4), f"{score:g}", "end")
        texts += tick_label(_LEFT - 5, compact(down + 4), f"{score:g}", "end")
        rules += f"M{_LEFT} {compact(up)}h{_WIDTH}M{_LEFT} {compact(down)}h{_WIDTH}"
    drawn = f'<path class=rule d="{rules}"/>{texts}'
    if threshold is None:
        return drawn
    up, down = compact(_UP - _height(threshold)), compact(_DOWN + _height(threshold))
    return f'{drawn}<path class=limit d="M{_LEFT} {up}h{_WIDTH}M{_LEFT} {down}h{_WIDTH}"/>'


def _scores(profiles: tuple[Floats, Floats]) -> str:
    paths = ""
    for values, base, up in ((profiles[0], _UP, True), (profiles[1], _DOWN, False)):
        columns = strongest(values, _WIDTH).tolist()
        heights = [None if np.isnan(value) else round(2 * _height(value)) for value in columns]
        kind = "own" if up else "other"
        paths += f'<path class={kind} d="{outline(heights, _LEFT, base, up=up)}"/>'
    return paths


def _strand_lines() -> str:
    """The strands as lines under their genes."""
    same, other = _UP + 4 + _LANE // 2, _UP + 8 + _LANE + _LANE // 2
    return f'<path class=strand d="M{_LEFT} {same}h{_WIDTH}M{_LEFT} {other}h{_WIDTH}"/>'


def _gene(gene: NearbyGene) -> str:
    left, right = _x(max(gene.start, -CALL_REACH)), _x(min(gene.end, CALL_REACH + 1))
    top = _UP + 4 if gene.same else _UP + 8 + _LANE
    if gene.same:
        heads = ">" if gene.end <= CALL_REACH + 1 else ""
    else:
        heads = "<" if gene.start >= -CALL_REACH else ""
    path = arrow_path(left, right, top, _LANE, heads)
    return named_arrow(path, gene.name, (left, right, top + 12), gene.title)


def _mark(box: MarkedBox) -> str:
    """A box as a block on the strand of the call."""
    left, right = _x(box.start), _x(box.start + len(box.letters))
    title = f"{box.name} box: {box.letters}"
    return (
        f"<g><title>{escape(title)}</title><rect class={_kind(box)} x={compact(left)} y={_UP + 1} "
        f"width={compact(right - left)} height={_LANE + 6} /></g>"
    )


def _kind(box: MarkedBox) -> str:
    return "m35" if "35" in box.name else "m10"


def _call(profiles: tuple[Floats, Floats] | None) -> str:
    """The bent arrow of a start; it begins above the peak."""
    peak = float(np.nan_to_num(profiles[0][CALL_REACH])) if profiles else 0.0
    x, top, foot = _x(0.5), _UP - _SCORE_HEIGHT - 8, _UP - _height(peak) - 2
    tip = f'<path class=tip d="M{compact(x + 29)} {top}l-9-4.5v9z"/>'
    return f'<path class=start d="M{compact(x)} {compact(foot)}V{top}h22"/>{tip}'


def _axis() -> str:
    places = offset_ticks(-CALL_REACH, CALL_REACH + 1, 100)
    marks = "".join(f"M{compact(_x(place + 0.5))} {_BOTTOM + 2}v4" for place in places)
    texts = "".join(
        tick_label(compact(_x(place + 0.5)), _BOTTOM + 17, offset(place)) for place in places[::2]
    )
    return f'<path class=axis d="M{_LEFT} {_BOTTOM + 2}h{_WIDTH}{marks}"/>{texts}'


def letter_strip(letters: str, boxes: Sequence[MarkedBox], shares: Floats | None, name: str) -> Markup:
    """Write the letters around the boxes, with what each letter contributes above it.

    Parameters
    ----------
    letters
        From ``STRIP_START`` to ``STRIP_END`` around the site in reading direction.
    boxes
        Of the promoter.
    shares
        Contribution of each letter, signed; None if not known.
    name
        Of the drawing, for readers who do not see it.
    """
    top = 34 if shares is not None else 16
    high = top + 26 + (12 if shares is not None and float(np.nanmin(shares, initial=0.0)) < 0 else 0)
    body = "".join(_box_letters(box, top) for box in boxes) + _site_letter(top)
    body += _bars(shares, top) if shares is not None else ""
    spots = " ".join(compact((i + 0.5) * _SLOT) for i in range(len(letters)))
    body += f'<text class=seq x="{spots}" y={top + 14}>{escape(letters)}</text>'
    return Markup(
        f'<svg class=strip viewBox="0 0 {_TOTAL} {high}" role=img aria-label="{escape(name)}">{body}</svg>'
    )


def _box_letters(box: MarkedBox, top: int) -> str:
    left, width = (box.start - STRIP_START) * _SLOT, len(box.letters) * _SLOT
    name = box.name.replace("-", MINUS)
    return (
        f"<rect class={_kind(box)} x={compact(left)} y={top} width={compact(width)} height=19 rx=3 />"
        f"{tick_label(compact(left + width / 2), 11, escape(name))}"
    )


def _site_letter(top: int) -> str:
    left = -STRIP_START * _SLOT
    rect = f"<rect class=plus1 x={compact(left)} y={top} width={compact(_SLOT)} height=19 rx=3 />"
    return f"{rect}{tick_label(compact(left + _SLOT / 2), 11, '+1')}"


def _bars(shares: Floats, top: int) -> str:
    """Bars that rise from above the letters, in two colors for and against the call."""
    largest = float(np.nanmax(np.abs(shares), initial=0.0)) or 1.0
    drawn = ""
    for kind, sign in (("support", 1), ("oppose", -1)):
        heights = np.nan_to_num(np.maximum(sign * shares, 0.0)) / largest * (20 if sign > 0 else 10)
        base = top - 1 if sign > 0 else top + 20
        path = "".join(
            f"M{compact(i * _SLOT + 1)} {base}v{compact(-sign * h)}h{compact(_SLOT - 2)}V{base}z"
            for i, h in enumerate(heights.tolist())
            if h >= 0.3
        )
        drawn += f'<path class={kind} d="{path}"/>' if path else ""
    return drawn
