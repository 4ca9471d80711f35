"""Axes of positions. Records of one length share them, so each is defined once and used from everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from seqray.report.html import offset
from seqray.report.svg.lines import SLOT, Line, centre, lines_of, site_within

_MOST_TICKS = 12  # of a map of attention


def position(index: int, site: int | None) -> str:
    """Write an index relative to the site if there is one."""
    return str(index) if site is None else offset(index - site)


def axis_row(line: Line) -> str:
    """Axis above a line."""
    return line.row(f"<use href=#{_line_id(line)} />", -22, 22, "ax")


def map_axis(letters: int, site: int | None) -> str:
    """Axis above a map that is as wide as a line but shows all letters of a record."""
    return f"<use href=#{_map_id(letters, site)} />"


def axis_definitions(lengths: Iterable[int], width: int, site: int | None) -> str:
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
    drawn: dict[str, str] = {}
    for length in lengths:
        inside = site_within(length, site)
        for line in lines_of(length, width, inside):
            drawn.setdefault(_line_id(line), _line_axis(line))
        drawn.setdefault(_map_id(length, inside), _map_axis(length, width, inside))
    groups = "".join(f"<g id={key}>{drawing}</g>" for key, drawing in drawn.items())
    return f"<svg class=defs width=0 height=0 aria-hidden=true><defs>{groups}</defs></svg>\n"


def _line_id(line: Line) -> str:
    return f"x{line.start}-{line.end}-{line.site}"


def _map_id(letters: int, site: int | None) -> str:
    return f"y{letters}-{site}"


def _line_axis(line: Line) -> str:
    """Ticks at every tenth position, counted from the site if there is one, else from the first letter."""
    zero = line.site or 0
    ticks = [i for i in range(line.start, line.end) if (i - zero) % 10 == 0] or [line.start]
    marks = "".join(f"M{centre(i - line.start)} 0v-4" for i in ticks)
    texts = "".join(_tick(centre(i - line.start), -8, position(i, line.site)) for i in ticks)
    title = "index from 0" if line.site is None else "relative to the site"
    return f'<text class="tick end" x=-26 y=-8>{title}</text><path class=axis d="{marks}"/>{texts}'


def _map_axis(letters: int, width: int, site: int | None) -> str:
    zero, step = site or 0, 10 * max(1, -(-letters // (10 * _MOST_TICKS)))
    slot = width * SLOT / max(1, letters)
    spots = [i for i in range(letters) if (i - zero) % step == 0]
    return "".join(_tick(round((i + 0.5) * slot), -6, position(i, site)) for i in spots)


def _tick(x: int, y: int, text: str) -> str:
    return f'<text class="tick mid" x={x} y={y}>{text}</text>'
