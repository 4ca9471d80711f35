"""Read annotated features from GFF3, GenBank, BED or a table of positions, as the content decides."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from Bio.SeqFeature import SeqFeature

from seqray.core import InputError
from seqray.io.files import open_input
from seqray.io.pipes import display_name
from seqray.io.sequences import GENBANK, GFF, detect_format, parse_genbank
from seqray.io.tables import parse_rows
from seqray.io.tracks.bed import parse_bed
from seqray.io.tracks.gff3 import parse_gff3_features
from seqray.io.tracks.lines import Feature, data_lines, is_pseudo, parse_position, parse_strand

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
