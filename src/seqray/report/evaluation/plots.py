"""Plots of an evaluation: ROC, precision and recall, reliability, scores by class, figures by similarity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Floats
from seqray.core.results import Figure
from seqray.evaluation import precision_recall_points, reliability, roc_points
from seqray.report.html import compact, escape, number
from seqray.report.svg import Frame, round_ticks

UNIT_TICKS = {tick / 5: f"{tick / 5:g}" for tick in range(6)}
HISTOGRAM_BINS = 20
_WIDE, _HIGH = 420, 360
_DASH = "line kr"


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Labels (N,) of 0 and 1 and scores (N,) of one source, and the shade of its line."""

    name: str
    shade: str
    labels: np.ndarray
    scores: Floats


def _square() -> Frame:
    return Frame(0.0, 1.0, 0.0, 1.0, _WIDE, _HIGH)


def _axes(frame: Frame) -> str:
    return frame.ticks_y(UNIT_TICKS) + frame.ticks_x(UNIT_TICKS)


def path(frame: Frame, x: Floats, y: Floats, *, steps: bool = False) -> str:
    """Data of an SVG path; points that fall on the same tenth of a pixel are drawn once."""
    points: list[str] = []
    last = ("", "")
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        here = (compact(frame.x(a)), compact(frame.y(b)))
        if here == last:
            continue
        if not points:
            points.append(f"M{here[0]} {here[1]}")
        elif here[1] == last[1]:
            points.append(f"H{here[0]}")
        elif here[0] == last[0]:
            points.append(f"V{here[1]}")
        else:
            points.append(f"H{here[0]}V{here[1]}" if steps else f"L{here[0]} {here[1]}")
        last = here
    return "".join(points)


def roc_plot(rankings: Sequence[Ranking]) -> str:
    """Sensitivity over the false positive rate; the diagonal is chance."""
    frame = _square()
    body = _axes(frame) + f'<path class="{_DASH}" d="{path(frame, np.array([0, 1.0]), np.array([0, 1.0]))}"/>'
    for ranking in rankings:
        x, y = roc_points(ranking.labels, ranking.scores)
        if len(x):
            body += f'<path class="line {ranking.shade}" d="{path(frame, x, y)}"/>'
    return frame.drawing(body, "false positive rate", "sensitivity", "ROC curves")


def precision_recall_plot(rankings: Sequence[Ranking], prevalence: float | None) -> str:
    """Precision over recall; the dashed line is the share of positives, which calling everything reaches."""
    frame = _square()
    body = _axes(frame)
    if prevalence is not None:
        body += f'<path class="{_DASH}" d="{path(frame, np.array([0, 1.0]), np.full(2, prevalence))}"/>'
    for ranking in rankings:
        x, y = precision_recall_points(ranking.labels, ranking.scores)
        if len(x):
            body += f'<path class="line {ranking.shade}" d="{path(frame, x, y, steps=True)}"/>'
    return frame.drawing(body, "recall (sensitivity)", "precision", "precision and recall")


def reliability_plot(rankings: Sequence[Ranking]) -> str:
    """Share of positives over probability, with intervals and counts for the first; the diagonal is right."""
    frame = _square()
    body = _axes(frame) + f'<path class="{_DASH}" d="{path(frame, np.array([0, 1.0]), np.array([0, 1.0]))}"/>'
    for place, ranking in enumerate(rankings):
        bins = reliability(ranking.labels, ranking.scores)
        body += f'<path class="line {ranking.shade}" d="{path(frame, bins.confidence, bins.frequency)}"/>'
        if place:
            continue
        for x, y, low, high, count in zip(
            bins.confidence.tolist(),
            bins.frequency.tolist(),
            bins.low.tolist(),
            bins.high.tolist(),
            bins.counts.tolist(),
            strict=True,
        ):
            body += bar(frame, x, y, low, high, ranking.shade, f"{count} records")
            place_of = f"x={compact(frame.x(x))} y={compact(frame.y(high) - 5)}"
            body += f'<text class="tick mid" {place_of}>{count}</text>'
    return frame.drawing(body, "mean probability", "share of positives", "reliability diagram")


def bar(frame: Frame, x: float, y: float, low: float, high: float, shade: str, title: str) -> str:
    """A point with its interval."""
    left = compact(frame.x(x))
    rod = ""
    if math.isfinite(low) and math.isfinite(high):
        rod = f'<path class="line {shade}" d="M{left} {compact(frame.y(low))}V{compact(frame.y(high))}"/>'
    dot = f'<circle class="line {shade}" cx={left} cy={compact(frame.y(y))} r=3 />'
    return f"<g><title>{escape(title)}</title>{rod}{dot}</g>"


def histogram_plot(scores: Mapping[str, Floats], low: float, high: float) -> str:
    """Share of each class's records by score, as steps; classes in the shades k0, k1, ..."""
    edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
    shares = {
        name: np.histogram(values, bins=edges)[0] / max(1, len(values)) for name, values in scores.items()
    }
    top = max((float(share.max(initial=0.0)) for share in shares.values()), default=1.0) or 1.0
    frame = Frame(low, high, 0.0, top * 1.05, _WIDE, _HIGH)
    ticks_x = {tick: number(tick) for tick in round_ticks(low, high, 6)}
    body = frame.ticks_y({tick: number(tick) for tick in round_ticks(0.0, top)}) + frame.ticks_x(ticks_x)
    for place, share in enumerate(shares.values()):
        x, y = np.repeat(edges, 2), np.concatenate(([0.0], np.repeat(share, 2), [0.0]))
        drawn = path(frame, x, y)
        body += f'<path class="band k{place % 6}" d="{drawn}Z"/><path class="line k{place % 6}" d="{drawn}"/>'
    return frame.drawing(body, "score of the positive class", "share of the class", "scores by class")


def similarity_plot(rows: Mapping[str, Mapping[str, Figure]], shades: Mapping[str, str], metric: str) -> str:
    """A figure of each range of similarity, side by side for each source.

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
    ticks = {tick: number(tick) for tick in round_ticks(low, high)}
    body = frame.ticks_y(ticks) + frame.ticks_x({i + 0.5: escape(name) for i, name in enumerate(rows)})
    for place, row in enumerate(rows.values()):
        for rank, (source, figure) in enumerate(row.items()):
            if math.isfinite(figure.value):
                x = place + 0.5 + 0.18 * (rank - (len(row) - 1) / 2)
                title = f"{source}: {figure.value:.3f}, {figure.n} records"
                body += bar(frame, x, figure.value, figure.low, figure.high, shades[source], title)
    return frame.drawing(body, "best identity to a training sequence", metric, f"{metric} by similarity")


def legend(shades: Mapping[str, str]) -> str:
    """Names beside a piece of their lines."""
    items = "".join(
        f'<li><svg width=30 height=10 aria-hidden=true><path class="line {shade}" d="M0 5H30"/></svg>'
        f"{escape(name)}"
        for name, shade in shades.items()
    )
    return f"<ul class=legend>{items}</ul>"
