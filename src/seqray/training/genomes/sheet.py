"""The sheet of genomes: one row each, with its files, its species and how much it counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seqray.core import InputError, parse_float
from seqray.io.tables import read_rows

COLUMNS = ("genome", "genes", "sites", "species", "weight")
FURTHER = ("group", "inside", "held_out")
PREDICT, NONE = "predict", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenomeRow:
    """A genome to learn from.

    Attributes
    ----------
    genome, sites
        Files of its letters (FASTA, GenBank) and of its mapped sites.
    genes
        File of its genes, ``predict`` or ``none``. Empty: those of a GenBank genome, and predicted ones of
        another.
    species, group
        Names under which it can be held out; the group, such as the genus, may be empty.
    weight
        How often its letters are drawn, relative to those of other genomes; 0 is never.
    inside
        Weight of positions inside genes without a mapped site; 0.1 where sites there were not mapped.
    held_out
        BED of regions that are not learned from; empty for none. Those named ``dev`` choose the epoch, and
        the figures of the card are measured on them. Those named ``test`` or ``mask`` are never looked at.
    where
        File and line, for errors.
    """

    genome: str
    sites: str
    genes: str = ""
    species: str
    group: str = ""
    weight: float = 1.0
    inside: float = 1.0
    held_out: str = ""
    where: str = ""


def read_sheet(path: str | Path) -> list[GenomeRow]:
    """Read a sheet; paths in it are relative to its folder.

    Raises `InputError` for a column that is missing or unknown, an empty cell that is needed, a number out of
    range, and a genome that is named twice with the same species.

    Parameters
    ----------
    path
        TSV with the columns ``genome``, ``genes`` (may be empty), ``sites``, ``species``, ``weight``, and
        if needed ``group``, ``inside`` and ``held_out``.
    """
    folder = Path(path).parent
    remedy = f"name the columns {', '.join(COLUMNS)}[, {', '.join(FURTHER)}]"
    rows: dict[tuple[str, str], GenomeRow] = {}
    for where, cells in read_rows(path, COLUMNS, remedy):
        if unknown := cells.keys() - {*COLUMNS, *FURTHER}:  # 'heldout' would let a test region be learned
            raise InputError(f"the column '{min(unknown)}' is unknown", where=str(path), remedy=remedy)
        row = _row(cells, folder, where)
        earlier = rows.setdefault((row.genome, row.species), row)
        if earlier is not row:  # what one file of sites lacks would be background for the other
            what = f"names the genome and the species of {earlier.where.rpartition(': ')[2]}"
            remedy = "join their sites in one file, and set 'weight' to draw it more often"
            raise InputError(what, where=where, remedy=remedy)
    if not rows:
        raise InputError("names no genome", where=str(path))
    return [*rows.values()]


def _row(cells: Mapping[str, str], folder: Path, where: str) -> GenomeRow:
    for name in ("genome", "sites", "species"):
        if not cells[name]:
            raise InputError(f"has no '{name}'", where=where)
    genes, held_out = cells["genes"], cells.get("held_out", "")
    return GenomeRow(
        genome=str(folder / cells["genome"]),
        sites=str(folder / cells["sites"]),
        genes=genes if genes in ("", PREDICT, NONE) else str(folder / genes),
        species=cells["species"],
        group=cells.get("group", ""),
        weight=_number(cells, "weight", where),
        inside=_number(cells, "inside", where),
        held_out=str(folder / held_out) if held_out else "",
        where=where,
    )


def _number(cells: Mapping[str, str], name: str, where: str) -> float:
    text = cells.get(name, "") or "1"
    value = parse_float(text)
    if not 0 <= value < math.inf:
        raise InputError(f"has '{text}' as its {name}", where=where, remedy="give 0 or more")
    return value
