"""Parsers of alignments: Stockholm, A3M and FASTA, Clustal, PHYLIP."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np

from seqray.core.alphabet import GAPS, MISSING, Alphabet, encode_columns
from seqray.core.arrays import Codes, Ints
from seqray.core.errors import InputError
from seqray.core.records import Alignment
from seqray.io.records import BYTE_ORDER_MARK, describe_record

# --- Shared by all readers of alignments: lines of text, and rows that are validated and encoded

_MAX_SHOWN_LENGTH = 60
_NO_LETTERS = GAPS + MISSING


@dataclass(slots=True)
class AlignedText:
    """One alignment as it is in a file: names, rows of letters, and annotations."""

    names: list[str] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    ss_cons: str | None = None


def decode(data: bytes) -> str:
    """Decode a name or note: UTF-8, otherwise Latin-1 (older releases of Rfam and Pfam)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def numbered_lines(handle: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends, counted from 1."""
    number = 0
    for raw in handle:
        for line in raw.rstrip(b"\r\n").split(b"\r"):  # a lone CR ends a line in old files
            number += 1
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def to_alignment(text: AlignedText, identifier: str, alphabet: Alphabet, where: str) -> Alignment:
    """Validate an alignment and encode its rows.

    Raises `InputError` if it has no rows or no letters, if its rows differ in length, or as
    `seqray.core.encode_columns`.

    Parameters
    ----------
    text
        The alignment as it is in the file.
    identifier
        Its id.
    alphabet
        Validates and folds the letters.
    where
        Name of the file, for errors.
    """
    place = describe_record(where, identifier)
    problem = reason_empty(text)
    if problem:
        raise InputError(f"the alignment can't be used ({problem})", where=place, remedy="remove it")
    _check_widths(text, place)
    codes = encode_columns(text.rows, text.names, alphabet, place)
    if text.ss_cons is not None and len(text.ss_cons) != codes.shape[1]:
        raise InputError(
            f"SS_cons has {len(text.ss_cons)} characters, the rows have {codes.shape[1]} columns",
            where=place,
            remedy="fetch or make the file again",
        )
    return Alignment(
        identifier, tuple(text.names), codes, alphabet, ss_cons=text.ss_cons, metadata=text.metadata
    )


def reason_empty(text: AlignedText) -> str:
    """Why an alignment is empty; an empty text if it is not."""
    if not text.rows:
        return "no rows"
    return "" if any(row.translate(None, _NO_LETTERS) for row in text.rows) else "no letters"


def _check_widths(text: AlignedText, place: str) -> None:
    width = len(text.rows[0])
    for name, row in zip(text.names, text.rows, strict=True):
        if len(row) != width:
            shown = name if len(name) <= _MAX_SHOWN_LENGTH else name[:_MAX_SHOWN_LENGTH] + "..."
            raise InputError(
                f"row {shown!r} has {len(row)} columns, the first row has {width}",
                where=place,
                remedy="align the sequences first, or fill the ends with '~' (unknown) or '-' (gap)",
            )


# --- Read A3M alignments (HH-suite, ColabFold) and aligned FASTA: headers with ``>``, rows below them

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


# --- Read Clustal alignments: a header, then blocks with a line for each row, its name and some of its le

HEADERS = (b"CLUSTAL", b"PROBCONS", b"MUSCLE", b"MSAPROBS", b"Kalign")
_AGREEMENT = b"*:. \t"


def parse_clustal(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the alignments of a file; one that is cut off behind its header has no rows.

    Raises `InputError` with the line if there is no header, a line isn't a name and letters, or a block has
    other rows than the first one.
    """
    blocks: _Blocks | None = None
    number = 0
    for number, line in numbered_lines(handle):
        place = f"{where}, line {number}"
        if line.startswith(HEADERS):
            if blocks is not None:
                yield blocks.text(place)
            blocks = _Blocks()
        elif not line.strip(_AGREEMENT):  # a blank line, or one of agreement
            if blocks is not None:
                blocks.end(place)
        elif blocks is not None:
            blocks.add(line, place)
        elif not line.startswith((b"#", b";")):
            raise _damaged("comes before the header, which begins with CLUSTAL", place)
    if blocks is not None:
        yield blocks.text(f"{where}, line {number}")


@dataclass(slots=True)
class _Blocks:
    """A partial alignment: the pieces of each row, and the next row of the block."""

    names: list[str] = field(default_factory=list)
    pieces: list[list[bytes]] = field(default_factory=list)
    next_row: int = 0
    in_first: bool = True

    def add(self, line: bytes, place: str) -> None:
        name, letters = _name_and_letters(line, place)
        if self.in_first:
            self.names.append(name)
            self.pieces.append([])
        elif self.next_row == len(self.names):
            raise _damaged(f"a block has more than the {len(self.names)} rows of the first one", place)
        elif self.names[self.next_row] != name:
            raise _damaged(f"has row {name!r}, where {self.names[self.next_row]!r} comes next", place)
        self.pieces[self.next_row].append(letters)
        self.next_row += 1

    def end(self, place: str) -> None:
        """A block is over, unless none has begun."""
        if 0 < self.next_row < len(self.names):
            raise _damaged(f"a block ends before row {self.names[self.next_row]!r}", place)
        self.in_first = self.in_first and self.next_row == 0
        self.next_row = 0

    def text(self, place: str) -> AlignedText:
        self.end(place)
        return AlignedText(self.names, [b"".join(parts) for parts in self.pieces])


def _name_and_letters(line: bytes, place: str) -> tuple[str, bytes]:
    words = line.split()
    if line[:1].isspace() or len(words) not in (2, 3) or (len(words) == 3 and not words[2].isdigit()):
        raise _damaged("is not a name, letters and at most a number", place)
    return decode(words[0]), words[1]


def _damaged(what: str, place: str) -> InputError:
    return InputError(what, where=place, remedy="fetch or make the file again")


# --- Read PHYLIP alignments: a line with the numbers of rows and columns, then names and letters

FIRST_LINE = re.compile(rb"\s*(\d{1,9})[ \t]+(\d{1,9})[ \t]*(?:\r|\n|$)")
_NAME_WIDTH = 10

Rows = list[tuple[bytes, bytes]]


def parse_phylip(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the one alignment of a file.

    Raises `InputError` if the first line is not two numbers, rows are missing, or no layout gives every row
    its columns.
    """
    lines = [line.rstrip() for _, line in numbered_lines(handle) if line.strip()]
    sizes = FIRST_LINE.match(lines[0]) if lines else None
    if sizes is None:
        raise InputError(
            "the first line is not the numbers of rows and columns", where=where, remedy="is it PHYLIP?"
        )
    rows, columns = int(sizes[1]), int(sizes[2])
    if rows < 1 or columns < 1:
        raise InputError(
            f"the first line announces {rows} rows of {columns} columns",
            where=where,
            remedy="give at least one",
        )
    body = lines[1:]
    if len(body) < rows:
        raise InputError(
            f"{rows} rows are announced, {len(body)} lines follow",
            where=where,
            remedy="fetch or make the file again",
        )
    for strict, interleaved in product((False, True), (True, False)):
        found = _interleaved(body, rows, strict) if interleaved else _sequential(body, columns, strict)
        if len(found) == rows and all(len(letters) == columns for _, letters in found):
            for name, letters in found:
                _refuse_dots(decode(name), letters, where)
            yield AlignedText([decode(name) for name, _ in found], [letters for _, letters in found])
            return
    odd = [(name, n) for name, n in _lengths(body) if n != columns] if len(body) == rows else []
    raise InputError(
        f"row {odd[0][0]!r} has {odd[0][1]} columns, {columns} are announced"
        if odd
        else f"no layout of PHYLIP gives {rows} rows of {columns} columns",
        where=where,
        remedy="write a row a line, its name and its letters with a space between them",
    )


def _refuse_dots(name: str, letters: bytes, where: str) -> None:
    if b"." in letters:
        raise InputError(
            f"row {name!r} contains '.', which is the letter of the first row in PHYLIP and a gap elsewhere",
            where=where,
            remedy="write the letter, or '-'",
        )


def _lengths(body: list[bytes]) -> list[tuple[str, int]]:
    """Names and lengths of rows of one line each, their names ended by white space."""
    return [
        (decode(name), len(letters)) for name, letters in (_phylip_name_and_letters(b, False) for b in body)
    ]


def _phylip_name_and_letters(line: bytes, strict: bool) -> tuple[bytes, bytes]:
    name, letters = line[:_NAME_WIDTH], line[_NAME_WIDTH:]
    if not strict:
        name, _, letters = line.strip().partition(b"\t" if b"\t" in line else b" ")
    return name.strip(), b"".join(letters.split())


def _interleaved(body: list[bytes], rows: int, strict: bool) -> Rows:
    """The first lines have names; each further group of lines continues the same rows."""
    found = [_phylip_name_and_letters(line, strict) for line in body[:rows]]
    if len(body) % rows:
        return []
    return [
        (name, letters + b"".join(b"".join(more.split()) for more in body[rows + i :: rows]))
        for i, (name, letters) in enumerate(found)
    ]


def _sequential(body: list[bytes], columns: int, strict: bool) -> Rows:
    """A row continues until it has all its columns."""
    found: list[tuple[bytes, list[bytes]]] = []
    missing = 0
    for line in body:
        if missing > 0:
            letters = b"".join(line.split())
            found[-1][1].append(letters)
        else:
            name, letters = _phylip_name_and_letters(line, strict)
            found.append((name, [letters]))
            missing = columns
        missing -= len(letters)
    return [(name, b"".join(pieces)) for name, pieces in found]


# --- Read Stockholm alignments (Pfam, Rfam), any number in one file, one in memory at a time

_HEADER = b"# STOCKHOLM 1."


def parse_stockholm(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the alignments of a file.

    Raises `InputError` if the header or the last ``//`` is missing, a line is not part of the format, or a
    name occurs twice in a block.
    """
    reader: _Reader | None = None
    number = 0
    for number, line in numbered_lines(handle):
        if reader is None:
            if not line.strip():
                continue
            if not line.startswith(_HEADER):
                raise InputError(
                    f"line {number} begins no alignment",
                    where=where,
                    remedy="Stockholm begins with '# STOCKHOLM 1.0'",
                )
            reader = _Reader(where)
        elif line.rstrip() == b"//":
            yield reader.finish()
            reader = None
        else:
            reader.take(number, line)
    if reader is not None:
        raise InputError(
            f"ends in line {number} without '//', so part of it is missing",
            where=where,
            remedy="fetch or make the file again",
        )


class _Reader:
    """Collects the lines of one alignment."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._pieces: dict[bytes, list[bytes]] = {}
        self._notes: dict[str, list[str]] = {}
        self._structure: list[bytes] = []
        self._block: set[bytes] = set()

    def take(self, number: int, line: bytes) -> None:
        if not line.strip():
            self._block.clear()
        elif line.startswith(b"#=GF"):
            self._note(line)
        elif line.startswith(b"#=GC"):
            words = line.split()
            if len(words) == 3 and words[1] == b"SS_cons":
                self._structure.append(words[2])
        elif not line.startswith(b"#"):
            self._row(number, line)

    def _note(self, line: bytes) -> None:
        words = line.split(None, 2)
        if len(words) > 1:
            value = decode(words[2]).strip() if len(words) > 2 else ""
            self._notes.setdefault(decode(words[1]), []).append(value)

    def _row(self, number: int, line: bytes) -> None:
        words = line.split()
        if len(words) != 2:
            raise InputError(
                f"line {number} is no row",
                where=self._where,
                remedy="a row is a name and its letters, with white space between them only",
            )
        name, letters = words
        if name in self._block:
            raise InputError(
                f"line {number}: the name {decode(name)!r} occurs twice in one block",
                where=self._where,
                remedy="give each row a name of its own",
            )
        self._block.add(name)
        self._pieces.setdefault(name, []).append(letters)

    def finish(self) -> AlignedText:
        return AlignedText(
            [decode(name) for name in self._pieces],
            [b"".join(pieces) for pieces in self._pieces.values()],
            {key: "\n".join(lines) for key, lines in self._notes.items()},
            decode(b"".join(self._structure)) if self._structure else None,
        )
