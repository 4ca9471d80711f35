"""Calls as a table, and their contexts as cells of a table and as attributes of GFF3."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from seqray.core.errors import InputError
from seqray.core.results import Box, Call, CallContext
from seqray.core.text import format_number, parse_float
from seqray.io.lines import check_line_start, parse_position
from seqray.io.tables import format_cell, one_line, open_table, write_table

CALL_COLUMNS = ("id", "contig", "start", "end", "strand", "site", "score", "label")
CONTEXT_COLUMNS = (
    *("trust", "precision", "gene", "locus_tag", "distance", "within", "within_strand"),
    *("minus10", "minus10_start", "minus35", "minus35_start", "spacer", "extended"),
)


def call_ids(calls: Iterable[Call]) -> Iterator[tuple[str, Call]]:
    """Number calls from 1 in their order: ``promoter_1`` ..; the same in every format of one run."""
    for number, call in enumerate(calls, start=1):
        yield f"{'_'.join(call.label.split())}_{number}", call


def write_calls_tsv(
    path: str | Path, calls: Iterable[Call], provenance: Sequence[str] = (), *, described: bool = False
) -> int:
    """Write calls as a table, 0-based and half-open; ``described`` appends `CONTEXT_COLUMNS`."""
    columns = (*CALL_COLUMNS, *CONTEXT_COLUMNS) if described else CALL_COLUMNS
    return write_table(path, columns, call_rows(calls, described=described), provenance)


def call_rows(calls: Iterable[Call], *, described: bool = False) -> Iterator[tuple[object, ...]]:
    """Cells of `CALL_COLUMNS`, and of `CONTEXT_COLUMNS` for calls of a locator."""
    for name, c in call_ids(calls):
        more = context_cells(c.context) if described else ()
        yield name, c.contig, c.start, c.end, c.strand, c.site, float(c.score), c.label, *more


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
    """Write calls as BED6 and more columns, by start in each contig, and return how many calls (not lines).

    The site is 0-based. By ``contigs``, their lengths, a call across the origin of a circle is two lines.
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


# --------------------------------------------------------------------------------------------- contexts


def context_cells(context: CallContext | None) -> tuple[object, ...]:
    """A cell for each of `CONTEXT_COLUMNS`; None for what is not known."""
    c = context or CallContext()
    box10, box35 = ((box.letters, box.start) if box else (None, None) for box in (c.minus10, c.minus35))
    names = (one_line(c.gene) if c.gene else None, one_line(c.locus) if c.locus else None, c.distance)
    within = (one_line(c.within) if c.within else None, c.within_strand or None)
    extended = c.extended if c.minus10 else None
    return (c.trust or None, c.precision, *names, *within, *box10, *box35, c.spacer, extended)


def context_attributes(context: CallContext) -> Iterator[tuple[str, str]]:
    """Attributes of GFF3, not escaped, in the order of `CONTEXT_COLUMNS`; its positions are 1-based."""
    for name, value in zip(CONTEXT_COLUMNS, context_cells(context), strict=True):
        if isinstance(value, int) and name.endswith("_start"):
            yield name, str(value + 1)
        elif value is not None:
            yield name, format_number(value) if isinstance(value, float) else format_cell(value)


def context_from_attributes(attributes: Mapping[str, str], where: str) -> CallContext:
    """Read what `context_attributes` gave; `InputError` for a position or a number that is none."""

    def number(name: str) -> int | None:
        return parse_position(attributes[name], where) if name in attributes else None

    def box(name: str) -> Box | None:
        start = number(f"{name}_start")
        return None if start is None else Box(start - 1, attributes.get(name, ""))

    strand = attributes.get("within_strand")
    return CallContext(
        trust=attributes.get("trust", ""),
        precision=parse_number(attributes["precision"], "precision", where)
        if "precision" in attributes
        else None,
        gene=attributes.get("gene", ""),
        locus=attributes.get("locus_tag", ""),
        distance=number("distance"),
        within=attributes.get("within", ""),
        within_strand="same" if strand == "same" else "opposite" if strand == "opposite" else "",
        minus10=box("minus10"),
        minus35=box("minus35"),
        spacer=number("spacer"),
        extended=attributes.get("extended") == "yes",
    )


def parse_number(text: str, name: str, where: str) -> float:
    """A finite number."""
    number = parse_float(text)
    if not math.isfinite(number):
        raise InputError(f"has the {name} '{text}'", where=where, remedy="give a number")
    return number
