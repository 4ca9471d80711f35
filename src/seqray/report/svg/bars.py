"""Histograms of several classes as small drawings that share their axes."""

from __future__ import annotations

from collections.abc import Sequence

from seqray.core.results import Histogram
from seqray.report.html import compact, count, name, number
from seqray.report.svg.curves import Frame, round_ticks

HIGH = 170
STYLE = (
    ".bar { fill: #1f5fb0; } .small .plot { max-width: 380px; } "
    ".small figcaption { font-size: .875rem; overflow-wrap: anywhere; }"
)


def histogram_rows(histograms: Sequence[Histogram], title: str) -> str:
    """Draw one histogram for each class, with the share of its sequences on the y axis.

    Parameters
    ----------
    histograms
        Of one quantity, with the same edges.
    title
        Of the x axis.
    """
    shares = [max(h.counts, default=0) / max(sum(h.counts), 1) for h in histograms]
    top = max(shares, default=0.0) or 1.0
    return f"<div class='figures small'>{''.join(_figure(h, title, top) for h in histograms)}</div>"


def _figure(histogram: Histogram, title: str, top: float) -> str:
    total = sum(histogram.counts)
    low, high = histogram.edges[0], histogram.edges[-1]
    frame = Frame(low, high, 0.0, top, high=HIGH)
    base = compact(frame.y(0.0))
    bars = "".join(
        f"M{compact(frame.x(left))} {base}V{compact(frame.y(many / total))}H{compact(frame.x(right))}V{base}"
        for left, right, many in zip(histogram.edges[:-1], histogram.edges[1:], histogram.counts, strict=True)
        if many
    )
    body = (
        frame.ticks_y({tick: f"{100 * tick:.3g} %" for tick in round_ticks(0.0, top, 3)})
        + f'<path class=bar d="{bars}"/>'
        + frame.ticks_x({tick: number(tick) for tick in round_ticks(low, high, 6)})
    )
    caption = f"<b>{name(histogram.label)}</b>, {name(histogram.split)}: {count(total, 'sequence')}"
    drawing = frame.drawing(body, title, "share", f"{title} of {histogram.label}, {histogram.split}")
    return f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>"
