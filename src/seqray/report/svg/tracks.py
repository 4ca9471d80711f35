"""Rows of a record: its letters in shades of a score, and bars of each method's scores."""

from __future__ import annotations

from itertools import groupby

from seqray.core import Floats
from seqray.report.html import escape, number
from seqray.report.svg.color_levels import scaled, shades
from seqray.report.svg.lines import SLOT, Line, centre, label

_BAR = 26  # height of the bars of shares, px
_SIGNED_BAR = 18  # the same on each side of zero

# Bars of signed scores are one outline; what lies above the axis is blue, what lies below is orange.
BAR_DEFINITIONS = (
    "<svg class=defs width=0 height=0 aria-hidden=true><defs>"
    f"<linearGradient id=sign gradientUnits=userSpaceOnUse x1=0 x2=0 y1={-_SIGNED_BAR} y2={_SIGNED_BAR}>"
    '<stop offset=".5" stop-color="#2166ac"/><stop offset=".5" stop-color="#d97706"/>'
    "</linearGradient></defs></svg>\n"
)


def sequence_row(line: Line, letters: str, shade_texts: list[str]) -> str:
    """Write the letters on shades of the first score; those of the others wait in ``data-l`` for ``page.js``.

    Parameters
    ----------
    line, letters
        The line and its letters.
    shade_texts
        For each series of the page the shades of these letters, ``-`` where the record lacks the series.
    """
    shown = next((text for text in shade_texts if text != "-"), "")
    spots = " ".join(str(centre(i)) for i in range(len(letters)))
    text = f'<text class=seq x="{spots}" y=4>{escape(letters)}</text>' if letters else ""
    span = f"index {line.start}\N{EN DASH}{line.end - 1}" if letters else ""
    waiting = f'<g data-l="{" ".join(shade_texts)}">{shades(shown, SLOT)}</g>'
    return line.row(f"{label('sequence', span, y=-2)}{waiting}{text}", -13, 27, "sq")


def score_row(line: Line, scores: Floats, signed: bool, title: str, largest: float, mark: str) -> str:
    """Draw the scores of a line as bars; the gutter tells what the highest bar of the record stands for.

    Parameters
    ----------
    line, scores
        The line and the scores of its letters.
    signed
        Whether bars hang down for scores below 0.
    title
        Name of the method.
    largest
        Score of the highest bar of the record.
    mark
        Class that the checkboxes of the page know.
    """
    base = f"<path class=axis d=M0,0h{(line.end - line.start) * SLOT} />"
    high = _SIGNED_BAR if signed else _BAR
    bars = f"<path class={'bs' if signed else 'bu'} d={bars_path(scaled(scores, high, largest).tolist())} />"
    scale = f"largest ±{number(largest)}" if signed else f"highest {number(largest)}"
    text = label(title, scale if line.start == 0 else "", y=-1 if signed else 1 - _BAR // 2)
    return line.row(text + bars + base, -high - 4, 2 * high + 8 if signed else high + 10, mark)


def bars_path(heights: list[int]) -> str:
    """Outline of bars that stand on y = 0 or hang from it, 1 wide each; ``page.css`` stretches them."""
    path, level = "M0,0", 0
    for height, run in groupby(heights):
        path += (f"v{level - height}" if height != level else "") + f"h{len(list(run))}"
        level = height
    return f"{path}V0"
