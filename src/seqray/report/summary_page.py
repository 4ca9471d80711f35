"""The page of ``seqray summary``: one table, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import seqray
from seqray.report.document import document
from seqray.report.text import escape, name, table

_STYLE = ".wide{overflow-x:auto}td.n{text-align:right;font-variant-numeric:tabular-nums}"


def render_summary(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Lay out rows that have the same columns.

    Parameters
    ----------
    title
        Heading of the page.
    rows
        Column -> cell; what is no number is text from a file.
    """
    head = [escape(column.replace("_", " ")) for column in rows[0]]
    body = ([_cell(cell) for cell in row.values()] for row in rows)
    section = f"<div class=wide>{table(head, body)}</div>"
    facts = {"rows": str(len(rows))}
    lines = [f"seqray {seqray.__version__}", "a dot stands for what is not known"]
    return document(title, _STYLE, {"summary": ("Results", section)}, facts, lines)


def _cell(cell: str) -> str:
    try:
        float(cell)
    except ValueError:
        return name(cell)
    return f"<td class=n>{escape(cell)}"
