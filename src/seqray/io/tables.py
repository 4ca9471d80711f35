"""Tables as text: TSV and CSV in, TSV out with a header."""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from seqray.core.alphabet import Alphabet
from seqray.core.errors import InputError
from seqray.core.text import counted, format_number
from seqray.core.version import __version__
from seqray.io.files import display_name, encode_text, open_input, open_output, short_name
from seqray.io.records import detect_format

# --- Read tables as text: tabs or commas, a header, and comments that begin with ``#``

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


# --- Write tables as text: lines of provenance, a header, rows

MISSING = "."

WriteRows = Callable[[Iterable[Sequence[object]]], int]
"""Writes rows of cells and returns how many; see `format_cell`."""


def format_cell(value: object) -> str:
    """Text of a cell: ``.`` for None and for a number that is not finite, ``yes`` and ``no`` for booleans."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_number(value) if isinstance(value, float) else str(value)


def _quoted(cell: str) -> str:
    """A cell; in double quotes if it begins with ``#`` or a quote, so that it can be read back."""
    return '"' + cell.replace('"', '""') + '"' if cell.startswith(("#", '"')) else cell


def one_line(text: str) -> str:
    """Text without tabs and line breaks, so that it stays in its cell or line."""
    return " ".join(text.split())


def comment_lines(provenance: Iterable[str]) -> bytes:
    """Provenance as ``#`` lines; a line break inside an entry can't start a line of its own."""
    return encode_text("".join(f"# {one_line(line)}\n" for line in provenance))


@contextmanager
def open_table(
    path: str | Path, columns: Sequence[str], provenance: Iterable[str] = (), *, quotes: bool = True
) -> Iterator[WriteRows]:
    """Open a TSV whose rows come in parts.

    Parameters
    ----------
    path
        See `seqray.io.open_output`.
    columns
        Names of the columns.
    provenance
        Written as ``#`` lines above the header.
    quotes
        Whether cells that begin with ``#`` or a quote are quoted; BED has no quotes.

    Yields
    ------
    WriteRows
        Each row has as many cells as there are columns.
    """
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + encode_text("\t".join(columns) + "\n"))

        def write(rows: Iterable[Sequence[object]]) -> int:
            count = 0
            for row in rows:
                cells = map(format_cell, row)
                handle.write(encode_text("\t".join(map(_quoted, cells) if quotes else cells) + "\n"))
                count += 1
            return count

        yield write


def write_table(
    path: str | Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    provenance: Iterable[str] = (),
) -> int:
    """Write a TSV and return the number of rows.

    Parameters
    ----------
    path
        File to write.
    columns
        Names of the columns.
    rows
        Cells of each row.
    provenance
        Comment lines of the file.
    """
    with open_table(path, columns, provenance) as write:
        return write(rows)


# ------------------------------------------------------------------------------------------- provenance


def provenance_lines(
    command: Sequence[str],
    model_name: str,
    model_sha256: str,
    alphabet_policy: str,
    extra: Mapping[str, object] | None = None,
) -> list[str]:
    """Provenance of a table, without date or folder, so that the same input gives the same bytes.

    Parameters
    ----------
    command
        The words of the command line; file names are cut to their last part.
    model_name, model_sha256
        Of the model used; there is no line about it if the name is empty.
    alphabet_policy
        Which letters were accepted and how they were read, see `describe_alphabet`.
    extra
        Further settings and the meaning of columns, one line each: ``key: value``.
    """
    return [
        f"seqray {__version__}",
        f"command: {shlex.join(_without_folders(word) for word in command)}",
        *([f"model: {model_name} sha256:{model_sha256}"] if model_name else []),
        f"alphabet: {alphabet_policy}",
        *(f"{key}: {value}" for key, value in (extra or {}).items()),
    ]


_NAMED = re.compile(r"((?:--[\w-]+=)?(?:[^/=]*=)?)(.*)", re.DOTALL)
"""A word of the command line: what stands before a value, such as ``--class=a=``, and the value."""


def _without_folders(word: str) -> str:
    """A word of the command line, with the last part of a path alone; ``pipe`` for one that the shell made.

    A word with a slash is a path if its folder exists: it may also be a name, as in ``--sample lane1/s3``.
    """
    before, value = _NAMED.fullmatch(word).groups()  # pyright: ignore[reportOptionalMemberAccess]
    is_path = "/" in value and (value[0] in "/.~" or Path(value).parent.is_dir())
    return before + (short_name(value) if is_path else value)


def describe_alphabet(alphabet: Alphabet) -> str:
    """The letter policy in one line, for `provenance_lines`."""
    same = {"dna": ", U read as T", "rna": ", T read as U"}.get(alphabet.name, "")
    return f"{alphabet.name} {alphabet.letters}, case folded{same}; {alphabet.ambiguous} read as unknown"
