"""Invented letters and tables for the tests of scripts."""

import gzip
import random
from collections.abc import Iterable
from pathlib import Path

_PAIRS = str.maketrans("ACGT", "TGCA")
SHEET = ("species", "genus", "genome", "genes", "sites", "weight", "domain", "name", "note")
"""Columns of the sheet of genomes."""
SITES = ("contig", "position", "strand", "site", "weight", "source", "part", "strong", "distance", "inside")
"""Columns of a table of sites."""


class Letters:
    """Random letters of DNA, the same in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, count: int) -> str:
        return "".join(self._random.choice("ACGT") for _ in range(count))


def opposite(text: str) -> str:
    """The other strand, from 5' to 3'."""
    return text.translate(_PAIRS)[::-1]


def write_gzip(path: Path, text: str) -> Path:
    """Write a compressed file, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as handle:
        handle.write(text)
    return path


def write_rows(path: Path, *rows: Iterable[str]) -> Path:
    """Write a table, its header first."""
    path.write_text("\n".join("\t".join(row) for row in rows) + "\n")
    return path


def write_fasta(path: Path, **records: str) -> Path:
    """Write records."""
    path.write_text("".join(f">{name}\n{text}\n" for name, text in records.items()))
    return path
