"""The page of ``seqray summary``: one table, a drawing in each row, without scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from seqray.core import __version__
from seqray.report.html import compact, document, escape, name, number, table

_WIDE, _HIGH, _EDGE = 190, 18, 6
_STYLE = (
    ".wide{overflow-x:auto}td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".row-figure{vertical-align:middle}.row-figure .base{stroke:#c9d1d9}"
    ".row-figure .span{stroke:#5b6b7b;stroke-width:2}.row-figure .mark{stroke:#c2410c;stroke-width:3}"
    ".row-figure .dot{fill:#1d5fa8}"
)
_OF_CALLS = (
    "calls against chance",
    "Dot: calls per million positions. Bar and line: calls in shuffled copies of the same sequences, with "
    "their 95 % interval. A dot that is not far to the right of the bar is what chance gives.",
)
_OF_FIGURES = (
    "MCC against floor",
    "Dot and line: Matthews correlation on held-out sequences, with its 95 % interval. Bar: the floor, "
    "logistic regression on k-mers and positions. Each drawing reaches from 0 (or the lowest) to 1.",
)


def render_summary(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Lay out rows that have the same columns.

    Parameters
    ----------
    title
        Heading of the page.
    rows
        Column -> cell; no number is text from a file; ``X_low`` to ``X_high`` is the interval of ``X``.
    """
    columns = [c for c in rows[0] if not c.endswith(("_low", "_high"))]
    calls = "calls_per_mb" in columns
    caption, note = _OF_CALLS if calls else _OF_FIGURES
    place = columns.index("calls_per_mb" if calls else "mcc") + 1
    head = [escape(column.replace("_", " ")) for column in columns]
    head.insert(place, caption)
    body = []
    for row, figure in zip(rows, _figures(rows, calls), strict=True):
        cells = [_cell(row, column) for column in columns]
        cells.insert(place, f"<td>{figure}")
        body.append(cells)
    section = f"<div class=wide>{table(head, body)}</div><p class=note>{note}</p>"
    facts = {"results": str(len(rows))}
    lines = [f"seqray {__version__}", "a dot in place of a number stands for what is not known"]
    return document(title, _STYLE, {"summary": ("Results", section)}, facts, lines)


def _value(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (KeyError, ValueError):
        return math.nan


def _cell(row: Mapping[str, str], column: str) -> str:
    """Text as it is, whole numbers too, others to three digits; and the interval."""
    if math.isnan(_value(row, column)):
        return name(row[column])
    shown = escape(row[column]) if row[column].isdigit() else number(_value(row, column))
    low, high = _value(row, f"{column}_low"), _value(row, f"{column}_high")
    return f"<td class=n>{shown}" + ("" if math.isnan(low + high) else f" ({number(low)} to {number(high)})")


def _figures(rows: Sequence[Mapping[str, str]], calls: bool) -> list[str]:
    """Draw each row to the same scale."""
    interval = "false_calls_per_mb" if calls else "mcc"
    dot, mark = ("calls_per_mb", "false_calls_per_mb") if calls else ("mcc", "floor_mcc")
    drawn = [[_value(row, c) for c in (dot, mark, f"{interval}_low", f"{interval}_high")] for row in rows]
    known = [value for values in drawn for value in values if math.isfinite(value)]
    low, high = min([0.0, *known]), max([0.0 if calls else 1.0, *known])

    def x(value: float) -> str:
        return compact(_EDGE + (value - low) / (high - low or 1.0) * (_WIDE - 2 * _EDGE))

    def figure(dot: float, mark: float, left: float, right: float) -> str:
        middle = _HIGH // 2
        parts = [f'<path class=base d="M{_EDGE} {middle}H{_WIDE - _EDGE}"/>']
        if math.isfinite(left + right):
            parts.append(f'<path class=span d="M{x(left)} {middle}H{x(right)}"/>')
        if math.isfinite(mark):
            parts.append(f'<path class=mark d="M{x(mark)} 2V{_HIGH - 2}"/>')
        if math.isfinite(dot):
            parts.append(f"<circle class=dot cx={x(dot)} cy={middle} r=4 />")
        size = f'viewBox="0 0 {_WIDE} {_HIGH}" width={_WIDE} height={_HIGH}'
        return f"<svg class=row-figure {size} aria-hidden=true>{''.join(parts)}</svg>"

    return [figure(*values) for values in drawn]
