"""Figures of explained alignments: profiles of columns, and maps of their pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from seqray.core import Floats
from seqray.core.results import AlignmentExplanation, AlignmentScores
from seqray.explanations.attribution import PairTable
from seqray.report.palette import Color
from seqray.report.plots.figure import (
    GAP_INCHES,
    HEAD_INCHES,
    MAX_RECORDS,
    Panel,
    draw_track,
    name_row,
    omitted_text,
    write_figure,
)

_COLUMN_INCHES = 0.05
_TRACK_INCHES, _MAP_INCHES = 0.6, 4.0
_SHADES = LinearSegmentedColormap.from_list("pairs", [Color.PAPER, Color.DEEP_VIOLET])


def plot_alignments(path: str | Path, shown: Sequence[tuple[AlignmentExplanation, PairTable]]) -> None:
    """Draw each alignment's profile of columns, a track for each method, and the map of its pairs.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``; a `ConfigError` for another ending.
    shown
        Explanations with their pairs. At most 20 are drawn, and the figure says how many are left out.
    """
    drawn = shown[:MAX_RECORDS]
    panels = [panel for one in drawn for panel in _alignment_panels(*one)]
    longest = max((one.alignment.columns for one, _ in drawn), default=20)
    omitted = omitted_text(len(shown) - len(drawn), "alignment")
    write_figure(path, panels, _COLUMN_INCHES * longest, omitted)


def _alignment_panels(e: AlignmentExplanation, found: PairTable) -> list[Panel]:
    panels = [
        Panel(
            GAP_INCHES, _TRACK_INCHES, lambda axes, s=s: _draw_columns(axes, e, s, labels=s is e.scores[-1])
        )
        for s in e.scores
    ]
    if (pairs := e.pairs) is not None:
        panels.append(Panel(HEAD_INCHES, _MAP_INCHES, lambda axes: _draw_pairs(axes, e, pairs, found)))
    title = f"{e.id}   {e.target} {e.probability:.3f}"
    return [panels[0]._replace(above=1.5 * HEAD_INCHES, title=title), *panels[1:]]


def _draw_columns(axes: Axes, e: AlignmentExplanation, found: AlignmentScores, labels: bool) -> None:
    draw_track(axes, np.nan_to_num(e.by_column(found)), 1, found.method)
    axes.tick_params(labelbottom=labels)
    if labels:
        axes.set_xlabel("column of the alignment", fontsize=7)


def _draw_pairs(axes: Axes, e: AlignmentExplanation, pairs: Floats, found: PairTable) -> None:
    """Scores above the diagonal; the pairs of the structure below it."""
    far = e.columns - e.columns[:, None] >= found.separation
    first, last = e.columns[0], e.columns[-1]
    size = last - first + 1  # a file may be far wider than the part that was read
    full = np.full((size, size), np.nan)
    full[np.ix_(e.columns - first, e.columns - first)] = np.where(far, np.maximum(pairs, 0), 0)
    edge = (first + 0.5, last + 1.5, last + 1.5, first + 0.5)
    axes.imshow(full, cmap=_SHADES, extent=edge, interpolation="nearest", aspect="equal")
    axes.set_anchor("W")
    if found.structure:
        known = np.array(sorted(found.structure)) + 1
        axes.scatter(known[:, 0], known[:, 1], s=4, color=Color.TEAL, linewidths=0, label="SS_cons")
        axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xlabel("column of the alignment", fontsize=7)
    name_row(axes, "pairs")
