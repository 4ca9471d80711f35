"""Labels of the seed alignments of Rfam: type of RNA, and clan as group.

    python data/rna_type.py --out runs/data/rna-type.tsv
    seqray train --config configs/rna-family-type.yaml --train $SEQRAY_DATA/rfam_seed/seed.sto.gz \
        --alignment-labels runs/data/rna-type.tsv --out rna-family-type.safetensors

Types are named by their last part (``Gene; snRNA; snoRNA; CD-box`` is ``CD-box``); those with fewer than 25
families are left out. ``Gene`` and ``Cis-reg`` alone are families whose curators said no more. A family
without a clan is a group of its own.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import Counter
from pathlib import Path

from seqray.io.files import open_output

MIN_FAMILIES = 25


def labels(table: Path) -> list[tuple[str, str, str]]:
    """Accession, type and group of each family of a type that is frequent enough."""
    with open(table, encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    named = [
        (row["acc"], row["type"].rstrip("; ").split("; ")[-1], row["clan"] or row["acc"]) for row in rows
    ]
    counts = Counter(kind for _, kind, _ in named)
    return [row for row in named if counts[row[1]] >= MIN_FAMILIES]


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
