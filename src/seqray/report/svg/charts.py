"""Plots of curves with their intervals, and histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from seqray.core import Floats, Ints, counted
from seqray.core.results import Curve, Histogram
from seqray.report.html import compact, name, offset
from seqray.report.svg.frame import Frame, number_ticks, round_ticks

_MAX_BINS = 60
_BIN_WIDTHS = (1, 2, 5, 10, 20, 50, 100)


def curve_plot(curves: Sequence[Curve], shades: Mapping[str, str], title_x: str, name: str) -> Markup:
    """Draw curves of log-odds over the share of letters, each with its interval.

    Parameters
    ----------
    curves
        Of one kind.
    shades
        Class of each method's line.
    title_x, name
        Title of the x axis, and of the plot for readers who do not see it.
    """
    values = np.concatenate([np.concatenate((c.mean, c.low, c.high)) for c in curves])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    pad = 0.04 * (high - low) or 0.5
    frame = Frame(0.0, 1.0, low - pad, high + pad)
    shares = {tick / 5: f"{20 * tick} %" for tick in range(6)}
    body = frame.ticks_y(number_ticks(frame.low_y, frame.high_y)) + frame.ticks_x(shares)
    body += "".join(_band(frame, curve, shades[curve.method]) for curve in curves)
    body += "".join(frame.line(shades[curve.method], curve.shares, curve.mean) for curve in curves)
    return frame.drawing(body, title_x, "log-odds of the class, mean", name)


def _band(frame: Frame, curve: Curve, shade: str) -> str:
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    there, low, high = curve.shares[known], curve.low[known], curve.high[known]
    around = frame.path(np.concatenate((there, there[::-1])), np.concatenate((high, low[::-1])))
    return f'<path class="band {shade}" d="{around}Z"/>' if around else ""


def position_histogram(positions: Ints, site: int | None, longest: int, name: str) -> Markup:
    """Count sites by their first position, over the whole length of the records.

    Parameters
    ----------
    positions
        Index of the first position in the record.
    site
        Index of the site, None if unknown.
    longest
        Length of the longest record.
    name
        Of the plot, for readers who do not see it.
    """
    zero = site or 0
    edges = _edges(-zero, max(longest, int(positions.max(initial=0)) + 1) - zero)
    counts = np.histogram(positions - zero, bins=edges)[0]
    low, high = float(edges[0]), float(edges[-1])
    frame = Frame(low, high, 0.0, float(max(1, counts.max(initial=1))), high=188)
    whole = {tick: str(int(tick)) for tick in round_ticks(0.0, frame.high_y, 4) if tick == int(tick)}
    ticks = map(int, round_ticks(low, high, 9))
    places: dict[float, str] = {tick: str(tick) for tick in ticks}
    if site is not None:  # there is no 0, so that +10 is index 9 from the site
        places = {tick - (tick > 0): offset(int(tick - (tick > 0))) for tick in places}
    body = frame.ticks_y(whole) + frame.bars("bin", edges.tolist(), counts.tolist()) + frame.ticks_x(places)
    if site is not None:
        body += f'<path class=site d="M{compact(frame.x(0.5))} {frame.top}V{frame.base}"/>'
    title = "index of the first letter" if site is None else "first letter, relative to the site"
    width = int(edges[1] - edges[0])
    return frame.drawing(body, title if width == 1 else f"{title} (bins of {width})", "sites", name)


def _edges(low: int, high: int) -> Ints:
    width = next((w for w in _BIN_WIDTHS if (high - low) / w <= _MAX_BINS), 0)
    width = width or -(-(high - low) // _MAX_BINS)
    start = math.floor(low / width) * width
    return np.arange(start, start + width * max(2, math.ceil((high - start) / width) + 1), width)


def class_histograms(histograms: Sequence[Histogram], title: str) -> Markup:
    """Draw a small histogram for each class: the share of its sequences over one quantity, the title of x."""
    shares = [max(h.counts, default=0) / max(sum(h.counts), 1) for h in histograms]
    top = max(shares, default=0.0) or 1.0
    figures = "".join(_class_histogram(h, title, top) for h in histograms)
    return Markup(f"<div class='figures small'>{figures}</div>")


def _class_histogram(histogram: Histogram, title: str, top: float) -> str:
    total = sum(histogram.counts)
    low, high = histogram.edges[0], histogram.edges[-1]
    frame = Frame(low, high, 0.0, top, high=170)
    body = (
        frame.ticks_y({tick: f"{100 * tick:.3g} %" for tick in round_ticks(0.0, top, 3)})
        + frame.bars("bar", histogram.edges, [many / max(total, 1) for many in histogram.counts])
        + frame.ticks_x(number_ticks(low, high))
    )
    caption = f"<b>{name(histogram.label)}</b>, {name(histogram.split)}: {counted(total, 'sequence')}"
    drawing = frame.drawing(body, title, "share", f"{title} of {histogram.label}, {histogram.split}")
    return f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>"


def score_histogram(scores: Mapping[str, Floats], shades: Mapping[str, str], bins: Floats) -> Markup:
    """Draw the share of each class's records by score, as steps.

    Parameters
    ----------
    scores
        Of the records of each class.
    shades
        Class of each class's line.
    bins
        Edges of the bins.
    """
    shares = {label: np.histogram(v, bins=bins)[0] / max(1, len(v)) for label, v in scores.items()}
    top = max((float(share.max(initial=0.0)) for share in shares.values()), default=1.0) or 1.0
    low, high = float(bins[0]), float(bins[-1])
    frame = Frame(low, high, 0.0, top * 1.05, 420, 360)
    body = frame.ticks_y(number_ticks(0.0, top)) + frame.ticks_x(number_ticks(low, high))
    for label, share in shares.items():
        outline = frame.path(np.repeat(bins, 2), np.concatenate(([0.0], np.repeat(share, 2), [0.0])))
        body += f'<path class="band {shades[label]}" d="{outline}Z"/>'
        body += f'<path class="line {shades[label]}" d="{outline}"/>'
    return frame.drawing(body, "score of the positive class", "share of the class", "scores by class")
