"""Readers of the public E. coli tables: genome, genes, transcription starts, published predictions.

Every reader gives rows as they stand in the file: positions 1-based, on the version of the genome that the
file was made for. ``ecoli_truth.py`` brings them to NC_000913.3.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STRANDS = {"forward": "+", "reverse": "-", "F": "+", "R": "-", "+": "+", "-": "-"}

GENOME = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.fna.gz"
GENES = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.gff.gz"
REGULONDB = "ecoli_truth/PromoterSet.tsv.gz"
ECOCYC = "ecoli_truth/SmartTable_All_Promoters.txt.gz"
PREDICTIONS = "ecoli_truth/PromoterPredictionSet.csv.gz"
DRNASEQ = "ecoli_truth/ht_transcription_initiation_mapping_with_5_tri_or_monophosphate_enrichment_v3.0.csv.gz"
PYROSEQUENCING = "ecoli_truth/Promoter_from_454_Dataset.csv.gz"
RACE = "ecoli_truth/Promoter_from_RACE_Dataset.csv.gz"


@dataclass(frozen=True, slots=True)
class GeneRef:
    """The gene that a row of a table names, at the positions that the table gives."""

    name: str
    locus_tag: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Site:
    """One transcription start of a table.

    Attributes
    ----------
    position, strand
        1-based position of the start, and ``+`` or ``-``.
    sequence, tss_index
        Letters (upper case, 5' to 3' on the site's own strand) that the table prints, and the index of the
        transcription start in them; empty where the table prints none.
    sigma, confidence
        As in the table, empty where it says nothing.
    experimental
        True where at least one piece of the evidence is an experiment.
    evidence
        Names of the experiments, where the table has them.
    score, p_value
        Of a prediction.
    gene
        The gene named, where the table gives its position.
    upstream
        False for a start of the dRNA-seq table that lies inside a gene or opposite to one.
    """

    position: int
    strand: str
    name: str
    sequence: str = ""
    tss_index: int = 0
    sigma: str = ""
    confidence: str = ""
    experimental: bool = False
    evidence: str = ""
    score: float = 0.0
    p_value: float = 1.0
    gene: GeneRef | None = None
    upstream: bool = True


@dataclass(frozen=True, slots=True)
class Gene:
    """One gene of NC_000913.3; ``start`` and ``end`` are 1-based and closed."""

    name: str
    locus_tag: str
    synonyms: tuple[str, ...]
    start: int
    end: int
    strand: str


def read_genome(path: Path) -> str:
    """Return the letters of a FASTA file with one record, in upper case."""
    with gzip.open(path, "rt") as handle:
        return "".join(line.strip() for line in handle if not line.startswith(">")).upper()


def read_genes(path: Path) -> list[Gene]:
    """Return the genes and pseudogenes of a GFF3 file in the order of the file."""
    genes = []
    with gzip.open(path, "rt") as handle:
        for line in handle:
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 9 or fields[2] not in ("gene", "pseudogene"):
                continue
            tags = dict(item.split("=", 1) for item in fields[8].split(";"))
            synonyms = tuple(filter(None, tags.get("gene_synonym", "").split(",")))
            place = int(fields[3]), int(fields[4]), fields[6]
            genes.append(Gene(tags["Name"], tags["locus_tag"], synonyms, *place))
    return genes


def _with_capital(printed: str) -> tuple[str, int]:
    """Return the letters and the index of the last capital: the tables print the start in upper case."""
    capitals = [index for index, letter in enumerate(printed) if letter.isupper()]
    return printed.upper(), capitals[-1] if capitals else 0


def read_regulondb(path: Path) -> list[Site]:
    """Return the promoters of RegulonDB's PromoterSet that have a position."""
    sites = []
    with gzip.open(path, "rt") as handle:
        for line in handle:
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 11 or not fields[3].isdigit():
                continue
            letters, index = _with_capital(fields[5].strip())
            experiments = dict.fromkeys(re.findall(r"\[EXP-?([^:\]]*)", fields[8]))
            kept = {"sigma": fields[4], "confidence": fields[10], "experimental": bool(experiments)}
            kept["evidence"] = ", ".join(experiments)
            sites.append(Site(int(fields[3]), STRANDS[fields[2]], fields[1], letters, index, **kept))
    return sites


def read_ecocyc(path: Path) -> list[Site]:
    """Return the promoters of EcoCyc's SmartTable that have a position; it gives no evidence."""
    sites = []
    with gzip.open(path, "rt") as handle:
        for line in list(handle)[1:]:
            fields = line.rstrip("\n").split("\t")
            if fields[1].isdigit():
                letters, index = _with_capital(fields[5].strip())
                sites.append(Site(int(fields[1]), STRANDS[fields[3]], fields[0], letters, index))
    return sites


def _rows(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8-sig", errors="replace") as handle:
        yield from csv.reader(handle)


def _gene(name: str, locus_tag: str, start: str, end: str) -> GeneRef | None:
    if not (start.strip().isdigit() and end.strip().isdigit()):
        return None
    return GeneRef(name, locus_tag, int(start), int(end))


def read_drnaseq(path: Path) -> list[Site]:
    """Return the starts of the 5'-end enrichment table: of each cluster the most frequent position."""
    sites = []
    for row in _rows(path):
        if len(row) < 11 or not row[2].isdigit():
            continue
        gene = _gene(row[6], row[7], row[8], row[9])
        name = f"{row[6]}_{row[2]}"
        upstream = row[10].startswith("UpSense")
        site = Site(int(row[2]), STRANDS[row[5]], name, experimental=True, gene=gene, upstream=upstream)
        sites.append(site)
    return sites


def read_mapped(path: Path) -> list[Site]:
    """Return the starts of the pyrosequencing or the RACE table (Mendoza-Vargas et al. 2009).

    The printed letters run from 60 upstream to 20 downstream. Their capital isn't used: on the forward strand
    it stands one letter after the position that the row gives (as position, and as distance to the gene).
    """
    sites = []
    for row in _rows(path):
        if not row or not row[0].startswith("Subset") or not row[3].isdigit():
            continue
        gene = _gene(row[1], row[11], row[8], row[9])
        place = int(row[3]), STRANDS[row[5]], f"{row[1]}_{row[3]}"
        sites.append(Site(*place, row[12].strip().upper(), 60, experimental=True, gene=gene))
    return sites


def read_predictions(path: Path) -> list[Site]:
    """Return the published predictions (Huerta & Collado-Vides 2003), scores and P-values with them."""
    sites = []
    for row in _rows(path):
        if len(row) < 21 or not row[0].isdigit():
            continue
        letters, index = _with_capital(row[20].strip())
        gene = _gene(row[3], "", row[0], row[1])
        numbers = {"score": float(row[14]), "p_value": float(row[16]), "sigma": row[5]}
        sites.append(Site(int(row[13]), STRANDS[row[2]], row[4], letters, index, gene=gene, **numbers))
    return sites
