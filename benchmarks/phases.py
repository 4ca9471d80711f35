"""How much the calls of a locator depend on where a contig begins.

    SEQRAY_DATA=... python benchmarks/phases.py

A locator reads tokens of four letters, counted from the first letter of a strand. Letters are cut off the
beginning of a part of *E. coli* that training left out, which moves the tokens of its plus strand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from machine import add_data, describe, script_parser
from seqray.core.alphabet import DNA
from seqray.core.records import SequenceRecord
from seqray.genome.find import read_genes
from seqray.genome.genes import Annotation, Gene
from seqray.io.sequences import read_sequences
from seqray.io.tables import write_table
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.scanning.scan import scan_records

COLUMNS = ("cut", "strand", "calls_uncut", "calls", "same_letter", "within_2", "largest_change")
GENOME = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.gbff.gz"
START, END = 2_300_000, 2_600_000
MAX_DISTANCE = 2

Scores = dict[int, float]
"""Position in the part to the score of a call."""


def row_of(cut: int, strand: str, before: Scores, after: Scores) -> tuple[object, ...]:
    """How many calls of the part stay where they were once its first letters are cut off."""
    kept = {site: score for site, score in before.items() if site >= cut}
    near = [
        (abs(after[place] - score), site)
        for site, score in kept.items()
        for place in range(site - MAX_DISTANCE, site + MAX_DISTANCE + 1)
        if place in after
    ]
    within, change = len({site for _, site in near}), max((change for change, _ in near), default=0.0)
    return cut, strand, len(kept), len(after), len(kept.keys() & after.keys()), within, change


def rows_of(folder: Path, model: str) -> Iterator[tuple[object, ...]]:
    """A row per number of letters and strand."""
    network = load_model(model)
    [record] = read_sequences(folder / GENOME, DNA)
    genes = [
        gene for gene in read_genes(folder / GENOME).of(record.id) if START <= gene.start < gene.end <= END
    ]
    scans = [_scan(network, record.sequence[START:END], genes, cut) for cut in range(5)]
    for cut, found in enumerate(scans[1:], start=1):
        yield from (row_of(cut, strand, scans[0][strand], found[strand]) for strand in "+-")


def _scan(network: TrainedModel, letters: str, genes: Sequence[Gene], cut: int) -> dict[str, Scores]:
    left = START + cut
    moved = [
        replace(gene, start=gene.start - left, end=gene.end - left) for gene in genes if gene.start >= left
    ]
    record = SequenceRecord("part", letters[cut:])
    source = Annotation({"part": tuple(moved)}, GENOME)
    calls = scan_records(network, [record], genes=source).calls
    return {strand: {c.site + cut: c.score for c in calls if c.strand == strand} for strand in "+-"}


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "phases.tsv")
    add_data(parser)
    parser.add_argument("--model", default="bacteria-genome")
    options = parser.parse_args(argv)
    write_table(options.out, COLUMNS, rows_of(options.data, options.model), describe(["phases.py"]))


if __name__ == "__main__":
    main()
