"""Genes, calls and contigs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats, Ints
from seqray.core.records import Intervals
from seqray.report.html import MINUS, compact, escape, number, offset, offset_ticks, tick_label
from seqray.report.svg.charts import round_ticks

# --- Genes as arrows, and scores along a strand as an outline

_LETTER = 6.3  # mean width of a letter of a gene's name, px
_MAX_HEAD_LENGTH = 6.0  # px


def arrow_path(left: float, right: float, top: float, height: float, heads: str) -> str:
    """Outline of an arrow whose box is in px; its head is ``>`` or ``<``, or empty for none."""
    head = min(_MAX_HEAD_LENGTH, right - left) if heads else 0.0
    a, b, c = compact(left), compact(right), compact(height)
    half, tip = compact(height / 2), compact(head)
    y = compact(top)
    if heads == ">":
        return f"M{a} {y}H{compact(right - head)}l{tip} {half} -{tip} {half}H{a}z"
    if heads == "<":
        return f"M{b} {y}H{compact(left + head)}l-{tip} {half} {tip} {half}H{b}z"
    return f"M{a} {y}H{b}v{c}H{a}z"


def fitting_name(name: str, room: float) -> str:
    """The name, shortened to fit into some pixels; empty if less than three letters fit."""
    letters = int(room / _LETTER)
    if len(name) <= letters:
        return name
    return name[: letters - 1] + "…" if letters >= 4 else ""


def named_arrow(path: str, name: str, box: tuple[float, float, float], title: str) -> str:
    """Draw a gene; ``box`` is left, right and base line of its name, px, ``title`` is for the pointer."""
    left, right, y = box
    shown = fitting_name(name, right - left - 8)
    text = f"<text x={compact((left + right) / 2)} y={compact(y)}>{escape(shown)}</text>" if shown else ""
    return f'<g class=gene><title>{escape(title)}</title><path d="{path}"/>{text}</g>'


def strongest(values: Floats, columns: int) -> Floats:
    """(columns,) highest of the (n,) values in each column, nan where all are; n is at least columns."""
    starts = np.arange(columns) * len(values) // columns
    filled = np.where(np.isnan(values), -np.inf, values)
    highest = np.maximum.reduceat(filled, starts)
    return np.where(np.isfinite(highest), highest, np.nan)


def outline(heights: Sequence[int | None], left: int, base: int, *, up: bool) -> str:
    """Outline of columns 1 px wide that rise from ``base``, or hang; heights are half pixels or None."""
    sign = -1 if up else 1
    path, x, level, drawing = "", left, 0, False
    for height, run in groupby(heights):
        width = len(list(run))
        if height is None:
            path += f"V{base}z" if drawing else ""
            drawing, level = False, 0
        else:
            path += "" if drawing else f"M{x} {base}"
            step = sign * (height - level)
            path += (f"v{compact(step / 2)}" if step else "") + f"h{width}"
            drawing, level = True, height
        x += width
    return path + (f"V{base}z" if drawing else "")


# --- A call with its surroundings: genes, scores of both strands, and the letters around its boxes

CALL_REACH = 400  # letters on either side of a call
STRIP_START, STRIP_END = -46, 6  # letters drawn, relative to the site, the end excluded

_LEFT, _WIDTH, _MARGIN = 28, 400, 18
_TOTAL = _LEFT + _WIDTH + _MARGIN
_SCORE_HEIGHT = 46  # of a score of 1
_UP = 62  # line from which the scores of the strand of the call rise
_LANE = 16
_DOWN = _UP + 2 * _LANE + 12  # line from which those of the other strand hang
_BOTTOM = _DOWN + _SCORE_HEIGHT
_TOTAL_HEIGHT = _BOTTOM + 20
_SLOT = _TOTAL / (STRIP_END - STRIP_START)
_TICKS = (0.1, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class DrawnGene:
    """A gene, half-open: on the plus strand of a contig; or relative to a site, where ``+`` is its strand."""

    start: int
    end: int
    strand: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class MarkedBox:
    """A box of the promoter: its name, first letter relative to the site, letters in reading direction."""

    name: str
    start: int
    letters: str
    kind: str  # class of its drawing: ``near`` for the one next to the site, else ``far``


def draw_surroundings(
    genes: Iterable[DrawnGene],
    profiles: tuple[Floats, Floats] | None,
    boxes: Sequence[MarkedBox],
    threshold: float | None,
    name: str,
) -> Markup:
    """Draw the surroundings of a call: genes that overlap them, scores, boxes and the arrow of the start."""
    body = _score_curves(profiles, threshold) if profiles else ""
    same, other = _UP + 4, _UP + 8 + _LANE  # top of the genes of each strand
    lines = "".join(f"M{_LEFT} {top + _LANE // 2}h{_WIDTH}" for top in (same, other))
    body += f'<path class=strand d="{lines}"/>'
    for gene in genes:
        left, right = _x(max(gene.start, -CALL_REACH)), _x(min(gene.end, CALL_REACH + 1))
        whole = gene.end <= CALL_REACH + 1 if gene.strand == "+" else gene.start >= -CALL_REACH
        top, head = (same, ">") if gene.strand == "+" else (other, "<")
        path = arrow_path(left, right, top, _LANE, head if whole else "")
        body += named_arrow(path, gene.name, (left, right, top + 12), gene.title)
    for box in boxes:
        left, right = _x(box.start), _x(box.start + len(box.letters))
        body += (
            f"<g><title>{escape(f'{box.name} box: {box.letters}')}</title><rect class={box.kind} "
            f"x={compact(left)} y={_UP + 1} width={compact(right - left)} height={_LANE + 6} /></g>"
        )
    peak = float(np.nan_to_num(profiles[0][CALL_REACH])) if profiles else 0.0
    x, top, foot = _x(0.5), _UP - _SCORE_HEIGHT - 8, _UP - _height(peak) - 2
    body += f'<path class=start d="M{compact(x)} {compact(foot)}V{top}h22"/>'
    body += f'<path class=tip d="M{compact(x + 29)} {top}l-9-4.5v9z"/>'
    places = offset_ticks(-CALL_REACH, CALL_REACH + 1, 100)
    marks = "".join(f"M{compact(_x(place + 0.5))} {_BOTTOM + 2}v4" for place in places)
    texts = "".join(tick_label(compact(_x(p + 0.5)), _BOTTOM + 17, offset(p)) for p in places[::2])
    body += f'<path class=axis d="M{_LEFT} {_BOTTOM + 2}h{_WIDTH}{marks}"/>{texts}'
    return Markup(
        f'<svg class=callmap viewBox="0 0 {_TOTAL} {_TOTAL_HEIGHT}" role=img '
        f'aria-label="{escape(name)}">{body}</svg>'
    )


def _x(place: float) -> float:
    """Place of an edge between letters, relative to the left edge of the site, px."""
    return _LEFT + (place + CALL_REACH) / (2 * CALL_REACH + 1) * _WIDTH


def _height(score: float) -> float:
    """Weak peaks would be invisible beside a score of 1, so heights are square roots."""
    return _SCORE_HEIGHT * min(1.0, max(0.0, score)) ** 0.5


def _score_curves(profiles: tuple[Floats, Floats], threshold: float | None) -> str:
    """Scale, threshold and scores of both strands."""

    def across(score: float) -> str:
        up, down = compact(_UP - _height(score)), compact(_DOWN + _height(score))
        return f"M{_LEFT} {up}h{_WIDTH}M{_LEFT} {down}h{_WIDTH}"

    texts = "".join(
        tick_label(_LEFT - 5, compact(y + 4), f"{score:g}", "end")
        for score in _TICKS
        for y in (_UP - _height(score), _DOWN + _height(score))
    )
    drawn = f'<path class=rule d="{"".join(map(across, _TICKS))}"/>{texts}'
    drawn += "" if threshold is None else f'<path class=limit d="{across(threshold)}"/>'
    for values, kind, base, up in ((profiles[0], "own", _UP, True), (profiles[1], "other", _DOWN, False)):
        columns = strongest(values, _WIDTH).tolist()
        heights = [None if np.isnan(value) else round(2 * _height(value)) for value in columns]
        drawn += f'<path class={kind} d="{outline(heights, _LEFT, base, up=up)}"/>'
    return drawn


def letter_strip(letters: str, boxes: Sequence[MarkedBox], shares: Floats | None, name: str) -> Markup:
    """Write the letters from ``STRIP_START`` to ``STRIP_END`` around the site, their signed shares above."""
    top = 34 if shares is not None else 16
    high = top + 26 + (12 if shares is not None and float(np.nanmin(shares, initial=0.0)) < 0 else 0)
    marks = [(box.kind, box.start, len(box.letters), box.name.replace("-", MINUS)) for box in boxes]
    body = ""
    for kind, start, length, text in [*marks, ("plus1", 0, 1, "+1")]:
        left, width = (start - STRIP_START) * _SLOT, length * _SLOT
        body += f"<rect class={kind} x={compact(left)} y={top} width={compact(width)} height=19 rx=3 />"
        body += tick_label(compact(left + width / 2), 11, escape(text))
    body += _bars(shares, top) if shares is not None else ""
    spots = " ".join(compact((i + 0.5) * _SLOT) for i in range(len(letters)))
    body += f'<text class=seq x="{spots}" y={top + 14}>{escape(letters)}</text>'
    return Markup(
        f'<svg class=strip viewBox="0 0 {_TOTAL} {high}" role=img aria-label="{escape(name)}">{body}</svg>'
    )


def _bars(shares: Floats, top: int) -> str:
    """Bars that rise from above the letters, in two colors for and against the call."""
    largest = float(np.nanmax(np.abs(shares), initial=0.0)) or 1.0
    drawn = ""
    for kind, sign in (("support", 1), ("oppose", -1)):
        heights = np.nan_to_num(np.maximum(sign * shares, 0.0)) / largest * (20 if sign > 0 else 10)
        base = top - 1 if sign > 0 else top + 20
        path = "".join(
            f"M{compact(i * _SLOT + 1)} {base}v{compact(-sign * h)}h{compact(_SLOT - 2)}V{base}z"
            for i, h in enumerate(heights.tolist())
            if h >= 0.3
        )
        drawn += f'<path class={kind} d="{path}"/>' if path else ""
    return drawn


# --- A genome in lines: its genes and its calls, above the line those of the plus strand

_GENOME_LEFT, _GENOME_WIDTH, _GENOME_MARGIN = 74, 1080, 8
_GENOME_TOTAL = _GENOME_LEFT + _GENOME_WIDTH + _GENOME_MARGIN
_LABEL, _TICK, _GENOME_LANE = 14, 22, 12  # heights of names of contigs, of a call of score 1, of a gene
_PLUS = _LABEL + _TICK + 4  # top of the genes of the plus strand
_MINUS = _PLUS + _GENOME_LANE + 2
_BASE = _MINUS + _GENOME_LANE + 4  # from which calls of the minus strand hang
_GENOME_TOTAL_HEIGHT = _BASE + _TICK + 4
_LINES = 10  # of a long genome
_BINS = 216  # parts of the input in which calls are counted
_MAX_LINE_LETTERS = 12_500  # of a short genome, so that names of genes fit
_MAX_GENE_SCALE = 40  # letters per pixel above which genes are no longer separate drawings
_MAX_ARROW_SCALE = 25  # letters per pixel up to which calls are bent arrows


@dataclass(frozen=True, slots=True)
class DrawnContig:
    """A contig, its genes and calls (``plus`` is their strand), and the parts searched, if not all."""

    name: str
    length: int
    genes: Sequence[DrawnGene]
    sites: Ints
    plus: np.ndarray
    scores: Floats
    links: Sequence[str]
    parts: Sequence[tuple[int, int]] = ()

    @property
    def drawn(self) -> tuple[int, int]:
        """From the first to the last part, where these are less than half of the contig; else all of it."""
        first, last = (self.parts[0][0], self.parts[-1][1]) if self.parts else (0, self.length)
        return (first, last) if 2 * (last - first) < self.length else (0, self.length)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A part of a contig on a line: letters from ``start`` to ``end``, from ``left`` px with a scale."""

    contig: DrawnContig
    start: int
    end: int
    left: float
    scale: float

    def x(self, place: float) -> float:
        return self.left + (min(max(place, self.start), self.end) - self.start) / self.scale

    @property
    def right(self) -> float:
        return self.x(self.end)


def line_letters(total: int) -> int:
    """Letters of a line, so that a short genome shows names and a long one fits on the screen."""
    if total <= _LINES * _MAX_LINE_LETTERS:
        return min(_MAX_LINE_LETTERS, max(500, total))
    power = 10 ** math.floor(math.log10(total / _LINES))
    return next(s * power for s in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if s * power * _LINES >= total) // 1


def genome_lines(contigs: Sequence[DrawnContig]) -> Iterator[Markup]:
    """Draw contigs end to end, one drawing for each line."""
    per_line = int(line_letters(sum(end - start for start, end in (contig.drawn for contig in contigs))))
    scale, alone, used = per_line / _GENOME_WIDTH, len(contigs) == 1, 0
    line: list[_Stretch] = []
    for contig in contigs:
        start, stop = contig.drawn
        while start < stop:
            end = min(stop, start + per_line - used)
            line.append(_Stretch(contig, start, end, _GENOME_LEFT + used / scale, scale))
            used, start = used + end - start, end
            if used == per_line:
                yield _line(line, alone=alone)
                line, used = [], 0
    if line:
        yield _line(line, alone=alone)


def _line(stretches: Sequence[_Stretch], *, alone: bool) -> Markup:
    """Draw a line; of a single sequence, its place is at the left, of several, beside the name."""
    first, last = stretches[0], stretches[-1]
    name = f"{first.contig.name} from base {first.start + 1} to {last.contig.name} base {last.end}"
    body = ""
    for s in stretches:
        parts = [p for p in s.contig.parts if p[0] < s.end and p[1] > s.start]
        body += _shade([(s.x(start), s.x(end)) for start, end in parts], _LABEL, _GENOME_TOTAL_HEIGHT)
        body += _name(s, s is first, alone) + _genes(s) + _calls(s)
        places = round_ticks(s.start, s.end, max(1, int((s.right - s.left) / 100)))
        marks = "".join(f"M{compact(s.x(place))} {_MINUS - 4}v6" for place in places)
        body += f'<path class=axis d="M{compact(s.left)} {_MINUS - 1}H{compact(s.right)}{marks}"/>'
    if alone:
        body += tick_label(_GENOME_LEFT - 10, _MINUS + 3, _kilobases(first.start, first.contig.length), "end")
    size = f'viewBox="0 0 {_GENOME_TOTAL} {_GENOME_TOTAL_HEIGHT}"'
    return Markup(f'<svg class=genome {size} role=group aria-label="{escape(name)}">{body}</svg>')


def _kilobases(place: float, longest: float) -> str:
    """Write a place in kb, or in Mb if the longest sequence has one."""
    return f"{number(place / 1e6, 4)} Mb" if longest >= 1e6 else f"{number(place / 1e3, 4)} kb"


def _name(stretch: _Stretch, first: bool, alone: bool) -> str:
    """Name of a contig where it begins; of several also where a line continues it, with the place."""
    if stretch.start > stretch.contig.drawn[0] and alone:
        return ""
    name, place = stretch.contig.name, _kilobases(stretch.start, stretch.contig.length)
    edge = f'<path class=edge d="M{compact(stretch.left)} {_LABEL - 10}V{_GENOME_TOTAL_HEIGHT}"/>'
    shown = fitting_name(f"{place} of {name}" if stretch.start else name, stretch.right - stretch.left)
    at = compact(stretch.left + (0 if first else 4))
    return f"{'' if first else edge}<text class=contig x={at} y={_LABEL - 3}>{escape(shown)}</text>"


def _shade(spans: Iterable[tuple[float, float]], top: float, bottom: float) -> str:
    """Shade what was searched: columns of whole pixels, so that many small parts become a few large ones."""
    merged = Intervals.merge((math.floor(left), math.ceil(right)) for left, right in spans).pairs()
    path = "".join(f"M{left} {top}H{right}V{bottom}H{left}z" for left, right in merged)
    return f'<path class=searched d="{path}"/>' if path else ""


def _genes(stretch: _Stretch) -> str:
    """Genes as arrows; where they are no longer separate, those of a strand as one path of boxes."""
    near = [g for g in stretch.contig.genes if g.start < stretch.end and g.end > stretch.start]
    boxes, arrows = {"+": "", "-": ""}, ""
    for gene in near:
        left, right, plus = stretch.x(gene.start), stretch.x(gene.end), gene.strand == "+"
        top = _PLUS if plus else _MINUS
        if stretch.scale > _MAX_GENE_SCALE:
            wide = compact(max(0.6, right - left - 0.4))
            boxes[gene.strand] += f"M{compact(left)} {top}h{wide}v{_GENOME_LANE}H{compact(left)}z"
        else:
            whole = gene.end <= stretch.end if plus else gene.start >= stretch.start
            path = arrow_path(left, right, top, _GENOME_LANE, (">" if plus else "<") if whole else "")
            arrows += named_arrow(path, gene.name, (left, right, top + 10), gene.title)
    return arrows + "".join(f'<path class=genes d="{path}"/>' for path in boxes.values() if path)


def _calls(stretch: _Stretch) -> str:
    """Calls as bent arrows, links where the page shows more of them; in a long genome as needles."""
    contig, needles, arrows = stretch.contig, "", ""
    for i in np.flatnonzero((contig.sites >= stretch.start) & (contig.sites < stretch.end)).tolist():
        reach, plus, site = _TICK * max(0.2, float(contig.scores[i]) ** 0.5), contig.plus[i], contig.sites[i]
        if stretch.scale > _MAX_ARROW_SCALE:
            x = compact(stretch.x(float(site)))
            needles += f"M{x} {_PLUS - 1}v-{compact(reach)}" if plus else f"M{x} {_BASE - 3}v{compact(reach)}"
            continue
        start, way = (_PLUS, 1) if plus else (_MINUS + _GENOME_LANE, -1)
        x, y = compact(stretch.x(float(site) + 0.5)), compact(start - way * reach)
        path = f"M{x} {start}V{y}h{6 * way}m{-4 * way} -3.5l{4 * way} 3.5 {-4 * way} 3.5"
        title = f"call at {site + 1} ({'+' if plus else MINUS}), score {contig.scores[i]:.3f}"
        drawn = f'<g class=bent><title>{escape(title)}</title><path d="{path}"/></g>'
        arrows += f'<a href="#{contig.links[i]}">{drawn}</a>' if contig.links[i] else drawn
    return arrows + (f'<path class=needles d="{needles}"/>' if needles else "")


def density(contigs: Sequence[DrawnContig]) -> Markup:
    """Draw the number of calls along all contigs, those of the plus strand above the line."""
    total = sum(contig.length for contig in contigs)
    firsts = np.cumsum([0, *(contig.length for contig in contigs)])[:-1]
    sites = np.concatenate([c.sites + first for c, first in zip(contigs, firsts, strict=True)])
    plus = np.concatenate([c.plus for c in contigs]).astype(bool)
    counts = [np.bincount(sites[mask] * _BINS // total, minlength=_BINS) for mask in (plus, ~plus)]
    top = max(1, *(int(c.max()) for c in counts))
    step, half = _GENOME_WIDTH // _BINS, 34
    scale = step * _BINS / total  # pixels per letter
    spans = [
        (first + start, first + end)
        for contig, first in zip(contigs, firsts.tolist(), strict=True)
        for start, end in contig.parts
    ]
    body = _shade([(_GENOME_LEFT + a * scale, _GENOME_LEFT + b * scale) for a, b in spans], 4, 78)
    for values, kind, up in ((counts[0], "own", True), (counts[1], "other", False)):
        heights = np.repeat(np.rint(2 * half * values / top).astype(int), step).tolist()
        body += f'<path class={kind} d="{outline(heights, _GENOME_LEFT, 40 if up else 42, up=up)}"/>'
    body += tick_label(_GENOME_LEFT - 10, 12, top, "end") + tick_label(_GENOME_LEFT - 10, 45, 0, "end")
    body += tick_label(_GENOME_LEFT - 10, 78, top, "end")
    for place in round_ticks(0, total, 10):
        x = compact(_GENOME_LEFT + place / total * step * _BINS)
        body += tick_label(x, 96, _kilobases(place, total))
        body += f'<path class=axis d="M{x} 78v5"/>'
    label = f"Calls in {_BINS} equal parts of the input, at most {top} on a strand"
    return Markup(
        f'<svg class=genome viewBox="0 0 {_GENOME_TOTAL} 102" role=img aria-label="{escape(label)}">'
        f'{body}<path class=axis d="M{_GENOME_LEFT} 41h{step * _BINS}"/></svg>'
    )
