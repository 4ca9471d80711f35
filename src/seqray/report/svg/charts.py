"""Charts in a frame: curves, histograms, and plots of classifications."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats, Ints
from seqray.core.explanation import Curve
from seqray.core.results import Figure, Histogram
from seqray.core.text import counted
from seqray.report.html import compact, escape, name, number, offset, tick_label

# --- The frame of a plot: its scales, ticks, lines, bars and legend

LINES = 6  # kinds of lines, k0 to k5 of style.css; kr is the reference
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 22, 14, 46  # on the left six figures of a tick and the title


@dataclass(frozen=True, slots=True)
class Frame:
    """The area of a plot: values at its edges, and its size with the margins, px."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float
    wide: int = 460
    high: int = 270

    @classmethod
    def of_size(cls, wide: int, high: int, x: tuple[float, float], y: tuple[float, float]) -> Frame:
        """Put a frame around an area of some size, px, with values ``x`` and ``y`` at its edges."""
        return cls(*x, *y, wide + _LEFT + _RIGHT, high + _TOP + _BOTTOM)

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
        """Put ticks, lines and bars into a plot; its ``name`` is for readers who do not see it."""
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
        marks, texts = "", ""
        for place, text in places.items():
            x = compact(self.x(place))
            marks += f"M{x} {self.base}v4"
            texts += tick_label(x, self.base + 17, text)
        return f'<path class=axis d="M{_LEFT} {self.base}H{self.wide - _RIGHT}{marks}"/>{texts}'

    def ticks_y(self, places: Mapping[float, str]) -> str:
        """Mark places on the y axis with lines across."""
        rules, texts = "", ""
        for place, text in places.items():
            rules += f"M{_LEFT} {compact(self.y(place))}H{self.wide - _RIGHT}"
            texts += tick_label(_LEFT - 8, compact(self.y(place) + 4), text, "end")
        return f'<path class=rule d="{rules}"/>{texts}'

    def path(self, x: Floats, y: Floats, *, steps: bool = False) -> str:
        """Data of a line through (n,) values, with ``steps`` along the axes; without nan and repeats."""
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
        """Draw a `path` in a class of lines; empty where it has no points."""
        drawn = self.path(x, y, steps=steps)
        return f'<path class="line {shade}" d="{drawn}"/>' if drawn else ""

    def bars(self, kind: str, edges: Iterable[float], heights: Iterable[float]) -> str:
        """Draw a histogram in a class of bars; there is one more edge than bars, empty bins have none."""
        places, base = [compact(self.x(float(edge))) for edge in edges], self.base
        bars = "".join(
            f"M{left} {base}V{compact(self.y(height))}H{right}V{base}"
            for left, right, height in zip(places[:-1], places[1:], heights, strict=True)
            if height
        )
        return f'<path class={kind} d="{bars}"/>'

    def point(self, x: float, value: tuple[float, float, float], shade: str, title: str) -> str:
        """Draw a value with its lower and upper bound, which may be nan; the pointer shows the title."""
        left, (y, low, high) = compact(self.x(x)), value
        rod = self.line(shade, np.array([x, x]), np.array([low, high])) if math.isfinite(low + high) else ""
        dot = f'<circle class="line {shade}" cx={left} cy={compact(self.y(y))} r=3 />'
        return f"<g><title>{escape(title)}</title>{rod}{dot}</g>"


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two values, at most ``most``; steps of 1, 2 or 5 times a power of ten."""
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


def count_ticks(top: float) -> dict[float, str]:
    """Whole numbers from 0 to a count, with their texts."""
    return {tick: str(int(tick)) for tick in round_ticks(0.0, top, 4) if tick == int(tick)}


def legend(shades: Mapping[str, str]) -> Markup:
    """List names beside a piece of their lines."""
    items = "".join(
        f'<li><svg width=34 height=10 aria-hidden=true><path class="line {shade}" d="M2 5h30"/></svg>'
        f"{escape(name)}"
        for name, shade in shades.items()
    )
    return Markup(f"<ul class=legend>{items}</ul>")


# --- Plots of curves with their intervals, and histograms

_MAX_BINS = 60
_BIN_WIDTHS = (1, 2, 5, 10, 20, 50, 100)


def curve_plot(curves: Sequence[Curve], shades: Mapping[str, str], title_x: str, name: str) -> Markup:
    """Draw curves of one kind, log-odds over the share of letters, with intervals, in each method's shade."""
    values = np.concatenate([np.concatenate((c.mean, c.low, c.high)) for c in curves])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    pad = 0.04 * (high - low) or 0.5
    frame = Frame(0.0, 1.0, low - pad, high + pad)
    shares = {tick / 5: f"{20 * tick} %" for tick in range(6)}
    body = frame.ticks_y(number_ticks(frame.low_y, frame.high_y)) + frame.ticks_x(shares)
    for curve in curves:
        bounded = np.isfinite(curve.low) & np.isfinite(curve.high)
        there, low, high = curve.shares[bounded], curve.low[bounded], curve.high[bounded]
        around = frame.path(np.concatenate((there, there[::-1])), np.concatenate((high, low[::-1])))
        body += f'<path class="band {shades[curve.method]}" d="{around}Z"/>' if around else ""
    body += "".join(frame.line(shades[curve.method], curve.shares, curve.mean) for curve in curves)
    return frame.drawing(body, title_x, "log-odds of the class, mean", name)


def position_histogram(positions: Ints, site: int | None, longest: int, name: str) -> Markup:
    """Count sites by the index of their first letter, relative to the ``site`` of the records if known."""
    zero = site or 0
    low, high = -zero, max(longest, int(positions.max(initial=0)) + 1) - zero
    width = next((w for w in _BIN_WIDTHS if (high - low) / w <= _MAX_BINS), -(-(high - low) // _MAX_BINS))
    start = math.floor(low / width) * width
    edges = np.arange(start, start + width * max(2, math.ceil((high - start) / width) + 1), width)
    counts = np.histogram(positions - zero, bins=edges)[0]
    first, last = float(edges[0]), float(edges[-1])
    frame = Frame(first, last, 0.0, float(max(1, counts.max(initial=1))), high=188)
    ticks = map(int, round_ticks(first, last, 9))
    places: dict[float, str] = {tick: str(tick) for tick in ticks}
    if site is not None:  # there is no 0, so that +10 is index 9 from the site
        places = {tick - (tick > 0): offset(int(tick - (tick > 0))) for tick in places}
    body = frame.ticks_y(count_ticks(frame.high_y))
    body += frame.bars("bin", edges.tolist(), counts.tolist()) + frame.ticks_x(places)
    if site is not None:
        body += f'<path class=site d="M{compact(frame.x(0.5))} {_TOP}V{frame.base}"/>'
    title = "index of the first position" if site is None else "first position, relative to the site"
    return frame.drawing(body, title if width == 1 else f"{title} (bins of {width})", "sites", name)


def class_histograms(histograms: Sequence[Histogram], title: str) -> Markup:
    """Draw a small histogram for each class: the share of its sequences over one quantity, the title of x."""
    totals = [sum(h.counts) for h in histograms]
    shares = [
        [many / max(total, 1) for many in h.counts] for h, total in zip(histograms, totals, strict=True)
    ]
    top = max((max(each, default=0) for each in shares), default=0.0) or 1.0
    figures = ""
    for h, total, heights in zip(histograms, totals, shares, strict=True):
        frame = Frame(h.edges[0], h.edges[-1], 0.0, top, high=170)
        body = (
            frame.ticks_y({tick: f"{100 * tick:.3g} %" for tick in round_ticks(0.0, top, 3)})
            + frame.bars("bar", h.edges, heights)
            + frame.ticks_x(number_ticks(h.edges[0], h.edges[-1]))
        )
        caption = f"<b>{name(h.label)}</b>, {name(h.split)}: {counted(total, 'sequence')}"
        drawing = frame.drawing(body, title, "share", f"{title} of {h.label}, {h.split}")
        figures += f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>"
    return Markup(f"<div class='figures small'>{figures}</div>")


def score_histogram(scores: Mapping[str, Floats], shades: Mapping[str, str], bins: Floats) -> Markup:
    """Draw the share of each class's records by score, as steps between the edges of the bins."""
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


# --- Plots of classifications: ROC, precision and recall, reliability, and figures by similarity

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
    from seqray.evaluation.floor import roc_points  # and scikit-learn, which other pages do without

    lines = "".join(_SQUARE.line(r.shade, *roc_points(r.labels, r.scores)) for r in rankings)
    return _SQUARE.drawing(_AXES + _DIAGONAL + lines, "false positive rate", "sensitivity", "ROC curves")


def precision_recall_plot(rankings: Sequence[Ranking], prevalence: float | None) -> Markup:
    """Draw precision over recall; the dashed line is the precision of calling every record positive."""
    from seqray.evaluation.floor import precision_recall_points

    body = _AXES
    if prevalence is not None:
        body += _SQUARE.line("kr", _UNIT, np.full(2, prevalence))
    for r in rankings:
        body += _SQUARE.line(r.shade, *precision_recall_points(r.labels, r.scores), steps=True)
    return _SQUARE.drawing(body, "recall (sensitivity)", "precision", "precision and recall")


def reliability_plot(rankings: Sequence[Ranking]) -> Markup:
    """Draw the share of positives over probability, with intervals and counts for the first ranking."""
    from seqray.evaluation.floor import reliability

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
    """Draw a figure of each range of similarity, side by side for each source in its shade."""
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
