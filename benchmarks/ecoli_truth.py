"""Truth for the scan benchmark: transcription starts and published predictions on NC_000913.3.

RegulonDB's PromoterSet and EcoCyc are on NC_000913.3 already. The dRNA-seq, pyrosequencing and RACE tables
and the published predictions are on NC_000913.2 and are lifted by their genes (``coordinates.py``). Where a
table prints the letters around a start, they have to stand at the lifted place, on the right strand.
``lift_report.py`` prints the proof.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ecoli_tables as tables
from coordinates import GenePair, OffsetMap
from ecoli_tables import Gene, GeneRef, Site

COMPLEMENT = str.maketrans("ACGT", "TGCA")
MAX_START_DISTANCE = 5
"""Starts of one strand at most this far apart (single linkage) are one start seen by several sources."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A site on NC_000913.3: 0-based ``position`` of the transcription start, and the row that it was."""

    position: int
    strand: str
    site: Site


@dataclass(frozen=True, slots=True)
class TablePlacement:
    """How one table was brought to NC_000913.3; ``dropped`` are sites that couldn't be placed."""

    placed: tuple[Placed, ...]
    dropped: tuple[Site, ...]
    checked: int
    confirmed: int


class GeneIndex:
    """Genes by locus tag, and by name or synonym where that means one gene only."""

    def __init__(self, genes: Iterable[Gene]) -> None:
        self._by_tag: dict[str, Gene] = {}
        self._by_name: dict[str, set[Gene]] = defaultdict(set)
        for gene in genes:
            self._by_tag.setdefault(gene.locus_tag, gene)
            for name in (gene.name, *gene.synonyms):
                self._by_name[name].add(gene)

    def find(self, ref: GeneRef) -> Gene | None:
        """Return the annotated gene that ``ref`` names, or None."""
        if ref.locus_tag in self._by_tag:
            return self._by_tag[ref.locus_tag]
        found = self._by_name.get(ref.name, set())
        return next(iter(found)) if len(found) == 1 else None


def gene_pairs(sites: Iterable[Site], index: GeneIndex) -> list[GenePair]:
    """Return each gene that the sites name and the annotation knows, old and new."""
    pairs = set()
    for ref in {site.gene for site in sites if site.gene is not None}:
        gene = index.find(ref)
        if gene is not None:
            pairs.add(GenePair((ref.start, ref.end), (gene.start, gene.end), gene.locus_tag))
    return sorted(pairs)


def letters_at(genome: str, position: int, strand: str, before: int, after: int) -> str:
    """Return the letters from ``before`` upstream of a 1-based position to ``after`` downstream of it."""
    if strand == "+":
        return genome[position - 1 - before : position + after]
    return genome[position - 1 - after : position + before].translate(COMPLEMENT)[::-1]


def stands_at(genome: str, position: int, site: Site) -> bool:
    """Say whether the letters that the table prints for a site stand at a 1-based position."""
    after = len(site.sequence) - site.tss_index - 1
    return letters_at(genome, position, site.strand, site.tss_index, after) == site.sequence


def place(sites: Sequence[Site], genome: str, offsets: OffsetMap | None) -> TablePlacement:
    """Bring a table to NC_000913.3.

    A site with printed letters is kept only at the one candidate position where they stand; a site without
    is kept where the map gives one candidate.
    """
    placed, dropped, confirmed = [], [], 0
    for site in sites:
        found = offsets.candidates(site.position) if offsets else (site.position,)
        if site.sequence:
            found = tuple(position for position in found if stands_at(genome, position, site))
            confirmed += len(found) == 1
        if len(found) == 1:
            placed.append(Placed(found[0] - 1, site.strand, site))
        else:
            dropped.append(site)
    checked = sum(1 for site in sites if site.sequence)
    return TablePlacement(tuple(placed), tuple(dropped), checked, confirmed)


@dataclass(frozen=True, slots=True)
class Truth:
    """All tables on NC_000913.3, by name, and the map that lifted the old ones."""

    genome: str
    genes: tuple[Gene, ...]
    offsets: OffsetMap
    lifted: Mapping[str, TablePlacement]
    pairs: Mapping[str, Sequence[GenePair]]
    unknown_genes: Mapping[str, int]

    def strong(self) -> list[Placed]:
        """Promoters of RegulonDB with confidence Strong or Confirmed."""
        return [row for row in self.lifted["RegulonDB"].placed if row.site.confidence in ("S", "C")]

    def supported(self) -> list[Placed]:
        """Starts with any evidence: all of RegulonDB and EcoCyc, and the dRNA-seq table."""
        return [row for name in ("RegulonDB", "EcoCyc", "dRNA-seq") for row in self.lifted[name].placed]

    def experimental(self) -> list[Placed]:
        """Starts with an experiment behind them.

        Most of RegulonDB's weak promoters rest on computation alone, and most of those are the published
        predictions themselves (``results/ecoli_lift.tsv`` counts them): leaving them out keeps a comparison
        with those predictions from being circular.
        """
        regulondb = [row for row in self.lifted["RegulonDB"].placed if row.site.experimental]
        return regulondb + list(self.lifted["dRNA-seq"].placed)

    def predictions(self) -> list[Placed]:
        """The published predictions."""
        return list(self.lifted["predictions"].placed)


OLD: dict[str, tuple[str, Callable[[Path], list[Site]]]] = {
    "dRNA-seq": (tables.DRNASEQ, tables.read_drnaseq),
    "pyrosequencing": (tables.PYROSEQUENCING, tables.read_mapped),
    "RACE": (tables.RACE, tables.read_mapped),
    "predictions": (tables.PREDICTIONS, tables.read_predictions),
}
CURRENT: dict[str, tuple[str, Callable[[Path], list[Site]]]] = {
    "RegulonDB": (tables.REGULONDB, tables.read_regulondb),
    "EcoCyc": (tables.ECOCYC, tables.read_ecocyc),
}


def load_truth(data: Path) -> Truth:
    """Read every table under ``data`` (the folder that ``SEQRAY_DATA`` names) and place it."""
    genome = tables.read_genome(data / tables.GENOME)
    genes = tables.read_genes(data / tables.GENES)
    index = GeneIndex(genes)
    old = {name: read(data / path) for name, (path, read) in OLD.items()}
    pairs = {name: gene_pairs(sites, index) for name, sites in old.items()}
    offsets = OffsetMap(pair for found in pairs.values() for pair in found)
    lifted = {name: place(sites, genome, offsets) for name, sites in old.items()}
    for name, (path, read) in CURRENT.items():
        lifted[name] = place(read(data / path), genome, None)
    unknown = {
        name: len({site.gene for site in sites if site.gene and index.find(site.gene) is None})
        for name, sites in old.items()
    }
    return Truth(genome, tuple(genes), offsets, lifted, pairs, unknown)


def merge_starts(rows: Sequence[Placed], distance: int = MAX_START_DISTANCE) -> dict[str, list[int]]:
    """Return the distinct starts per strand, sorted: the middle member of each single-linkage cluster."""
    found = {strand: {row.position for row in rows if row.strand == strand} for strand in "+-"}
    return {strand: merge_near(positions, distance) for strand, positions in found.items()}


def merge_near(positions: Iterable[int], distance: int = MAX_START_DISTANCE) -> list[int]:
    """Return the middle member of each single-linkage cluster of positions, sorted."""
    clusters: list[list[int]] = []
    for position in sorted(positions):
        if clusters and position - clusters[-1][-1] <= distance:
            clusters[-1].append(position)
        else:
            clusters.append([position])
    return [cluster[(len(cluster) - 1) // 2] for cluster in clusters]


def in_region(rows: Iterable[Placed], region: tuple[int, int]) -> list[Placed]:
    """Return the sites whose start lies in a half-open region."""
    return [row for row in rows if region[0] <= row.position < region[1]]
