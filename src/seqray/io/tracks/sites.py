"""Read sites: single letters of a strand, with their class and weight, from a table, BED or GFF3."""

from __future__ import annotations

import difflib
import io
import math
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from seqray.core import InputError, parse_float
from seqray.io.files import open_input
from seqray.io.pipes import display_name
from seqray.io.sequences import detect_format
from seqray.io.tables import parse_rows
from seqray.io.tracks.features import HEAD, first_line, parse_features
from seqray.io.tracks.lines import Feature, parse_position

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
