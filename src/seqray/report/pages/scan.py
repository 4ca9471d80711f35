"""The page of a scan: figures first, then the genome, the best and the doubtful calls, and all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats, Ints
from seqray.core.boxes import BoxPattern
from seqray.core.records import Contig, Intervals
from seqray.core.results import Call, CallContext, SpeciesRow
from seqray.core.text import counted
from seqray.genome.genes import Gene, count_genes
from seqray.report import html
from seqray.report.svg import genome as drawing
from seqray.report.svg.charts import Frame, count_ticks, number_ticks

MAX_CALL_MAPS = 24  # of the best calls, and as many of the doubtful
_MAX_TABLE_ROWS = 20_000
_MAX_STRIP_LETTERS = 200_000_000
_MAX_STRIP_CONTIGS = 500
_MAX_NAMED_PARTS = 3
_MAX_CALLS_WITHOUT_DENSITY = 200
_MIN_SEARCHED_SHARE = 0.9  # below, calls per gene are not those of a whole genome


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScanReport:
    """What the page of a scan needs."""

    title: str
    calls: Sequence[Call]
    boxes: Sequence[BoxPattern] = ()  # of the kingdom of the model
    contigs: Sequence[Contig]
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
    about_gene: Sequence[str] = ()  # whose calls come first
    of_gene: Sequence[int] = ()  # indices of these
    expected: Sequence[SpeciesRow] = ()
    cautions: Sequence[str] = ()
    provenance: Sequence[str]
    model: html.ModelText


def shown_calls(scores: Floats) -> tuple[list[int], list[int]]:
    """Indices of the `MAX_CALL_MAPS` best of scores (n,), and of as many doubtful ones, the lowest first."""
    ranked = np.argsort(-scores, kind="stable").tolist()
    return ranked[:MAX_CALL_MAPS], ranked[MAX_CALL_MAPS:][::-1][:MAX_CALL_MAPS]


def render_scan(report: ScanReport) -> str:
    """Write the page as HTML that refers to nothing outside itself; names may hold any text."""
    words = html.templates("scan.html")
    report = _with_short_names(report)
    best, doubtful = shown_calls(np.array([call.score for call in report.calls]))
    best.sort(key=lambda i: i not in report.of_gene)
    cards = {i: call_card(report, i) for i in [*best, *doubtful]}
    glance = {"genome": ("The sequence at a glance", _genome(report, cards))}
    return html.document(
        report.title,
        _figures(report),
        {
            **({} if report.about_gene else glance),
            "best": (
                "The best calls" if doubtful else "The calls, the best first",
                words.maps([cards[i] for i in best], report, "best"),
            ),
            **glance,
            "doubtful": ("Doubtful calls", words.maps([cards[i] for i in doubtful], report, "doubtful")),
            "where": ("Where the calls lie" if report.genes else "Scores of the calls", _where(report)),
            "expected": ("How many of these calls are right?", words.expected(report)),
            "all": ("All calls", _all_calls(report)),
            "card": (
                "Model description",
                words.folded(html.card_section(report.model)[1]) if report.model.lines else "",
            ),
        },
        report.provenance,
        notes=report.cautions,
        style=html.resource("scan.css"),
        script=html.resource("scan.js"),
    )


def short_names(genes: Mapping[str, Sequence[Gene]]) -> dict[str, str]:
    """Shorter names of predicted genes, without the words of NCBI before the accession, where unique.

    ``gi|9626243|ref|NC_001416.1|_46`` becomes ``NC_001416.1_46``; names that stay are left out.
    """
    pairs = []
    for contig, its_genes in genes.items():
        accession = contig.rstrip("|").rpartition("|")[2]
        for gene in its_genes:
            ending = gene.name.removeprefix(f"{contig}_")
            is_numbered = "|" in contig and ending != gene.name and ending.isdigit()
            pairs.append((gene.name, f"{accession}_{ending}" if is_numbered else gene.name))
    uses = Counter(short for _, short in pairs)
    return {name: short for name, short in pairs if name != short and uses[short] == 1}


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
    figure = html.templates("scan.html").figure
    letters = sum(contig.length for contig in report.contigs)
    unknown = sum(contig.length for contig in report.contigs if contig.name not in report.genes)
    genes, calls = sum(map(count_genes, report.genes.values())), len(report.calls)
    searched = letters if report.searched is None else report.searched
    strand = "" if report.strand == "both" else f", {report.strand} strand only"
    size = " of ".join(dict.fromkeys((_size(searched), _size(letters))))
    parts = [f"{c.name}:{start + 1:,}-{end:,}" for c in report.contigs for start, end in c.pairs]
    named = "; searched: " + ", ".join(parts[:_MAX_NAMED_PARTS]) if parts else ""
    if len(parts) > _MAX_NAMED_PARTS:
        named += f" and {len(parts) - _MAX_NAMED_PARTS:,} more"
    threshold = html.MISSING if report.threshold is None else html.number(report.threshold, 3)
    per_kb = html.fixed(calls / (searched / 1000), 2) if searched else "0"
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
        shown["Calls per gene"] = figure(html.fixed(calls / genes, 2), f"{genes:,} genes{from_}")
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
        parts = contig.parts or Intervals.merge(())
        count += count_genes(
            [
                gene
                for gene in report.genes.get(contig.name, ())
                if np.diff(parts.count_covered(np.array(_halves(gene, contig.length)))).any()
            ]
        )
    return count


def _size(letters: int) -> str:
    unit, name = (1e6, "Mb") if letters >= 1_000_000 else (1e3, "kb")
    return f"{html.number(letters / unit, 3)} {name}"


def _genome(report: ScanReport, linked: Mapping[int, CallCard]) -> Markup:
    """The strip of the genome; only the longest contigs of a large or scattered input, in its order."""
    contigs = report.contigs
    order = sorted(range(len(contigs)), key=lambda i: (-contigs[i].length, i))[:_MAX_STRIP_CONTIGS]
    letters = np.cumsum([contigs[i].length for i in order])
    longest = sorted(
        {*order[:1], *(i for i, sum_ in zip(order, letters, strict=True) if sum_ <= _MAX_STRIP_LETTERS)}
    )
    there: dict[str, list[tuple[int, Call]]] = {contigs[i].name: [] for i in longest}
    for i, call in enumerate(report.calls):
        if call.contig in there:
            there[call.contig].append((i, call))
    drawn = []
    for contig in (contigs[i] for i in longest):
        genes = [
            drawing.DrawnGene(start, end, gene.strand, gene.name, title_of(gene))
            for gene in report.genes.get(contig.name, ())
            for start, end in _halves(gene, contig.length)  # one across the origin is drawn as two
        ]
        calls = there[contig.name]
        sites = np.array([call.site for _, call in calls], dtype=np.int64)
        plus = np.array([call.strand == "+" for _, call in calls], dtype=bool)
        scores = np.array([call.score for _, call in calls])
        links = [f"c{i}" if i in linked else "" for i, _ in calls]
        drawn.append(
            drawing.DrawnContig(contig.name, contig.length, genes, sites, plus, scores, links, contig.pairs)
        )
    overview = drawing.density(drawn) if len(report.calls) > _MAX_CALLS_WITHOUT_DENSITY else ""
    parts = sum(len(contig.pairs) for contig in contigs)
    left = len(contigs) - len(longest)
    return html.templates("scan.html").genome(
        overview, list(drawing.genome_lines(drawn)), left, bool(report.genes), parts
    )


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
    return html.templates("scan.html").where(places_table(contexts) if contexts else "", plots)


def _all_calls(report: ScanReport) -> Markup:
    """The table: all calls or the best of them, in the order of the input."""
    rows, named = list(range(len(report.calls))), bool(report.genes)
    if len(rows) > _MAX_TABLE_ROWS:
        ranked = np.argsort([-call.score for call in report.calls], kind="stable")
        rows = sorted(ranked[:_MAX_TABLE_ROWS].tolist())
    data = table_data([report.calls[i] for i in rows], rows, named, report.boxes) if rows else ""
    left = len(report.calls) - len(rows)
    return html.templates("scan.html").all_calls(data, len(rows), left, named, report)


# --- Figures over all calls: where they lie, how far from the next gene, and how high they score

PLACES = (
    "upstream of a gene, between genes",
    "at the first bases of a gene",
    "upstream of a gene, inside another gene",
    "inside a gene, on its strand",
    "inside a gene, antisense",
    "between genes, no gene follows",
)


def place_index(context: CallContext) -> int:
    """Which of `PLACES` a call lies in."""
    if context.gene:
        if context.distance == 0:
            return 1
        return 2 if context.within else 0
    if context.within:
        return 3 if context.within_strand == "same" else 4
    return 5


def places_table(contexts: Sequence[CallContext]) -> Markup:
    """Number and share of calls in each place, with bars."""
    counts = np.bincount([place_index(context) for context in contexts], minlength=len(PLACES)).tolist()
    rows = []
    for place, many in zip(PLACES, counts, strict=True):
        share = 100 * many / len(contexts)
        drawn = f"<path d='M0 6h{round(1.6 * share)}'/>"
        bar = f"<td><svg class=part width=160 height=12 aria-hidden=true>{drawn}</svg>"
        figures = (f"<td class=n>{many:,}", f"<td class=n>{share:.0f} %", bar)
        rows.append([place, *map(Markup, figures)])
    return html.wide_table(("place", "calls", "share", ""), rows, "places")


def call_histogram(
    values: Sequence[float], edges: Floats | Ints, ticks: Mapping[float, str], title: str
) -> Markup:
    """Histogram of a number of each call."""
    counts = np.histogram(values, bins=edges)[0].tolist()
    frame = Frame(float(edges[0]), float(edges[-1]), 0.0, float(max(1, *counts)), 430, 210)
    body = frame.ticks_y(count_ticks(frame.high_y)) + frame.bars("bin", edges.tolist(), counts)
    return frame.drawing(body + frame.ticks_x(ticks), title, "calls", f"Number of calls by {title}")


# --- All calls as compact data, which ``scan.js`` lays out, sorts and searches


def table_data(
    calls: Sequence[Call], numbers: Sequence[int], with_genes: bool, boxes: Sequence[BoxPattern]
) -> Markup:
    """Write calls by column, with their numbers in the anchors; ascending ones as differences, names once."""
    contexts = [call.context or CallContext() for call in calls]
    names: dict[str, int] = {}

    def indices(texts: Iterable[str]) -> list[int]:
        return [names.setdefault(html.clean(text), len(names)) for text in texts]

    def known(values: Iterable[float | None]) -> list[float]:
        return [-1 if value is None else value for value in values]

    data: dict[str, Any] = {
        "first": np.diff(numbers, prepend=0).tolist(),
        "contig": indices(call.contig for call in calls),
        "site": np.diff([call.site + 1 for call in calls], prepend=0).tolist(),
        "minus": "".join("01"[call.strand == "-"] for call in calls),
        "score": [round(call.score, 3) for call in calls],
    }
    if any(context.trust for context in contexts):
        data["trust"] = indices(context.trust for context in contexts)
        shares = (context.precision for context in contexts)
        # to the digits that are shown: a value that is rounded twice differs from that of the maps
        data["precision"] = known(None if share is None else round(share, 2) for share in shares)
    if with_genes:
        data |= {
            "gene": indices(context.gene for context in contexts),
            "locus": indices(context.locus for context in contexts),
            "distance": known(context.distance for context in contexts),
            "within": indices(context.within for context in contexts),
            "opposite": "".join("01"[context.within_strand == "opposite"] for context in contexts),
            "place": "".join(str(place_index(context)) for context in contexts),
            "places": PLACES,
        }
    if any(context.boxes for context in contexts):
        shown = [{box.name: box.letters for box in context.boxes} for context in contexts]
        data["boxes"] = [
            {
                "name": box.name.replace("-", html.MINUS),
                "letters": indices(one.get(box.name, "") for one in shown),
            }
            for box in reversed(boxes)
        ]
        data["spacer"] = known(context.spacer for context in contexts)
    data["names"] = list(names)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f"<script type=application/json id=data>{safe}</script>")


# --- A call with what surrounds it


@dataclass(frozen=True, slots=True)
class CallCard:
    """What the page shows of one call."""

    anchor: str
    call: Call
    title: str
    place: str  # in its contig
    boxes: Sequence[drawing.MarkedBox]
    map: Markup
    strip: Markup


def call_card(report: ScanReport, index: int) -> CallCard:
    """Draw the call of an index."""
    call, profiles, letters = (report.calls[index], report.profiles.get(index), report.letters.get(index, ""))
    contig = next(c for c in report.contigs if c.name == call.contig)
    forward, context = call.strand == "+", call.context or CallContext()
    circle = contig.length if contig.circular else 0

    def offset(position: int) -> int:
        """Place relative to the site in reading direction; on a circle the shorter way."""
        distance = position - call.site
        if circle:
            distance = (distance + circle // 2) % circle - circle // 2
        return distance if forward else -distance

    kinds = {pattern.name: kind for pattern, kind in zip(report.boxes, ("near", "far"), strict=False)}
    boxes = []
    for box in reversed(context.boxes):
        start = offset(box.start if forward else box.start + len(box.letters) - 1)
        boxes.append(drawing.MarkedBox(box.name, start, box.letters, kinds[box.name]))
    near = []
    for gene in report.genes.get(call.contig, ()):
        for turn in (
            (-circle, 0, circle) if circle else (0,)
        ):  # one may overlap the map on either side of the origin
            left, right = gene.start + turn - call.site, gene.end + turn - call.site
            start, end = (left, right) if forward else (1 - right, 1 - left)
            if start <= drawing.CALL_REACH and end > -drawing.CALL_REACH:
                strand = "+" if gene.strand == call.strand else "-"
                near.append(drawing.DrawnGene(start, end, strand, gene.name, title_of(gene)))
    around = None
    if profiles:
        plus, minus = (np.asarray(p, dtype=np.float64) for p in profiles)
        around = (plus, minus) if forward else (minus[::-1], plus[::-1])
    # position from 1 and strand, as genome browsers write them behind the name of the contig
    place = f"{call.site + 1:,} ({'+' if forward else html.MINUS})"
    title = context.gene or "no gene within reach"
    if call.context is None:
        title = place
    elif context.within and not context.gene:
        title = f"{'inside' if context.within_strand == 'same' else 'antisense to'} {context.within}"
    name = f"Map of the call {title}, score {html.fixed(call.score)}"
    map_ = drawing.draw_surroundings(near, around, boxes, report.threshold, name)
    about = f"Bases around the site: {letters}"
    strip = drawing.letter_strip(letters, boxes, report.shares.get(index), about) if letters else Markup()
    return CallCard(f"c{index}", call, title, place, boxes, map_, strip)


def title_of(gene: Gene) -> str:
    """Name and product of a gene."""
    return f"{gene.name}: {gene.product}" if gene.product else gene.name
