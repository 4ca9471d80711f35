"""Labelled sequences as tables: written as `read_labelled_table` reads them, and columns beyond its own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from seqray.core import InputError, LabelledSequence
from seqray.io.files import open_output
from seqray.io.tables.delimited import read_rows
from seqray.io.tables.examples import comment_lines

COLUMNS = ("sequence", "label", "id", "group", "split")


def write_labelled_table(
    path: str | Path,
    examples: Iterable[LabelledSequence],
    provenance: Sequence[str] = (),
    *,
    delimiter: str | None = None,
    folds: Sequence[int | None] | None = None,
) -> int:
    """Write a row per example below lines of provenance, and return how many.

    Parameters
    ----------
    path
        A name that ends in ``.csv`` or ``.csv.gz`` gives commas, any other tabs; ``-`` is standard output.
    examples
        Written in their order. A group or split that is None is an empty cell; there is a column ``context``
        where an example has one.
    provenance
        Written as ``#`` lines above the header.
    delimiter
        Between the cells, whatever the name of the file.
    folds
        Fold of each example, for a column ``fold``; None is an empty cell.
    """
    rows = list(examples)
    if delimiter is None:
        delimiter = "," if str(path).lower().endswith((".csv", ".csv.gz")) else "\t"
    names = (*COLUMNS, "context") if any(row.context for row in rows) else COLUMNS
    columns = {name: [getattr(row, name) or "" for row in rows] for name in names}
    if folds is not None:
        context = {name: columns.pop(name) for name in names if name == "context"}
        columns |= {"fold": ["" if fold is None else str(fold) for fold in folds]} | context
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + text.getvalue().encode())
    return len(rows)


def read_column(path: str | Path, name: str) -> list[str]:
    """Read one more column of a table of labelled sequences, in the order of its rows.

    Parameters
    ----------
    path
        As `seqray.io.tables.read_labelled_table` reads it; not standard input, which can be read once only.
    name
        Of the column; case doesn't matter.

    Raises
    ------
    InputError
        Where the table has no such column (those it has are named), or can't be read.
    """
    if str(path) == "-":
        raise InputError(
            f"the column '{name}' can't be read from standard input", remedy="save the table to a file"
        )
    return [row[name.lower()] for _, row in read_rows(path, (name.lower(),), "name a column that it has")]
