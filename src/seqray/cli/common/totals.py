"""Numbers of letters or records of sequence files, as far as known before reading."""

from __future__ import annotations

import os
from collections.abc import Sequence

MAX_COUNTED_BYTES = 1 << 30  # about a second of counting


def letters_in(path: str) -> int | None:
    """Letters of a FASTA file: by its index (.fai), else about its size; None for any other file."""
    indexed = _index(path)
    if indexed is not None:
        return sum(indexed)
    return os.path.getsize(path) if _is_plain_fasta(path) else None


def records_in(paths: Sequence[str]) -> int | None:
    """Records of FASTA files: by their index (.fai), else counted; None if there is any other file."""
    counts = [_records_of(path) for path in paths]
    return None if None in counts else sum(count or 0 for count in counts)


def _records_of(path: str) -> int | None:
    indexed = _index(path)
    if indexed is not None:
        return len(indexed)
    if not _is_plain_fasta(path) or os.path.getsize(path) > MAX_COUNTED_BYTES:
        return None
    with open(path, "rb") as handle:
        return sum(line.startswith(b">") for line in handle)


def _index(path: str) -> list[int] | None:
    """Lengths by the index that samtools writes; None without one, or with one older than the file."""
    index = f"{path}.fai"
    if not os.path.isfile(index) or os.path.getmtime(index) < os.path.getmtime(path):
        return None
    with open(index, encoding="utf-8", errors="replace") as handle:
        lengths = [line.split("\t")[1] for line in handle if line.count("\t") >= 4]
    return [int(length) for length in lengths] if all(map(str.isdigit, lengths)) else None


def _is_plain_fasta(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as handle:
        return handle.read(1) == b">"
