"""Calls on the page of a scan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from seqray.core.arrays import Floats, Ints
from seqray.core.results import Call, CallContext
from seqray.genome.genes import Gene
from seqray.report.html import MINUS, clean, fixed, wide_table
from seqray.report.svg.charts import Frame, count_ticks
from seqray.report.svg.genome import CALL_REACH, MarkedBox, NearbyGene, draw_surroundings, letter_strip

# --- Names of predicted genes, as a page shows them: without the words of NCBI before the accession


def short_names(genes: Mapping[str, Sequence[Gene]]) -> dict[str, str]:
    """Shorter names of genes that were named after their contig, where these are unique.

    ``gi|9626243|ref|NC_001416.1|_46`` becomes ``NC_001416.1_46``; names that stay are left out.
    """
    pairs = []
    for contig, its_genes in genes.items():
        accession = contig.rstrip("|").rpartition("|")[2]
        for gene in its_genes:
            number = gene.name.removeprefix(f"{contig}_")
            is_numbered = "|" in contig and number != gene.name and number.isdigit()
            pairs.append((gene.name, f"{accession}_{number}" if is_numbered else gene.name))
    uses = Counter(short for _, short in pairs)
    return {name: short for name, short in pairs if name != short and uses[short] == 1}


# --- Figures over all calls: where they lie, how far from the next gene, and how high they score

PLACES = (
    "upstream of a gene, between genes",
    "at the first base of a gene",
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


def call_histogram(
    values: Sequence[float], edges: Floats | Ints, ticks: Mapping[float, str], title: str
) -> Markup:
    """Histogram of a number of each call."""
    counts = np.histogram(values, bins=edges)[0].tolist()
    frame = Frame(float(edges[0]), float(edges[-1]), 0.0, float(max(1, *counts)), 430, 210)
    body = frame.ticks_y(count_ticks(frame.high_y)) + frame.bars("bin", edges.tolist(), counts)
    return frame.drawing(body + frame.ticks_x(ticks), title, "calls", f"Number of calls by {title}")


# --- All calls as compact data, which ``scan.js`` lays out, sorts and searches


def table_data(calls: Sequence[Call], numbers: Sequence[int], with_genes: bool) -> Markup:
    """Write calls by column, with their numbers in the anchors of the page.

    Names are written once; of ascending numbers each minus the one before it, which takes fewer digits.
    """
    contexts = [call.context or CallContext() for call in calls]
    names: dict[str, int] = {}

    def indices(texts: Iterable[str]) -> list[int]:
        return [names.setdefault(clean(text), len(names)) for text in texts]

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
    if any(context.minus10 or context.minus35 for context in contexts):
        data["minus35"] = indices(c.minus35.letters if c.minus35 else "" for c in contexts)
        data["spacer"] = known(context.spacer for context in contexts)
        data["minus10"] = indices(c.minus10.letters if c.minus10 else "" for c in contexts)
    data["names"] = list(names)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f"<script type=application/json id=data>{safe}</script>")


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
    """Draw a call; ``circle`` is the length of the contig if it is circular, the rest is of the report."""
    forward, context = call.strand == "+", call.context or CallContext()

    def offset(position: int) -> int:
        """Place relative to the site in reading direction; on a circle the shorter way."""
        distance = position - call.site
        if circle:
            distance = (distance + circle // 2) % circle - circle // 2
        return distance if forward else -distance

    boxes = [
        MarkedBox(name, offset(box.start if forward else box.start + len(box.letters) - 1), box.letters)
        for name, box in (("-35", context.minus35), ("-10", context.minus10))
        if box is not None
    ]
    near = []
    for gene in genes:  # on a circle a gene may overlap the map on either side of the origin
        for turn in (-circle, 0, circle) if circle else (0,):
            left, right = gene.start + turn - call.site, gene.end + turn - call.site
            start, end = (left, right) if forward else (1 - right, 1 - left)
            if start <= CALL_REACH and end > -CALL_REACH:
                near.append(NearbyGene(start, end, gene.strand == call.strand, gene.name, title_of(gene)))
    around = None
    if profiles:
        plus, minus = (np.asarray(p, dtype=np.float64) for p in profiles)
        around = (plus, minus) if forward else (minus[::-1], plus[::-1])
    # position from 1 and strand, as genome browsers write them behind the name of the contig
    place = f"{call.site + 1:,} ({'+' if forward else MINUS})"
    title = context.gene or "no gene within reach"
    if call.context is None:
        title = place
    elif context.within and not context.gene:
        title = f"{'inside' if context.within_strand == 'same' else 'antisense to'} {context.within}"
    name = f"Map of the call {title}, score {fixed(call.score)}"
    map_ = draw_surroundings(near, around, boxes, threshold, name)
    strip = letter_strip(letters, boxes, shares, f"Bases around the site: {letters}") if letters else Markup()
    return CallCard(anchor, call, title, place, boxes, map_, strip)


def title_of(gene: Gene) -> str:
    """Name and product of a gene."""
    return f"{gene.name}: {gene.product}" if gene.product else gene.name
