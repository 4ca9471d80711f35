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
from seqray.io.lines import Feature, check_line_start, numbered_lines, parse_position, parse_strand
from seqray.io.tables import open_table

_BED6 = ("#chrom", "chromStart", "chromEnd", "name", "score", "strand")
BED_COLUMNS = (*_BED6, "probability", "site")
DESCRIBED_COLUMNS = (*_BED6, "call_score", "site", *CONTEXT_COLUMNS)


def _rows(name: str, call: Call, length: int | None, described: bool) -> Iterator[tuple[object, ...]]:
    """The line of a call, or the two lines of one across the origin."""
    check_line_start(call.contig)
    more = context_cells(call.context) if described else ()
    rest = (name, round(1000 * call.score), call.strand, float(call.score), call.site, *more)
    within = length is None or call.end <= length
    yield (call.contig, call.start, call.end if within else length, *rest)
    if length is not None and not within:
        yield (call.contig, 0, call.end - length, *rest)


def write_bed(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    *,
    contigs: Mapping[str, int] | None = None,
    described: bool = False,
) -> int:
    """Write calls as BED6 and more columns, and return how many calls (not lines).

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    calls
        Those of a contig together. Its lines are sorted by start, as tabix requires.
    contigs
        Length of each contig; required to split calls across the origin of a circular one.
    described
        Whether to append the contexts of the calls of a locator.

    Notes
    -----
    Columns: chrom, chromStart, chromEnd, name, score (that of the call times 1000, rounded), strand, score of
    the call, site (0-based), and contexts.
    """
    named = list(call_ids(calls))
    columns = DESCRIBED_COLUMNS if described else BED_COLUMNS
    with open_table(path, columns, provenance, quotes=False) as write:
        for contig, group in groupby(named, key=lambda pair: pair[1].contig):
            length = (contigs or {}).get(contig)
            rows = [row for name, call in group for row in _rows(name, call, length, described)]
            write(sorted(rows, key=itemgetter(1)))  # the second line of a call across the origin comes first
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
