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
from seqray.report.html import MINUS, compact, escape, number, offset, offset_ticks
from seqray.report.svg.charts import round_ticks
from seqray.report.svg.rows import tick_label

# --- Genes as arrows, and scores along a strand as an outline

_LETTER = 6.3  # mean width of a letter of a gene's name, px
_MAX_HEAD_LENGTH = 6.0  # px


def arrow_path(left: float, right: float, top: float, height: float, heads: str) -> str:
    """Outline of an arrow whose box is in px.

    ``heads`` is ``>`` or ``<`` for the end that has a head; empty for none.
    """
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
    """Draw a gene.

    ``box`` is left, right and base line of the name, px; ``title`` is text for the pointer.
    """
    left, right, y = box
    shown = fitting_name(name, right - left - 8)
    text = f"<text x={compact((left + right) / 2)} y={compact(y)}>{escape(shown)}</text>" if shown else ""
    return f'<g class=gene><title>{escape(title)}</title><path d="{path}"/>{text}</g>'


def strongest(values: Floats, columns: int) -> Floats:
    """(columns,) highest of the values that fall into each column; nan where all are nan.

    The columns have equal width; there are at least as many of the (n,) values.
    """
    starts = np.arange(columns) * len(values) // columns
    filled = np.where(np.isnan(values), -np.inf, values)
    highest = np.maximum.reduceat(filled, starts)
    return np.where(np.isfinite(highest), highest, np.nan)


def outline(heights: Sequence[int | None], left: int, base: int, *, up: bool) -> str:
    """Outline of columns 1 px wide that rise from a line or hang from it.

    The heights are half pixels, None where nothing is drawn; the first column begins at ``left``, the line is
    at ``base``, px. ``up`` says whether the columns rise.
    """
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
class NearbyGene:
    """A gene near a call: edges relative to the site in reading direction, half-open.

    ``same`` says whether it lies on the strand of the call.
    """

    start: int
    end: int
    same: bool
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class MarkedBox:
    """A box of the promoter: its name, first letter relative to the site, letters in reading direction."""

    name: str
    start: int
    letters: str


def draw_surroundings(
    genes: Iterable[NearbyGene],
    profiles: tuple[Floats, Floats] | None,
    boxes: Sequence[MarkedBox],
    threshold: float | None,
    name: str,
) -> Markup:
    """Draw the surroundings of a call.

    Parameters
    ----------
    genes
        That overlap the drawing.
    profiles
        Scores of the strand of the call and of the other one, (2 * CALL_REACH + 1,) each in reading
        direction; None if they are not known.
    boxes
        Of the promoter.
    threshold
        Above which sites are called.
    name
        Of the drawing, for readers who do not see it.
    """
    body = _scale(threshold) + _scores(profiles) if profiles else ""
    body += _strand_lines() + "".join(map(_gene, genes))
    body += "".join(_mark(box) for box in boxes) + _call(profiles) + _axis()
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


def _scale(threshold: float | None) -> str:
    texts, rules = "", ""
    for score in _TICKS:
        up, down = _UP - _height(score), _DOWN + _height(score)
        texts += tick_label(_LEFT - 5, compact(up + 4), f"{score:g}", "end")
        texts += tick_label(_LEFT - 5, compact(down + 4), f"{score:g}", "end")
        rules += f"M{_LEFT} {compact(up)}h{_WIDTH}M{_LEFT} {compact(down)}h{_WIDTH}"
    drawn = f'<path class=rule d="{rules}"/>{texts}'
    if threshold is None:
        return drawn
    up, down = compact(_UP - _height(threshold)), compact(_DOWN + _height(threshold))
    return f'{drawn}<path class=limit d="M{_LEFT} {up}h{_WIDTH}M{_LEFT} {down}h{_WIDTH}"/>'


def _scores(profiles: tuple[Floats, Floats]) -> str:
    paths = ""
    for values, base, up in ((profiles[0], _UP, True), (profiles[1], _DOWN, False)):
        columns = strongest(values, _WIDTH).tolist()
        heights = [None if np.isnan(value) else round(2 * _height(value)) for value in columns]
        kind = "own" if up else "other"
        paths += f'<path class={kind} d="{outline(heights, _LEFT, base, up=up)}"/>'
    return paths


def _strand_lines() -> str:
    """The strands as lines under their genes."""
    same, other = _UP + 4 + _LANE // 2, _UP + 8 + _LANE + _LANE // 2
    return f'<path class=strand d="M{_LEFT} {same}h{_WIDTH}M{_LEFT} {other}h{_WIDTH}"/>'


def _gene(gene: NearbyGene) -> str:
    left, right = _x(max(gene.start, -CALL_REACH)), _x(min(gene.end, CALL_REACH + 1))
    top = _UP + 4 if gene.same else _UP + 8 + _LANE
    if gene.same:
        heads = ">" if gene.end <= CALL_REACH + 1 else ""
    else:
        heads = "<" if gene.start >= -CALL_REACH else ""
    path = arrow_path(left, right, top, _LANE, heads)
    return named_arrow(path, gene.name, (left, right, top + 12), gene.title)


def _mark(box: MarkedBox) -> str:
    """A box as a block on the strand of the call."""
    left, right = _x(box.start), _x(box.start + len(box.letters))
    title = f"{box.name} box: {box.letters}"
    return (
        f"<g><title>{escape(title)}</title><rect class={_kind(box)} x={compact(left)} y={_UP + 1} "
        f"width={compact(right - left)} height={_LANE + 6} /></g>"
    )


def _kind(box: MarkedBox) -> str:
    return "m35" if "35" in box.name else "m10"


def _call(profiles: tuple[Floats, Floats] | None) -> str:
    """The bent arrow of a start; it begins above the peak."""
    peak = float(np.nan_to_num(profiles[0][CALL_REACH])) if profiles else 0.0
    x, top, foot = _x(0.5), _UP - _SCORE_HEIGHT - 8, _UP - _height(peak) - 2
    tip = f'<path class=tip d="M{compact(x + 29)} {top}l-9-4.5v9z"/>'
    return f'<path class=start d="M{compact(x)} {compact(foot)}V{top}h22"/>{tip}'


def _axis() -> str:
    places = offset_ticks(-CALL_REACH, CALL_REACH + 1, 100)
    marks = "".join(f"M{compact(_x(place + 0.5))} {_BOTTOM + 2}v4" for place in places)
    texts = "".join(
        tick_label(compact(_x(place + 0.5)), _BOTTOM + 17, offset(place)) for place in places[::2]
    )
    return f'<path class=axis d="M{_LEFT} {_BOTTOM + 2}h{_WIDTH}{marks}"/>{texts}'


def letter_strip(letters: str, boxes: Sequence[MarkedBox], shares: Floats | None, name: str) -> Markup:
    """Write the letters around the boxes, with what each letter contributes above it.

    Parameters
    ----------
    letters
        From ``STRIP_START`` to ``STRIP_END`` around the site in reading direction.
    boxes
        Of the promoter.
    shares
        Contribution of each letter, signed; None if not known.
    name
        Of the drawing, for readers who do not see it.
    """
    top = 34 if shares is not None else 16
    high = top + 26 + (12 if shares is not None and float(np.nanmin(shares, initial=0.0)) < 0 else 0)
    body = "".join(_box_letters(box, top) for box in boxes) + _site_letter(top)
    body += _bars(shares, top) if shares is not None else ""
    spots = " ".join(compact((i + 0.5) * _SLOT) for i in range(len(letters)))
    body += f'<text class=seq x="{spots}" y={top + 14}>{escape(letters)}</text>'
    return Markup(
        f'<svg class=strip viewBox="0 0 {_TOTAL} {high}" role=img aria-label="{escape(name)}">{body}</svg>'
    )


def _box_letters(box: MarkedBox, top: int) -> str:
    left, width = (box.start - STRIP_START) * _SLOT, len(box.letters) * _SLOT
    name = box.name.replace("-", MINUS)
    return (
        f"<rect class={_kind(box)} x={compact(left)} y={top} width={compact(width)} height=19 rx=3 />"
        f"{tick_label(compact(left + width / 2), 11, escape(name))}"
    )


def _site_letter(top: int) -> str:
    left = -STRIP_START * _SLOT
    rect = f"<rect class=plus1 x={compact(left)} y={top} width={compact(_SLOT)} height=19 rx=3 />"
    return f"{rect}{tick_label(compact(left + _SLOT / 2), 11, '+1')}"


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
class DrawnGene:
    """A gene: half-open interval on the plus strand, within the contig."""

    start: int
    end: int
    strand: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class DrawnContig:
    """A contig with its genes, and with the sites, strands (``+`` is True) and scores of its calls.

    ``parts`` are half-open intervals that were searched; None for everything.
    """

    name: str
    length: int
    genes: Sequence[DrawnGene]
    sites: Ints
    plus: np.ndarray
    scores: Floats
    links: Sequence[str]
    parts: Sequence[tuple[int, int]] | None = None


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
    per_line = int(line_letters(sum(contig.length for contig in contigs)))
    for stretches in _wrap(contigs, per_line):
        yield _line(stretches, alone=len(contigs) == 1)


def _wrap(contigs: Iterable[DrawnContig], per_line: int) -> Iterator[list[_Stretch]]:
    scale = per_line / _GENOME_WIDTH
    line: list[_Stretch] = []
    used = 0
    for contig in contigs:
        start = 0
        while start < contig.length:
            end = min(contig.length, start + per_line - used)
            line.append(_Stretch(contig, start, end, _GENOME_LEFT + used / scale, scale))
            used, start = used + end - start, end
            if used == per_line:
                yield line
                line, used = [], 0
    if line:
        yield line


def _line(stretches: Sequence[_Stretch], *, alone: bool) -> Markup:
    """Draw a line; of a single sequence, its place is at the left, of several, beside the name."""
    first, last = stretches[0], stretches[-1]
    name = f"{first.contig.name} from letter {first.start + 1} to {last.contig.name} letter {last.end}"
    body = "".join(
        _parts(s) + _name(s, s is first, alone) + _genes(s) + _calls(s) + _ruler(s) for s in stretches
    )
    if alone:
        body += tick_label(_GENOME_LEFT - 10, _MINUS + 3, _kilobases(first.start, first.contig.length), "end")
    size = f'viewBox="0 0 {_GENOME_TOTAL} {_GENOME_TOTAL_HEIGHT}"'
    return Markup(f'<svg class=genome {size} role=group aria-label="{escape(name)}">{body}</svg>')


def _kilobases(place: float, longest: float) -> str:
    """Write a place in kb, or in Mb if the longest sequence has one."""
    return f"{number(place / 1e6, 4)} Mb" if longest >= 1e6 else f"{number(place / 1e3, 4)} kb"


def _name(stretch: _Stretch, first: bool, alone: bool) -> str:
    """Name of a contig where it begins; of several also where a line continues it, with the place."""
    if stretch.start > 0 and alone:
        return ""
    name, place = stretch.contig.name, _kilobases(stretch.start, stretch.contig.length)
    edge = (
        ""
        if first
        else f'<path class=edge d="M{compact(stretch.left)} {_LABEL - 10}V{_GENOME_TOTAL_HEIGHT}"/>'
    )
    shown = fitting_name(f"{place} of {name}" if stretch.start else name, stretch.right - stretch.left)
    at = compact(stretch.left + (0 if first else 4))
    return f"{edge}<text class=contig x={at} y={_LABEL - 3}>{escape(shown)}</text>"


def _parts(stretch: _Stretch) -> str:
    """Shade what was searched."""
    near = [p for p in stretch.contig.parts or () if p[0] < stretch.end and p[1] > stretch.start]
    return _shade([(stretch.x(start), stretch.x(end)) for start, end in near], _LABEL, _GENOME_TOTAL_HEIGHT)


def _shade(spans: Iterable[tuple[float, float]], top: float, bottom: float) -> str:
    """Shade columns of whole pixels, so that many small parts become a few large ones."""
    merged = Intervals.merge((math.floor(left), math.ceil(right)) for left, right in spans).pairs()
    path = "".join(f"M{left} {top}H{right}V{bottom}H{left}z" for left, right in merged)
    return f'<path class=searched d="{path}"/>' if path else ""


def _ruler(stretch: _Stretch) -> str:
    left, right = compact(stretch.left), compact(stretch.right)
    marks = "".join(
        f"M{compact(stretch.x(place))} {_MINUS - 4}v6"
        for place in round_ticks(
            stretch.start, stretch.end, max(1, int((stretch.right - stretch.left) / 100))
        )
    )
    return f'<path class=axis d="M{left} {_MINUS - 1}H{right}{marks}"/>'


def _genes(stretch: _Stretch) -> str:
    near = [g for g in stretch.contig.genes if g.start < stretch.end and g.end > stretch.start]
    if stretch.scale > _MAX_GENE_SCALE:
        return "".join(_merged([g for g in near if g.strand == s], stretch, s) for s in "+-")
    return "".join(_arrow(gene, stretch) for gene in near)


def _merged(genes: Sequence[DrawnGene], stretch: _Stretch, strand: str) -> str:
    """Genes of a strand as one path of boxes."""
    top = _PLUS if strand == "+" else _MINUS
    path = "".join(
        f"M{compact(left)} {top}h{compact(max(0.6, stretch.x(g.end) - left - 0.4))}"
        f"v{_GENOME_LANE}H{compact(left)}z"
        for g in genes
        for left in [stretch.x(g.start)]
    )
    return f'<path class=genes d="{path}"/>' if path else ""


def _arrow(gene: DrawnGene, stretch: _Stretch) -> str:
    left, right = stretch.x(gene.start), stretch.x(gene.end)
    plus = gene.strand == "+"
    whole = gene.end <= stretch.end if plus else gene.start >= stretch.start
    top = _PLUS if plus else _MINUS
    path = arrow_path(left, right, top, _GENOME_LANE, (">" if plus else "<") if whole else "")
    return named_arrow(path, gene.name, (left, right, top + 10), gene.title)


def _calls(stretch: _Stretch) -> str:
    contig = stretch.contig
    within = np.flatnonzero((contig.sites >= stretch.start) & (contig.sites < stretch.end)).tolist()
    if stretch.scale > _MAX_ARROW_SCALE:
        path = "".join(_needle(stretch, i) for i in within)
        return f'<path class=needles d="{path}"/>' if path else ""
    return "".join(_call_arrow(stretch, i) for i in within)


def _reach(contig: DrawnContig, i: int) -> float:
    return _TICK * max(0.2, float(contig.scores[i]) ** 0.5)


def _needle(stretch: _Stretch, i: int) -> str:
    x, reach = compact(stretch.x(float(stretch.contig.sites[i]))), _reach(stretch.contig, i)
    return (
        f"M{x} {_PLUS - 1}v-{compact(reach)}"
        if stretch.contig.plus[i]
        else f"M{x} {_BASE - 3}v{compact(reach)}"
    )


def _call_arrow(stretch: _Stretch, i: int) -> str:
    """A bent arrow, a link where the page shows more of the call."""
    contig, x = stretch.contig, stretch.x(float(stretch.contig.sites[i]) + 0.5)
    reach = _reach(contig, i)
    side, start = (-1, _PLUS) if contig.plus[i] else (1, _MINUS + _GENOME_LANE)
    way = 1 if contig.plus[i] else -1
    y = compact(start + side * reach)
    path = f"M{compact(x)} {start}V{y}h{6 * way}m{-4 * way} -3.5l{4 * way} 3.5 {-4 * way} 3.5"
    strand = "+" if contig.plus[i] else MINUS
    title = f"call at {contig.sites[i] + 1} ({strand}), score {contig.scores[i]:.3f}"
    drawn = f'<g class=bent><title>{escape(title)}</title><path d="{path}"/></g>'
    return f'<a href="#{contig.links[i]}">{drawn}</a>' if contig.links[i] else drawn


def density(contigs: Sequence[DrawnContig]) -> Markup:
    """Draw the number of calls along all contigs, those of the plus strand above the line."""
    total = sum(contig.length for contig in contigs)
    firsts = np.cumsum([0, *(contig.length for contig in contigs)])[:-1]
    sites = np.concatenate([c.sites + first for c, first in zip(contigs, firsts, strict=True)])
    plus = np.concatenate([c.plus for c in contigs]).astype(bool)
    counts = [np.bincount(sites[mask] * _BINS // total, minlength=_BINS) for mask in (plus, ~plus)]
    top = max(1, *(int(c.max()) for c in counts))
    step, half = _GENOME_WIDTH // _BINS, 34
    body = _searched_columns(contigs, firsts.tolist(), step * _BINS / total)
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


def _searched_columns(contigs: Sequence[DrawnContig], firsts: Sequence[int], scale: float) -> str:
    """Shade what was searched; ``scale`` is in pixels per letter."""
    spans = (
        (_GENOME_LEFT + (first + start) * scale, _GENOME_LEFT + (first + end) * scale)
        for contig, first in zip(contigs, firsts, strict=True)
        for start, end in contig.parts or ()
    )
    return _shade(spans, 4, 78)
