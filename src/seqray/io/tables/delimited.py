"""Read tables as text: tabs or commas, a header, and comments that begin with ``#``.

A record may begin with ``#``, too. All such lines above the header are comments. A line below the header that
has as many cells as a row could be either, and is an error; in double quotes it is a record.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from seqray.core import InputError, counted
from seqray.io.files import open_input
from seqray.io.pipes import display_name
from seqray.io.sequences import detect_format

_READ = ("id", "sequence", "file", "label", "group", "split", "context")  # others may occur twice


_OF_ALIGNMENTS = (
    "a table of alignments needs a model that reads them: to train one, give --like rna-family-type or "
    "--config YAML"
)
_BLANK = " \t\n\r\v\f"  # as FASTA divides headers; others, such as U+2028, may belong to an id


def is_comment(line: str, header: str | None, where: str) -> bool:
    """Whether a line is a comment; raises `InputError` if it may also be a row.

    ``line`` lacks its end; ``header`` is the first line that is neither blank nor a comment, or None above
    it.
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
    """A tab if the header contains one, else a comma."""
    return "\t" if "\t" in header else ","


def check_delimiter(header: str, where: str) -> None:
    """Refuse a header of several cells that are separated by semicolons, as some spreadsheets write them."""
    if ";" in header and delimiter_of(header) not in header:
        raise InputError("cells are separated by ';'", where=where, remedy="use tabs or commas")


def data_lines(handle: BinaryIO, where: str, comments: list[str] | None = None) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is neither blank nor a ``#`` comment.

    The bytes are in UTF-8; ``comments`` receives the comments, without their ``#``.
    """
    text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline=None)
    header = None
    try:
        for number, line in enumerate(text, start=1):
            place = f"{where}: line {number}"
            if is_comment(line.rstrip("\n"), header, place):
                if comments is not None:
                    comments.append(line[1:].strip())
            elif line.strip(_BLANK):
                header = header or line
                yield number, line.rstrip("\n")
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8", where=where, remedy="give a TSV or CSV table") from None


def split_cells(line: str, delimiter: str, where: str) -> list[str]:
    """Split a line into cells without ASCII white space around; quoted cells may contain the delimiter."""
    try:
        return [cell.strip(_BLANK) for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InputError(f"is not a row of a table ({error})", where=where) from None


def split_rows(
    lines: Iterable[tuple[int, str]], columns: Sequence[str], delimiter: str, where: str
) -> Iterator[tuple[str, list[str]]]:
    """Place and cells of each line; raises `InputError` for a row of another width than the header."""
    for number, line in lines:
        place = f"{where}: line {number}"
        cells = split_cells(line, delimiter, place)
        if len(cells) != len(columns):
            raise InputError(f"has {counted(len(cells), 'cell')}, the header has {len(columns)}", where=place)
        yield place, cells


def _read_header(
    lines: Iterator[tuple[int, str]], where: str, required: Sequence[str], remedy: str, head: bytes
) -> tuple[list[str], str]:
    """Column names in lower case, and the delimiter; ``head`` is the first block of the file."""
    number, line = next(lines, (0, ""))
    if not number:
        header = " and ".join(f"'{name}'" for name in required)
        raise InputError("contains no table", where=where, remedy=f"give a header with {header}")
    delimiter, place = delimiter_of(line), f"{where}: line {number}"
    check_delimiter(line, place)
    columns = [name.lower() for name in split_cells(line, delimiter, place)]
    for name in required:
        if columns.count(name) != 1:
            if found := detect_format(head):
                other = _instead_of(required, remedy)
                raise InputError(f"is {found}, not a table", where=where, remedy=other)
            raise _missing_column(name, columns, place, remedy)
    for name in _READ:
        if columns.count(name) > 1:
            raise InputError(f"names the column '{name}' twice", where=place, remedy="remove one of them")
    return columns, delimiter


def _missing_column(name: str, columns: Sequence[str], place: str, remedy: str) -> InputError:
    if name == "sequence" and "file" in columns:
        remedy = _OF_ALIGNMENTS
    return InputError(f"needs one column '{name}', found {', '.join(columns)}", where=place, remedy=remedy)


def _instead_of(required: Sequence[str], remedy: str) -> str:
    """What to give instead of sequences or an alignment."""
    if {"sequence", "file"}.isdisjoint(required):
        return f"give a table: {remedy}"
    return (
        "give a table, a FASTA file for each class (--class LABEL=FASTA), or for a model of alignments the "
        "table of their labels (--alignment-labels)"
    )


def read_rows(path: str | Path, required: Sequence[str], remedy: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a table as mappings of column to cell, each with its place for errors.

    Raises `InputError` if there is no table or no such column, and for a row of another width than the
    header.

    Parameters
    ----------
    path
        TSV or CSV, plain or compressed; ``-`` is standard input.
    required
        Columns that the header must have once, in lower case.
    remedy
        What to do if one is missing, for the error.
    """
    with open_input(path) as handle:
        yield from parse_rows(handle, display_name(path), required, remedy, handle.peek(1))


def parse_rows(
    handle: BinaryIO, where: str, required: Sequence[str], remedy: str, head: bytes = b""
) -> Iterator[tuple[str, dict[str, str]]]:
    """`read_rows` of an open file.

    Parameters
    ----------
    handle, where
        Bytes of the table, and the name of its file for errors.
    required, remedy
        As for `read_rows`.
    head
        Its first block, which says what it is if it is no table.
    """
    lines = data_lines(handle, where)
    columns, delimiter = _read_header(lines, where, required, remedy, head)
    for place, cells in split_rows(lines, columns, delimiter, where):
        yield place, dict(zip(columns, cells, strict=True))
