"""Genomes, and the starts that published tables place on them; ``genomes.tsv`` names the tables of each."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ecoli_truth import Truth, load_truth
from loci import Finder
from seqray.core.alphabet import DNA
from seqray.genome.genes import GeneIndex
from seqray.io.sequences import read_sequences
from start_classes import index_genes
from starts import (
    Start,
    place_contexts,
    place_windows,
    read_bed,
    read_contexts,
    read_positions,
    read_windows,
)

LIST = Path(__file__).with_name("genomes.tsv")
ECOLI, OLD_ECOLI = "ecoli", "promotech/ECOLI_2"
FUNGI, PROTOZOA = "fungi", "protozoa"
EUKARYOTES = (FUNGI, PROTOZOA)
"""Domains whose genes are never predicted for training: the prediction knows no introns."""
TABLES = {"EcoCyc": "ecocyc", "dRNA-seq": "drnaseq", "pyrosequencing": "pyrosequencing", "RACE": "race"}
"""Tables of E. coli by the names of ``ecoli_truth``, and the sources that they are called here."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows of a source that are listed, found, and found at the coordinate that the table states."""

    listed: int
    found: int
    stated: int


@dataclass(slots=True)
class Genome:
    """A row of ``genomes.tsv``, letters and genes of its contigs, and the starts found on them."""

    row: Mapping[str, str]
    contigs: dict[str, str]
    genes: dict[str, GeneIndex] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    listed: dict[str, Listed] = field(default_factory=dict)
    annotation: Path | None = None

    @property
    def name(self) -> str:
        return self.row["name"]


def read_list() -> list[dict[str, str]]:
    """Return the rows of ``data/genomes.tsv``."""
    with LIST.open() as handle:
        return list(csv.DictReader(handle, delimiter="\t"))


def load(data: Path, row: Mapping[str, str], out: Path) -> Genome:
    """Read a genome and place the starts of its sources on it; genes of fungi are written to a folder."""
    records = list(read_sequences(data / row["genome"], DNA))
    annotation = data / row["genes"] if row["genes"] else None
    if annotation and row["domain"] == FUNGI:
        annotation = name_chromosomes(annotation, out / f"{row['name']}.gff3")
    genes = index_genes(records, annotation)
    contigs = {record.id: record.sequence.upper() for record in records}
    genome = Genome(row, contigs, genes, annotation=annotation)
    finder = Finder(genome.contigs)
    if row["ipromp"]:
        genome.starts += add_windows(genome, data / "ipromp", finder)
    if row["kuo"]:
        genome.starts += add_contexts(genome, data / "tss/kuo" / f"{row['kuo']}.tsv.gz", finder)
    for table in filter(None, row["tables"].split(",")):
        genome.starts += add_table(genome, data, table)
    if row["name"] == ECOLI:
        genome.starts += ecoli_starts(genome, data, load_truth(data))
    return genome


def name_chromosomes(annotation: Path, out: Path) -> Path:
    """Write a GFF3 whose contigs have the names of their chromosomes, as its regions state them."""
    text = gzip.decompress(annotation.read_bytes()).decode()
    names = dict(re.findall(r"^(\S+)\t[^\t]*\tregion\t.*;chromosome=([^;\n]+)", text, re.MULTILINE))
    contig = re.compile(r"^(##sequence-region )?(\S+)", re.MULTILINE)
    out.write_text(contig.sub(lambda found: (found[1] or "") + names.get(found[2], found[2]), text))
    return out


def add_windows(genome: Genome, folder: Path, finder: Finder) -> list[Start]:
    """Place windows of iPro-MP, and count them."""
    number = genome.row["ipromp"]
    listed = [w for part in ("train", "test") for w in read_windows(folder / f"{number}_{part}.txt.gz")]
    genome.listed["ipromp"] = Listed(len(listed), sum(bool(finder.find(w, 0)) for w in listed), 0)
    return list(place_windows(folder, number, finder))


def add_contexts(genome: Genome, path: Path, finder: Finder) -> list[Start]:
    """Place the contexts of a table of Kuo et al.; count how many stand where the table says."""
    contexts = read_contexts(path)
    places = [(finder.find(*context.core), context) for context in contexts]
    stated = sum(any((p + 1, s) == (c.coordinate, c.strand) for _, p, s in found) for found, c in places)
    genome.listed["kuo"] = Listed(len(contexts), sum(bool(found) for found, _ in places), stated)
    return list(place_contexts(contexts, finder))


def add_table(genome: Genome, data: Path, source: str) -> list[Start]:
    """Read a table on the genome itself: BED, or TSV with 1-based positions."""
    path = next(path for folder in ("tss", ".") for path in (data / folder).glob(f"{source}.[bt]*.gz"))
    starts = read_bed(path, source) if ".bed" in path.name else read_positions(path, source)
    good = [s for s in starts if s.contig in genome.contigs and s.position < len(genome.contigs[s.contig])]
    genome.listed[source] = Listed(len(starts), len(good), len(good))
    return good


def ecoli_starts(genome: Genome, data: Path, truth: Truth) -> list[Start]:
    """Return the curated and high-throughput starts of E. coli, brought to NC_000913.3.

    Promotech's table of NC_000913.2 is lifted by the genes, too. Its other table, though named after
    NC_000913.3, holds positions of another strain and is not used.
    """
    (contig,) = genome.contigs
    found = [
        Start(contig, row.position, row.strand, "regulondb-strong", strong=True) for row in truth.strong()
    ]
    for row in truth.lifted["RegulonDB"].placed:
        if row.site.confidence not in ("S", "C"):
            source = "regulondb-weak" if row.site.experimental else "regulondb-predicted"
            found.append(Start(contig, row.position, row.strand, source))
    for table, source in TABLES.items():
        rows = truth.lifted[table]
        genome.listed[source] = Listed(len(rows.placed) + len(rows.dropped), len(rows.placed), rows.confirmed)
        found += [Start(contig, row.position, row.strand, source) for row in rows.placed]
    old = read_bed(data / "tss" / f"{OLD_ECOLI}.bed.gz", OLD_ECOLI)
    lifted = [(truth.offsets.lift(start.position + 1), start.strand) for start in old]
    return found + [Start(contig, at - 1, strand, OLD_ECOLI) for at, strand in lifted if at is not None]
