"""The frame of a plot: its scales, ticks, lines, bars and legend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Floats
from seqray.report.html import compact, escape, number
from seqray.report.svg.rows import tick_label

LINES = 6  # kinds of lines, k0 to k5 of style.css; kr is the reference
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 22, 14, 46  # on the left six figures of a tick and the title


@dataclass(frozen=True, slots=True)
class Frame:
    """The area of a plot and the values at its edges."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float
    wide: int = 460
    high: int = 270

    @classmethod
    def of_size(cls, wide: int, high: int, x: tuple[float, float], y: tuple[float, float]) -> Frame:
        """Put a frame around an area.

        Parameters
        ----------
        wide, high
            Size of the area, px.
        x, y
            Values at its edges, low and high.
        """
        return cls(*x, *y, wide + _LEFT + _RIGHT, high + _TOP + _BOTTOM)

    @property
    def top(self) -> int:
        """Upper edge, px."""
        return _TOP

    @property
    def base(self) -> int:
        """Lower edge, px."""
        return self.high - _BOTTOM

    def x(self, value: float) -> float:
        """Horizontal place of a value, px."""
        share = (value - self.low_x) / (self.high_x - self.low_x or 1.0)
        return _LEFT + share * (self.wide - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Vertical place of a value, px."""
        share = (value - self.low_y) / (self.high_y - self.low_y or 1.0)
        return self.base - share * (self.base - _TOP)

    def drawing(self, body: str, title_x: str, title_y: str, name: str) -> Markup:
        """Assemble a plot.

        Parameters
        ----------
        body
            Ticks, lines and bars, as SVG.
        title_x, title_y
            Titles of the axes.
        name
            Of the plot, for readers who do not see it.
        """
        middle_x, middle_y = (_LEFT + self.wide - _RIGHT) // 2, (_TOP + self.base) // 2
        return Markup(
            f'<svg class=plot viewBox="0 0 {self.wide} {self.high}" width={self.wide} '
            f'height={self.high} role=img aria-label="{escape(name)}">{body}'
            f"{tick_label(middle_x, self.high - 6, escape(title_x))}"
            f'<text class="tick mid" transform="translate(12,{middle_y})rotate(-90)">{escape(title_y)}'
            "</text></svg>"
        )

    def ticks_x(self, places: Mapping[float, str]) -> str:
        """Mark places on the x axis."""
        marks = "".join(f"M{compact(self.x(place))} {self.base}v4" for place in places)
        texts = "".join(
            tick_label(compact(self.x(place)), self.base + 17, text) for place, text in places.items()
        )
        return f'<path class=axis d="M{_LEFT} {self.base}H{self.wide - _RIGHT}{marks}"/>{texts}'

    def ticks_y(self, places: Mapping[float, str]) -> str:
        """Mark places on the y axis with lines across."""
        rules = "".join(f"M{_LEFT} {compact(self.y(place))}H{self.wide - _RIGHT}" for place in places)
        texts = "".join(
            tick_label(_LEFT - 8, compact(self.y(place) + 4), text, "end") for place, text in places.items()
        )
        return f'<path class=rule d="{rules}"/>{texts}'

    def path(self, x: Floats, y: Floats, *, steps: bool = False) -> str:
        """Data of a line; points that fall on the same tenth of a pixel are drawn once, nan is left out.

        Parameters
        ----------
        x, y
            (n,) values.
        steps
            Whether to go from point to point along the axes.
        """
        points: list[str] = []
        last = ("", "")
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            if not math.isfinite(b):
                continue
            here = (compact(self.x(a)), compact(self.y(b)))
            if not points:
                points.append(f"M{here[0]} {here[1]}")
            elif here[0] != last[0] and here[1] != last[1]:
                points.append(f"H{here[0]}V{here[1]}" if steps else f"L{here[0]} {here[1]}")
            elif here != last:
                points.append(f"H{here[0]}" if here[1] == last[1] else f"V{here[1]}")
            last = here
        return "".join(points)

    def line(self, shade: str, x: Floats, y: Floats, *, steps: bool = False) -> str:
        """Draw a line; empty where it has no points.

        Parameters
        ----------
        shade
            Class of the line.
        x, y, steps
            As for `path`.
        """
        drawn = self.path(x, y, steps=steps)
        return f'<path class="line {shade}" d="{drawn}"/>' if drawn else ""

    def bars(self, kind: str, edges: Iterable[float], heights: Iterable[float]) -> str:
        """Draw the bars of a histogram; empty bins have none.

        Parameters
        ----------
        kind
            Class of the bars.
        edges
            Of the bins, one more than bars.
        heights
            Values on the y axis.
        """
        places, base = [compact(self.x(float(edge))) for edge in edges], self.base
        bars = "".join(
            f"M{left} {base}V{compact(self.y(height))}H{right}V{base}"
            for left, right, height in zip(places[:-1], places[1:], heights, strict=True)
            if height
        )
        return f'<path class={kind} d="{bars}"/>'

    def point(self, x: float, value: tuple[float, float, float], shade: str, title: str) -> str:
        """Draw a value with its interval.

        Parameters
        ----------
        x
            Its place on the x axis.
        value
            Value, lower and upper bound; the bounds may be nan.
        shade
            Class of its color.
        title
            Text for the pointer.
        """
        left, (y, low, high) = compact(self.x(x)), value
        rod = self.line(shade, np.array([x, x]), np.array([low, high])) if math.isfinite(low + high) else ""
        dot = f'<circle class="line {shade}" cx={left} cy={compact(self.y(y))} r=3 />'
        return f"<g><title>{escape(title)}</title>{rod}{dot}</g>"


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two values, at most ``most``; steps of 1, 2 or 5 times a power of ten.

    Parameters
    ----------
    low, high
        Ends of the axis.
    most
        Number of ticks.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def number_ticks(low: float, high: float) -> dict[float, str]:
    """Round numbers between two values, with their texts."""
    return {value: number(value) for value in round_ticks(low, high)}


def legend(shades: Mapping[str, str]) -> Markup:
    """List names beside a piece of their lines."""
    items = "".join(
        f'<li><svg width=34 height=10 aria-hidden=true><path class="line {shade}" d="M2 5h30"/></svg>'
        f"{escape(name)}"
        for name, shade in shades.items()
    )
    return Markup(f"<ul class=legend>{items}</ul>")
