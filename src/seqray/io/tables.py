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
from typing import Any, BinaryIO

from seqray.core.alphabet import Alphabet
from seqray.core.errors import ConfigError, InputError, require, setting
from seqray.core.text import counted, format_number
from seqray.core.version import __version__
from seqray.io.files import display_name, encode_text, is_frame, open_input, open_output, short_name
from seqray.io.records import detect_format

# ------------------------------------------------------------- in: tabs or commas, a header, and # comments

_ONCE = ("id", "sequence", "file", "label", "group", "split", "context")  # others may occur twice
RECORD_COLUMNS = (*_ONCE, "subclass")

Columns = Mapping[str, str]
"""Names that a table gives to `RECORD_COLUMNS`, as in ``{"sequence": "seq"}``."""

_BLANK = " \t\n\r\v\f"  # as FASTA divides headers; others, such as U+2028, may belong to an id
_OF_ALIGNMENTS = (
    "a table of alignments needs a model that reads them: to train one, give --like rna-family-type or "
    "--config YAML"
)
_QUOTE = "write as many cells as the header has; a cell with a delimiter in double quotes"
_OF_SEQUENCES = (
    "give a table, a FASTA file for each class (--class LABEL=FASTA), or for a model of alignments the "
    "table of their labels (--alignment-labels)"
)


def delimited_rows(
    handle: BinaryIO, where: str, comments: list[str] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Place and cells of each line that is neither blank nor a ``#`` comment; the first is the header."""
    header, delimiter, width = "", ",", 0
    try:
        for number, line in enumerate(io.TextIOWrapper(handle, encoding="utf-8-sig", newline=None), start=1):
            place, line = f"{where}: line {number}", line.rstrip("\n")
            if line.startswith("#"):
                if delimiter in header and line.count(delimiter) == header.count(delimiter):
                    what = "begins with '#' and has the cells of a row: it may be a record or a comment"
                    remedy = "put the first cell in double quotes, or remove the line"
                    raise InputError(what, where=place, remedy=remedy)
                if comments is not None:
                    comments.append(line[1:].strip())
            elif line.strip(_BLANK):
                if not header:
                    header, delimiter = line, "\t" if "\t" in line else ","
                    if ";" in header and delimiter not in header:
                        what = "cells are separated by ';'"
                        raise InputError(what, where=place, remedy="use tabs or commas")
                try:
                    row = next(csv.reader([line], delimiter=delimiter, strict=True))
                except csv.Error as error:
                    what = f"is not a row of a table ({error})"
                    raise InputError(what, where=place, remedy=_QUOTE) from None
                width = width or len(row)
                if len(row) != width:
                    what = f"has {counted(len(row), 'cell')}, the header has {width}"
                    raise InputError(what, where=place, remedy=_QUOTE)
                yield place, [cell.strip(_BLANK) for cell in row]
    except UnicodeDecodeError:
        remedy = "save the table as TSV or CSV in UTF-8"
        raise InputError("is not text in UTF-8", where=where, remedy=remedy) from None


def read_rows(
    path: Any, required: Sequence[str], remedy: str, columns: Columns | None = None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a TSV or CSV, plain or compressed, or of a pandas frame; see `parse_rows`."""
    where = display_name(path)
    if not is_frame(path):
        with open_input(path) as handle:
            yield from parse_rows(handle, where, required, remedy, handle.peek(1), columns)
        return
    places = column_places(list(map(str, path.columns)), required, columns, where, remedy)
    cells = path.astype(object).where(path.notna(), "").astype(str)
    for number, row in enumerate(cells.itertuples(index=False, name=None), start=1):
        yield f"{where}: row {number}", {name: row[i].strip(_BLANK) for name, i in places.items()}


def parse_rows(
    handle: BinaryIO,
    where: str,
    required: Sequence[str],
    remedy: str,
    head: bytes = b"",
    columns: Columns | None = None,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows as mappings of column (in lower case) to cell, with their places; see `column_places`."""
    rows = delimited_rows(handle, where)
    place, header = next(rows, ("", []))
    if not place:
        named = " and ".join(f"'{name}'" for name in required)
        raise InputError("contains no table", where=where, remedy=f"give a header with {named}")
    places = column_places(header, required, columns, place, remedy, where=where, head=head)
    for place, cells in rows:
        yield place, {name: cells[i] for name, i in places.items()}


def check_columns(columns: Any) -> None:
    """Raise `ConfigError` for names of columns that are not `Columns`."""
    require(columns is None or isinstance(columns, Mapping), "columns", "must be as {'sequence': 'NAME'}")


def column_places(
    header: Sequence[str],
    required: Sequence[str],
    columns: Columns | None,
    place: str,
    remedy: str,
    *,
    where: str = "",
    head: bytes = b"",
) -> dict[str, int]:
    """Place of each column, by its name in lower case, or by the name that ``columns`` has for it.

    ``remedy`` helps where a ``required`` one lacks; ``head`` tells what the file ``where`` is if no table.
    """
    check_columns(columns)
    names, renamed = [name.lower() for name in header], {k: v.lower() for k, v in (columns or {}).items()}
    for name in renamed:
        if name not in RECORD_COLUMNS:
            what = f"'{name}' in {setting('columns')} is no column that seqray knows"
            raise ConfigError(what, remedy=f"known are {', '.join(RECORD_COLUMNS)}")
    wanted = [renamed.get(name, name) for name in (*required, *renamed)]
    missing = next((name for name in wanted if names.count(name) != 1), None)
    if missing and (form := detect_format(head)):
        is_labels = {"sequence", "file"}.isdisjoint(required)
        remedy = f"give a table: {remedy}" if is_labels else _OF_SEQUENCES
        raise InputError(f"is {form}, not a table", where=where, remedy=remedy)
    if missing:
        if missing == "sequence" and "file" in names:
            remedy = _OF_ALIGNMENTS
        elif columns is not None:
            remedy = f"{remedy}, or say how it is called: {setting('columns', {required[0]: 'NAME'})}"
        what = f"needs one column '{missing}', found {', '.join(names)}"
        raise InputError(what, where=place, remedy=remedy)
    for name in _ONCE:
        if names.count(name) > 1 and name not in renamed:
            raise InputError(f"names the column '{name}' twice", where=place, remedy="remove one of them")
    places = {name: i for i, name in enumerate(names) if name not in renamed}
    return places | {name: names.index(own) for name, own in renamed.items()}


# -------------------------------------------------------- out: lines of provenance, a header, and rows

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
    """Open a TSV, whose rows come in parts below lines of provenance, or by its name a CSV without these."""
    is_csv = str(path).lower().removesuffix(".gz").endswith(".csv")

    def line(cells: Iterable[str], *, quotes: bool = quotes) -> bytes:
        if is_csv:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerow(list(cells))
            return encode_text(text.getvalue())
        if quotes:  # of a cell that begins with one or with #, so that it can be read back
            cells = ('"' + c.replace('"', '""') + '"' if c.startswith(("#", '"')) else c for c in cells)
        return encode_text("\t".join(cells) + "\n")

    with open_output(path) as handle:
        handle.write((b"" if is_csv else comment_lines(provenance)) + line(columns, quotes=False))

        def write(rows: Iterable[Sequence[object]]) -> int:
            count = 0
            for row in rows:
                handle.write(line(map(format_cell, row)))
                count += 1
            return count

        yield write


def write_table(
    path: str | Path, columns: Sequence[str], rows: Iterable[Sequence[object]], provenance: Iterable[str] = ()
) -> int:
    """Write a TSV and return the number of rows; see `open_table`."""
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
    """Provenance of a table, without date or folder, so that the same input gives the same bytes."""
    return [
        f"seqray {__version__}",
        f"command: {shlex.join(map(_without_folders, command))}",
        *([f"model: {model_name} sha256:{model_sha256}"] if model_name else []),
        *([f"alphabet: {alphabet_policy}"] if alphabet_policy else []),
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
