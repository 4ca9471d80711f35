"""Write tables as text: lines of provenance, a header, rows. Numbers become text here and nowhere else."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from seqray.core import Alphabet, __version__, format_number
from seqray.io.files import encode_text, open_output
from seqray.io.pipes import short_name

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
