"""Which kingdom does the ribosomal RNA of a genome show, in the genomes of ``data/genomes.tsv``?

    python benchmarks/kingdoms.py

Writes ``kingdoms.tsv``: for each genome its kingdom, and those whose ribosomal RNA it has. Scans caution by
this that a locator is made for another kingdom. The probes were published; nothing was fitted to the genomes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import machine
from genome_sources import EUKARYOTES, read_list
from seqray.core.alphabet import DNA
from seqray.inference.origin import kingdoms_of
from seqray.io.sequences import read_sequences


def main() -> None:
    """Read all genomes."""
    parser = machine.script_parser(__doc__, "kingdoms.tsv")
    machine.add_data(parser)
    args = parser.parse_args()
    rows = []
    for row in read_list():
        kingdom = "eukaryotes" if row["domain"] in EUKARYOTES else row["domain"]
        records = list(read_sequences(args.data / row["genome"], DNA))
        shown = {found for record in records for found in kingdoms_of(record.sequence)}
        rows.append((row["species"], kingdom, ", ".join(sorted(shown)) or "none"))
    columns = ("species", "kingdom", "ribosomal_rna")
    machine.write_and_show(args.out, columns, rows, machine.describe(sys.argv))


if __name__ == "__main__":
    main()
