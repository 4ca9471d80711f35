"""Plots with axes: curves with their intervals, and histograms of positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core import Floats
from seqray.core.results import Curve
from seqray.report.html import compact, escape, number, offset

COLOURS = 6  # lines k0 to k5 of page.css; kr is that of random rankings
_WIDE, _HIGH = 460, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 22, 14, 46  # on the left six figures of a tick and the title
_MOST_BINS = 60


@dataclass(frozen=True, slots=True)
class Frame:
    """The area of a plot and what its edges stand for."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float
    wide: int = _WIDE
    high: int = _HIGH

    def x(self, value: float) -> float:
        """Place of a value, px."""
        share = (value - self.low_x) / (self.high_x - self.low_x or 1.0)
        return _LEFT + share * (self.wide - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Height of a value, px."""
        share = (value - self.low_y) / (self.high_y - self.low_y or 1.0)
        return self.high - _BOTTOM - share * (self.high - _TOP - _BOTTOM)

    def drawing(self, body: str, title_x: str, title_y: str, name: str) -> str:
        """Put a plot together, its axes named."""
        middle_x, middle_y = (_LEFT + self.wide - _RIGHT) // 2, (_TOP + self.high - _BOTTOM) // 2
        return (
            f'<svg class=plot viewBox="0 0 {self.wide} {self.high}" width={self.wide} '
            f'height={self.high} role=img aria-label="{escape(name)}">{body}'
            f'<text class="tick mid" x={middle_x} y={self.high - 6}>{escape(title_x)}</text>'
            f'<text class="tick mid" transform="translate(12,{middle_y})rotate(-90)">{escape(title_y)}'
            "</text></svg>"
        )

    def ticks_x(self, places: Mapping[float, str]) -> str:
        """Mark places on the x axis."""
        base = self.high - _BOTTOM
        marks = "".join(
            f'<path class=axis d="M{compact(self.x(place))} {base}v4"/>'
            f'<text class="tick mid" x={compact(self.x(place))} y={base + 17}>{text}</text>'
            for place, text in places.items()
        )
        return f'<path class=axis d="M{_LEFT} {base}H{self.wide - _RIGHT}"/>{marks}'

    def ticks_y(self, places: Mapping[float, str]) -> str:
        """Mark places on the y axis with lines across."""
        return "".join(
            f'<path class=rule d="M{_LEFT} {compact(self.y(place))}H{self.wide - _RIGHT}"/>'
            f'<text class="tick end" x={_LEFT - 8} y={compact(self.y(place) + 4)}>{text}</text>'
            for place, text in places.items()
        )


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two values, at most ``most``; steps of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def curve_plot(curves: Sequence[Curve], shades: Mapping[str, str], title_x: str, name: str) -> str:
    """Draw curves of log-odds over the share of letters, each with its interval.

    Parameters
    ----------
    curves
        Of one kind.
    shades
        Class of each method's line.
    title_x, name
        Title of the x axis, and of the plot for those who don't see it.
    """
    values = np.concatenate([np.concatenate((c.mean, c.low, c.high)) for c in curves])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    pad = 0.04 * (high - low) or 0.5
    frame = Frame(0.0, 1.0, low - pad, high + pad)
    ticks = {tick: number(tick) for tick in round_ticks(frame.low_y, frame.high_y)}
    shares = {tick / 5: f"{20 * tick} %" for tick in range(6)}
    bands = "".join(_band(frame, curve, shades[curve.method]) for curve in curves)
    lines = "".join(_line(frame, curve, shades[curve.method]) for curve in curves)
    body = frame.ticks_y(ticks) + frame.ticks_x(shares) + bands + lines
    return frame.drawing(body, title_x, "log-odds of the class, mean", name)


def _points(frame: Frame, x: Floats, y: Floats) -> list[str]:
    return [
        f"{compact(frame.x(a))} {compact(frame.y(b))}"
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
        if math.isfinite(b)
    ]


def _line(frame: Frame, curve: Curve, shade: str) -> str:
    points = _points(frame, curve.shares, curve.mean)
    return f'<path class="line {shade}" d="M{"L".join(points)}"/>' if points else ""


def _band(frame: Frame, curve: Curve, shade: str) -> str:
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    there = _points(frame, curve.shares[known], curve.high[known])
    back = _points(frame, curve.shares[known][::-1], curve.low[known][::-1])
    return f'<path class="band {shade}" d="M{"L".join(there + back)}Z"/>' if there else ""


def position_histogram(positions: npt.NDArray[np.int64], site: int | None, longest: int, name: str) -> str:
    """Count sites by their first place, over the whole length of the records.

    Parameters
    ----------
    positions
        Index of the first place in the record.
    site
        Index of the site, None if unknown.
    longest
        Length of the longest record.
    name
        Of the plot, for those who don't see it.
    """
    zero = site or 0
    edges = _edges(-zero, max(longest, int(positions.max(initial=0)) + 1) - zero)
    counts = np.histogram(positions - zero, bins=edges)[0]
    frame = Frame(float(edges[0]), float(edges[-1]), 0.0, float(max(1, counts.max(initial=1))), high=188)
    bars = "".join(
        f"M{compact(frame.x(float(left)))} {frame.high - _BOTTOM}V{compact(frame.y(float(many)))}"
        f"H{compact(frame.x(float(right)))}V{frame.high - _BOTTOM}"
        for left, right, many in zip(edges[:-1], edges[1:], counts.tolist(), strict=True)
        if many
    )
    ticks = round_ticks(float(edges[0]), float(edges[-1]), 9)
    places = {tick: str(int(tick)) if site is None else offset(int(tick)) for tick in ticks}
    body = frame.ticks_y(_whole_ticks(frame.high_y)) + f'<path class=bin d="{bars}"/>' + frame.ticks_x(places)
    body += (
        ""
        if site is None
        else f'<path class=site d="M{compact(frame.x(0.5))} {_TOP}V{frame.high - _BOTTOM}"/>'
    )
    return frame.drawing(body, _position_title(site, int(edges[1] - edges[0])), "sites", name)


def _position_title(site: int | None, width: int) -> str:
    origin = "index of the first letter" if site is None else "first letter, relative to the site"
    return origin if width == 1 else f"{origin} (bins of {width})"


def _whole_ticks(high: float) -> dict[float, str]:
    return {tick: str(int(tick)) for tick in round_ticks(0.0, high, 4) if tick == int(tick)}


def _edges(low: int, high: int) -> npt.NDArray[np.int64]:
    width = next((w for w in (1, 2, 5, 10, 20, 50, 100) if (high - low) / w <= _MOST_BINS), 0)
    width = width or -(-(high - low) // _MOST_BINS)
    start = math.floor(low / width) * width
    return np.arange(start, start + width * max(2, math.ceil((high - start) / width) + 1), width)
