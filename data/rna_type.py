"""Labels of the seed alignments of Rfam: type of RNA, and clan as group.

    python data/rna_type.py --out runs/data/rna-type.tsv
    seqray train --config configs/rna-family-type.yaml --train $SEQRAY_DATA/rfam_seed/seed.sto.gz \
        --alignment-labels runs/data/rna-type.tsv --out rna-family-type.safetensors

A type is named by its last part (``Gene; snRNA; snoRNA; CD-box`` is ``CD-box``). Antisense RNA and antitoxins
count as ``sRNA``: the gene that they lie on makes them what they are, not their shape. A type with fewer
than 25 families has no class of its own: one of ``Cis-reg`` counts as that, all others as ``other``, such as
ribosomal, transfer and splicing RNA, ribozymes and introns. ``Gene`` alone is left out: the curators said no
more. A family without a clan is a group of its own.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import Counter
from pathlib import Path

from seqray.io.files import open_output

MIN_FAMILIES = 25
SMALL = {"antisense": "sRNA", "antitoxin": "sRNA"}


def labels(table: Path) -> list[tuple[str, str, str]]:
    """Accession, class and group of each family whose type is known."""
    with open(table, encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle, delimiter="\t") if row["type"] != "Gene;"]
    parts = [row["type"].rstrip("; ").split("; ") for row in rows]
    types = [SMALL.get(last, last) for *_, last in parts]
    counts = Counter(types)
    rare = ["Cis-reg" if first == "Cis-reg" else "other" for first, *_ in parts]
    named = [kind if counts[kind] >= MIN_FAMILIES else rest for kind, rest in zip(types, rare, strict=True)]
    return [(row["acc"], kind, row["clan"] or row["acc"]) for row, kind in zip(rows, named, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("SEQRAY_DATA")
    about = "folder of the public files (default: $SEQRAY_DATA)"
    parser.add_argument("--data", type=Path, default=data, required=data is None, help=about)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    rows = labels(args.data / "rfam_seed" / "labels.tsv")
    lines = ["id\tlabel\tgroup", *("\t".join(row) for row in rows)]
    with open_output(args.out) as handle:
        handle.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
