"""Read annotated features from GFF3, GenBank, BED or a table of positions, whichever the file holds."""

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
from seqray.io.sequences import GENBANK, GFF, name_format
from seqray.io.tracks.calls import Interval, read_bed, read_gff3_features

SITE_COLUMNS = ("site", "position")
_SHOWN = 6


def read_features(path: str | Path) -> list[Interval]:
    """Read the features of a file; its content decides on the format, not its name.

    Parameters
    ----------
    path
        GFF3 (or GTF), GenBank, BED, or a TSV whose header names ``contig`` and ``site`` or ``position``
        (0-based) and, if known, ``strand``, as `seqray scan` writes it. Plain or compressed.

    Returns
    -------
    list of Interval
        0-based and half-open on the plus strand. ``kind`` is the type of the feature; empty for BED, ``TSS``
        for a table of positions. A feature of several parts (exons) gives an interval for each.

    Raises
    ------
    InputError
        Where the file can't be read or is none of these.
    """
    with open_input(path) as handle:
        known = name_format(handle.peek(1))
        if known == GENBANK:
            return list(read_genbank_features(path))
        if not (line := _first_line(handle)):
            return []
    cells = line.split("\t")
    if {cell.lower() for cell in cells} & set(SITE_COLUMNS):
        return read_positions(path)
    if known == GFF or (len(cells) == 9 and cells[3].isdigit() and cells[4].isdigit()):
        return read_gff3_features(path)
    if known:
        raise InputError(
            f"is {known}, no annotation",
            where=str(path),
            remedy="give GFF3, GenBank, BED or a table of positions",
        )
    return read_bed(path)


def _first_line(handle: BinaryIO) -> str:
    """The first line that holds data, or an empty text."""
    text = io.TextIOWrapper(handle, encoding="utf-8-sig", errors="replace")
    return next((line.rstrip("\n") for line in text if line.strip() and not line.startswith("#")), "")


def read_genbank_features(path: str | Path) -> Iterator[Interval]:
    """Read the features of a GenBank file; a ``regulatory`` one is of the kind of its class (``promoter``).

    Raises
    ------
    InputError
        Where a record can't be parsed.
    """
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


def _parts(feature: SeqFeature, contig: str) -> Iterator[Interval]:
    if feature.location is None:
        return
    known = feature.qualifiers
    kind = known.get("regulatory_class", [feature.type])[0]
    name = known.get("locus_tag", known.get("gene", [""]))[0]
    for part in feature.location.parts:  # Biopython counts as we do: from 0, half-open
        start, end = part.start, part.end
        if isinstance(start, int) and isinstance(end, int):  # else the position is unknown
            strand = {1: "+", -1: "-"}.get(part.strand or 0, ".")
            yield Interval(contig, int(start), int(end), name, strand, kind)


def read_positions(path: str | Path) -> list[Interval]:
    """Read single letters from a TSV with the columns ``contig`` and ``site`` or ``position``, 0-based.

    Raises
    ------
    InputError
        Naming file and line, for a missing column, a row of another width or a position that is no number.
    """
    found: list[Interval] = []
    header: list[str] = []
    with open_input(path) as handle:
        for number, raw in enumerate(io.TextIOWrapper(handle, encoding="utf-8-sig"), start=1):
            where, line = f"{path}: line {number}", raw.rstrip("\r\n")
            if not line.strip() or line.startswith("#"):
                continue
            cells = line.split("\t")
            if not header:
                header = _position_header(cells, where)
                continue
            if len(cells) != len(header):
                raise InputError(f"has {len(cells)} cells, the header has {len(header)}", where=where)
            found.append(_position(dict(zip(header, cells, strict=True)), where))
    return found


def _position_header(cells: Sequence[str], where: str) -> list[str]:
    columns = [cell.strip().lower() for cell in cells]
    if "contig" not in columns or not set(columns) & set(SITE_COLUMNS):
        raise InputError(
            "needs the columns 'contig' and 'site'", where=where, remedy="name them contig, site[, strand]"
        )
    return columns


def _position(row: dict[str, str], where: str) -> Interval:
    text = next(row[column] for column in SITE_COLUMNS if column in row)
    strand = row.get("strand", "") or "."
    if not text.isascii() or not text.isdigit():
        raise InputError(f"has '{text}' where a position belongs", where=where)
    if strand not in ("+", "-", "."):
        raise InputError(f"has the strand '{strand}'", where=where, remedy="use +, - or .")
    return Interval(row["contig"], int(text), int(text) + 1, row.get("id", ""), strand, "TSS")


def select_features(features: Iterable[Interval], kinds: Sequence[str], where: str | Path) -> list[Interval]:
    """Keep features of some kinds; those without a kind (BED) always stay.

    Raises
    ------
    InputError
        Where none is left, naming the kinds that there are.
    """
    features = list(features)
    kept = [feature for feature in features if not feature.kind or feature.kind in kinds]
    if not kept:
        counts = Counter(feature.kind for feature in features).most_common(_SHOWN)
        there = ", ".join(f"{kind} ({count})" for kind, count in counts) or "no feature"
        raise InputError(
            f"holds no feature of type {', '.join(kinds)}", where=str(where), remedy=f"it has {there}"
        )
    return kept
