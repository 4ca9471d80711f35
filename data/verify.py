"""Check the data folder against the checksums of ``data/sources.tsv``.

    python data/verify.py --data "$SEQRAY_DATA"

A file counts as described where its own SHA-256 agrees, or, as another gzip makes other bytes of the same
text, that of its content. Prints a line per file that is missing or differs, and a count; exits 1 if there is
one.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "sources.tsv"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as it lies there, in hexadecimal."""
    with path.open("rb") as handle:
        return _digest(handle)


def sha256_uncompressed(path: Path) -> str:
    """Return the SHA-256 of what a gzip file holds, or an empty text where it is damaged or no gzip."""
    try:
        with gzip.open(path, "rb") as handle:
            return _digest(handle)
    except (OSError, EOFError):
        return ""


def _digest(handle: Any) -> str:
    digest = hashlib.sha256()
    while block := handle.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def problems(data: Path, sources: Path = SOURCES) -> tuple[list[str], int]:
    """Return a line per file that is missing or differs, and the number of files listed."""
    with sources.open() as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    found = []
    for row in rows:
        path, name = data / row["dataset"] / row["file"], f"{row['dataset']}/{row['file']}"
        if not path.is_file():
            found.append(f"{name}: missing; its source is {row['source']}")
        elif sha256(path) != row["sha256"] and sha256_uncompressed(path) != row["sha256_uncompressed"]:
            found.append(f"{name}: not the file that sources.tsv describes")
    return found, len(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Check and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    data = os.environ.get("SEQRAY_DATA")
    about = "folder of the public files (default: $SEQRAY_DATA)"
    parser.add_argument("--data", type=Path, default=data, required=data is None, help=about)
    found, files = problems(parser.parse_args(argv).data)
    print("\n".join([*found, f"{files - len(found)} of {files} files as described"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
