"""Lines of a wrapped record, and the rows that stand above one another in them.

All rows of a page have the same scale, `SLOT` px a letter, and the same gutter for their names on the left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqray.report.html import escape

SLOT = 12
GUTTER = 156
MARGIN = 8
_LONGEST_LINE = 100
_SHORTEST_LINE = 60


@dataclass(frozen=True, slots=True)
class Line:
    """Letters ``start`` to ``end`` of a record with a ``site``, on a page of ``width`` letters a line."""

    start: int
    end: int
    width: int
    site: int | None

    def row(self, body: str, top: int, height: int, kind: str) -> str:
        """Put a drawing over the axis, its y from ``top`` to ``top + height``; the site is marked."""
        total = GUTTER + self.width * SLOT + MARGIN
        mark = ""
        if self.site is not None and self.start <= self.site < self.end:
            mark = f"<path class=site d=M{centre(self.site - self.start)},{top}v{height} />"
        return f'<svg class="row {kind}" viewBox="{-GUTTER} {top} {total} {height}">{mark}{body}</svg>\n'


def centre(place: int) -> int:
    """Middle of a slot."""
    return place * SLOT + SLOT // 2


def lines_of(length: int, width: int, site: int | None) -> list[Line]:
    """Wrap a record of some length; at least one line."""
    starts = range(0, max(1, length), width)
    return [Line(start, min(length, start + width), width, site) for start in starts]


def width_for(longest: int) -> int:
    """Letters of a line, 60 to 100: as many as fill the lines of the longest record evenly."""
    lines = max(1, math.ceil(longest / _LONGEST_LINE))
    even = math.ceil(longest / lines / 10) * 10
    return min(_LONGEST_LINE, max(_SHORTEST_LINE, even))


def site_within(length: int, site: int | None) -> int | None:
    """The site, if a record of this length has it."""
    return site if site is not None and 0 <= site < length else None


def label(title: str, below: str = "", y: int = 0) -> str:
    """Name a row in the gutter, with a smaller line below; both are text, not HTML."""
    text = f'<text class="lab end" x=-12 y={y}>{escape(title)}</text>'
    return text + (f'<text class="tick end" x=-12 y={y + 13}>{escape(below)}</text>' if below else "")
