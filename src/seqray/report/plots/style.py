"""What all figures share: colours, sizes, panels, and how a file is written."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seqray.core import ConfigError, Floats
from seqray.io import open_output

ENDINGS = ("png", "svg", "pdf")
MOST_RECORDS = 20
LETTER_INCHES = 0.11
LEFT_INCHES, RIGHT_INCHES, FOOT_INCHES = 1.5, 0.2, 0.4
HEAD_INCHES, GAP_INCHES = 0.5, 0.08  # above a record, above a further track
_DOTS_PER_INCH = 150
COLUMN_INCHES, MAP_INCHES = 0.05, 4.0  # a column of an alignment, and a map of its pairs
LONGEST_INCHES = 100.0  # wider, matplotlib's PNG exceeds 2^16 dots

# Okabe and Ito (2008): told apart with every common form of colour blindness.
BLACK, ORANGE, GREEN = "#000000", "#E69F00", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY = "#999999"


def check_figure_path(path: str | Path) -> str:
    """The format that the end of a file's name stands for.

    Raises
    ------
    ConfigError
        For any but ``.png``, ``.svg`` and ``.pdf``.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise ConfigError(f"'{path}' names no format of figures by its end", remedy="use .png, .svg or .pdf")
    return ending


def save(figure: Figure, path: str | Path, kind: str) -> None:
    # Dates and random identifiers would make each run's file differ; text stays text in SVG.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "seqray", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata[kind])
    with open_output(path) as handle:
        handle.write(buffer.getvalue())


def styled(axes: Axes) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
    return axes


class Panel(NamedTuple):
    """One strip of a figure: inches of space above it, its height in inches, and who draws it."""

    above: float
    height: float
    draw: Callable[[Axes], None]


def stack(panels: Sequence[Panel], width: float) -> Figure:
    """A figure of panels one below the other."""
    # Placed by hand: matplotlib's layout engines need a minute for a hundred axes.
    total = sum(panel.above + panel.height for panel in panels) + FOOT_INCHES
    figure = Figure(figsize=(width, total))
    bottom = total
    for above, height, draw in panels:
        bottom -= above + height
        left, right = LEFT_INCHES / width, RIGHT_INCHES / width
        draw(styled(figure.add_axes((left, bottom / total, 1 - left - right, height / total))))
    return figure


def with_title(draw: Callable[[Axes], None], title: str) -> Callable[[Axes], None]:
    def draw_both(axes: Axes) -> None:
        draw(axes)
        axes.set_title(title, loc="left", fontsize=9, parse_math=False)

    return draw_both


def limits(values: Floats) -> tuple[float, float]:
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    pad = 0.05 * (high - low) or 1.0
    return (low - pad if low < 0 else 0.0), high + pad
