"""A call with what surrounds it, ready to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.annotation import Gene
from seqray.core import Floats
from seqray.core.results import Box, Call
from seqray.report.html import MINUS, fixed
from seqray.report.svg import CALL_REACH, MarkedBox, NearbyGene, draw_surroundings, letter_strip


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
