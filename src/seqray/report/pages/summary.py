"""The page of ``seqray summary``: one table with a drawing in each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from seqray.core import __version__
from seqray.report.html import compact, document, name, number, table, templates

_WIDTH, _HEIGHT, _EDGE = 190, 18, 6


def render_summary(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Lay out rows of the same columns.

    Parameters
    ----------
    title
        Heading of the page.
    rows
        Column -> cell; text that is no number is a name from a file; ``X_low`` to ``X_high`` is the
        interval of ``X``.
    """
    columns = [c for c in rows[0] if not c.endswith(("_low", "_high")) and _is_shown(rows, c)]
    calls = "calls_per_mb" in columns
    place = columns.index("calls_per_mb" if calls else "mcc") + 1
    head = [column.replace("_", " ") for column in columns]
    head.insert(place, "calls against chance" if calls else "MCC against floor")
    body = []
    for row, figure in zip(rows, _figures(rows, calls), strict=True):
        cells = [_cell(row, column) for column in columns]
        cells.insert(place, Markup(f"<td>{figure}"))
        body.append(cells)
    section = templates("parts.html").summary(table(head, body), calls, "expected_precision" in columns)
    lines = [f"seqray {__version__}", "a dot in place of a number means that the value is not known"]
    return document(title, {"results": str(len(rows))}, {"summary": ("Results", section)}, lines)


def _is_shown(rows: Sequence[Mapping[str, str]], column: str) -> bool:
    """Only locators have a precision to expect."""
    return column != "expected_precision" or any(math.isfinite(_value(row, column)) for row in rows)


def _value(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (KeyError, ValueError):
        return math.nan


def _cell(row: Mapping[str, str], column: str) -> Markup:
    """Text and whole numbers unchanged, other numbers to three digits; and the interval."""
    value = _value(row, column)
    if math.isnan(value):
        return name(row[column])
    low, high = _value(row, f"{column}_low"), _value(row, f"{column}_high")
    shown = row[column] if row[column].isdigit() else number(value)
    return Markup(
        f"<td class=n>{shown}" + ("" if math.isnan(low + high) else f" ({number(low)} to {number(high)})")
    )


def _figures(rows: Sequence[Mapping[str, str]], calls: bool) -> list[Markup]:
    """Draw a dot, a mark and its interval for each row, all to the same scale."""
    interval = "false_calls_per_mb" if calls else "mcc"
    dot, mark = ("calls_per_mb", "false_calls_per_mb") if calls else ("mcc", "floor_mcc")
    columns = (dot, mark, f"{interval}_low", f"{interval}_high")
    drawn = [[_value(row, column) for column in columns] for row in rows]
    known = [value for values in drawn for value in values if math.isfinite(value)]
    low, high = min([0.0, *known]), max([0.0 if calls else 1.0, *known])
    scale = (_WIDTH - 2 * _EDGE) / (high - low or 1.0)

    def x(value: float) -> str:
        return compact(_EDGE + (value - low) * scale) if math.isfinite(value) else ""

    figure = templates("parts.html").summary_figure
    return [figure(_WIDTH, _HEIGHT, _EDGE, *map(x, values)) for values in drawn]
