"""Read A3M alignments (HH-suite, ColabFold) and aligned FASTA: headers with ``>``, rows below them.

In A3M a column belongs to the query: capitals and ``-`` are in columns, small letters are insertions between
them, and ``.`` fills the insertions of other rows. In aligned FASTA every character is a column.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

import numpy as np

from seqray.core import Codes, InputError, Ints
from seqray.io.alignments.aligned_text import AlignedText, decode, numbered_lines

Insertions = Literal["remove", "keep"]

_INSERTED = bytes(range(ord("a"), ord("z") + 1)) + b"."
_MAX_LETTERS = 1 << 32  # of an alignment with columns for insertions, which grow with rows times columns
_WHITE_SPACE = b" \t\v\f"
# Rows that HH-suite writes above the sequences: predicted and observed structure, not letters of a sequence.
_NOTES = {"ss_pred", "ss_conf", "ss_dssp", "sa_dssp", "aa_dssp", "aa_pred"}


def parse_fasta_rows(handle: io.BufferedReader, where: str) -> AlignedText:
    """Names and rows as they are in the file; a row without a name is called ``row_`` and its number.

    Raises `InputError` for text before the first header and for a row without letters.
    """
    names: list[str] = []
    pieces: list[list[bytes]] = []
    for number, line in numbered_lines(handle):
        if line.startswith(b">"):
            words = line[1:].split(None, 1)
            names.append(decode(words[0]) if words else f"row_{len(names) + 1}")
            pieces.append([])
        elif pieces:
            pieces[-1].append(line.translate(None, _WHITE_SPACE))
        elif line.strip() and line[:1] not in b"#;":
            raise InputError(
                f"line {number} comes before the first header",
                where=where,
                remedy="the first line must start with '>'",
            )
    rows = [b"".join(lines) for lines in pieces]
    kept = [i for i, name in enumerate(names) if name.lower() not in _NOTES]
    for i in kept:
        if not rows[i]:
            raise InputError(f"row {names[i]!r} is empty", where=where, remedy="remove it")
    return AlignedText([names[i] for i in kept], [rows[i] for i in kept])


def is_a3m(rows: Sequence[bytes]) -> bool:
    """Whether rows of different lengths become one length when insertions are taken out.

    The query has none of its own, so small letters in the first row mean soft-masked, not inserted.
    """
    if len({len(row) for row in rows}) < 2 or rows[0] != rows[0].upper():
        return False
    return len({len(row.translate(None, _INSERTED)) for row in rows}) == 1


def without_insertions(rows: Sequence[bytes]) -> list[bytes]:
    """The columns of the query only."""
    return [row.translate(None, _INSERTED) for row in rows]


def with_insertions(rows: Sequence[bytes], names: Sequence[str], place: str) -> list[bytes]:
    """Give inserted letters their own columns, as many as the longest insertion there has.

    An insertion begins at the left of its columns; the other rows have gaps (``.``) there. Raises
    `InputError` if rows differ in the number of columns of the query. ``place`` names the file and the
    alignment there.
    """
    split = [_split(row) for row in rows]
    columns = len(without_insertions(rows[:1])[0])
    room = np.zeros(columns + 1, dtype=np.int64)  # inserted columns before each column, and after the last
    for name, (_, _, counts) in zip(names, split, strict=True):
        if len(counts) != columns + 1:
            raise InputError(
                f"row {name!r} has {len(counts) - 1} columns, the first row has {columns}",
                where=place,
                remedy="write inserted letters small, and a '-' for each letter that is missing",
            )
        np.maximum(room, counts, out=room)
    starts = np.concatenate([[0], np.cumsum(room + 1)[:-1]])  # where the insertions of each slot begin
    width = int(room.sum()) + columns
    if width * len(rows) > _MAX_LETTERS:
        raise InputError(
            f"{len(rows)} rows with columns for all insertions would have {width} columns each",
            where=place,
            remedy="remove the insertions",
        )
    return [_spread(letters, slots, counts, starts, room, width) for letters, slots, counts in split]


def _split(row: bytes) -> tuple[Codes, Ints, Ints]:
    """Letters without dots, the slot of each, and how many insertions each slot has."""
    letters = np.frombuffer(row.translate(None, b"."), dtype=np.uint8)
    match = (letters < ord("a")) | (letters > ord("z"))
    slots = np.cumsum(match) - match  # a column is at the end of its own slot
    counts = np.bincount(slots[~match], minlength=int(match.sum()) + 1)
    return letters, slots, counts


def _spread(letters: Codes, slots: Ints, counts: Ints, starts: Ints, room: Ints, width: int) -> bytes:
    line = np.full(width, ord("."), dtype=np.uint8)
    match = (letters < ord("a")) | (letters > ord("z"))
    within = np.arange(len(letters)) - np.concatenate([[0], np.cumsum(counts + 1)[:-1]])[slots]
    line[starts[slots] + np.where(match, room[slots], within)] = letters
    return line.tobytes()
