"""Parsers of alignments: Stockholm, A3M and FASTA, Clustal, PHYLIP."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, groupby, product
from typing import NamedTuple

from seqray.core.alphabet import GAPS, MISSING, Alphabet, encode_columns, is_aligned_text
from seqray.core.errors import InputError
from seqray.core.records import Alignment
from seqray.io.records import BYTE_ORDER_MARK, CLUSTAL, describe_record, shorten

_NO_LETTERS = GAPS + MISSING


@dataclass(slots=True)
class AlignedText:
    """One alignment as it is in a file: names, rows of letters, and annotations."""

    names: list[str] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    ss_cons: str | None = None


def reason_empty(text: AlignedText) -> str:
    """Why an alignment is empty; an empty text if it is not."""
    if not text.rows:
        return "no rows"
    return "" if any(row.translate(None, _NO_LETTERS) for row in text.rows) else "no letters"


def to_alignment(text: AlignedText, identifier: str, alphabet: Alphabet, where: str) -> Alignment:
    """Validate an alignment and encode its rows; ``where`` is the name of its file for errors."""
    place = describe_record(where, identifier)
    if problem := reason_empty(text):
        raise InputError(f"the alignment can't be used ({problem})", where=place, remedy="remove it")
    width = len(text.rows[0])
    for name, row in zip(text.names, text.rows, strict=True):
        if len(row) != width:
            what = f"row {shorten(name)!r} has {len(row)} columns, the first row has {width}"
            remedy = "align the sequences first, or fill the ends with '~' (unknown) or '-' (gap)"
            raise InputError(what, where=place, remedy=remedy)
    codes = encode_columns(text.rows, text.names, alphabet, place)
    if text.ss_cons is not None and len(text.ss_cons) != width:
        what = f"SS_cons has {len(text.ss_cons)} characters, the rows have {width} columns"
        raise _damaged(what, place)
    return Alignment(
        identifier, tuple(text.names), codes, alphabet, ss_cons=text.ss_cons, metadata=text.metadata
    )


def _decode(data: bytes) -> str:
    """Decode a name or note: UTF-8, otherwise Latin-1 (older releases of Rfam and Pfam)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _numbered_lines(handle: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends, counted from 1."""
    number = 0
    for raw in handle:
        for line in raw.rstrip(b"\r\n").split(b"\r"):  # a lone CR ends a line in old files
            number += 1
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def _damaged(what: str, place: str) -> InputError:
    return InputError(what, where=place, remedy="fetch or make the file again")


# ------------------------------------------- A3M (HH-suite, ColabFold) and aligned FASTA: rows below headers

_INSERTED = bytes(range(ord("a"), ord("z") + 1)) + b"."
_WHITE_SPACE = b" \t\v\f"
# Rows that HH-suite writes above the sequences: predicted and observed structure, not letters of a sequence.
_NOTES = {"ss_pred", "ss_conf", "ss_dssp", "sa_dssp", "aa_dssp", "aa_pred"}


def parse_fasta_alignment(handle: io.BufferedReader, where: str, a3m: bool) -> Iterator[AlignedText]:
    """Yield the alignment of a file that has rows; inserted letters go if it is A3M, or looks so."""
    names: list[str] = []
    pieces: list[list[bytes]] = []
    for number, line in _numbered_lines(handle):
        if line.startswith(b">"):
            words = line[1:].split(None, 1)
            names.append(_decode(words[0]) if words else f"row_{len(names) + 1}")
            pieces.append([])
        elif pieces:
            pieces[-1].append(line.translate(None, _WHITE_SPACE))
        elif line.strip() and line[:1] not in b"#;":
            what = f"line {number} comes before the first header"
            raise InputError(what, where=where, remedy="the first line must start with '>'")
    text = AlignedText()
    for name, lines in zip(names, pieces, strict=True):
        if name.lower() not in _NOTES:
            text.names.append(name)
            text.rows.append(b"".join(lines))
            if not text.rows[-1]:
                raise InputError(f"row {name!r} is empty", where=where, remedy="remove it")
    if not text.rows:
        return
    if a3m or _is_a3m(text.rows):
        text.rows = [row.translate(None, _INSERTED) for row in text.rows]
        if not any(text.rows):
            what = "all letters are small, which are insertions in A3M, so there is no column"
            remedy = "write columns in capitals, or end the name of an aligned FASTA file in .fa"
            raise InputError(what, where=where, remedy=remedy)
    yield text


def _is_a3m(rows: Sequence[bytes]) -> bool:
    """Whether rows of different lengths become one length when insertions are taken out.

    The query has none of its own, so small letters in the first row mean soft-masked, not inserted.
    """
    if len({len(row) for row in rows}) < 2 or rows[0] != rows[0].upper():
        return False
    return len({len(row.translate(None, _INSERTED)) for row in rows}) == 1


# ------------------------ Clustal: a header, then blocks with a line for each row, its name and some letters

_ROW = re.compile(rb"\S+\s+[A-Za-z*.~?_-]{2,}\s*(?:\d+\s*)?")  # which may also begin as a header does
_AGREEMENT = b"*:. \t"


def parse_clustal(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the alignments of a file; one that is cut off behind its header has no rows."""
    blocks: _Blocks | None = None
    number = 0
    for number, line in _numbered_lines(handle):
        place = f"{where}, line {number}"
        if CLUSTAL.match(line) and not (blocks is not None and _ROW.fullmatch(line)):
            if blocks is not None:
                yield blocks.text(place)
            blocks = _Blocks()
        elif not line.strip(_AGREEMENT):  # a blank line, or one of agreement
            if blocks is not None:
                blocks.end(place)
        elif blocks is not None:
            blocks.add(line, place)
        elif not line.startswith((b"#", b";")):
            raise _damaged(
                "comes before the header, which begins with CLUSTAL or the name of a program", place
            )
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
        words = line.split()
        if line[:1].isspace() or len(words) not in (2, 3) or (len(words) == 3 and not words[2].isdigit()):
            raise _damaged("is not a name, letters and at most a number", place)
        name = _decode(words[0])
        if self.in_first:
            self.names.append(name)
            self.pieces.append([])
        elif self.next_row == len(self.names):
            raise _damaged(f"a block has more than the {len(self.names)} rows of the first one", place)
        elif self.names[self.next_row] != name:
            raise _damaged(f"has row {name!r}, where {self.names[self.next_row]!r} comes next", place)
        self.pieces[self.next_row].append(words[1])
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


# ------------------------------ PHYLIP: a line with the numbers of rows and columns, then names and letters

FIRST_LINE = re.compile(rb"\s*(\d{1,9})[ \t]+(\d{1,9})[ \t]*[IS]?[ \t]*(?:\r|\n|$)")  # PAML: I, S
_NAME_WIDTH = 10


class _Layout(NamedTuple):
    """The names and letters of rows, read in one of the ways; ``begins`` are the lines with names."""

    way: str
    rows: list[tuple[bytes, bytes]]
    begins: list[int]


def parse_phylip(handle: io.BufferedReader, where: str, alphabet: Alphabet) -> Iterator[AlignedText]:
    """Yield the one alignment of a file."""
    lines = [line.rstrip() for _, line in _numbered_lines(handle)]
    first = next((number for number, line in enumerate(lines) if line), 0)
    sizes = FIRST_LINE.match(lines[first]) if lines else None
    if sizes is None:
        what = "the first line is not the numbers of rows and columns"
        raise InputError(what, where=where, remedy="is it PHYLIP?")
    rows, columns, groups = int(sizes[1]), int(sizes[2]), _groups(lines[first + 1 :])
    body = [line for group in groups for line in group]
    if rows < 1 or columns < 1:
        what = f"the first line announces {rows} rows of {columns} columns"
        raise InputError(what, where=where, remedy="give at least one")
    if len(body) < rows:
        raise _damaged(f"{rows} rows are announced, {len(body)} lines follow", where)
    layouts = [
        parsed
        for strict, interleaved in product((False, True), (True, False))
        for parsed in [
            _interleaved(body, rows, strict) if interleaved else _sequential(body, columns, strict)
        ]
        if len(parsed.rows) == rows and all(len(letters) == columns for _, letters in parsed.rows)
    ]
    if not layouts:
        what = f"no layout of PHYLIP gives {rows} rows of {columns} columns"
        for name, letters in _interleaved(body, rows, strict=False).rows if len(body) == rows else ():
            if len(letters) != columns:
                what = f"row {_decode(name)!r} has {len(letters)} columns, {columns} are announced"
                break
        remedy = "write a row a line, its name and its letters with a space between them"
        raise InputError(what, where=where, remedy=remedy)
    parsed = _choose(layouts, groups, rows, alphabet, where)
    names = [_decode(name) for name, _ in parsed]
    for name, (_, letters) in zip(names, parsed, strict=True):
        if b"." in letters:
            what = "contains '.', which is the letter of the first row in PHYLIP and a gap elsewhere"
            raise InputError(f"row {name!r} {what}", where=where, remedy="write the letter, or '-'")
    yield AlignedText(names, [letters for _, letters in parsed])


def _groups(lines: list[bytes]) -> list[list[bytes]]:
    """Lines that blank ones divide."""
    return [list(group) for is_text, group in groupby(lines, key=bool) if is_text]


def _choose(
    layouts: list[_Layout], groups: list[list[bytes]], rows: int, alphabet: Alphabet, where: str
) -> list[tuple[bytes, bytes]]:
    """The rows of the layout that fits; of several, of that which letters, indents and blank lines allow."""
    for allows in (
        lambda layout: all(name for name, _ in layout.rows),
        lambda layout: is_aligned_text([letters for _, letters in layout.rows], alphabet),
        partial(_is_drawn, groups=groups, rows=rows),
    ):
        ways = {tuple(layout.rows): layout for layout in reversed(layouts)}
        if len(ways) == 1:
            return layouts[0].rows
        layouts = list(filter(allows, layouts)) or layouts
    ways = {tuple(layout.rows): layout for layout in reversed(layouts)}
    if len(ways) == 1:
        return layouts[0].rows
    one, other, *_ = reversed(ways.values())
    row = next(row for row in range(rows) if one.rows[row] != other.rows[row])
    shown = ((way.way, *map(_decode, way.rows[row])) for way in (one, other))
    texts = (f"{way} ({shorten(name)!r} {letters[:8]}..{letters[-8:]})" for way, name, letters in shown)
    what = f"PHYLIP that can be read in two ways: row {row + 1} is {' or '.join(texts)}"
    remedy = "write each row in one line, or give Stockholm or aligned FASTA"
    raise InputError(what, where=where, remedy=remedy)


def _is_drawn(layout: _Layout, groups: list[list[bytes]], rows: int) -> bool:
    """Whether all lines with names are indented alike, and blank lines divide blocks or rows."""
    body = [line for group in groups for line in group]
    if len({len(body[i]) - len(body[i].lstrip()) for i in layout.begins}) > 1:
        return False
    if len(groups) < 2:
        return True
    if layout.way.startswith(_INTERLEAVED):
        return all(len(group) == rows for group in groups)
    return set(accumulate((len(group) for group in groups[:-1]), initial=0)) <= set(layout.begins)


def _name_and_letters(line: bytes, strict: bool) -> tuple[bytes, bytes]:
    name, letters = line[:_NAME_WIDTH], line[_NAME_WIDTH:]
    if not strict:
        name, _, letters = line.strip().partition(b"\t" if b"\t" in line else b" ")
    return name.strip(), b"".join(letters.split())


_INTERLEAVED, _SEQUENTIAL, _STRICT = "interleaved", "sequential", " with names of ten characters"


def _interleaved(body: list[bytes], rows: int, strict: bool) -> _Layout:
    """The first lines have names; each further group of lines continues the same rows."""
    way = _INTERLEAVED + _STRICT * strict
    if len(body) % rows:
        return _Layout(way, [], [])
    first = [_name_and_letters(line, strict) for line in body[:rows]]
    read = [
        (name, letters + b"".join(b"".join(more.split()) for more in body[rows + i :: rows]))
        for i, (name, letters) in enumerate(first)
    ]
    return _Layout(way, read, list(range(rows)))


def _sequential(body: list[bytes], columns: int, strict: bool) -> _Layout:
    """A row continues until it has all its columns."""
    rows: list[tuple[bytes, list[bytes]]] = []
    begins: list[int] = []
    missing = 0
    for number, line in enumerate(body):
        if missing > 0:
            letters = b"".join(line.split())
            rows[-1][1].append(letters)
        else:
            name, letters = _name_and_letters(line, strict)
            rows.append((name, [letters]))
            begins.append(number)
            missing = columns
        missing -= len(letters)
    return _Layout(_SEQUENTIAL + _STRICT * strict, [(n, b"".join(pieces)) for n, pieces in rows], begins)


# ------------------------------------ Stockholm (Pfam, Rfam): any number in one file, one in memory at a time

_HEADER = b"# STOCKHOLM 1."


def parse_stockholm(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the alignments of a file."""
    lines = _numbered_lines(handle)
    for number, line in lines:
        if line.startswith(_HEADER):
            yield _stockholm(lines, number, where)
        elif line.strip():
            what = f"line {number} begins no alignment"
            raise InputError(what, where=where, remedy="Stockholm begins with '# STOCKHOLM 1.0'")


def _stockholm(lines: Iterator[tuple[int, bytes]], number: int, where: str) -> AlignedText:
    """The alignment of the lines behind its header, which is line ``number``."""
    pieces: dict[bytes, list[bytes]] = {}
    notes: dict[str, list[str]] = {}
    structure: list[bytes] = []
    in_block: set[bytes] = set()
    for number, line in lines:
        words = line.split()
        if words == [b"//"] and line.startswith(b"//"):
            return AlignedText(
                [_decode(name) for name in pieces],
                [b"".join(parts) for parts in pieces.values()],
                {key: "\n".join(values) for key, values in notes.items()},
                _decode(b"".join(structure)) if structure else None,
            )
        if not words:
            in_block.clear()
        elif line.startswith(b"#=GF"):
            if len(words) > 1:
                value = line.split(None, 2)[2] if len(words) > 2 else b""
                notes.setdefault(_decode(words[1]), []).append(_decode(value).strip())
        elif line.startswith(b"#=GC"):
            structure += words[2:] if len(words) == 3 and words[1] == b"SS_cons" else []
        elif not line.startswith(b"#"):
            if len(words) != 2:
                remedy = "a row is a name and its letters, with white space between them only"
                raise InputError(f"line {number} is no row", where=where, remedy=remedy)
            name, letters = words
            if name in in_block:
                what = f"line {number}: the name {_decode(name)!r} occurs twice in one block"
                raise InputError(what, where=where, remedy="give each row a name of its own")
            in_block.add(name)
            pieces.setdefault(name, []).append(letters)
    raise _damaged(f"ends in line {number} without '//', so part of it is missing", where)
