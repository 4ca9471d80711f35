"""BED."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from seqray.core.errors import InputError
from seqray.core.results import Call
from seqray.core.text import counted
from seqray.io.calls import CONTEXT_COLUMNS, call_ids, context_cells
from seqray.io.lines import (
    HEADER_WORDS,
    Feature,
    Part,
    check_line_start,
    is_position,
    numbered_lines,
    parse_position,
    parse_strand,
)
from seqray.io.tables import open_table

_BED6 = ("#chrom", "chromStart", "chromEnd", "name", "score", "strand")
BED_COLUMNS = (*_BED6, "probability", "site")
DESCRIBED_COLUMNS = (*_BED6, "call_score", "site", *CONTEXT_COLUMNS)


def write_bed(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    contigs: Mapping[str, int] | None = None,
    described: bool = False,
) -> int:
    """Write calls as BED6 and more columns, and return how many calls (not lines).

    The lines of a contig are sorted by start, as tabix requires; the site is 0-based. ``contigs`` are the
    lengths, by which a call across the origin of a circle becomes two lines.
    """
    named = list(call_ids(calls))
    columns = DESCRIBED_COLUMNS if described else BED_COLUMNS
    with open_table(path, columns, provenance, quotes=False) as write:
        for contig, group in groupby(named, key=lambda pair: pair[1].contig):
            check_line_start(contig)
            length = (contigs or {}).get(contig)
            rows: list[tuple[object, ...]] = []
            for name, call in group:
                more = context_cells(call.context) if described else ()
                score = (round(1000 * call.score), call.strand, float(call.score), call.site)
                end = call.end if length is None else min(call.end, length)
                rows.append((contig, call.start, end, name, *score, *more))
                if end < call.end:  # what lies behind the origin
                    rows.append((contig, 0, call.end - end, name, *score, *more))
            write(sorted(rows, key=itemgetter(1)))
    return len(named)


def read_regions(path: str | Path) -> list[Feature]:
    """Read the regions of a BED file, whatever their strands; those without a letter are left out."""
    regions = parse_bed(numbered_lines(path), with_strand=False)
    return [region for region in regions if region.start < region.end]


def parse_bed(lines: Iterable[tuple[str, str]], *, with_strand: bool = True) -> Iterator[Feature]:
    """Features of the lines of BED, with their places; ``track`` and ``browser`` lines are ignored.

    A header that seqray wrote names the column of the site.
    """
    at_site = None
    for where, line in lines:
        cells = line.split("\t") if "\t" in line else line.split()
        if line.startswith("#"):
            at_site = cells.index("site") if cells[:3] == list(_BED6[:3]) and "site" in cells else at_site
            continue
        is_row = len(cells) > 2 and is_position(cells[1]) and is_position(cells[2])
        if line.split(maxsplit=1)[0] in HEADER_WORDS and not is_row:
            continue
        if len(cells) < 3:
            raise InputError(
                f"has {counted(len(cells), 'column')}", where=where, remedy="BED needs contig, start and end"
            )
        start, end = parse_position(cells[1], where), parse_position(cells[2], where)
        if start > end or (with_strand and start == end):
            what = "empty interval" if start == end else "interval"
            remedy = "write the smaller position first; the end is not part of it"
            raise InputError(f"has the {what} {start}-{end}", where=where, remedy=remedy)
        strand = cells[5] if with_strand and len(cells) > 5 else "."
        yield Feature(
            contig=cells[0],
            kind="",
            parts=(Part(start, end, parse_strand(strand, where)),),
            attributes={"ID": cells[3]} if len(cells) > 3 else {},
            where=where,
            site=parse_position(cells[at_site], where) if at_site and len(cells) > at_site else None,
        )
