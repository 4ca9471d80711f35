"""Rows of letters and cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats
from seqray.report.html import escape, number, offset, offset_ticks
from seqray.report.palette import OPPOSE, SUPPORT

# --- Scores as one of a few shades, written as one character a letter; ``script.js`` reads the same chara

STEPS = 6
_SHARES = "0123456"
_FOR = "0ABCDEF"
_AGAINST = "0abcdef"


def reach(values: Floats) -> float:
    """Largest size of a finite value, 0 if there is none."""
    sizes = np.abs(values[np.isfinite(values)])
    return float(sizes.max(initial=0.0))


def scaled(values: Floats, height: int, largest: float | None = None) -> np.ndarray:
    """Whole numbers from ``-height`` to ``height``; what is not finite becomes 0.

    Parameters
    ----------
    values
        Of any shape.
    height
        Number for the largest value.
    largest
        Size of that value; by default that of the values.
    """
    top = reach(values) if largest is None else largest
    if not top > 0:
        return np.zeros(values.shape, dtype=np.int64)
    share = np.nan_to_num(values / top, nan=0.0, posinf=0.0, neginf=0.0)
    return np.rint(np.clip(share, -1, 1) * height).astype(np.int64)


def write_levels(values: Floats, signed: bool, largest: float | None = None) -> str:
    """Write the level of each value, relative to the largest.

    Parameters
    ----------
    values
        (n,) scores.
    signed
        Whether scores below 0 oppose the class.
    largest
        As for `scaled`.
    """
    steps = scaled(values, STEPS, largest)
    above = _FOR if signed else _SHARES
    return "".join(above[step] if step >= 0 else _AGAINST[-step] for step in steps.tolist())


def draw_levels(text: str, slot: int) -> str:
    """Draw stretches of one level as thick strokes along the x axis, one path a level."""
    strokes: dict[str, list[str]] = {}
    start = 0
    for shade, run in groupby(text):
        length = len(list(run))
        if shade != "0":
            strokes.setdefault(shade, []).append(f"M{start * slot} 0h{length * slot}")
        start += length
    return "".join(f'<path class=l{shade} d="{"".join(strokes[shade])}"/>' for shade in sorted(strokes))


# --- Rows of a wrapped record: its axis, its letters on shades of a score, and bars of each method's scor

SLOT = 12
GUTTER = 156
MARGIN = 8
_MAX_TICKS = 12  # of a map of attention
_SHARE_HEIGHT, _SIGNED_HEIGHT = 26, 18  # of bars, px; signed ones on each side of zero


def definitions(body: str) -> Markup:
    """Drawings that others on the page use."""
    return Markup(f"<svg class=defs width=0 height=0 aria-hidden=true><defs>{body}</defs></svg>\n")


# Signed bars are one outline; its part above the axis has one color, the part below another.
BAR_DEFINITIONS = definitions(
    "<linearGradient id=sign gradientUnits=userSpaceOnUse x1=0 x2=0 "
    f"y1=-{_SIGNED_HEIGHT} y2={_SIGNED_HEIGHT}>"
    f'<stop offset=".5" stop-color="{SUPPORT}"/><stop offset=".5" stop-color="{OPPOSE}"/></linearGradient>'
)


@dataclass(frozen=True, slots=True)
class Line:
    """Letters ``start`` to ``end`` of a record with a ``site``, on a page of ``width`` letters a line."""

    start: int
    end: int
    width: int
    site: int | None

    def row(self, body: str, top: int, height: int, kind: str) -> str:
        """Put a drawing over the axis; the site is marked.

        Parameters
        ----------
        body
            The drawing, as SVG.
        top, height
            Its y is from ``top`` to ``top + height``, px.
        kind
            Class of the row.
        """
        total = GUTTER + self.width * SLOT + MARGIN
        mark = ""
        if self.site is not None and self.start <= self.site < self.end:
            mark = f"<path class=site d=M{center(self.site - self.start)},{top}v{height} />"
        return f'<svg class="row {kind}" viewBox="{-GUTTER} {top} {total} {height}">{mark}{body}</svg>\n'

    @property
    def axis(self) -> str:
        """Anchor of its axis."""
        return f"x{self.start}-{self.end}-{self.site}"


def center(index: int) -> int:
    """Middle of a slot, px."""
    return index * SLOT + SLOT // 2


def lines_of(length: int, width: int, site: int | None) -> list[Line]:
    """Wrap a record of some length; at least one line.

    Parameters
    ----------
    length
        Letters of the record.
    width
        Letters of a line.
    site
        Index of the site, None if unknown.
    """
    starts = range(0, max(1, length), width)
    return [Line(start, min(length, start + width), width, site) for start in starts]


def line_width(longest: int, least: int = 60, most: int = 100) -> int:
    """Letters or columns of a line: as many as fill the lines of the longest record evenly.

    Parameters
    ----------
    longest
        Letters of the longest record.
    least, most
        Limits of the width.
    """
    lines = max(1, math.ceil(longest / most))
    return min(most, max(least, math.ceil(longest / lines / 10) * 10))


def site_within(length: int, site: int | None) -> int | None:
    """Index of the site; None if the record is too short."""
    return site if site is not None and 0 <= site < length else None


def tick_label(x: float | str, y: float | str, text: object, anchor: str = "mid") -> str:
    """Write a small label.

    Parameters
    ----------
    x, y
        Place, px.
    text
        HTML already.
    anchor
        ``mid`` or ``end``: which part of the text is at the place.
    """
    return f'<text class="tick {anchor}" x={x} y={y}>{text}</text>'


def label(title: str, below: str = "", y: int = 0) -> str:
    """Name a row in the gutter, with a smaller line below.

    Parameters
    ----------
    title, below
        Text, not HTML.
    y
        Of the name, px.
    """
    text = f'<text class="lab end" x=-12 y={y}>{escape(title)}</text>'
    return text + (tick_label(-12, y + 13, escape(below), "end") if below else "")


# --- axes: records of one length share them, so each is defined once ---------------------------------------


def position(index: int, site: int | None) -> str:
    """Write an index relative to the site if there is one."""
    return str(index) if site is None else offset(index - site)


def axis_row(line: Line) -> str:
    """Axis above a line."""
    return line.row(f"<use href=#{line.axis} />", -22, 22, "ax")


def map_axis(letters: int, site: int | None) -> str:
    """Axis above a map that is as wide as a line but shows all letters of a record."""
    return f"<use href=#y{letters}-{site} />"


def axis_definitions(lengths: Iterable[int], width: int, site: int | None) -> Markup:
    """Define the axes of records of these lengths.

    Parameters
    ----------
    lengths
        Of the records; they may repeat.
    width
        Letters of a line.
    site
        Index of the site, None if unknown.
    """
    axes: dict[str, str] = {}
    for length in dict.fromkeys(lengths):
        inside = site_within(length, site)
        axes |= {line.axis: _line_axis(line) for line in lines_of(length, width, inside)}
        axes[f"y{length}-{inside}"] = _map_axis(length, width, inside)
    return definitions("".join(f"<g id={key}>{drawing}</g>" for key, drawing in axes.items()))


def _line_axis(line: Line) -> str:
    """Ticks at every tenth position, counted from the site if there is one, else from the first letter."""
    ticks = _ticks(line.start, line.end, 10, line.site) or [line.start]
    marks = "".join(f"M{center(i - line.start)} 0v-4" for i in ticks)
    texts = "".join(tick_label(center(i - line.start), -8, position(i, line.site)) for i in ticks)
    title = tick_label(-26, -8, "index from 0" if line.site is None else "relative to the site", "end")
    return f'{title}<path class=axis d="{marks}"/>{texts}'


def _map_axis(letters: int, width: int, site: int | None) -> str:
    slot = width * SLOT / max(1, letters)
    spots = _ticks(0, letters, tick_step(letters, _MAX_TICKS), site)
    return "".join(tick_label(round((i + 0.5) * slot), -6, position(i, site)) for i in spots)


def _ticks(start: int, end: int, step: int, site: int | None) -> list[int]:
    if site is None:
        return [i for i in range(start, end) if i % step == 0]
    return [i + site for i in offset_ticks(start - site, end - site, step)]


def tick_step(letters: int, most: int) -> int:
    """A multiple of ten that puts at most so many ticks on an axis of letters."""
    return 10 * max(1, -(-letters // (10 * most)))


# --- letters and bars --------------------------------------------------------------------------------------


def sequence_row(line: Line, letters: str, first: int, shade_texts: list[str]) -> str:
    """Write letters on shades of the first score; ``script.js`` reads those of the others in ``data-l``.

    Parameters
    ----------
    line, letters
        The line and its letters.
    first
        Index in the record of the first letter that is shown, above 0 for a part of the record.
    shade_texts
        For each series of the page the shades of these letters, ``-`` where the record lacks the series.
    """
    shown = next((text for text in shade_texts if text != "-"), "")
    span = f"index {first + line.start}\N{EN DASH}{first + line.end - 1}" if letters else ""
    other = f'<g data-l="{" ".join(shade_texts)}">{draw_levels(shown, SLOT)}</g>'
    return line.row(f"{label('sequence', span, y=-2)}{other}{letters_at(letters, 4, 'seq')}", -13, 27, "sq")


def letters_at(text: str, y: int, kind: str) -> str:
    """Write letters in their slots; spaces are left out.

    Parameters
    ----------
    text
        A letter for each slot.
    y
        Of the letters, px.
    kind
        Class of the text.
    """
    shown = [(center(i), letter) for i, letter in enumerate(text) if letter != " "]
    if not shown:
        return ""
    spots, letters = zip(*shown, strict=True)
    return f'<text class={kind} x="{" ".join(map(str, spots))}" y={y}>{escape("".join(letters))}</text>'


def bar_extent(signed: bool) -> tuple[int, int]:
    """Height of the bars of scores above and below their axis, px."""
    return (_SIGNED_HEIGHT, _SIGNED_HEIGHT) if signed else (_SHARE_HEIGHT, 0)


def score_bars(scores: Floats, signed: bool, title: str, largest: float, first: bool) -> str:
    """Draw the scores of a line as bars around y = 0, with the method's name in the gutter.

    Parameters
    ----------
    scores
        (n,) of the letters or columns of the line.
    signed
        Whether bars hang down for scores below 0.
    title
        Name of the method.
    largest
        Score of the highest bar of the record.
    first
        Whether this is the first line, which states ``largest``.
    """
    heights = scaled(scores, bar_extent(signed)[0], largest).tolist()
    scale = f"largest ±{number(largest)}" if signed else f"highest {number(largest)}"
    text = label(title, scale if first else "", y=-1 if signed else 1 - _SHARE_HEIGHT // 2)
    bars = f"<path class={'bs' if signed else 'bu'} d={bars_path(heights)} />"
    return f"{text}{bars}<path class=axis d=M0,0h{len(heights) * SLOT} />"


def bars_path(heights: list[int]) -> str:
    """Outline of bars that rise from y = 0 or hang from it, 1 wide each; ``style.css`` stretches them."""
    path, level = "M0,0", 0
    for height, run in groupby(heights):
        path += (f"v{level - height}" if height != level else "") + f"h{len(list(run))}"
        level = height
    return f"{path}V0"
