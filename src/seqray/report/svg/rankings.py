"""Plots of classifications: ROC, precision and recall, reliability, and figures by similarity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Floats, Ints
from seqray.core.results import Figure
from seqray.evaluation import precision_recall_points, reliability, roc_points
from seqray.report.html import compact, escape
from seqray.report.svg.frame import Frame, number_ticks
from seqray.report.svg.rows import tick_label

_UNIT = np.array([0.0, 1.0])
_UNIT_TICKS = {tick / 5: f"{tick / 5:g}" for tick in range(6)}
_SQUARE = Frame(0.0, 1.0, 0.0, 1.0, 420, 360)
_AXES = _SQUARE.ticks_y(_UNIT_TICKS) + _SQUARE.ticks_x(_UNIT_TICKS)
_DIAGONAL = _SQUARE.line("kr", _UNIT, _UNIT)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Labels (N,) of 0 and 1 and scores (N,) of one source, and the shade of its line."""

    name: str
    shade: str
    labels: Ints
    scores: Floats


def roc_plot(rankings: Sequence[Ranking]) -> Markup:
    """Draw sensitivity over the false positive rate; the diagonal is chance."""
    lines = "".join(_SQUARE.line(r.shade, *roc_points(r.labels, r.scores)) for r in rankings)
    return _SQUARE.drawing(_AXES + _DIAGONAL + lines, "false positive rate", "sensitivity", "ROC curves")


def precision_recall_plot(rankings: Sequence[Ranking], prevalence: float | None) -> Markup:
    """Draw precision over recall; the dashed line is the precision of calling every record positive."""
    body = _AXES
    if prevalence is not None:
        body += _SQUARE.line("kr", _UNIT, np.full(2, prevalence))
    for r in rankings:
        body += _SQUARE.line(r.shade, *precision_recall_points(r.labels, r.scores), steps=True)
    return _SQUARE.drawing(body, "recall (sensitivity)", "precision", "precision and recall")


def reliability_plot(rankings: Sequence[Ranking]) -> Markup:
    """Draw the share of positives over probability, with intervals and counts for the first ranking."""
    body = _AXES + _DIAGONAL
    for place, ranking in enumerate(rankings):
        bins = reliability(ranking.labels, ranking.scores)
        body += _SQUARE.line(ranking.shade, bins.confidence, bins.frequency)
        if place == 0:
            columns = (bins.confidence, bins.frequency, bins.low, bins.high, bins.counts)
            for x, *value, many in zip(*(column.tolist() for column in columns), strict=True):
                body += _SQUARE.point(x, tuple(value), ranking.shade, f"{many} records")
                body += tick_label(compact(_SQUARE.x(x)), compact(_SQUARE.y(value[2]) - 5), many)
    return _SQUARE.drawing(body, "mean probability", "share of positives", "reliability diagram")


def similarity_plot(
    rows: Mapping[str, Mapping[str, Figure]], shades: Mapping[str, str], metric: str
) -> Markup:
    """Draw a figure of each range of similarity, side by side for each source.

    Parameters
    ----------
    rows
        By range, the figure of each source.
    shades
        Of each source.
    metric
        Its name, for the axis.
    """
    figures = [figure for row in rows.values() for figure in row.values()]
    bounds = [v for f in figures for v in (f.value, f.low, f.high) if math.isfinite(v)]
    low, high = min([0.0, *bounds]), max([1.0, *bounds])
    frame = Frame(0.0, float(max(1, len(rows))), low, high, 560, 320)
    names = {i + 0.5: str(escape(range_)) for i, range_ in enumerate(rows)}
    body = frame.ticks_y(number_ticks(low, high)) + frame.ticks_x(names)
    for place, row in enumerate(rows.values()):
        for rank, (source, f) in enumerate(row.items()):
            if math.isfinite(f.value):
                x = place + 0.5 + 0.18 * (rank - (len(row) - 1) / 2)
                title = f"{source}: {f.value:.3f}, {f.n} records"
                body += frame.point(x, (f.value, f.low, f.high), shades[source], title)
    return frame.drawing(body, "best identity to a training sequence", metric, f"{metric} by similarity")
