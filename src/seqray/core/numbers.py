"""Numbers as text, and rounded as they are stored: six significant digits unless stated otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence


def parse_float(text: str) -> float:
    """A number; nan for other text, also for underscores and digits of other scripts, which Python takes."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def format_number(value: float, digits: int = 6) -> str:
    """Write a number with so many significant digits."""
    return f"{value:.{digits}g}"


def round_number(value: float, digits: int = 6) -> float:
    """The number that `format_number` writes."""
    return float(format_number(value, digits))


def counted(items: int, one: str) -> str:
    """Write ``1 record``, ``2 records``."""
    return f"{items} {one if items == 1 else one + 's'}"


def format_interval(low: float, high: float, style: str = ".3f") -> str:
    """Format an interval to follow its value: `` (0.100 to 0.200)``; empty if it is undefined.

    Parameters
    ----------
    low, high
        Bounds; nan if undefined.
    style
        Number format of both.
    """
    return f" ({low:{style}} to {high:{style}})" if math.isfinite(low) else ""


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns with two spaces between, without trailing spaces.

    Parameters
    ----------
    rows
        Cells, as many in each.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
