"""Explanations of alignments: profiles of columns, and maps of their pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from seqray.core import Floats
from seqray.core.results import AlignmentExplanation, AlignmentScores
from seqray.explanations.attribution import PairTable
from seqray.report.plots.style import (
    BLUE,
    COLUMN_INCHES,
    GAP_INCHES,
    GREEN,
    GREY,
    HEAD_INCHES,
    LEFT_INCHES,
    LONGEST_INCHES,
    MAP_INCHES,
    MOST_RECORDS,
    RIGHT_INCHES,
    VERMILION,
    Panel,
    check_figure_path,
    limits,
    save,
    stack,
    with_title,
)


def plot_alignments(path: str | Path, shown: Sequence[tuple[AlignmentExplanation, PairTable]]) -> None:
    """Draw each alignment's profile of columns, a track for each method, and the map of its pairs.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``.
    shown
        Explanations with their pairs. At most 20 are drawn, and the figure says how many are left out.

    Raises
    ------
    ConfigError
        For another ending.
    InputError
        Where the file can't be written.
    """
    kind = check_figure_path(path)
    panels = [panel for one in shown[:MOST_RECORDS] for panel in _alignment_panels(*one)]
    longest = max((one.alignment.columns for one, _ in shown[:MOST_RECORDS]), default=20)
    width = min(LONGEST_INCHES, max(6.0, LEFT_INCHES + RIGHT_INCHES + COLUMN_INCHES * longest))
    figure = stack(panels, width)
    left_out = len(shown) - MOST_RECORDS
    if left_out > 0:
        text = f"{left_out} more {'alignment is' if left_out == 1 else 'alignments are'} not shown"
        figure.text(0.99, 0.002, text, ha="right", va="bottom", fontsize=8)
    save(figure, path, kind)


def _alignment_panels(e: AlignmentExplanation, found: PairTable) -> list[Panel]:
    panels = [
        Panel(GAP_INCHES, 0.6, lambda axes, s=s: _draw_columns(axes, e, s, labels=s is e.scores[-1]))
        for s in e.scores
    ]
    title = f"{e.id}   {e.target} {e.probability:.3f}"
    panels[0] = panels[0]._replace(above=1.5 * HEAD_INCHES, draw=with_title(panels[0].draw, title))
    if (pairs := e.pairs) is not None:
        panels.append(Panel(HEAD_INCHES, MAP_INCHES, lambda axes: _draw_pairs(axes, e, pairs, found)))
    return panels


def _draw_columns(axes: Axes, e: AlignmentExplanation, found: AlignmentScores, labels: bool) -> None:
    scores = np.nan_to_num(e.by_column(found))
    colours = np.where(scores < 0, VERMILION, BLUE)
    axes.bar(np.arange(1, len(scores) + 1), scores, width=0.9, color=colours.tolist(), linewidth=0)
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set_ylim(*limits(scores))
    axes.set_xlim(0.4, len(scores) + 0.6)
    axes.set_ylabel(found.method, fontsize=7, rotation=0, ha="right", va="center")
    axes.tick_params(labelbottom=labels)
    if labels:
        axes.set_xlabel("column of the alignment", fontsize=7)


def _draw_pairs(axes: Axes, e: AlignmentExplanation, pairs: Floats, found: PairTable) -> None:
    """Scores above the diagonal; the pairs of the structure below it."""
    far = e.columns - e.columns[:, None] >= found.separation
    first, last = e.columns[0], e.columns[-1]
    size = last - first + 1  # a file may be far wider than what is read of it
    full = np.full((size, size), np.nan)
    full[np.ix_(e.columns - first, e.columns - first)] = np.where(far, np.maximum(pairs, 0), 0)
    edge = (first + 0.5, last + 1.5, last + 1.5, first + 0.5)
    axes.imshow(full, cmap="Purples", extent=edge, interpolation="nearest", aspect="equal")
    axes.set_anchor("W")
    if found.structure:
        known = np.array(sorted(found.structure)) + 1
        axes.scatter(known[:, 0], known[:, 1], s=4, color=GREEN, linewidths=0, label="SS_cons")
        axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xlabel("column of the alignment", fontsize=7)
    axes.set_ylabel("pairs", fontsize=7, rotation=0, ha="right", va="center")
