"""How often boxes of sigma 70 are found before mapped promoters of *E. coli*, and by chance.

    SEQRAY_DATA=... python benchmarks/boxes.py

The promoters are the windows of 81 letters of PromoterLCNN, by sigma factor; one record of several sigma
factors is in several files. ``shuffled`` are the same windows with their dinucleotides kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from machine import add_data, describe, script_parser
from seqray.core.alphabet import DNA, dinucleotide_shuffle
from seqray.core.arrays import Codes
from seqray.io.records import read_fasta
from seqray.io.tables import write_table
from seqray.scanning.calls import find_boxes

COLUMNS = ("letters", "sites", "pair", "minus10_alone")
WINDOW, SITE = 81, 60
RANDOM = 200_000
SIGMAS = ("sigma70", "sigma38", "sigma32", "sigma28", "sigma24", "sigma54")


def row_of(name: str, codes: Codes) -> tuple[object, ...]:
    """Shares of the sites (N, 81) with two boxes, and with the -10 box alone."""
    found = find_boxes(codes, SITE)
    pair, ten = found.minus35 < 0, found.minus10 < 0
    return name, len(codes), float(pair.mean()), float((ten & ~pair).mean())


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
    write_table(options.out, COLUMNS, rows_of(options.data), describe(["boxes.py"]))


if __name__ == "__main__":
    main()
