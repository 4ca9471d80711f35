"""Genes as arrows, and scores along a strand as an outline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from seqray.core import Floats
from seqray.report.html import compact, escape

_LETTER = 6.3  # mean width of a letter of a gene's name, px
_MAX_HEAD_LENGTH = 6.0  # px


def arrow_path(left: float, right: float, top: float, height: float, heads: str) -> str:
    """Outline of an arrow whose box is in px.

    ``heads`` is ``>`` or ``<`` for the end that has a head; empty for none.
    """
    head = min(_MAX_HEAD_LENGTH, right - left) if heads else 0.0
    a, b, c = compact(left), compact(right), compact(height)
    half, tip = compact(height / 2), compact(head)
    y = compact(top)
    if heads == ">":
        return f"M{a} {y}H{compact(right - head)}l{tip} {half} -{tip} {half}H{a}z"
    if heads == "<":
        return f"M{b} {y}H{compact(left + head)}l-{tip} {half} {tip} {half}H{b}z"
    return f"M{a} {y}H{b}v{c}H{a}z"


def fitting_name(name: str, room: float) -> str:
    """The name, shortened to fit into some pixels; empty if less than three letters fit."""
    letters = int(room / _LETTER)
    if len(name) <= letters:
        return name
    return name[: letters - 1] + "…" if letters >= 4 else ""


def named_arrow(path: str, name: str, box: tuple[float, float, float], title: str) -> str:
    """Draw a gene.

    ``box`` is left, right and base line of the name, px; ``title`` is text for the pointer.
    """
    left, right, y = box
    shown = fitting_name(name, right - left - 8)
    text = f"<text x={compact((left + right) / 2)} y={compact(y)}>{escape(shown)}</text>" if shown else ""
    return f'<g class=gene><title>{escape(title)}</title><path d="{path}"/>{text}</g>'


def strongest(values: Floats, columns: int) -> Floats:
    """(columns,) highest of the values that fall into each column; nan where all are nan.

    The columns have equal width; there are at least as many of the (n,) values.
    """
    starts = np.arange(columns) * len(values) // columns
    filled = np.where(np.isnan(values), -np.inf, values)
    highest = np.maximum.reduceat(filled, starts)
    return np.where(np.isfinite(highest), highest, np.nan)


def outline(heights: Sequence[int | None], left: int, base: int, *, up: bool) -> str:
    """Outline of columns 1 px wide that rise from a line or hang from it.

    The heights are half pixels, None where nothing is drawn; the first column begins at ``left``, the line is
    at ``base``, px. ``up`` says whether the columns rise.
    """
    sign = -1 if up else 1
    path, x, level, drawing = "", left, 0, False
    for height, run in groupby(heights):
        width = len(list(run))
        if height is None:
            path += f"V{base}z" if drawing else ""
            drawing, level = False, 0
        else:
            path += "" if drawing else f"M{x} {base}"
            step = sign * (height - level)
            path += (f"v{compact(step / 2)}" if step else "") + f"h{width}"
            drawing, level = True, height
        x += width
    return path + (f"V{base}z" if drawing else "")
