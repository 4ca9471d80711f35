"""Features and sites on a genome from any of their formats, as the content of a file decides."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seqray.core.errors import InputError
from seqray.core.text import nearest, parse_float
from seqray.io.files import BLOCK, display_name, open_input
from seqray.io.genbank import genbank_annotation, parse_genbank
from seqray.io.gff3 import CONTIGS, parse_gff3_annotation
from seqray.io.lines import (
    HEADER_WORDS,
    WITHOUT_START,
    AnnotatedFile,
    Feature,
    Part,
    decoded_lines,
    is_position,
    parse_bed,
    parse_position,
    parse_strand,
)
from seqray.io.records import GENBANK, GFF, Duplicates, UniqueIds, detect_format
from seqray.io.tables import parse_rows

_SITE_COLUMNS = ("site", "position")
_POSITION_REMEDY = "name the columns contig, site[, strand]"
_MAX_SHOWN_KINDS = 6


def read_annotated(
    path: str | Path,
    wanted: Callable[[str], bool],
    circles: Mapping[str, int] | None = None,
    *,
    duplicates: Duplicates = "error",
) -> AnnotatedFile:
    """Read ``wanted`` kinds of features from GenBank or GFF3; ``circles`` are lengths of circular contigs."""
    name, circles = display_name(path), circles or {}
    with open_input(path) as handle:
        head = handle.peek(1)
        form = detect_format(head)
        if form == GENBANK:
            records = parse_genbank(handle, name, features=True)
            return genbank_annotation(records, name, wanted, circles, UniqueIds(duplicates, name))
        if form == GFF or (not form and _first_line(head).count("\t") == 8):
            return parse_gff3_annotation(handle, name, wanted, circles)
    unknown = "is no annotation of genes" if head.strip() else "is empty"
    what = f"is {form}, not an annotation of genes" if form else unknown
    raise InputError(what, where=name, remedy="give GenBank or GFF3")


def read_features(path: str | Path) -> AnnotatedFile:
    """Read all features of GFF3, GTF, GenBank, BED or a table of positions; count what can't be placed."""
    with open_input(path) as handle:
        return _parse_features(handle.read(), display_name(path))


def _parse_features(data: bytes, name: str) -> AnnotatedFile:
    form, handle = detect_format(data[:BLOCK]), io.BytesIO(data)
    if form == GENBANK:
        records = parse_genbank(handle, name, features=True)
        return genbank_annotation(records, name, None, {}, UniqueIds("keep", name))
    line = _first_line(data)
    cells = line.split("\t")
    is_bed = all(map(is_position, cells[1:3]))
    is_gff3 = len(cells) == 9 and all(map(is_position, cells[3:5])) and not is_bed
    if form == GFF or (not form and is_gff3):
        return parse_gff3_annotation(handle, name, None, {})
    if form:
        remedy = "give GFF3, GenBank, BED or a table of positions"
        raise InputError(f"is {form}, not an annotation", where=name, remedy=remedy)
    if _is_header(line):
        rows = parse_rows(handle, name, ("contig",), _POSITION_REMEDY)
        return AnnotatedFile("table", [_position(row, where) for where, row in rows])
    return AnnotatedFile("BED", list(parse_bed(decoded_lines(handle, name))))


def _first_line(data: bytes) -> str:
    """The first line that contains data, or an empty text."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="replace")
    lines = (line.rstrip("\n") for line in text if line.strip() and not line.startswith("#"))
    return next((line for line in lines if "\t" in line or not line.startswith(HEADER_WORDS)), "")


def _is_header(line: str) -> bool:
    """Whether a line names columns of a table of positions; a row of BED has numbers."""
    cells = {cell.strip(' "').lower() for cell in line.replace(",", "\t").split("\t")}
    return not cells.isdisjoint(("contig", *_SITE_COLUMNS)) and not any(map(is_position, cells))


def _position(row: dict[str, str], where: str) -> Feature:
    """A single letter of a table with the columns ``contig`` and ``site`` or ``position``, 0-based."""
    column = next((column for column in _SITE_COLUMNS if column in row), None)
    if column is None:  # the header had one between quotes, within another cell
        raise InputError(f"has no column '{_SITE_COLUMNS[0]}'", where=where, remedy=_POSITION_REMEDY)
    start = parse_position(row[column], where)
    part = Part(start, start + 1, parse_strand(row.get("strand", "") or ".", where))
    return Feature(row["contig"], "TSS", (part,), {"ID": row.get("id", "")}, where)


def select_features(features: Iterable[Feature], kinds: Sequence[str], where: str | Path) -> list[Feature]:
    """Keep features of some kinds, and those without a kind (BED)."""
    features = list(features)
    selected = [feature for feature in features if not feature.kind or feature.kind in kinds]
    if not selected:
        counts = Counter(feature.kind for feature in features).most_common(_MAX_SHOWN_KINDS)
        there = ", ".join(f"{kind} ({count})" for kind, count in counts) or "no feature"
        what = f"contains no feature of type {', '.join(kinds)}"
        raise InputError(what, where=str(where), remedy=f"it has {there}")
    return selected


# ---------------------------------------------------------- sites: letters of a strand, with class and weight

_SITE_TABLE = ("contig", "position", "strand")
_FURTHER = frozenset(("site", "weight"))
_REMEDY = "name the columns contig, position (1-based), strand, site[, weight]"


@dataclass(frozen=True, slots=True)
class Site:
    """A site on a genome, 0-based on the plus strand; ``kind`` is its class, ``where`` is for errors.

    One of weight 0 is neither a site nor background.
    """

    contig: str
    position: int
    strand: str
    kind: str
    weight: float
    where: str


def read_sites(path: str | Path, on_left_out: Callable[[str], None] = lambda _: None) -> list[Site]:
    """Read sites from a table with positions from 1, BED, GFF3 or GenBank: the first letter of a feature.

    A call of seqray states its own. ``on_left_out`` receives a line about features that have none.
    """
    name = display_name(path)
    with open_input(path) as handle:
        data = handle.read()
    if not detect_format(data[:BLOCK]) and _is_header(_first_line(data)):
        sites = list(_table_sites(data, name))
    else:
        file = _parse_features(data, name)
        # But those that stand for all of a contig.
        ends = [file.lengths.get(f.contig, f.end) if f.kind in CONTIGS else -1 for f in file.features]
        pairs = zip(file.features, ends, strict=True)
        features = [f for f, end in pairs if (f.start, f.end) != (0, end)]
        sites = []
        for f in (feature for feature in features if not feature.partial_start):
            where = f"{name}: {f.name or f.kind or 'feature'} at {f.start + 1}"
            kind = f.kind if f.site is None else f.attributes.get("label", f.kind)
            sites.append(Site(f.contig, f.first, _check_strand(f.strand, where), kind, 1.0, where))
        left_out = Counter(file.left_out)
        left_out[WITHOUT_START] += len(features) - len(sites)
        if note := file._replace(left_out=+left_out).note:
            on_left_out(f"{name}: {note}")
    if not sites:
        raise InputError("contains no site", where=name, remedy="give a table of sites, BED or GFF3")
    return sites


def _table_sites(data: bytes, name: str) -> Iterator[Site]:
    for number, (where, row) in enumerate(parse_rows(io.BytesIO(data), name, _SITE_TABLE, _REMEDY)):
        # `weigth` would make sites of those that are none; other columns may hold anything.
        for column in row.keys() - {*_SITE_TABLE, *_FURTHER} if number == 0 else ():
            if near := nearest(column, _FURTHER - row.keys(), 0.7):
                what = f"the column '{column}' is unknown"
                raise InputError(what, where=name, remedy=f"did you mean '{near}'?")
        position = parse_position(row["position"], where)
        if position < 1:
            raise InputError("has position 0", where=where, remedy="count positions from 1")
        strand, text = _check_strand(row["strand"], where), row.get("weight", "")
        weight = parse_float(text or "1")
        if not 0 <= weight < math.inf:
            raise InputError(f"has the weight '{text}'", where=where, remedy="give 0 or more")
        yield Site(row["contig"], position - 1, strand, row.get("site", ""), weight, where)


def _check_strand(strand: str, where: str) -> str:
    if strand not in ("+", "-"):
        raise InputError(f"a site has the strand '{strand}'", where=where, remedy="use + or -")
    return strand
