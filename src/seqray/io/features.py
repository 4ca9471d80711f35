"""Features and sites on a genome, from any of their formats."""

from __future__ import annotations

import difflib
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from Bio.SeqFeature import AfterPosition, BeforePosition, SeqFeature, SimpleLocation

from seqray.core.errors import InputError
from seqray.core.text import parse_float
from seqray.io.bed import parse_bed
from seqray.io.files import display_name, open_input
from seqray.io.genbank import parse_genbank
from seqray.io.gff3 import (
    Gff3Row,
    is_circular,
    lines_before_fasta,
    parse_gff3_features,
    parse_gff3_row,
    require_interval,
)
from seqray.io.lines import (
    Feature,
    data_lines,
    decoded_lines,
    is_position,
    is_pseudo,
    parse_position,
    parse_strand,
)
from seqray.io.records import GENBANK, GFF, Duplicates, UniqueIds, detect_format
from seqray.io.tables import parse_rows

# --- Read features with their parts and qualifiers from GenBank and GFF3, as the content decides

_FORMATS = "GenBank or GFF3"


class Part(NamedTuple):
    """An interval, 0-based and half-open; the strand is ``+``, ``-``, ``.`` or, in GFF3, ``?``."""

    start: int
    end: int
    strand: str


@dataclass(frozen=True, slots=True)
class AnnotatedFeature:
    """A feature of a genome.

    Attributes
    ----------
    contig, kind
        Name of the sequence, and type of the feature (``CDS``).
    parts
        In the order of transcription, also of a feature across the origin whose file sorts them by position.
    attributes
        Qualifiers of GenBank or attributes of GFF3, the first value of each.
    where
        File and line or record, for errors.
    partial_start, partial_end
        Whether the file says that its 5' or 3' end lies elsewhere.
    offset
        Letters before the first whole codon.
    """

    contig: str
    kind: str
    parts: tuple[Part, ...]
    attributes: Mapping[str, str]
    where: str
    partial_start: bool = False
    partial_end: bool = False
    offset: int = 0


class AnnotatedFile(NamedTuple):
    """Features of a file, and what it says of its contigs.

    Attributes
    ----------
    format
        ``GenBank`` or ``GFF3``.
    features
        In the order of the file.
    lengths, circular
        Length of each contig where it is stated, and names of circular contigs.
    others
        Kinds of the features that were not wanted.
    """

    format: str
    features: list[AnnotatedFeature]
    lengths: dict[str, int]
    circular: frozenset[str]
    others: Sequence[str]


def read_annotated(
    path: str | Path,
    wanted: Callable[[str], bool],
    circles: Mapping[str, int] | None = None,
    *,
    duplicates: Duplicates = "error",
) -> AnnotatedFile:
    """Read the features of some kinds.

    Raises `InputError` if the file can't be read, is neither GenBank nor GFF3, is cut off or has a line that
    is not GFF3, and for records of GenBank that have one id.

    Parameters
    ----------
    path
        Plain or compressed; ``-`` is standard input. A ``##FASTA`` section ends GFF3.
    wanted
        Tells the kinds to read.
    circles
        Lengths of contigs that are known to be circular, whether the file says so or not.
    duplicates
        How the sequences of a GenBank file are read that has ids twice, see `seqray.io.sequences.UniqueIds`.
    """
    name, circles = display_name(path), circles or {}
    with open_input(path) as handle:
        head = handle.peek(1)
        known = detect_format(head)
        if known == GENBANK:
            return _read_genbank(handle, name, wanted, circles, UniqueIds(duplicates, name))
        if known == GFF or (not known and _has_nine_columns(head)):
            return _read_gff3(handle, name, wanted, circles)
    unknown = "is no annotation of genes" if head.strip() else "is empty"
    what = f"is {known}, not an annotation of genes" if known else unknown
    raise InputError(what, where=name, remedy=f"give {_FORMATS}")


def _turn_at_origin(parts: Sequence[Part], length: int | None) -> int:
    """Count the parts that a file sorted by position put before those which they follow across the origin.

    ``length`` is that of the contig if it is circular, else None.
    """
    if len(parts) < 2:
        return 0
    forward = all(part.strand == "+" for part in parts)
    first, last = (parts[0], parts[-1]) if forward else (parts[-1], parts[0])
    starts = [part.start for part in parts]
    if starts != sorted(starts, reverse=not forward) or (first.start, last.end) != (0, length):
        return 0
    gaps = [max(a.start - b.end, b.start - a.end) for a, b in pairwise(parts)]
    return gaps.index(max(gaps)) + 1


def _has_nine_columns(head: bytes) -> bool:
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    return line.count(b"\t") == 8


# --------------------------------------------------------------------------------------------- GenBank


def _read_genbank(
    handle: BinaryIO, name: str, wanted: Callable[[str], bool], circles: Mapping[str, int], ids: UniqueIds
) -> AnnotatedFile:
    features: list[AnnotatedFeature] = []
    lengths: dict[str, int] = {}
    circular: set[str] = set()
    others: dict[str, None] = {}
    for record in parse_genbank(handle, name, features=True):
        contig = ids.resolve(record.id or record.name)
        lengths[contig] = len(record)
        around = circles.get(contig)
        if record.annotations.get("topology") == "circular":
            circular.add(contig)
            around = len(record)
        read = (_from_genbank(one, contig, name, around) for one in record.features if wanted(one.type))
        features += [feature for feature in read if feature.parts]
        others.update(dict.fromkeys(one.type for one in record.features if not wanted(one.type)))
    return AnnotatedFile(GENBANK, features, lengths, frozenset(circular), tuple(others))


def _from_genbank(feature: SeqFeature, contig: str, name: str, around: int | None) -> AnnotatedFeature:
    """``around`` is the length of a circular contig."""
    attributes = {key: values[0] for key, values in feature.qualifiers.items() if values}
    where = f"{name}: record '{contig}'"
    if feature.location is None:
        raise InputError(f"the location of a {feature.type} can't be read", where=where)
    # Parts on other records, without letters or with unknown ends are left out.
    parts = feature.location.parts
    pairs = [(one, part) for one in parts if one.ref is None and (part := _part(one))]
    turn = _turn_at_origin([part for _, part in pairs], around)
    pairs = pairs[turn:] + pairs[:turn]
    offset = attributes.get("codon_start", "1")
    before = filter(None, map(_part, takewhile(_is_elsewhere, parts)))  # on other records
    read = sum(part.end - part.start for part in before)
    return AnnotatedFeature(
        contig,
        feature.type,
        tuple(part for _, part in pairs),
        attributes,
        where,
        partial_start=_is_elsewhere(parts[0])
        or any(_is_open(one)[part.strand == "-"] for one, part in pairs[:1]),
        partial_end=_is_elsewhere(parts[-1])
        or any(_is_open(one)[part.strand != "-"] for one, part in pairs[-1:]),
        offset=((int(offset) - 1 if offset in ("1", "2", "3") else 0) - read) % 3,
    )


def _is_elsewhere(location: SimpleLocation) -> bool:
    return location.ref is not None


def _part(location: SimpleLocation) -> Part | None:
    start, end = location.start, location.end
    if not isinstance(start, int) or not isinstance(end, int) or start >= end:
        return None
    return Part(int(start), int(end), {1: "+", -1: "-"}.get(location.strand or 0, "."))


def _is_open(location: SimpleLocation) -> tuple[bool, bool]:
    """Whether the left and the right end lie elsewhere: ``<1..>9``."""
    left, right = location.start, location.end
    return isinstance(left, BeforePosition), isinstance(right, AfterPosition)


# ------------------------------------------------------------------------------------------------ GFF3


def _read_gff3(
    handle: Iterable[bytes], name: str, wanted: Callable[[str], bool], circles: Mapping[str, int]
) -> AnnotatedFile:
    lengths: dict[str, int] = {}
    circular: set[str] = set()
    others: dict[str, None] = {}
    groups: dict[tuple[str, ...], list[Gff3Row]] = {}
    for where, line in lines_before_fasta(decoded_lines(handle, name)):
        if line.startswith("#"):
            lengths.update(_stated_length(line))
            continue
        row = parse_gff3_row(line, where)
        if is_circular(row):
            circular.add(row.contig)
            lengths[row.contig] = row.end
        if wanted(row.kind):
            _check_row(row, line)
            groups.setdefault(_group(row), []).append(row)
        else:
            others[row.kind] = None
    around = {**circles, **{contig: lengths[contig] for contig in circular}}
    features = [_from_gff3(rows, around.get(rows[0].contig)) for rows in groups.values()]
    return AnnotatedFile("GFF3", features, lengths, frozenset(circular), tuple(others))


def _stated_length(line: str) -> Iterator[tuple[str, int]]:
    words = line.split()
    if words[0] == "##sequence-region" and len(words) == 4 and words[2] == "1" and is_position(words[3]):
        yield unquote(words[1]), int(words[3])


def _check_row(row: Gff3Row, line: str) -> None:
    require_interval(row)
    if row.phase not in ("0", "1", "2", "."):
        raise InputError(f"has the phase '{row.phase}'", where=row.where, remedy="use 0, 1, 2 or .")
    if row.strand not in ("+", "-", ".", "?"):
        raise InputError(f"has the strand '{row.strand}'", where=row.where, remedy="use + or -")
    column = line.rpartition("\t")[2]
    if "=" not in column and ' "' in column:
        raise InputError("is GTF, not GFF3", where=row.where, remedy="convert it, for example with gffread")


def _group(row: Gff3Row) -> tuple[str, ...]:
    """Lines of one ID are one feature; else coding lines of one parent, and lines of a locus tag."""
    for key in ("ID", *(["Parent"] if row.kind == "CDS" else []), "locus_tag"):
        if value := row.attributes.get(key):
            return row.contig, row.kind, key, value
    return (row.where,)


def _from_gff3(rows: list[Gff3Row], around: int | None) -> AnnotatedFeature:
    """``around`` is the length of a circular contig."""
    rows = _in_reading_order(rows)
    turn = _turn_at_origin([_part_of(row) for row in rows], around)
    rows = rows[turn:] + rows[:turn]
    first, last = rows[0], rows[-1]
    return AnnotatedFeature(
        first.contig,
        first.kind,
        tuple(map(_part_of, rows)),
        first.attributes,
        first.where,
        partial_start=_stated_open(first)[first.strand == "-"],
        partial_end=_stated_open(last)[last.strand != "-"],
        offset=int(first.phase) if first.phase != "." else 0,
    )


def _part_of(row: Gff3Row) -> Part:
    return Part(row.start, row.end, row.strand)


def _in_reading_order(rows: list[Gff3Row]) -> list[Gff3Row]:
    numbers = [row.attributes.get("part", "").partition("/")[0] for row in rows]
    if all(map(is_position, numbers)):  # as NCBI numbers the parts of trans-spliced genes: 1/2, or 1
        return [row for _, row in sorted(zip(map(int, numbers), rows, strict=True), key=lambda pair: pair[0])]
    strands = {row.strand for row in rows}
    if len(strands) > 1:
        return rows
    return sorted(rows, key=lambda row: row.start, reverse=strands == {"-"})


def _stated_open(row: Gff3Row) -> tuple[bool, bool]:
    """Whether the left and the right end lie elsewhere, as NCBI or Prodigal write it."""
    flags = row.attributes.get("partial", "")
    if flags in ("01", "10", "11"):
        return flags[0] == "1", flags[1] == "1"
    left, right = row.attributes.get("start_range", ""), row.attributes.get("end_range", "")
    return left.startswith("."), right.endswith(".")


# --- Read annotated features from GFF3, GenBank, BED or a table of positions, as the content decides

SITE_COLUMNS = ("site", "position")
_POSITION_REMEDY = "name the columns contig, site[, strand]"
_MAX_SHOWN_KINDS = 6
HEAD = 1 << 20  # bytes that decide on the format


def read_features(path: str | Path) -> list[Feature]:
    """Read the features of a file; its content decides on the format, not its name.

    Raises `InputError` if the file can't be read or has none of these formats.

    Parameters
    ----------
    path
        GFF3 (or GTF), GenBank, BED, or a TSV with the columns ``contig`` and ``site`` or ``position``
        (0-based) and, if known, ``strand``, as `seqray scan` writes it. Plain or compressed.

    Returns
    -------
    list of Feature
        ``kind`` is the type of the feature; empty for BED, ``TSS`` for a table of positions. A feature of
        several parts (exons) gives an interval for each.
    """
    with open_input(path) as handle:
        return parse_features(handle.read(), display_name(path))


def parse_features(data: bytes, name: str) -> list[Feature]:
    """`read_features` of the bytes of a file; ``name`` is that of the file, for errors.

    Takes bytes, because a pipe can't be opened again once the format is known.
    """
    known = detect_format(data[:HEAD])
    if known == GENBANK:
        return list(_parse_genbank(data, name))
    if not (line := first_line(data)):
        return []
    cells = line.split("\t")
    if {cell.lower() for cell in cells} & set(SITE_COLUMNS):
        return _parse_positions(data, name)
    lines = data_lines(io.BytesIO(data), name)
    if known == GFF or (len(cells) == 9 and cells[3].isdigit() and cells[4].isdigit()):
        return parse_gff3_features(lines)
    if known:
        raise InputError(
            f"is {known}, not an annotation",
            where=name,
            remedy="give GFF3, GenBank, BED or a table of positions",
        )
    return parse_bed(lines)


def first_line(data: bytes) -> str:
    """The first line that contains data, or an empty text."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="replace")
    return next((line.rstrip("\n") for line in text if line.strip() and not line.startswith("#")), "")


def _parse_genbank(data: bytes, name: str) -> Iterator[Feature]:
    """Features of GenBank; the kind of a ``regulatory`` one is its class (``promoter``)."""
    for record in parse_genbank(io.BytesIO(data), name, features=True):
        for feature in record.features:
            yield from _parts(feature, str(record.id))


def _parts(feature: SeqFeature, contig: str) -> Iterator[Feature]:
    if feature.location is None:
        return
    known = {name: values for name, values in feature.qualifiers.items() if values}
    pseudo = is_pseudo(feature.type, {name: values[0] for name, values in known.items()})
    kind = known.get("regulatory_class", [feature.type])[0]
    name = known.get("locus_tag", known.get("gene", [""]))[0]
    for part in feature.location.parts:  # Biopython is 0-based and half-open, too
        start, end = part.start, part.end
        if isinstance(start, int) and isinstance(end, int):  # else the position is unknown
            strand = {1: "+", -1: "-"}.get(part.strand or 0, ".")
            yield Feature(contig, int(start), int(end), name, strand, kind, pseudo)


def _parse_positions(data: bytes, name: str) -> list[Feature]:
    """Single letters of a table with the columns ``contig`` and ``site`` or ``position``, 0-based."""
    rows = parse_rows(io.BytesIO(data), name, ("contig",), _POSITION_REMEDY)
    return [_position(row, where) for where, row in rows]


def _position(row: dict[str, str], where: str) -> Feature:
    column = next((column for column in SITE_COLUMNS if column in row), None)
    if column is None:  # the header had one between quotes, within another cell
        raise InputError(f"has no column '{SITE_COLUMNS[0]}'", where=where, remedy=_POSITION_REMEDY)
    start = parse_position(row[column], where)
    strand = parse_strand(row.get("strand", "") or ".", where)
    return Feature(row["contig"], start, start + 1, row.get("id", ""), strand, "TSS")


def select_features(features: Iterable[Feature], kinds: Sequence[str], where: str | Path) -> list[Feature]:
    """Keep features of some kinds.

    Parameters
    ----------
    features
        Those without a kind (BED) are always kept.
    kinds
        To keep.
    where
        Name of the file, for the error if none is left.
    """
    features = list(features)
    kept = [feature for feature in features if not feature.kind or feature.kind in kinds]
    if not kept:
        counts = Counter(feature.kind for feature in features).most_common(_MAX_SHOWN_KINDS)
        there = ", ".join(f"{kind} ({count})" for kind, count in counts) or "no feature"
        raise InputError(
            f"contains no feature of type {', '.join(kinds)}", where=str(where), remedy=f"it has {there}"
        )
    return kept


# --- Read sites: single letters of a strand, with their class and weight, from a table, BED or GFF3

SITE_TABLE = ("contig", "position", "strand")
_FURTHER = frozenset(("site", "weight"))
_REMEDY = "name the columns contig, position (1-based), strand, site[, weight]"


@dataclass(frozen=True, slots=True)
class Site:
    """A site on a genome.

    Attributes
    ----------
    contig, position, strand
        Where it lies: 0-based on the plus strand, and ``+`` or ``-``.
    kind
        Name of its class; empty where the file names none.
    weight
        How sure it is, 0 or more; a site of weight 0 is neither a site nor background.
    where
        File and line, for errors.
    """

    contig: str
    position: int
    strand: str
    kind: str
    weight: float
    where: str


def read_sites(path: str | Path) -> list[Site]:
    """Read sites; the content decides on the format, not the name.

    Raises `InputError` for a file without a site or of another format, a column with nearly the name ``site``
    or ``weight``, a site without a strand, and numbers out of range.

    Parameters
    ----------
    path
        A table with the columns ``contig``, ``position`` (1-based), ``strand`` and, if given, ``site`` (its
        class) and ``weight``; BED or GFF3, whose sites are the first letter of each feature in reading
        direction. Plain or compressed.
    """
    name = display_name(path)
    with open_input(path) as handle:
        data = handle.read()
    header = first_line(data) if not detect_format(data[:HEAD]) else ""
    cells = {cell.strip().lower() for cell in header.replace(",", "\t").split("\t")}
    if "contig" in cells and ("position" in cells or not any(map(str.isdigit, cells))):  # no row of BED
        sites = list(_table_sites(data, name))
    else:
        sites = [_first_letter(feature, name) for feature in parse_features(data, name)]
    if not sites:
        raise InputError("contains no site", where=name, remedy="give a table of sites, BED or GFF3")
    return sites


def _first_letter(feature: Feature, name: str) -> Site:
    """Site at the first letter of a feature in reading direction."""
    where = f"{name}: {feature.name or feature.kind or 'feature'} at {feature.start + 1}"
    strand = _check_strand(feature.strand, where)
    position = feature.start if strand == "+" else feature.end - 1
    return Site(feature.contig, position, strand, feature.kind, 1.0, where)


def _table_sites(data: bytes, name: str) -> Iterator[Site]:
    for number, (where, row) in enumerate(parse_rows(io.BytesIO(data), name, SITE_TABLE, _REMEDY)):
        if number == 0:
            _refuse_misspelt(row.keys(), name)
        position = parse_position(row["position"], where)
        if position < 1:
            raise InputError("has position 0", where=where, remedy="count positions from 1")
        strand, weight = _check_strand(row["strand"], where), _weight(row.get("weight", ""), where)
        yield Site(row["contig"], position - 1, strand, row.get("site", ""), weight, where)


def _refuse_misspelt(columns: Set[str], name: str) -> None:
    """``weigth`` would make sites of those that are none; other columns may hold anything."""
    for column in columns - {*SITE_TABLE, *_FURTHER}:
        if near := difflib.get_close_matches(column.lower(), _FURTHER - columns, n=1, cutoff=0.7):
            raise InputError(
                f"the column '{column}' is unknown", where=name, remedy=f"did you mean '{near[0]}'?"
            )


def _check_strand(strand: str, where: str) -> str:
    if strand not in ("+", "-"):
        raise InputError(f"a site has the strand '{strand}'", where=where, remedy="use + or -")
    return strand


def _weight(text: str, where: str) -> float:
    weight = parse_float(text or "1")
    if not 0 <= weight < math.inf:
        raise InputError(f"has the weight '{text}'", where=where, remedy="give 0 or more")
    return weight
