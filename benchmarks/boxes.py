"""How often boxes are found before mapped starts of *E. coli* and of archaea, and by chance.

    SEQRAY_DATA=... python benchmarks/boxes.py

The promoters are the windows of 81 letters of PromoterLCNN, by sigma factor; one record of several sigma
factors is in several files. ``shuffled`` are the same windows with their dinucleotides kept. The starts of
archaea are those of ``data/genomes.tsv``; ``before genes`` are as many places at random, up to 300 letters
before a gene on its strand, outside of genes of this strand and at least 10 letters from a mapped start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from genome_sources import Genome, load, read_list
from loci import Place
from machine import add_data, describe, script_parser
from seqray.core.alphabet import DNA, dinucleotide_shuffle
from seqray.core.arrays import Codes
from seqray.core.boxes import BOXES, NO_BOX, find_boxes
from seqray.io.records import read_fasta
from seqray.io.tables import write_table
from starts import window_at

COLUMNS = ("letters", "boxes", "sites", "pair", "first_alone")
WINDOW, SITE = 81, 60
RANDOM = 200_000
NEAR, REACH = 10, 300
"""Letters from a mapped start, and before a gene, of places at random."""
SIGMAS = ("sigma70", "sigma38", "sigma32", "sigma28", "sigma24", "sigma54")


def row_of(name: str, codes: Codes, kingdom: str = "bacteria") -> tuple[object, ...]:
    """Shares of the sites (N, 81) with two boxes, and with the one next to the site alone."""
    boxes = BOXES[kingdom]
    first, pair = (find_boxes(codes, SITE, boxes)[0] != NO_BOX).T
    names = " and ".join(box.name for box in boxes)
    return name, names, len(codes), float(pair.mean()), float((first & ~pair).mean())


def windows_at(genome: Genome, places: Sequence[Place]) -> Codes:
    """Letters around places (N, 81); those near the ends of contigs and with unknown letters are left out."""
    windows = [window_at(genome.contigs, place, SITE, WINDOW - SITE - 1) for place in places]
    return np.stack([DNA.encode(one) for one in windows if one and set(one) <= set("ACGT")])


def places_before_genes(genome: Genome, starts: Sequence[Place], rng: np.random.Generator) -> list[Place]:
    """Places at random, as many as starts."""
    near = {(contig, at + i, strand) for contig, at, strand in starts for i in range(1 - NEAR, NEAR)}
    names, places = list(genome.contigs), list[Place]()
    lengths = np.array([len(genome.contigs[name]) for name in names])
    while len(places) < len(starts):
        contig = names[rng.choice(len(names), p=lengths / lengths.sum())]
        place = contig, int(rng.integers(len(genome.contigs[contig]))), "+-"[int(rng.integers(2))]
        index = genome.genes.get(contig)
        if place in near or index is None or index.containing(*place[1:]):
            continue
        if index.downstream(*place[1:], reach=REACH):
            places.append(place)
    return places


def rows_of_archaea(data: Path) -> Iterator[tuple[object, ...]]:
    """Two rows per genome."""
    rng = np.random.default_rng(0)
    for row in read_list():
        if row["domain"] == "archaea":
            with TemporaryDirectory() as folder:
                genome = load(data, row, Path(folder))
            starts = sorted({start.place for start in genome.starts})
            yield row_of(row["species"], windows_at(genome, starts), "archaea")
            other = windows_at(genome, places_before_genes(genome, starts, rng))
            yield row_of(f"{row['species']}, before genes", other, "archaea")


def rows_of(folder: Path) -> Iterator[tuple[object, ...]]:
    """A row per composition of letters at random, and two per sigma factor."""
    rng = np.random.default_rng(0)
    for gc in (30, 40, 50, 60, 70):
        shares = [(100 - gc) / 200, gc / 200, gc / 200, (100 - gc) / 200]
        yield row_of(f"random, {gc} % GC", rng.choice(4, (RANDOM, WINDOW), p=shares).astype(np.uint8))
    for sigma in SIGMAS:
        path = folder / "ecoli_promoterlcnn" / f"{sigma}promoter.txt.gz"
        records = read_fasta(path, DNA, duplicates="keep")
        codes = np.stack([DNA.encode(record.sequence) for record in records if len(record) == WINDOW])
        yield row_of(sigma, codes)
        yield row_of(f"{sigma}, shuffled", np.stack([dinucleotide_shuffle(row, rng) for row in codes]))


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "boxes.tsv")
    add_data(parser)
    options = parser.parse_args(argv)
    rows = [*rows_of(options.data), *rows_of_archaea(options.data)]
    write_table(options.out, COLUMNS, rows, describe(["boxes.py"]))


if __name__ == "__main__":
    main()
