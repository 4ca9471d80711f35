"""Calls on the page of a scan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats
from seqray.core.results import Box, Call, CallContext
from seqray.genome.genes import Gene
from seqray.report.html import MINUS, clean, fixed, wide_table
from seqray.report.svg.charts import Frame, number_ticks, round_ticks
from seqray.report.svg.genome import CALL_REACH, MarkedBox, NearbyGene, draw_surroundings, letter_strip

# --- Names of predicted genes, as a page shows them: without the words of NCBI before the accession


def short_names(genes: Mapping[str, Sequence[Gene]]) -> dict[str, str]:
    """Shorter names of genes that were named after their contig, where these are unique.

    Names that stay are left out.

    Examples
    --------
    >>> short_names({"gi|9626243|ref|NC_001416.1|": [Gene(0, 9, "+", "gi|9626243|ref|NC_001416.1|_46")]})
    {'gi|9626243|ref|NC_001416.1|_46': 'NC_001416.1_46'}
    """
    pairs = [(gene.name, _short_name(gene.name, contig)) for contig, found in genes.items() for gene in found]
    uses = Counter(short for _, short in pairs)
    return {name: short for name, short in pairs if name != short and uses[short] == 1}


def _short_name(name: str, contig: str) -> str:
    accession, number = contig.rstrip("|").rpartition("|")[2], name.removeprefix(f"{contig}_")
    return f"{accession}_{number}" if "|" in contig and number != name and number.isdigit() else name


def rename_genes(genes: Mapping[str, Sequence[Gene]], names: Mapping[str, str]) -> dict[str, Sequence[Gene]]:
    """The same genes under other names."""
    return {
        contig: [replace(gene, name=names.get(gene.name, gene.name)) for gene in found]
        for contig, found in genes.items()
    }


def rename_in_call(call: Call, names: Mapping[str, str]) -> Call:
    """A call that names the genes around it in the same way."""
    context = call.context
    if context is None:
        return call
    gene, within = (names.get(name, name) for name in (context.gene, context.within))
    return replace(call, context=replace(context, gene=gene, within=within))


# --- Figures over all calls: where they lie, how far from the next gene, and how high they score

PLACES = (
    "upstream of a gene, between genes",
    "at the first letter of a gene",
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
    return wide_table(("place", "calls", "share", ""), rows, "places")


def distance_plot(distances: Sequence[int]) -> Markup:
    """Histogram of the letters from a call to the first letter of the gene that it drives."""
    edges = np.arange(0, 501, 10)
    counts = np.histogram(np.clip(distances, 0, 500), bins=edges)[0]
    return _histogram(
        edges.tolist(),
        counts.tolist(),
        {float(place): str(place) for place in range(0, 501, 100)},
        "letters from the call to the gene",
    )


def score_plot(scores: Sequence[float]) -> Markup:
    """Histogram of the scores of all calls."""
    edges = np.linspace(0, 1, 41)
    counts = np.histogram(scores, bins=edges)[0]
    return _histogram(edges.tolist(), counts.tolist(), number_ticks(0.0, 1.0), "score of the call")


def _histogram(
    edges: Sequence[float], counts: Sequence[int], ticks: Mapping[float, str], title: str
) -> Markup:
    top = float(max(1, *counts))
    frame = Frame(edges[0], edges[-1], 0.0, top, 430, 210)
    whole = {tick: str(int(tick)) for tick in round_ticks(0.0, top, 4) if tick == int(tick)}
    body = frame.ticks_y(whole) + frame.bars("bin", edges, counts) + frame.ticks_x(ticks)
    return frame.drawing(body, title, "calls", f"Number of calls by {title}")


# --- All calls as compact data, which ``scan.js`` lays out, sorts and searches

_EMPTY = CallContext()


def table_data(calls: Sequence[Call], numbers: Sequence[int], with_genes: bool) -> Markup:
    """Write calls by column, with their numbers in the anchors of the page; names are written once."""
    contexts = [call.context or _EMPTY for call in calls]
    names = _Names()
    data: dict[str, Any] = {
        "first": _differences(numbers),
        "contig": names.indices(call.contig for call in calls),
        "site": _differences([call.site + 1 for call in calls]),
        "minus": "".join("01"[call.strand == "-"] for call in calls),
        "score": [round(call.score, 3) for call in calls],
    }
    for share in ("probability", "precision"):
        values = [getattr(context, share) for context in contexts]
        if any(value is not None for value in values):
            data[share] = list(map(_rounded, values))
    if with_genes:
        data |= {
            "gene": names.indices(context.gene for context in contexts),
            "locus": names.indices(context.locus for context in contexts),
            "distance": [-1 if c.distance is None else c.distance for c in contexts],
            "within": names.indices(context.within for context in contexts),
            "opposite": "".join("01"[context.within_strand == "opposite"] for context in contexts),
            "place": "".join(str(place_index(context)) for context in contexts),
            "places": PLACES,
        }
    if any(context.minus10 or context.minus35 for context in contexts):
        data |= {
            "minus35": names.indices(_letters(context.minus35) for context in contexts),
            "spacer": [-1 if c.spacer is None else c.spacer for c in contexts],
            "minus10": names.indices(_letters(context.minus10) for context in contexts),
        }
    data["names"] = names.all
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f"<script type=application/json id=data>{safe}</script>")


class _Names:
    """Texts that occur often, each written once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def indices(self, texts: Iterable[str]) -> list[int]:
        return [self._places.setdefault(clean(text), len(self._places)) for text in texts]

    @property
    def all(self) -> list[str]:
        return list(self._places)


def _differences(values: Sequence[int]) -> list[int]:
    """Each value minus the one before it, which takes fewer digits."""
    return np.diff(values, prepend=0).tolist()


def _rounded(value: float | None) -> float | int:
    """To the digits that are shown: a value that is rounded twice differs from that of the maps."""
    return -1 if value is None else round(value, 2)


def _letters(box: Box | None) -> str:
    return box.letters if box else ""


# --- A call with what surrounds it, ready to be shown


@dataclass(frozen=True, slots=True)
class CallCard:
    """What the page shows of one call."""

    anchor: str
    call: Call
    title: str
    place: str  # in its contig
    boxes: Sequence[MarkedBox]
    map: Markup
    strip: Markup


def card_of(
    call: Call,
    anchor: str,
    genes: Sequence[Gene],
    circle: int | None,
    profiles: tuple[Floats, Floats] | None,
    letters: str,
    shares: Floats | None,
    threshold: float | None,
) -> CallCard:
    """Draw a call.

    ``circle`` is the length of the contig if it is circular. Profiles, letters, shares and threshold are as
    in `seqray.report.pages.ScanReport`.
    """
    boxes = list(_boxes(call, circle))
    near = [found for gene in genes for found in _nearby(gene, call, circle)]
    around = _in_reading_direction(call, profiles) if profiles else None
    title = _title(call)
    return CallCard(
        anchor,
        call,
        title,
        _place(call),
        boxes,
        draw_surroundings(
            near, around, boxes, threshold, f"Map of the call {title}, score {fixed(call.score)}"
        ),
        letter_strip(letters, boxes, shares, f"Letters around the site: {letters}") if letters else Markup(),
    )


def title_of(gene: Gene) -> str:
    """Name and product of a gene."""
    return f"{gene.name}: {gene.product}" if gene.product else gene.name


def _place(call: Call) -> str:
    """Position from 1 and strand, as genome browsers write them behind the name of the contig."""
    return f"{call.site + 1:,} ({'+' if call.strand == '+' else MINUS})"


def _title(call: Call) -> str:
    """The gene that a call drives, or where the call lies."""
    context = call.context
    if context is None:
        return _place(call)
    if context.gene:
        return context.gene
    if context.within:
        return f"{'inside' if context.within_strand == 'same' else 'antisense to'} {context.within}"
    return "no gene within reach"


def _offset(position: int, call: Call, circle: int | None) -> int:
    """Place relative to the site in reading direction; on a circle the shorter way."""
    distance = position - call.site
    if circle:
        distance = (distance + circle // 2) % circle - circle // 2
    return distance if call.strand == "+" else -distance


def _boxes(call: Call, circle: int | None) -> Iterator[MarkedBox]:
    context = call.context
    named: list[tuple[str, Box | None]] = (
        [] if context is None else [("-35", context.minus35), ("-10", context.minus10)]
    )
    for name, box in named:
        if box is not None:
            last = box.start if call.strand == "+" else box.start + len(box.letters) - 1
            yield MarkedBox(name, _offset(last, call, circle), box.letters)


def _nearby(gene: Gene, call: Call, circle: int | None) -> Iterator[NearbyGene]:
    """The gene where it overlaps the map; on a circle it may do so on either side of the origin."""
    for turn in (-circle, 0, circle) if circle else (0,):
        left, right = gene.start + turn - call.site, gene.end + turn - call.site
        start, end = (left, right) if call.strand == "+" else (1 - right, 1 - left)
        if start <= CALL_REACH and end > -CALL_REACH:
            yield NearbyGene(start, end, gene.strand == call.strand, gene.name, title_of(gene))


def _in_reading_direction(call: Call, profiles: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    plus, minus = (np.asarray(p, dtype=np.float64) for p in profiles)
    return (plus, minus) if call.strand == "+" else (minus[::-1], plus[::-1])
