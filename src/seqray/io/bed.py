"""BED."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from seqray.core.errors import InputError
from seqray.core.results import Call
from seqray.core.text import counted
from seqray.io.calls import CONTEXT_COLUMNS, call_ids, context_cells
from seqray.io.lines import Feature, check_line_start, numbered_lines, parse_position, parse_strand
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

    The calls of a contig come together; its lines are sorted by start, as tabix requires. The score of BED is
    that of the call times 1000, rounded; the site is 0-based. ``contigs`` are the lengths, by which a call
    across the origin of a circle becomes two lines; ``described`` calls of a locator have `CONTEXT_COLUMNS`.
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


def read_bed(path: str | Path) -> list[Feature]:
    """Read the intervals of a BED file; ``track`` and ``browser`` lines are ignored.

    Raises `InputError` with the line for too few columns, a position that is no number, or an empty interval.
    """
    return parse_bed(numbered_lines(path))


def parse_bed(lines: Iterable[tuple[str, str]]) -> list[Feature]:
    """`read_bed` of lines with their places."""
    features = []
    for where, line in lines:
        if line.split(maxsplit=1)[0] in ("track", "browser"):
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) < 3:
            raise InputError(
                f"has {counted(len(cells), 'column')}", where=where, remedy="BED needs contig, start and end"
            )
        start, end = parse_position(cells[1], where), parse_position(cells[2], where)
        if start >= end:
            raise InputError(f"has the empty interval {start}-{end}", where=where)
        name, strand = (cells[3] if len(cells) > 3 else ""), (cells[5] if len(cells) > 5 else ".")
        features.append(Feature(cells[0], start, end, name, parse_strand(strand, where)))
    return features
