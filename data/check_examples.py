"""Check every example sequence against the genome that it was published from.

    python data/check_examples.py --data "$SEQRAY_DATA"

Reads ``data/example/examples.tsv`` and compares each example, letter by letter on its strand, with the genome
at the coordinates given. Prints a line per example and exits 1 where what it finds isn't what the column
``checked`` says. Examples from genomes that aren't in the data folder count as not checked.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synthetic import SITE, read_fasta, reverse_complement

EXAMPLES = Path(__file__).parent / "example"
FILES = ("promoters.fa", "controls.fa", "regions.fa")
GENOMES = {
    "NC_000913.3": "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.fna.gz",
    "NC_001416.1": "lambda_genome/lambda_virus.fa.gz",
}
NOT_CHECKED = "not checked: no genome at hand"


@dataclass(frozen=True, slots=True)
class Example:
    """A row of examples.tsv with its letters; ``start`` and ``end`` are 0-based and half-open."""

    id: str
    contig: str
    start: int
    end: int
    strand: str
    checked: str
    letters: str


def read_examples(folder: Path) -> list[Example]:
    """Return the examples of a folder.

    Raises
    ------
    ValueError
        The table and the FASTA files don't hold the same ids.
    """
    letters = dict(record for file in FILES for record in read_fasta(folder / file))
    with (folder / "examples.tsv").open() as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    if [row["id"] for row in rows] != list(letters):
        raise ValueError(f"{folder}: examples.tsv and the FASTA files differ in their ids")
    return [
        Example(
            row["id"],
            row["contig"],
            int(row["start"]),
            int(row["end"]),
            row["strand"],
            row["checked"],
            letters[row["id"]],
        )
        for row in rows
    ]


def read_genome(path: Path) -> str:
    """Return the letters of a gzipped FASTA file with one record."""
    with gzip.open(path, "rt") as handle:
        return "".join(line.strip() for line in handle if not line.startswith(">")).upper()


def compare(example: Example, genome: str) -> str:
    """Say how an example differs from the genome; positions count from the start of transcription, +1."""
    there = genome[example.start : example.end]
    there = there if example.strand == "+" else reverse_complement(there)
    if len(there) != len(example.letters):
        return f"{len(example.letters)} letters for an interval of {len(there)}"
    differences = [
        f"{relative(index)} {expected}>{found}"
        for index, (expected, found) in enumerate(zip(there, example.letters, strict=True))
        if expected != found
    ]
    return f"{len(differences)} mismatches: {', '.join(differences)}" if differences else "exact"


def relative(index: int) -> str:
    """Return the position of an index of the window: -60 to -1, then +1; there is no 0."""
    return str(index - SITE) if index < SITE else f"+{index - SITE + 1}"


def verdicts(examples: Sequence[Example], genomes: Mapping[str, str]) -> list[tuple[Example, str]]:
    """Compare every example with its genome, where that is at hand."""
    return [
        (example, compare(example, genomes[example.contig]) if example.contig in genomes else NOT_CHECKED)
        for example in examples
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    data = os.environ.get("SEQRAY_DATA")
    about = "folder of the public files (default: $SEQRAY_DATA)"
    parser.add_argument("--data", type=Path, default=data, required=data is None, help=about)
    args = parser.parse_args(argv)
    genomes = {
        contig: read_genome(args.data / path)
        for contig, path in GENOMES.items()
        if (args.data / path).exists()
    }
    unexpected = 0
    for example, found in verdicts(read_examples(EXAMPLES), genomes):
        differs = found not in (example.checked, NOT_CHECKED)
        unexpected += differs
        note = f"  (the table says: {example.checked})" if differs else ""
        print(
            f"{example.id}\t{example.contig}:{example.start}-{example.end}\t{example.strand}\t{found}{note}"
        )
    print(f"{unexpected} unexpected; genomes at hand: {', '.join(genomes) or 'none'}", file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
