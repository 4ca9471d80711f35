"""Read annotated features from GFF3, GenBank, BED or a table of positions, as the content decides."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from Bio import BiopythonParserWarning, SeqIO
from Bio.SeqFeature import SeqFeature

from seqray.core import InputError
from seqray.io.files import display_name, open_input
from seqray.io.sequences import GENBANK, GFF, detect_format
from seqray.io.tables import read_rows
from seqray.io.tracks.bed import read_bed
from seqray.io.tracks.gff3 import read_gff3_features
from seqray.io.tracks.lines import Feature, parse_position, parse_strand

SITE_COLUMNS = ("site", "position")
_POSITION_REMEDY = "name the columns contig, site[, strand]"
_SHOWN = 6


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
        known = detect_format(handle.peek(1))
        if known == GENBANK:
            return list(read_genbank_features(path))
        if not (line := first_line(handle)):
            return []
    cells = line.split("\t")
    if {cell.lower() for cell in cells} & set(SITE_COLUMNS):
        return read_positions(path)
    if known == GFF or (len(cells) == 9 and cells[3].isdigit() and cells[4].isdigit()):
        return read_gff3_features(path)
    if known:
        raise InputError(
            f"is {known}, not an annotation",
            where=str(path),
            remedy="give GFF3, GenBank, BED or a table of positions",
        )
    return read_bed(path)


def first_line(handle: BinaryIO) -> str:
    """The first line that contains data, or an empty text."""
    text = io.TextIOWrapper(handle, encoding="utf-8-sig", errors="replace")
    return next((line.rstrip("\n") for line in text if line.strip() and not line.startswith("#")), "")


def read_genbank_features(path: str | Path) -> Iterator[Feature]:
    """Read the features of a GenBank file; the kind of a ``regulatory`` one is its class (``promoter``)."""
    with open_input(path) as handle, warnings.catch_warnings():
        warnings.simplefilter("ignore", BiopythonParserWarning)
        text = io.TextIOWrapper(handle, encoding="utf-8", errors="replace")
        try:
            for record in SeqIO.parse(text, "genbank"):
                for feature in record.features:
                    yield from _parts(feature, str(record.id))
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"can't be parsed ({reason})", where=display_name(path)) from None


def _parts(feature: SeqFeature, contig: str) -> Iterator[Feature]:
    if feature.location is None:
        return
    known = feature.qualifiers
    kind = known.get("regulatory_class", [feature.type])[0]
    name = known.get("locus_tag", known.get("gene", [""]))[0]
    for part in feature.location.parts:  # Biopython is 0-based and half-open, too
        start, end = part.start, part.end
        if isinstance(start, int) and isinstance(end, int):  # else the position is unknown
            strand = {1: "+", -1: "-"}.get(part.strand or 0, ".")
            yield Feature(contig, int(start), int(end), name, strand, kind)


def read_positions(path: str | Path) -> list[Feature]:
    """Read single letters from a TSV with the columns ``contig`` and ``site`` or ``position``, 0-based.

    Raises `InputError` with the line for a missing column, a row of another width or a position that is no
    number.
    """
    return [_position(row, where) for where, row in read_rows(path, ("contig",), _POSITION_REMEDY)]


def _position(row: dict[str, str], where: str) -> Feature:
    start = parse_position(next(row[column] for column in SITE_COLUMNS if column in row), where)
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
        counts = Counter(feature.kind for feature in features).most_common(_SHOWN)
        there = ", ".join(f"{kind} ({count})" for kind, count in counts) or "no feature"
        raise InputError(
            f"contains no feature of type {', '.join(kinds)}", where=str(where), remedy=f"it has {there}"
        )
    return kept
