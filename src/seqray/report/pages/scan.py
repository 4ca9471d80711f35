"""The page of a scan: figures first, then the genome, the best and the doubtful calls, and all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats
from seqray.core.records import Intervals
from seqray.core.results import Call
from seqray.core.text import counted
from seqray.genome.genes import Gene, count_genes
from seqray.report.html import MISSING, ModelText, card_section, document, fixed, number, resource, templates
from seqray.report.pages.calls import (
    CallCard,
    call_histogram,
    card_of,
    places_table,
    short_names,
    table_data,
    title_of,
)
from seqray.report.svg.charts import number_ticks
from seqray.report.svg.genome import DrawnContig, DrawnGene, density, genome_lines

MAX_CALL_MAPS = 24  # of the best calls, and as many of the doubtful
_MAX_TABLE_ROWS = 20_000
_MAX_STRIP_LETTERS = 200_000_000
_MAX_STRIP_CONTIGS = 500
_MAX_NAMED_PARTS = 3
_MAX_CALLS_WITHOUT_DENSITY = 200
_MIN_SEARCHED_SHARE = 0.9  # below, calls per gene are not those of a whole genome


@dataclass(frozen=True, slots=True)
class ScannedContig:
    """A sequence of the input; ``parts`` are half-open intervals that were searched, None for everything."""

    name: str
    length: int
    circular: bool = False
    parts: Sequence[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """How often calls of one species were right on sequence that the model never saw."""

    species: str
    unseen: bool
    calls_per_kb: float
    recall: float
    precision: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScanReport:
    """What the page of a scan needs."""

    title: str
    calls: Sequence[Call]
    contigs: Sequence[ScannedContig]
    searched: int | None = None
    strand: str = "both"
    genes: Mapping[str, Sequence[Gene]] = field(default_factory=dict)
    gene_source: str = ""
    profiles: Mapping[int, tuple[Floats, Floats]] = field(default_factory=dict)
    letters: Mapping[int, str] = field(default_factory=dict)
    shares: Mapping[int, Floats] = field(default_factory=dict)
    threshold: float | None
    expected_precision: str = ""
    expected_note: str = ""
    trust: str = ""
    expected: Sequence[Expected] = ()
    cautions: Sequence[str] = ()
    provenance: Sequence[str]
    model: ModelText


def shown_calls(scores: Floats) -> tuple[list[int], list[int]]:
    """Choose the calls that have a map of their own, by the scores (n,) of all calls.

    Returns the indices of the `MAX_CALL_MAPS` best calls, the best first, and of as many doubtful ones, those
    nearest to the threshold first. No call is in both; ties go by position.
    """
    ranked = np.argsort(-scores, kind="stable").tolist()
    return ranked[:MAX_CALL_MAPS], ranked[MAX_CALL_MAPS:][::-1][:MAX_CALL_MAPS]


def render_scan(report: ScanReport) -> str:
    """Write the page as HTML that refers to nothing outside itself.

    Names of genes and contigs may hold any text and are escaped.
    """
    words = templates("scan.html")
    report = _with_short_names(report)
    best, doubtful = shown_calls(np.array([call.score for call in report.calls]))
    cards = {i: _card(report, i) for i in [*best, *doubtful]}
    return document(
        report.title,
        _figures(report),
        {
            "genome": ("The sequence at a glance", _genome(report, cards)),
            "best": (
                "The best calls" if doubtful else "The calls, the best first",
                words.maps([cards[i] for i in best], report, "best"),
            ),
            "doubtful": ("Doubtful calls", words.maps([cards[i] for i in doubtful], report, "doubtful")),
            "where": ("Where the calls lie" if report.genes else "Scores of the calls", _where(report)),
            "expected": ("How many of these calls are right?", words.expected(report)),
            "all": ("All calls", _all_calls(report)),
            "card": (
                "Model description",
                words.folded(card_section(report.model)[1]) if report.model.lines else "",
            ),
        },
        report.provenance,
        notes=report.cautions,
        style=resource("scan.css"),
        script=resource("scan.js"),
    )


def _with_short_names(report: ScanReport) -> ScanReport:
    """The calls as a list, since a table makes a call on each access, and genes under short names."""
    calls, names = list(report.calls), short_names(report.genes)
    if not names:
        return replace(report, calls=calls)
    genes = {
        contig: [replace(gene, name=names.get(gene.name, gene.name)) for gene in its_genes]
        for contig, its_genes in report.genes.items()
    }
    for i, call in enumerate(calls):
        if context := call.context:
            gene, within = (names.get(name, name) for name in (context.gene, context.within))
            calls[i] = replace(call, context=replace(context, gene=gene, within=within))
    return replace(report, calls=calls, genes=genes)


def _figures(report: ScanReport) -> dict[str, Markup]:
    """The numbers at the top of the page."""
    figure = templates("scan.html").figure
    letters = sum(contig.length for contig in report.contigs)
    unknown = sum(contig.length for contig in report.contigs if contig.name not in report.genes)
    genes, calls = sum(map(count_genes, report.genes.values())), len(report.calls)
    searched = letters if report.searched is None else report.searched
    strand = "" if report.strand == "both" else f", {report.strand} strand only"
    size = " of ".join(dict.fromkeys((_size(searched), _size(letters))))
    parts = [f"{c.name}:{start + 1:,}-{end:,}" for c in report.contigs for start, end in c.parts or ()]
    named = "; searched: " + ", ".join(parts[:_MAX_NAMED_PARTS]) if parts else ""
    if len(parts) > _MAX_NAMED_PARTS:
        named += f" and {len(parts) - _MAX_NAMED_PARTS:,} more"
    threshold = MISSING if report.threshold is None else number(report.threshold, 3)
    per_kb = fixed(calls / (searched / 1000), 2) if searched else "0"
    sequences = counted(len(report.contigs), "sequence")
    shown = {
        "Calls": figure(f"{calls:,}", f"at a score of {threshold} or more"),
        "Calls per kb": figure(per_kb, f"in {size}, {sequences}{named}{strand}"),
    }
    if genes and parts:
        note = f"or partly in them; the whole: {genes:,}, {report.gene_source}"
        shown["Genes in the parts"] = figure(f"{_genes_within(report):,}", note)
    elif genes and (searched < _MIN_SEARCHED_SHARE * letters or strand or 10 * unknown > letters):
        shown["Genes"] = figure(f"{genes:,}", report.gene_source)
    elif genes:
        from_ = f": {report.gene_source}" if report.gene_source else ""
        shown["Calls per gene"] = figure(fixed(calls / genes, 2), f"{genes:,} genes{from_}")
    else:
        shown["Genes"] = figure("none", report.gene_source or "only bases were read", True)
    shown["Precision to expect"] = figure(
        report.expected_precision or "not known", report.expected_note, not report.expected_precision
    )
    shown["Model"] = figure(report.model.name, report.model.summary, True)
    return shown


def _genes_within(report: ScanReport) -> int:
    """Genes of which a letter lies in the parts, also beyond the origin of a circle."""
    count = 0
    for contig in report.contigs:
        parts, within = Intervals.merge(contig.parts or ()), []
        for gene in report.genes.get(contig.name, ()):
            before = parts.count_covered(np.array(_halves(gene, contig.length)))
            if (before[:, 1] > before[:, 0]).any():
                within.append(gene)
        count += count_genes(within)
    return count


def _size(letters: int) -> str:
    return f"{number(letters / 1e6, 3)} Mb" if letters >= 1_000_000 else f"{number(letters / 1e3, 3)} kb"


def _card(report: ScanReport, i: int) -> CallCard:
    call = report.calls[i]
    contig = next(c for c in report.contigs if c.name == call.contig)
    return card_of(
        call,
        f"c{i}",
        report.genes.get(call.contig, ()),
        contig.length if contig.circular else None,
        report.profiles.get(i),
        report.letters.get(i, ""),
        report.shares.get(i),
        report.threshold,
    )


def _genome(report: ScanReport, linked: Mapping[int, CallCard]) -> Markup:
    """The strip of the genome; only the longest contigs of a large or scattered input, in its order."""
    contigs, letters = report.contigs, 0
    longest: set[int] = set()
    for i in sorted(range(len(contigs)), key=lambda i: (-contigs[i].length, i))[:_MAX_STRIP_CONTIGS]:
        letters += contigs[i].length
        if letters <= _MAX_STRIP_LETTERS or not longest:
            longest.add(i)
    there: dict[str, list[tuple[int, Call]]] = {contigs[i].name: [] for i in sorted(longest)}
    for i, call in enumerate(report.calls):
        if call.contig in there:
            there[call.contig].append((i, call))
    drawn = []
    for contig in (contigs[i] for i in sorted(longest)):
        genes = [
            DrawnGene(start, end, gene.strand, gene.name, title_of(gene))
            for gene in report.genes.get(contig.name, ())
            for start, end in _halves(gene, contig.length)  # one across the origin is drawn as two
        ]
        calls = there[contig.name]
        sites = np.array([call.site for _, call in calls], dtype=np.int64)
        plus = np.array([call.strand == "+" for _, call in calls], dtype=bool)
        scores = np.array([call.score for _, call in calls])
        links = [f"c{i}" if i in linked else "" for i, _ in calls]
        drawn.append(DrawnContig(contig.name, contig.length, genes, sites, plus, scores, links, contig.parts))
    overview = density(drawn) if len(report.calls) > _MAX_CALLS_WITHOUT_DENSITY else ""
    parts = sum(len(contig.parts or ()) for contig in contigs)
    left = len(contigs) - len(longest)
    return templates("scan.html").genome(overview, list(genome_lines(drawn)), left, bool(report.genes), parts)


def _halves(gene: Gene, length: int) -> list[tuple[int, int]]:
    """Where a gene lies: before the origin, and beyond it."""
    parts = [(gene.start, min(gene.end, length)), (0, gene.end - length)]
    return [(start, end) for start, end in parts if end > start]


def _where(report: ScanReport) -> Markup:
    """Places of the calls among genes, and histograms of their distances to genes and of their scores."""
    contexts = [call.context for call in report.calls if call.context and call.contig in report.genes]
    plots = []
    if distances := [context.distance for context in contexts if context.distance is not None]:
        ticks = {float(place): str(place) for place in range(0, 501, 100)}
        title = "bases from the call to the gene"
        plots.append(call_histogram(np.clip(distances, 0, 500).tolist(), np.arange(0, 501, 10), ticks, title))
    if report.calls:
        scores = [call.score for call in report.calls]
        ticks = number_ticks(0.0, 1.0)
        plots.append(call_histogram(scores, np.linspace(0, 1, 41), ticks, "score of the call"))
    return templates("scan.html").where(places_table(contexts) if contexts else "", plots)


def _all_calls(report: ScanReport) -> Markup:
    """The table: all calls or the best of them, in the order of the input."""
    rows, named = list(range(len(report.calls))), bool(report.genes)
    if len(rows) > _MAX_TABLE_ROWS:
        ranked = np.argsort([-call.score for call in report.calls], kind="stable")
        rows = sorted(ranked[:_MAX_TABLE_ROWS].tolist())
    data = table_data([report.calls[i] for i in rows], rows, named) if rows else ""
    left = len(report.calls) - len(rows)
    return templates("scan.html").all_calls(data, len(rows), left, named, report)
