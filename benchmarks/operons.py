"""How often two genes of *E. coli* are one operon by their distance, and are transcribed together in EcoCyc.

    SEQRAY_DATA=... python benchmarks/operons.py

A transcription unit is read from its name: ``aaeXAB`` has the genes aaeX, aaeA and aaeB. Two genes that
follow each other on a strand, with at most 300 bases between, are ``together`` if a unit has both, and
``apart`` if none has, the second is the first of a unit, and the first is in another.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from machine import add_data, describe, script_parser
from seqray.genome.find import read_genes
from seqray.io.tables import write_table
from seqray.scanning.gene_starts import MAX_OPERON_GAP, genes_before

COLUMNS = ("most_bases", "is_rule", "together", "called_of_together", "apart", "called_of_apart", "precision")
FARTHEST = 300


def units_of(path: Path) -> list[list[str]]:
    """Genes of each transcription unit, by the names of the units; those that name no genes are left out."""
    units: dict[str, list[str]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        for row in csv.DictReader(handle, delimiter="\t"):
            for name in re.split(r" // ", row["Transcription-Units"] or ""):
                parts = [re.fullmatch(r"([a-z]{3})([A-Z]+)", word) for word in name.split("-")]
                if parts and all(parts):
                    units[name] = [part[1] + letter for part in parts if part for letter in part[2]]
    return list(units.values())


def gaps_of(data: Path) -> tuple[list[int], list[int]]:
    """Bases between the genes of each pair that is together, and of each that is apart."""
    units = units_of(data / "ecoli_truth" / "SmartTable_All_Promoters.txt.gz")
    together = {(a, b) for unit in units for a in unit for b in unit}
    firsts, members = {unit[0] for unit in units}, {gene for unit in units for gene in unit}
    genome = read_genes(data / "ecoli_genome" / "GCF_000005845.2_ASM584v2_genomic.gff.gz")
    within, apart = list[int](), list[int]()
    for contig, genes in genome.genes.items():
        length = genome.lengths[contig]
        for gene, (other, gap) in genes_before(genes, length, circular=True, most=FARTHEST).items():
            if (other.name, gene.name) in together:
                within.append(gap)
            elif gene.name in firsts and other.name in members:
                apart.append(gap)
    return within, apart


def rows_of(within: Sequence[int], apart: Sequence[int]) -> Iterator[tuple[object, ...]]:
    """A row per largest distance."""
    for most in (0, 20, 40, 50, 60, 80, 100, 150):
        hits, false = (sum(gap <= most for gap in gaps) for gaps in (within, apart))
        shares = hits / len(within), len(apart), false / len(apart), hits / (hits + false)
        yield most, most == MAX_OPERON_GAP, len(within), *shares


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "operons.tsv")
    add_data(parser)
    options = parser.parse_args(argv)
    write_table(options.out, COLUMNS, rows_of(*gaps_of(options.data)), describe(["operons.py"]))


if __name__ == "__main__":
    main()
