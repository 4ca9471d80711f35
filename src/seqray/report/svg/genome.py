"""A genome in lines: its genes and its calls, above the line those of the plus strand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Floats, Intervals, Ints
from seqray.report.html import MINUS, compact, escape, number
from seqray.report.svg.frame import round_ticks
from seqray.report.svg.genes import arrow_path, fitting_name, named_arrow, outline
from seqray.report.svg.rows import tick_label

_LEFT, _WIDTH, _MARGIN = 74, 1080, 8
_TOTAL = _LEFT + _WIDTH + _MARGIN
_LABEL, _TICK, _LANE = 14, 22, 12  # heights of names of contigs, of a call of score 1, of a gene
_PLUS = _LABEL + _TICK + 4  # top of the genes of the plus strand
_MINUS = _PLUS + _LANE + 2
_BASE = _MINUS + _LANE + 4  # from which calls of the minus strand hang
_TOTAL_HEIGHT = _BASE + _TICK + 4
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
    scale = per_line / _WIDTH
    line: list[_Stretch] = []
    used = 0
    for contig in contigs:
        start = 0
        while start < contig.length:
            end = min(contig.length, start + per_line - used)
            line.append(_Stretch(contig, start, end, _LEFT + used / scale, scale))
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
        body += tick_label(_LEFT - 10, _MINUS + 3, _kilobases(first.start, first.contig.length), "end")
    size = f'viewBox="0 0 {_TOTAL} {_TOTAL_HEIGHT}"'
    return Markup(f'<svg class=genome {size} role=group aria-label="{escape(name)}">{body}</svg>')


def _kilobases(place: float, longest: float) -> str:
    """Write a place in kb, or in Mb if the longest sequence has one."""
    return f"{number(place / 1e6, 4)} Mb" if longest >= 1e6 else f"{number(place / 1e3, 4)} kb"


def _name(stretch: _Stretch, first: bool, alone: bool) -> str:
    """Name of a contig where it begins; of several also where a line continues it, with the place."""
    if stretch.start > 0 and alone:
        return ""
    name, place = stretch.contig.name, _kilobases(stretch.start, stretch.contig.length)
    edge = "" if first else f'<path class=edge d="M{compact(stretch.left)} {_LABEL - 10}V{_TOTAL_HEIGHT}"/>'
    shown = fitting_name(f"{place} of {name}" if stretch.start else name, stretch.right - stretch.left)
    at = compact(stretch.left + (0 if first else 4))
    return f"{edge}<text class=contig x={at} y={_LABEL - 3}>{escape(shown)}</text>"


def _parts(stretch: _Stretch) -> str:
    """Shade what was searched."""
    near = [p for p in stretch.contig.parts or () if p[0] < stretch.end and p[1] > stretch.start]
    return _shade([(stretch.x(start), stretch.x(end)) for start, end in near], _LABEL, _TOTAL_HEIGHT)


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
        f"M{compact(left)} {top}h{compact(max(0.6, stretch.x(g.end) - left - 0.4))}v{_LANE}H{compact(left)}z"
        for g in genes
        for left in [stretch.x(g.start)]
    )
    return f'<path class=genes d="{path}"/>' if path else ""


def _arrow(gene: DrawnGene, stretch: _Stretch) -> str:
    left, right = stretch.x(gene.start), stretch.x(gene.end)
    plus = gene.strand == "+"
    whole = gene.end <= stretch.end if plus else gene.start >= stretch.start
    top = _PLUS if plus else _MINUS
    path = arrow_path(left, right, top, _LANE, (">" if plus else "<") if whole else "")
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
    side, start = (-1, _PLUS) if contig.plus[i] else (1, _MINUS + _LANE)
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
    step, half = _WIDTH // _BINS, 34
    body = _searched_columns(contigs, firsts.tolist(), step * _BINS / total)
    for values, kind, up in ((counts[0], "own", True), (counts[1], "other", False)):
        heights = np.repeat(np.rint(2 * half * values / top).astype(int), step).tolist()
        body += f'<path class={kind} d="{outline(heights, _LEFT, 40 if up else 42, up=up)}"/>'
    body += tick_label(_LEFT - 10, 12, top, "end") + tick_label(_LEFT - 10, 45, 0, "end")
    body += tick_label(_LEFT - 10, 78, top, "end")
    for place in round_ticks(0, total, 10):
        x = compact(_LEFT + place / total * step * _BINS)
        body += tick_label(x, 96, _kilobases(place, total))
        body += f'<path class=axis d="M{x} 78v5"/>'
    label = f"Calls in {_BINS} equal parts of the input, at most {top} on a strand"
    return Markup(
        f'<svg class=genome viewBox="0 0 {_TOTAL} 102" role=img aria-label="{escape(label)}">'
        f'{body}<path class=axis d="M{_LEFT} 41h{step * _BINS}"/></svg>'
    )


def _searched_columns(contigs: Sequence[DrawnContig], firsts: Sequence[int], scale: float) -> str:
    """Shade what was searched; ``scale`` is in pixels per letter."""
    spans = (
        (_LEFT + (first + start) * scale, _LEFT + (first + end) * scale)
        for contig, first in zip(contigs, firsts, strict=True)
        for start, end in contig.parts or ()
    )
    return _shade(spans, 4, 78)
