"""Read PHYLIP alignments: a line with the numbers of rows and columns, then names and letters.

The format has four layouts that nothing in the file distinguishes: names of ten characters or names that end
at white space, rows sequential or interleaved. The first layout that gives every row its columns is taken.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import product

from seqray.core import InputError
from seqray.io.alignments.aligned_text import AlignedText, decode, numbered_lines

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
    return [(decode(name), len(letters)) for name, letters in (_name_and_letters(b, False) for b in body)]


def _name_and_letters(line: bytes, strict: bool) -> tuple[bytes, bytes]:
    name, letters = line[:_NAME_WIDTH], line[_NAME_WIDTH:]
    if not strict:
        name, _, letters = line.strip().partition(b"\t" if b"\t" in line else b" ")
    return name.strip(), b"".join(letters.split())


def _interleaved(body: list[bytes], rows: int, strict: bool) -> Rows:
    """The first lines have names; each further group of lines continues the same rows."""
    found = [_name_and_letters(line, strict) for line in body[:rows]]
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
            name, letters = _name_and_letters(line, strict)
            found.append((name, [letters]))
            missing = columns
        missing -= len(letters)
    return [(name, b"".join(pieces)) for name, pieces in found]
