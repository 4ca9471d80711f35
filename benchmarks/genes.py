"""Compare predicted genes with those of published genomes.

    SEQRAY_DATA=... python benchmarks/genes.py

A row per GenBank file: complete coding genes without pseudogenes, and the share of them that begin with a
start codon; predicted genes; the share of the annotated stop codons, and of stop and start codons together,
that the prediction has; the codon table chosen; processor time; and memory beside the letters, in MB.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from machine import add_data, describe, script_parser
from seqray.core.alphabet import DNA
from seqray.genome.find import predict_all, read_genes
from seqray.genome.genes import Gene, count_starts
from seqray.io.genbank import read_genbank
from seqray.io.tables import write_table

COLUMNS = (
    *("genome", "letters", "contigs", "coding", "with_start_codon"),
    *("predicted", "same_stop", "same_stop_and_start", "prediction", "cpu_seconds", "memory_mb"),
)


def peak_mb() -> float:
    """Largest resident memory of this process so far; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def spans(contig: str, genes: Iterable[Gene], length: int) -> set[tuple[str, str, int, int]]:
    """Contig, strand, stop and start of each gene, around a circle."""
    ends = ((g, (g.end if g.strand == "+" else g.start) % length) for g in genes)
    return {(contig, gene.strand, stop, gene.start_codon % length) for gene, stop in ends}


def row_of(path: Path) -> tuple[object, ...]:
    """Measure one genome."""
    records = list(read_genbank(path))
    before, started = peak_mb(), time.process_time()
    predicted = predict_all(records)
    cost = time.process_time() - started, peak_mb() - before
    annotated = read_genes(path)
    ours, theirs, starts = set(), set(), [0, 0]
    for record in records:
        complete = [g for g in annotated.of(record.id) if g.coding and g.complete and not g.pseudo]
        theirs |= spans(record.id, complete, len(record))
        ours |= spans(record.id, predicted.of(record.id), len(record))
        for place, count in enumerate(count_starts(complete, DNA.encode(record.sequence))):
            starts[place] += count
    stops = {one[:3] for one in ours}
    return (
        path.name.removesuffix(".gz"),
        sum(map(len, records)),
        len(records),
        len(theirs),
        starts[0] / starts[1],
        predicted.count,
        sum(one[:3] in stops for one in theirs) / len(theirs),
        len(theirs & ours) / len(theirs),
        predicted.source.partition(", ")[2],
        *cost,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Write a row per genome."""
    parser = script_parser(__doc__, "genes.tsv")
    add_data(parser)
    options = parser.parse_args(argv)
    files = sorted(options.data.glob("ecoli_genome/*.gbff.gz")) + sorted(
        options.data.glob("genomes/*.gbk.gz")
    )
    # A process for each genome: the memory of one before it does not count.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        rows = list(pool.map(row_of, files))
    header = [*describe(["genes.py"]), f"pyrodigal: {version('pyrodigal')}"]
    write_table(options.out, COLUMNS, rows, header)


if __name__ == "__main__":
    main()
