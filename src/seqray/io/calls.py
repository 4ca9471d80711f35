"""Calls as a table, and their contexts as cells of a table and as attributes of GFF3."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from seqray.core.boxes import BoxPattern
from seqray.core.errors import InputError
from seqray.core.results import Box, Call, CallContext
from seqray.core.text import format_number, parse_float
from seqray.io.lines import check_line_start, parse_position
from seqray.io.tables import format_cell, one_line, open_table, write_table

CALL_COLUMNS = ("id", "contig", "start", "end", "strand", "site", "score", "label")
_CONTEXT_COLUMNS = ("trust", "precision", "gene", "locus_tag", "distance", "within", "within_strand")


def call_ids(calls: Iterable[Call]) -> Iterator[tuple[str, Call]]:
    """Number calls from 1 in their order: ``promoter_1`` ..; the same in every format of one run."""
    for number, call in enumerate(calls, start=1):
        yield f"{'_'.join(call.label.split())}_{number}", call


def write_calls_tsv(
    path: str | Path, calls: Iterable[Call], provenance: Sequence[str] = (), context: Sequence[str] = ()
) -> int:
    """Write calls as a table, 0-based and half-open; ``context`` are the further columns."""
    return write_table(path, (*CALL_COLUMNS, *context), call_rows(calls, context), provenance)


def call_rows(calls: Iterable[Call], context: Sequence[str] = ()) -> Iterator[tuple[object, ...]]:
    """Cells of `CALL_COLUMNS`, and of those of a context for calls of a locator."""
    for name, c in call_ids(calls):
        more = map(_context_values(c.context).get, context)
        yield name, c.contig, c.start, c.end, c.strand, c.site, float(c.score), c.label, *more


_BED6 = ("#chrom", "chromStart", "chromEnd", "name", "score", "strand")
BED_COLUMNS = (*_BED6, "probability", "site")


def write_bed(
    path: str | Path,
    calls: Iterable[Call],
    provenance: Sequence[str] = (),
    context: Sequence[str] = (),
    *,
    contigs: Mapping[str, int] | None = None,
) -> int:
    """Write calls as BED6 and more columns, and return how many; one across an origin takes two lines."""
    named = list(call_ids(calls))
    columns = (*_BED6, "call_score", "site", *context) if context else BED_COLUMNS
    with open_table(path, columns, provenance, quotes=False) as write:
        for contig, group in groupby(named, key=lambda pair: pair[1].contig):
            check_line_start(contig)
            length = (contigs or {}).get(contig)
            rows: list[tuple[object, ...]] = []
            for name, call in group:
                more = [*map(_context_values(call.context).get, context)]
                score = (round(1000 * call.score), call.strand, float(call.score), call.site)
                end = call.end if length is None else min(call.end, length)
                rows.append((contig, call.start, end, name, *score, *more))
                if end < call.end:  # what lies behind the origin
                    rows.append((contig, 0, call.end - end, name, *score, *more))
            write(sorted(rows, key=itemgetter(1)))
    return len(named)


# --------------------------------------------------------------------------------------------- contexts


def context_columns(boxes: Sequence[BoxPattern]) -> tuple[str, ...]:
    """Columns of the calls of a locator whose card has these boxes."""
    named = [text for box in boxes for text in (_column(box.name), f"{_column(box.name)}_start")]
    pair = ["spacer"] if len(boxes) > 1 else []
    return *_CONTEXT_COLUMNS, *named, *pair, *(["extended"] if any(box.extension for box in boxes) else [])


def _column(box: str) -> str:
    """Word of tables and attributes for the name of a box."""
    return box.replace("-", "minus").lower()


def _context_values(context: CallContext | None) -> Mapping[str, object]:
    """Values of a context by column; None for what is not known."""
    c = context or CallContext()
    names = (one_line(c.gene) if c.gene else None, one_line(c.locus) if c.locus else None, c.distance)
    within = (one_line(c.within) if c.within else None, c.within_strand or None)
    known = (c.trust or None, c.precision, *names, *within)
    values: dict[str, object] = dict(zip(_CONTEXT_COLUMNS, known, strict=True))
    for box in c.boxes:
        values |= {_column(box.name): box.letters, f"{_column(box.name)}_start": box.start}
    return values | {"spacer": c.spacer, "extended": c.extended}


def context_attributes(context: CallContext) -> Iterator[tuple[str, str]]:
    """Attributes of GFF3, not escaped, in the order of the columns; its positions are 1-based."""
    for name, value in _context_values(context).items():
        if isinstance(value, int) and name.endswith("_start"):
            yield name, str(value + 1)
        elif value is not None:
            yield name, format_number(value) if isinstance(value, float) else format_cell(value)


def context_from_attributes(attributes: Mapping[str, str], where: str) -> CallContext:
    """Read what `context_attributes` gave; `InputError` for a position or a number that is none."""

    def number(name: str) -> int | None:
        return parse_position(attributes[name], where) if name in attributes else None

    boxes = []
    for column in (name for name in attributes if f"{name}_start" in attributes):  # not codon_start
        start = parse_position(attributes[f"{column}_start"], where)
        boxes.append(Box(column.replace("minus", "-").upper(), start - 1, attributes[column]))
    strand, share = attributes.get("within_strand"), attributes.get("precision")
    return CallContext(
        trust=attributes.get("trust", ""),
        precision=None if share is None else parse_number(share, "precision", where),
        gene=attributes.get("gene", ""),
        locus=attributes.get("locus_tag", ""),
        distance=number("distance"),
        within=attributes.get("within", ""),
        within_strand=strand if strand == "same" or strand == "opposite" else "",
        boxes=tuple(boxes),
        spacer=number("spacer"),
        extended={"yes": True, "no": False}.get(attributes.get("extended", "")),
    )


def parse_number(text: str, name: str, where: str) -> float:
    """A finite number."""
    number = parse_float(text)
    if not math.isfinite(number):
        raise InputError(f"has the {name} '{text}'", where=where, remedy="give a number")
    return number
