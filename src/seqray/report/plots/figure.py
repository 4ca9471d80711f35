"""What all figures share: sizes, panels, tracks of scores, and how a file is written."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from seqray.core import ConfigError, Floats
from seqray.io import write_file
from seqray.report.palette import OPPOSE, SUPPORT, Color

ENDINGS = ("png", "svg", "pdf")
MAX_RECORDS = 20
HEAD_INCHES, GAP_INCHES = 0.5, 0.08  # above a record, above a further track
_LEFT_INCHES, _RIGHT_INCHES, _FOOT_INCHES = 1.5, 0.2, 0.4
_MIN_WIDTH_INCHES, _MAX_WIDTH_INCHES = 6.0, 100.0  # wider, matplotlib's PNG exceeds 2^16 dots
_DOTS_PER_INCH = 150


def check_figure_path(path: str | Path) -> str:
    """Format of a figure by the suffix of its file; a `ConfigError` for an unknown one."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise ConfigError(f"'{path}' does not end in a format of figures", remedy="use .png, .svg or .pdf")
    return ending


class Panel(NamedTuple):
    """One strip of a figure: space above it and height in inches, how it is drawn, and its title."""

    above: float
    height: float
    draw: Callable[[Axes], None]
    title: str = ""


def write_figure(path: str | Path, panels: Sequence[Panel], inches: float, omitted: str) -> None:
    """Draw panels one below the other, from top to bottom, and write a ``.png``, ``.svg`` or ``.pdf``.

    ``inches`` is the width between the margins. ``omitted`` says how many records are left out; empty if
    none.
    """
    kind = check_figure_path(path)
    width = min(_MAX_WIDTH_INCHES, max(_MIN_WIDTH_INCHES, _LEFT_INCHES + _RIGHT_INCHES + inches))
    figure = _stack(panels, width)
    if omitted:
        figure.text(0.99, 0.002, omitted, ha="right", va="bottom", fontsize=8)
    # Dates and random identifiers would make each run's file differ; text stays text in SVG.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "seqray", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata[kind])
    write_file(path, buffer.getvalue())


def _stack(panels: Sequence[Panel], width: float) -> Figure:
    # Placed by hand: matplotlib's layout engines need a minute for a hundred axes.
    total = sum(panel.above + panel.height for panel in panels) + _FOOT_INCHES
    figure = Figure(figsize=(width, total))
    left, right, bottom = _LEFT_INCHES / width, _RIGHT_INCHES / width, total
    for panel in panels:
        bottom -= panel.above + panel.height
        axes = figure.add_axes((left, bottom / total, 1 - left - right, panel.height / total))
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7)
        panel.draw(axes)
        if panel.title:
            axes.set_title(panel.title, loc="left", fontsize=9, parse_math=False)
    return figure


def name_row(axes: Axes, name: str) -> None:
    """Write the name of a panel on its left."""
    axes.set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center")


def draw_track(axes: Axes, scores: Floats, first: float, name: str) -> None:
    """Draw scores (n,), which are finite, as bars, those below 0 in another color.

    ``first`` is the place of the first score on the x axis.
    """
    left = np.arange(len(scores)) + first - 0.45
    zero = np.zeros(len(left))
    corners = [(left, zero), (left, scores), (left + 0.9, scores), (left + 0.9, zero)]
    bars = np.array(corners).transpose(2, 0, 1)  # one collection: a patch for each bar takes seconds
    colors = np.where(scores < 0, OPPOSE.value, SUPPORT.value)
    axes.add_collection(PolyCollection(list(bars), facecolors=list(colors), linewidths=0))
    axes.set_xlim(first - 0.6, first + len(scores) - 0.4)
    name_row(axes, name)
    draw_zero(axes, scores)


def draw_zero(axes: Axes, values: Floats) -> None:
    """Draw the line of 0, and let the y axis cover the values."""
    axes.axhline(0, color=Color.EDGE, linewidth=0.5)
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    pad = 0.05 * (high - low) or 1.0
    axes.set_ylim(low - pad if low < 0 else 0.0, high + pad)


def omitted_text(omitted: int, one: str) -> str:
    """``3 more records are not shown``; empty for none."""
    if omitted <= 0:
        return ""
    return f"{omitted} more {f'{one} is' if omitted == 1 else f'{one}s are'} not shown"
