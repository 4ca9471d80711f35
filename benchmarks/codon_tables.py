"""What a wrong codon table does to predicted genes: the limits of `seqray.genome.find`.

    SEQRAY_DATA=... python benchmarks/codon_tables.py

A row per genome, cut into pieces of 100,000 letters, each predicted by itself with codon tables 11 and 4:
by table 11, letters of a gene (mean of a piece) and genes per kb; and by how much table 4 raises the share of
letters in genes. Of each, the lowest and the highest of all pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from machine import add_data, cores, describe, script_parser
from seqray.core.alphabet import DNA
from seqray.genome.find import GenePredictor
from seqray.io.sequences import read_sequences
from seqray.io.tables import write_table

PIECE = 100_000
COLUMNS = (
    *("genome", "pieces", "gene_length_low", "gene_length_high", "genes_per_kb_low", "genes_per_kb_high"),
    *("gain_low", "gain_high"),
)


def genes_by(table: int, piece: str) -> tuple[int, int]:
    """Number of genes of a piece, and letters in them."""
    genes = GenePredictor.train([piece], table).genes_of(piece)
    return len(genes), sum(gene.end - gene.start for gene in genes)


def row_of(path: Path) -> tuple[object, ...]:
    """Measure one genome."""
    pieces = [
        record.sequence[start : start + PIECE]
        for record in read_sequences(path, DNA)
        for start in range(0, len(record) - PIECE + 1, PIECE)
    ]
    standard, other = ([genes_by(table, piece) for piece in pieces] for table in (11, 4))
    lengths = [letters / count for count, letters in standard]
    gains = [(new - old) / PIECE for (_, old), (_, new) in zip(standard, other, strict=True)]
    per_kb = [1000 * count / PIECE for count, _ in standard]
    spans = [end(values) for values in (lengths, per_kb, gains) for end in (min, max)]
    return path.name.removesuffix(".gz"), len(pieces), *spans


def main(argv: Sequence[str] | None = None) -> None:
    """Write a row per genome."""
    parser = script_parser(__doc__, "codon_tables.tsv")
    add_data(parser)
    options = parser.parse_args(argv)
    files = sorted(options.data.glob("genomes/*.gz"))
    with ProcessPoolExecutor(cores()) as pool:
        rows = list(pool.map(row_of, files))
    header = [*describe(["codon_tables.py"]), f"pyrodigal: {version('pyrodigal')}"]
    write_table(options.out, COLUMNS, rows, header)


if __name__ == "__main__":
    main()
