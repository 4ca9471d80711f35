"""How many mapped starts lie at the first base of a gene, or inside it: transcripts without a leader.

    SEQRAY_DATA=... python benchmarks/leaderless.py

The starts and genes are those of the archaea in ``data/genomes.tsv``. Columns count pairs of a start and a
gene of its strand: the start lies 1 to 10 bases before the gene, at its first base, or so many inside.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from genome_sources import load, read_list
from machine import add_data, describe, script_parser
from seqray.io.tables import write_table

SPANS = ((-10, -1), (0, 0), (1, 1), (2, 2), (3, 10), (11, 100))
"""Bases inside a gene; below 0 before it."""
COLUMNS = ("species", "starts", "before_1_to_10", "first_base", *("inside_1", "inside_2"))
COLUMNS += ("inside_3_to_10", "inside_11_to_100")


def rows_of(data: Path) -> Iterator[tuple[object, ...]]:
    """A row per archaeon."""
    for row in read_list():
        if row["domain"] == "archaea":
            with TemporaryDirectory() as folder:
                genome = load(data, row, Path(folder))
            places = sorted({start.place for start in genome.starts})
            known = [place for place in places if place[0] in genome.genes]
            counts = [
                sum(
                    genome.genes[contig].downstream(site, strand, reach=-bases, inside=bases) is not None
                    for contig, site, strand in known
                    for bases in range(first, last + 1)
                )
                for first, last in SPANS
            ]
            yield row["species"], len(places), *counts


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "leaderless.tsv")
    add_data(parser)
    options = parser.parse_args(argv)
    write_table(options.out, COLUMNS, rows_of(options.data), describe(["leaderless.py"]))


if __name__ == "__main__":
    main()
