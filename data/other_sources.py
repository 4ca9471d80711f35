"""Sets that ask what a shipped model asks, of another source: other promoters or other negatives.

===================  ==================================================================================
ipromoter-mouse      TATA promoters, 300 bp, against promoters of which 12 of 20 segments changed places
ipromoter-human      (in the test part: against other windows); the published test parts
gue-tata             human TATA promoters, 300 bp, against other windows with a TATA box; the published test
gue-nontata          human promoters without a TATA box, 300 bp; the published dev and test parts
genomic-nontata      the same of another source, 251 bp
cnnprom-mouse        mouse TATA promoters, 251 bp, against fragments of genes
tata-cnnprom         the part of it that no shipped model learned
cnnprom-ecoli        sigma70 promoters of *E. coli*, 81 bp, against antisense coding fragments
lcnn-ecoli           promoters of six sigma factors of *E. coli*, 81 bp, against other windows
ipromp-ecoli         test part of iPro-MP, one species, 81 bp, against coding and convergent windows
ipromp-bsubtilis
mapped-NAME          starts of a genome of ``data/prepare_genomes.py`` that iPro-MP does not list, 81 bp,
                     against antisense coding fragments
===================  ==================================================================================

All starts of a set have the same index. The pyrimidine-purine step of its promoters shows which one.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from grouping import groups_of, read
from published_sets import (
    BACKGROUND,
    PROMOTER,
    bacteria,
    ecoli_sigma,
    human_nontata,
    labeled_rows,
    mouse_tata,
    tata,
)
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.genome.find import predict_all, read_genes
from seqray.genome.genes import Gene
from seqray.io.records import read_fasta

BACTERIA_SITE, BACTERIA_WINDOW = 60, 81
NEGATIVES_PER_START = 2.7
"""As in the sets of CNNProm: 373 promoters and 1000 fragments of *B. subtilis*."""


@dataclass(frozen=True, kw_only=True)
class OtherSource:
    """A labeled set.

    Attributes
    ----------
    site
        Index of the start.
    load
        Makes the set from the folder of public files and the folder of ``data/prepare_genomes.py``.
    """

    site: int
    load: Callable[[Path, Path], Sequence[LabeledSequence]]


def two_classes(rows: Sequence[tuple[str, str]]) -> list[LabeledSequence]:
    """Label pairs of letters and "1" or "0", and name the groups of relatives."""
    groups = groups_of([letters for letters, _ in rows])
    return [
        LabeledSequence(DNA.normalize(letters), PROMOTER if label == "1" else BACKGROUND, f"row{n}", group)
        for n, ((letters, label), group) in enumerate(zip(rows, groups, strict=True), 1)
    ]


def csv_files(names: Sequence[str], label: str, data: Path, _: Path) -> list[LabeledSequence]:
    """Read published tables; ``label`` is their column of classes."""
    return two_classes([row for name in names for row in labeled_rows(data / name, label)])


def ecoli_cnnprom(data: Path, _: Path) -> list[LabeledSequence]:
    """839 sigma70 promoters against 3000 antisense coding fragments."""
    folder = data / "umarov2017"
    files = (("Ecoli_prom.fa.gz", "1"), ("Ecoli_non_prom.fa.gz", "0"))
    rows = [(record.sequence, label) for name, label in files for record in read(folder / name)]
    return two_classes([row for row in rows if len(row[0]) == BACTERIA_WINDOW])


def tata_cnnprom(data: Path, _: Path) -> list[LabeledSequence]:
    """The fifth of CNNProm's mouse set that no model was trained on."""
    return [e for e in tata("", data) if e.split == "test" and (e.id or "").startswith("cnnprom")]


def lcnn(data: Path, _: Path) -> list[LabeledSequence]:
    """2860 promoters of six sigma factors, as one class, against as many other windows."""
    return two_classes([(e.sequence, "0" if e.label == BACKGROUND else "1") for e in ecoli_sigma(data)])


def ipromp(species: str, data: Path, _: Path) -> list[LabeledSequence]:
    """Test part of one species of iPro-MP."""
    return [e for e in bacteria(data) if e.context == species and e.split == "test"]


def mapped(name: str, data: Path, genomes: Path) -> list[LabeledSequence]:
    """Starts before genes that are in no training table of windows, against antisense coding fragments."""
    with open(genomes / "genomes.tsv", encoding="utf-8") as handle:
        [row] = [row for row in csv.DictReader(handle, delimiter="\t") if row["name"] == name]
    contigs = {record.id: record for record in read_fasta(row["genome"], DNA)}
    with open(genomes / row["sites"], encoding="utf-8") as handle:
        sites = [
            (site["contig"], int(site["position"]) - 1, site["strand"])
            for site in csv.DictReader(handle, delimiter="\t")
            if "ipromp" not in site["source"] and site["site"] == "promoter" and site["distance"]
        ]
    starts = [(window(contigs[contig].sequence, at, strand), "1") for contig, at, strand in sites]
    starts = [(letters, label) for letters, label in starts if letters]
    genes = read_genes(row["genes"]).genes if row["genes"] else predict_all(list(contigs.values())).genes
    fragments = antisense(contigs, genes, round(NEGATIVES_PER_START * len(starts)))
    return two_classes([*starts, *((letters, "0") for letters in fragments)])


def window(contig: str, at: int, strand: str) -> str:
    """Cut the window around a start; empty near the ends."""
    before, after = BACTERIA_SITE, BACTERIA_WINDOW - BACTERIA_SITE - 1
    low, high = (before, after) if strand == "+" else (after, before)
    piece = contig[at - low : at + high + 1] if at >= low else ""
    piece = piece if len(piece) == BACTERIA_WINDOW else ""
    return piece if strand == "+" else reverse_complement(piece)


def antisense(
    contigs: Mapping[str, SequenceRecord], genes: Mapping[str, Sequence[Gene]], count: int
) -> Iterator[str]:
    """Draw windows within coding genes, read on the other strand.

    Parameters
    ----------
    contigs
        Of the genome, by name.
    genes
        Of each contig.
    count
        Number of windows.
    """
    rng = np.random.default_rng(1)
    coding = [
        (contig, gene)
        for contig, found in genes.items()
        for gene in found
        if gene.coding and gene.end - gene.start >= BACTERIA_WINDOW and gene.end <= len(contigs[contig])
    ]
    for number in rng.integers(0, len(coding), count):
        contig, gene = coding[number]
        start = int(rng.integers(gene.start, gene.end - BACTERIA_WINDOW + 1))
        letters = contigs[contig].sequence[start : start + BACTERIA_WINDOW]
        yield reverse_complement(letters) if gene.strand == "+" else letters


def _gue(parts: Sequence[str], kind: str) -> OtherSource:
    return OtherSource(
        site=249,
        load=partial(csv_files, [f"gue_prom/prom_300_{kind}_{part}.csv.gz" for part in parts], "label"),
    )


def _ipromoter(species: str) -> OtherSource:
    return OtherSource(
        site=249, load=partial(csv_files, [f"ipromoter_seqvec/{species}_TA_test.csv.gz"], "class")
    )


def _bacterial(load: Callable[[Path, Path], Sequence[LabeledSequence]]) -> OtherSource:
    return OtherSource(site=BACTERIA_SITE, load=load)


OTHER_SOURCES: dict[str, OtherSource] = {
    "ipromoter-mouse": _ipromoter("mm"),
    "ipromoter-human": _ipromoter("hs"),
    "gue-tata": _gue(["test"], "tata"),
    "gue-nontata": _gue(["dev", "test"], "notata"),
    "genomic-nontata": OtherSource(site=200, load=lambda data, _: human_nontata(data)),
    "cnnprom-mouse": OtherSource(site=200, load=lambda data, _: mouse_tata(data)),
    "tata-cnnprom": OtherSource(site=200, load=tata_cnnprom),
    "cnnprom-ecoli": _bacterial(ecoli_cnnprom),
    "lcnn-ecoli": _bacterial(lcnn),
    "ipromp-ecoli": _bacterial(partial(ipromp, "Escherichia coli K-12 MG1655")),
    "ipromp-bsubtilis": _bacterial(partial(ipromp, "Bacillus subtilis 168")),
    **{
        f"mapped-{name}": _bacterial(partial(mapped, name))
        for name in ("bsubtilis", "sagalactiae", "mtuberculosis", "zmobilis")
    },
}
