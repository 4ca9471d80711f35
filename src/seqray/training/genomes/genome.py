"""Genomes in memory: their contigs as two strands each, with sites, genes and what is held out."""

from __future__ import annotations

import difflib
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from seqray.annotation import Annotation, Gene, check_genes, predict_all, read_genes
from seqray.core import DNA, Bools, Codes, ConfigError, InputError, SequenceRecord
from seqray.io.sequences import is_genbank, read_sequences
from seqray.io.tracks import Site, read_bed, read_sites
from seqray.training.genomes.sheet import NONE, PREDICT, GenomeRow

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
