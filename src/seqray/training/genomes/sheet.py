"""Genomes of a training, from their sheet."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seqray.core.alphabet import DNA
from seqray.core.arrays import Bools, Codes
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import SequenceRecord
from seqray.core.text import parse_float
from seqray.genome.genes import Annotation, Gene, check_genes
from seqray.genome.predict import predict_all
from seqray.genome.read import read_genes
from seqray.io.bed import read_bed
from seqray.io.features import Site, read_sites
from seqray.io.sequences import is_genbank, read_sequences
from seqray.io.tables import read_rows

# --- The sheet of genomes: one row each, with its files, its species and how much it counts

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


# --- Genomes in memory: their contigs as two strands each, with sites, genes and what is held out

DEV, TEST, MASK = "dev", "test", "mask"
DEV_SHARE = (0.40, 0.55)
"""Development region where none is named, as shares of the contigs laid end to end."""

HeldOutRegion = tuple[int, int, str]
"""Start, end and name on a contig."""
SiteRow = tuple[int, str, int, float]
"""Position on the plus strand, strand, class and weight."""


@dataclass(frozen=True, eq=False)
class LabeledContig:
    """A contig with its sites on both strands, and the regions that are held out, with the name of each."""

    name: str
    codes: Codes
    circular: bool
    sites: list[SiteRow] = field(default_factory=list)
    regions: list[HeldOutRegion] = field(default_factory=list)

    def covered(self, *names: str) -> Bools:
        """Positions in regions of these names."""
        marks = np.zeros(len(self.codes), dtype=bool)
        for start, end, name in self.regions:
            if name in names:
                marks[start:end] = True
        return marks

    @property
    def one_strand(self) -> str:
        """The strand that carries all sites of nonzero weight, or neither (empty) where both do, or none."""
        strands = {strand for _, strand, _, weight in self.sites if weight > 0}
        return strands.pop() if len(strands) == 1 else ""


@dataclass(frozen=True, eq=False)
class LabeledGenome:
    """A row of the sheet, read.

    ``genes`` is None where they are not known; ``repeated`` counts rows of sites that repeat another one, and
    were merged with it.
    """

    row: GenomeRow
    contigs: list[LabeledContig]
    genes: Annotation | None
    repeated: int = 0

    def genes_of(self, contig: LabeledContig) -> tuple[Gene, ...] | None:
        """The genes of a contig; None where they are not known, or the annotation does not name it."""
        return None if self.genes is None else self.genes.genes.get(contig.name)

    def update(self, digest: hashlib._Hash) -> None:
        """Add all that training depends on to a hash."""
        for contig in self.contigs:
            digest.update(contig.name.encode() + contig.codes.tobytes())
            known = self.genes_of(contig)
            genes = "unknown" if known is None else repr(known)
            digest.update(f"{contig.circular}{contig.sites}{contig.regions}{genes}".encode())
        digest.update(f"{self.row.species}\t{self.row.weight}\t{self.row.inside}".encode())


def data_sha256(genomes: Sequence[LabeledGenome], held_out: Sequence[str]) -> str:
    """Hash of what is learned from, and of the names that are left out."""
    digest = hashlib.sha256("\t".join(sorted(held_out)).encode())
    for genome in genomes:
        genome.update(digest)
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
    """Read all genomes of a sheet.

    Parameters
    ----------
    rename
        Other names of sites, and the class of each.
    site_class
        Class of sites whose file names none. None: the only class; of several, every site has to name one.
    whole
        Letters of the shortest contig that is read on its own. Regions are held out of such alone.
    threads
        Genomes read at a time.

    Raises
    ------
    InputError
        For files that don't fit each other, and a site of an unknown class or of none.
    ConfigError
        For a ``site_class`` that is none of the classes.
    """
    names = _Names(classes, rename, site_class)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda row: _read(row, names, whole), rows))


@dataclass(frozen=True)
class _Names:
    """From the name of a site to the index of its class."""

    classes: Sequence[str]
    rename: Mapping[str, str]
    given: str | None

    def __post_init__(self) -> None:
        if self.given is not None and self.given not in self.classes:
            raise ConfigError(
                f"--site-class is '{self.given}', which is none of {', '.join(self.classes)}",
                remedy=f"give {self._nearest(self.given)}, or name all classes in 'genomes.classes'",
            )

    def index(self, site: Site) -> int:
        name = self.rename.get(site.kind, site.kind) or self._unnamed(site)
        if name in self.classes:
            return self.classes.index(name)
        renamed = f"{{{site.kind}: {self._nearest(name)}}}"
        raise InputError(
            f"the class '{name}' is none of {', '.join(self.classes)}",
            where=site.where,
            remedy=f"name all classes in 'genomes.classes', or give --set \"genomes.rename={renamed}\"",
        )

    def _unnamed(self, site: Site) -> str:
        """Class of a site whose file names none."""
        if self.given is None and len(self.classes) > 1:
            raise InputError(
                f"a site names none of the classes {', '.join(self.classes)}",
                where=site.where,
                remedy="fill the column 'site' of the table, or give --site-class NAME",
            )
        return self.given or self.classes[0]

    def _nearest(self, name: str) -> str:
        return (difflib.get_close_matches(name, self.classes, n=1) or self.classes)[0]


def _read(row: GenomeRow, names: _Names, whole: int) -> LabeledGenome:
    records = list(read_sequences(row.genome, DNA))
    genes = _genes(row, records)
    circular = genes.circular if genes else ()
    contigs = {
        record.id: LabeledContig(
            record.id, DNA.encode(record.sequence), record.circular or record.id in circular
        )
        for record in records
    }
    repeated = _place_sites(read_sites(row.sites), contigs, names)
    if row.held_out:
        _read_regions(row.held_out, contigs)
    else:
        _choose_regions([contig for contig in contigs.values() if len(contig.codes) >= whole])
    return LabeledGenome(row, list(contigs.values()), genes, repeated)


def _place_sites(sites: Sequence[Site], contigs: Mapping[str, LabeledContig], names: _Names) -> int:
    """Give each contig its sites, each of them once; return how many rows repeated another one.

    Tables of transcription starts name a start once for each gene or condition. Counted so often, it would
    weigh more than others, and a call could find only one of its rows. The largest weight holds.
    """
    places: dict[tuple[str, int, str, int], float] = {}
    for site in sites:
        contig = _contig(contigs, site.contig, site.where)
        if site.position >= len(contig.codes):
            raise InputError(
                f"position {site.position + 1} lies beyond the end of '{site.contig}', which has "
                f"{len(contig.codes)} letters",
                where=site.where,
                remedy="are the sites those of another assembly?",
            )
        place = (site.contig, site.position, site.strand, names.index(site))
        places[place] = max(site.weight, places.get(place, 0.0))
    for (name, position, strand, kind), weight in places.items():
        contigs[name].sites.append((position, strand, kind, weight))
    return len(sites) - len(places)


def _genes(row: GenomeRow, records: Sequence[SequenceRecord]) -> Annotation | None:
    circles = {record.id: len(record.sequence) for record in records if record.circular}
    if row.genes == NONE:
        return None
    own = not row.genes and is_genbank(row.genome)
    if own or row.genes not in ("", PREDICT):
        genes = read_genes(row.genes or row.genome, circles)
        if genes.count or not own:
            check_genes(genes, ((record.id, DNA.encode(record.sequence)) for record in records))
            return genes
    return predict_all(records)


def _contig(contigs: Mapping[str, LabeledContig], name: str, where: str) -> LabeledContig:
    if name not in contigs:
        known = ", ".join(list(contigs)[:3])
        raise InputError(f"unknown contig '{name}'", where=where, remedy=f"the genome has {known}")
    return contigs[name]


def _read_regions(path: str, contigs: Mapping[str, LabeledContig]) -> None:
    for region in read_bed(path):
        contig = _contig(contigs, region.contig, path)
        if region.name not in (DEV, TEST, MASK):
            what = f"has a region named '{region.name}'"
            raise InputError(what, where=path, remedy=f"name it {DEV}, {TEST} or {MASK}")
        if region.end > len(contig.codes):
            what = f"the region {region.start}-{region.end} lies beyond the end of '{region.contig}'"
            raise InputError(what, where=path)
        for start, end, name in contig.regions:
            if {name, region.name} == {DEV, TEST} and start < region.end and region.start < end:
                what = (
                    f"the region {region.start}-{region.end} ({region.name}) of '{region.contig}' overlaps "
                )
                what += f"{start}-{end} ({name})"
                raise InputError(what, where=path, remedy="give each letter one name")
        contig.regions.append((region.start, region.end, region.name))


def _choose_regions(contigs: Sequence[LabeledContig]) -> None:
    """Hold out 40 to 55 % of the contigs laid end to end."""
    lengths = defaultdict(int, {contig.name: len(contig.codes) for contig in contigs})
    low, high = (int(share * sum(lengths.values())) for share in DEV_SHARE)
    offset = 0
    for contig in contigs:
        start, end = max(low - offset, 0), min(high - offset, lengths[contig.name])
        if start < end:
            contig.regions.append((start, end, DEV))
        offset += lengths[contig.name]
