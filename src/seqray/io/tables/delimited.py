"""Rows of tables in text: tabs or commas, a header, and lines of comment that begin with ``#``.

A record may begin with ``#``, too. Above the header all such lines are comments. Below it, one with the cells
of a row could be either, and is refused; in double quotes it is a record.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from seqray.core import InputError
from seqray.io.files import open_input

_READ = ("id", "sequence", "file", "label", "group", "split", "context")  # by name; of others one may be lost


def quoted(cell: str) -> str:
    """A cell of a TSV as it is read back: in double quotes where it begins with ``#`` or a quote."""
    return '"' + cell.replace('"', '""') + '"' if cell.startswith(("#", '"')) else cell


def is_comment(line: str, header: str | None, where: str) -> bool:
    """Tell whether a line is a comment.

    Parameters
    ----------
    line
        The line.
    header
        The first line that is neither blank nor a comment, or None above it.

    Raises
    ------
    InputError
        Where it may as well be a row.
    """
    if not line.startswith("#"):
        return False
    if header is None:
        return True
    delimiter = delimiter_of(header)
    if delimiter in header and line.count(delimiter) == header.count(delimiter):
        raise InputError(
            "begins with '#' and has the cells of a row: it may be a record or a comment",
            where=where,
            remedy="put the first cell in double quotes, or remove the line",
        )
    return True


def delimiter_of(header: str) -> str:
    """A tab where the header holds one, else a comma."""
    return "\t" if "\t" in header else ","


def data_lines(handle: BinaryIO, path: str | Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is neither blank nor a ``#`` comment."""
    text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline=None)
    header = None
    try:
        for number, line in enumerate(text, start=1):
            where = f"{path}: line {number}"
            if not line.strip() or is_comment(line, header, where):
                continue
            if "\0" in line:
                raise InputError("holds NUL bytes, so it is no text table", where=where)
            header = header or line
            yield number, line.rstrip("\n")
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8", where=str(path), remedy="give a TSV or CSV table") from None


def split_cells(line: str, delimiter: str, where: str) -> list[str]:
    """Cells of a line, without white space around them; quoted ones may hold the delimiter."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InputError(f"is not a row of a table ({error})", where=where) from None


def read_header(
    lines: Iterator[tuple[int, str]], path: str | Path, required: Sequence[str], remedy: str
) -> tuple[list[str], str]:
    """Column names in lower case, and the delimiter: a tab where the header holds one, else a comma.

    Raises
    ------
    InputError
        Where there is no line, or one of the required columns doesn't occur once.
    """
    number, line = next(lines, (0, ""))
    if not number:
        header = " and ".join(f"'{name}'" for name in required)
        raise InputError("holds no table", where=str(path), remedy=f"give a header with {header}")
    delimiter = delimiter_of(line)
    columns = [name.lower() for name in split_cells(line, delimiter, f"{path}: line {number}")]
    for name in required:
        if columns.count(name) != 1:
            raise InputError(
                f"needs one column '{name}', found {', '.join(columns)}",
                where=f"{path}: line {number}",
                remedy=remedy,
            )
    for name in _READ:
        if columns.count(name) > 1:
            raise InputError(
                f"names the column '{name}' twice",
                where=f"{path}: line {number}",
                remedy="remove one of them",
            )
    return columns, delimiter


def read_rows(path: str | Path, required: Sequence[str], remedy: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a table as mappings of column to cell, each with its place for errors.

    Raises
    ------
    InputError
        As `read_header`, and for a row of another width than the header.
    """
    with open_input(path) as handle:
        lines = data_lines(handle, path)
        columns, delimiter = read_header(lines, path, required, remedy)
        for number, line in lines:
            where = f"{path}: line {number}"
            cells = split_cells(line, delimiter, where)
            if len(cells) != len(columns):
                raise InputError(f"has {len(cells)} cells, the header has {len(columns)}", where=where)
            yield where, dict(zip(columns, cells, strict=True))
