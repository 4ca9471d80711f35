"""Genomes with mapped sites: the sheet that names them, and their contigs in memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from Bio.SeqRecord import SeqRecord

from seqray.core.alphabet import DNA
from seqray.core.arrays import Bools, Codes
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import SequenceRecord, unknown_contig
from seqray.core.text import nearest, parse_float
from seqray.genome.find import genes_of_records, predict_all, read_genes
from seqray.genome.genes import Annotation, Gene, check_genes
from seqray.io.features import Site, read_sites
from seqray.io.lines import read_regions
from seqray.io.sequences import read_sequences
from seqray.io.tables import read_rows

COLUMNS = ("genome", "genes", "sites", "species", "weight")
FURTHER = ("group", "inside", "held_out")
PREDICT, NONE = "predict", "none"
DEV, TEST, MASK = "dev", "test", "mask"
"""Names of regions: ``dev`` chooses the epoch and gives the figures, the others are never looked at."""
DEV_SHARE = (0.40, 0.55)  # development region where none is named, as shares of the contigs laid end to end
REGION, SPECIES = "region", "species"
"""What of a species was held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenomeRow:
    """A row of the sheet: files of a genome, of its genes and its sites, and how it is learned from."""

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
    """Read a TSV with `COLUMNS`, and if needed `FURTHER`; paths in it are relative to its folder."""
    folder = Path(path).parent
    remedy = f"name the columns {', '.join(COLUMNS)}[, {', '.join(FURTHER)}]"
    rows: dict[tuple[str, str], GenomeRow] = {}
    for where, cells in read_rows(path, COLUMNS, remedy):
        if unknown := cells.keys() - {*COLUMNS, *FURTHER}:  # 'heldout' would let a test region be learned
            raise InputError(f"the column '{min(unknown)}' is unknown", where=str(path), remedy=remedy)
        if empty := [name for name in ("genome", "sites", "species") if not cells[name]]:
            raise InputError(f"has no '{empty[0]}'", where=where)
        numbers = {}
        for name in ("weight", "inside"):
            text = cells.get(name, "") or "1"
            numbers[name] = parse_float(text)
            if not 0 <= numbers[name] < math.inf:
                raise InputError(f"has '{text}' as its {name}", where=where, remedy="give 0 or more")
        genes, held_out = cells["genes"], cells.get("held_out", "")
        row = GenomeRow(
            genome=str(folder / cells["genome"]),
            sites=str(folder / cells["sites"]),
            genes=genes if genes in ("", PREDICT, NONE) else str(folder / genes),
            species=cells["species"],
            group=cells.get("group", ""),
            held_out=str(folder / held_out) if held_out else "",
            where=where,
            **numbers,
        )
        earlier = rows.setdefault((row.genome, row.species), row)
        if earlier is not row:  # what one file of sites lacks would be background for the other
            what = f"names the genome and the species of {earlier.where.rpartition(': ')[2]}"
            remedy = "join their sites in one file, and set 'weight' to draw it more often"
            raise InputError(what, where=where, remedy=remedy)
    if not rows:
        raise InputError("names no genome", where=str(path))
    return [*rows.values()]


# --- Genomes in memory: their contigs with sites, genes and what is held out


@dataclass(frozen=True, eq=False)
class LabeledContig:
    """A contig with its sites on both strands, and the regions that are held out.

    A site is its position on the plus strand, strand, class and weight; a region start, end and name.
    """

    name: str
    codes: Codes
    circular: bool
    sites: list[tuple[int, str, int, float]] = field(default_factory=list)
    regions: list[tuple[int, int, str]] = field(default_factory=list)

    def covered(self, *names: str) -> Bools:
        """Positions in regions of these names."""
        marks = np.zeros(len(self.codes), dtype=bool)
        for start, end, name in self.regions:
            if name in names:
                marks[start:end] = True
        return marks

    @property
    def development(self) -> list[tuple[int, int]]:
        """Start and end of the development regions."""
        return [(start, end) for start, end, name in self.regions if name == DEV]

    @property
    def one_strand(self) -> str:
        """The strand that carries all sites of nonzero weight, or neither (empty) where both do, or none."""
        strands = {strand for _, strand, _, weight in self.sites if weight > 0}
        return strands.pop() if len(strands) == 1 else ""


@dataclass(frozen=True, eq=False)
class LabeledGenome:
    """A row of the sheet, read; ``notes`` say what of its files was left out, ``genes`` None if unknown."""

    row: GenomeRow
    contigs: list[LabeledContig]
    genes: Annotation | None
    repeated: int = 0
    notes: tuple[str, ...] = ()

    def genes_of(self, contig: LabeledContig) -> tuple[Gene, ...] | None:
        """The genes of a contig; None where they are not known, or the annotation does not name it."""
        return None if self.genes is None else self.genes.genes.get(contig.name)


def data_sha256(genomes: Sequence[LabeledGenome], held_out: Sequence[str]) -> str:
    """Hash of what is learned from, and of the names that are left out."""
    digest = hashlib.sha256("\t".join(sorted(held_out)).encode())
    for genome in genomes:
        for contig in genome.contigs:
            digest.update(contig.name.encode() + contig.codes.tobytes())
            genes = genome.genes_of(contig)
            shown = "unknown" if genes is None else repr(genes)
            digest.update(f"{contig.circular}{contig.sites}{contig.regions}{shown}".encode())
        row = genome.row
        digest.update(f"{row.species}\t{row.weight}\t{row.inside}".encode())
    return digest.hexdigest()


def read_genomes(
    rows: Sequence[GenomeRow],
    classes: Sequence[str],
    *,
    rename: Mapping[str, str],
    site_class: str | None = None,
    whole: int,
    threads: int = 1,
) -> list[LabeledGenome]:
    """Read all genomes of a sheet, ``threads`` at a time; ``rename`` maps other names of sites to classes.

    Regions are held out of contigs of ``whole`` letters and more alone.
    """
    class_of = _class_index(classes, rename, site_class)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda row: _read(row, class_of, whole), rows))


def _class_index(
    classes: Sequence[str], rename: Mapping[str, str], site_class: str | None
) -> Callable[[Site], int]:
    """From a site to the index of its class."""
    if site_class is not None and site_class not in classes:
        near = nearest(site_class, classes) or classes[0]
        raise ConfigError(
            f"--site-class is '{site_class}', which is none of {', '.join(classes)}",
            remedy=f"give {near}, or name all classes in 'genomes.classes'",
        )

    def index(site: Site) -> int:
        name = rename.get(site.kind, site.kind)
        if not name and site_class is None and len(classes) > 1:
            raise InputError(
                f"a site names none of the classes {', '.join(classes)}",
                where=site.where,
                remedy="fill the column 'site' of the table, or give --site-class NAME",
            )
        name = name or site_class or classes[0]
        if name in classes:
            return classes.index(name)
        renamed = f"{{{site.kind}: {nearest(name, classes) or classes[0]}}}"
        raise InputError(
            f"the class '{name}' is none of {', '.join(classes)}",
            where=site.where,
            remedy=f"name all classes in 'genomes.classes', or give --set \"genomes.rename={renamed}\"",
        )

    return index


def _read(row: GenomeRow, class_of: Callable[[Site], int], whole: int) -> LabeledGenome:
    parsed: list[SeqRecord] = []  # of a GenBank file whose genes are wanted
    records = list(read_sequences(row.genome, DNA, on_genbank=None if row.genes else parsed.append))
    genes = _read_genes(row, records, parsed)
    circular = genes.circular if genes else ()
    contigs = {
        one.id: LabeledContig(one.id, DNA.encode(one.sequence), one.circular or one.id in circular)
        for one in records
    }
    notes = list(genes.notes if genes else ())
    repeated = _place_sites(read_sites(row.sites, notes.append), contigs, class_of)
    if row.held_out:
        _read_regions(row.held_out, contigs)
    else:
        long = [contig for contig in contigs.values() if len(contig.codes) >= whole]  # laid end to end
        low, high = (int(share * sum(len(contig.codes) for contig in long)) for share in DEV_SHARE)
        for contig in long:
            start, end = max(low, 0), min(high, len(contig.codes))
            if start < end:
                contig.regions.append((start, end, DEV))
            low, high = low - len(contig.codes), high - len(contig.codes)
    return LabeledGenome(row, list(contigs.values()), genes, repeated, tuple(notes))


def _read_genes(
    row: GenomeRow, records: Sequence[SequenceRecord], parsed: Sequence[SeqRecord]
) -> Annotation | None:
    if row.genes == NONE:
        return None
    circles = {record.id: len(record.sequence) for record in records if record.circular}
    if parsed or row.genes not in ("", PREDICT):
        genes = genes_of_records(parsed, row.genome, circles) if parsed else read_genes(row.genes, circles)
        if genes.count or not parsed:
            return check_genes(genes, ((record.id, DNA.encode(record.sequence)) for record in records))
    return predict_all(records)


def _place_sites(
    sites: Sequence[Site], contigs: Mapping[str, LabeledContig], class_of: Callable[[Site], int]
) -> int:
    """Give each contig its sites, once, with the largest weight; return how many rows repeated another."""
    places: dict[tuple[str, int, str, int], float] = {}
    for site in sites:
        contig = _contig(contigs, site.contig, site.where)
        if site.position >= len(contig.codes):
            raise InputError(
                f"position {site.position + 1} lies beyond the end of '{site.contig}', which has "
                f"{len(contig.codes)} bases",
                where=site.where,
                remedy="are the sites those of another assembly?",
            )
        place = (site.contig, site.position, site.strand, class_of(site))
        places[place] = max(site.weight, places.get(place, 0.0))
    for (name, position, strand, kind), weight in places.items():
        contigs[name].sites.append((position, strand, kind, weight))
    return len(sites) - len(places)


def _contig(contigs: Mapping[str, LabeledContig], name: str, where: str) -> LabeledContig:
    if name not in contigs:
        raise unknown_contig("names the contig", name, contigs, where)
    return contigs[name]


def _read_regions(path: str, contigs: Mapping[str, LabeledContig]) -> None:
    for region in read_regions(path):
        contig = _contig(contigs, region.contig, path)
        if region.name not in (DEV, TEST, MASK):
            what = f"has a region named '{region.name}'"
            raise InputError(what, where=path, remedy=f"name it {DEV}, {TEST} or {MASK}")
        if region.end > len(contig.codes):
            what = f"the region {region.start}-{region.end} lies beyond the end of '{region.contig}'"
            raise InputError(what, where=path)
        for start, end, name in contig.regions:
            if {name, region.name} == {DEV, TEST} and start < region.end and region.start < end:
                raise InputError(
                    f"the region {region.start}-{region.end} ({region.name}) of '{region.contig}' overlaps "
                    f"{start}-{end} ({name})",
                    where=path,
                    remedy="give each base one name",
                )
        contig.regions.append((region.start, region.end, region.name))
