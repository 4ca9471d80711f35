"""Predictions and their labels as tables: what ``seqray predict`` wrote or another tool, and who is what."""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqray.core import Alphabet, InputError, LabelledSequence
from seqray.io.files import display_name, open_input
from seqray.io.tables.delimited import delimiter_of, is_comment, split_cells
from seqray.io.tables.examples import SPLITS

TRUTH_COLUMNS = "id, label[, sequence, group, split, context]"
_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of text.

    Attributes
    ----------
    where
        Name of its file, for messages.
    columns
        The cells of each column, by its name.
    comments
        Lines of comment, without their ``#``.
    sha256
        Of the bytes read, decompressed.
    """

    where: str
    columns: dict[str, list[str]]
    comments: tuple[str, ...]
    sha256: str

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def positive(self) -> str | None:
        """The class that the table's own header calls positive."""
        for line in self.comments:
            if line.startswith("classes: "):
                marked = [name for name in line[9:].split(", ") if name.endswith(" (positive)")]
                return marked[0].removesuffix(" (positive)") if marked else None
        return None


def read_prediction_table(path: str | Path) -> Table:
    """Read predictions: TSV or CSV, plain or compressed, or Parquet.

    Raises
    ------
    InputError
        Where the file can't be read, has no header or no row, or rows of different widths.
    """
    table = _read_parquet(path) if str(path).lower().endswith(".parquet") else _read_text(path)
    if not len(table):
        raise InputError("holds no predictions", where=table.where)
    return table


def _read_parquet(path: str | Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_input(path) as handle:
        data = handle.read()
    try:
        table = pq.read_table(pa.BufferReader(data))
    except pa.ArrowInvalid:
        raise InputError("is not Parquet", where=str(path)) from None
    notes = (table.schema.metadata or {}).get(b"seqray", b"").decode("utf-8", "replace").splitlines()
    columns = {
        name: ["" if cell is None else str(cell) for cell in table[name].to_pylist()]
        for name in table.column_names
    }
    return Table(str(path), columns, tuple(notes), hashlib.sha256(data).hexdigest())


def _read_text(path: str | Path, header: Sequence[str] = ()) -> Table:
    """Read a TSV or CSV; ``header`` stands in where the first row has as many cells and none of the names."""
    where = display_name(path)
    with open_input(path) as handle:
        data = handle.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8", where=where, remedy="give a TSV or CSV table") from None
    comments: list[str] = []
    rows: list[tuple[int, str]] = []
    lines = io.StringIO(text, newline=None)  # str.splitlines would also break at form feeds and the like
    for i, line in enumerate((line.rstrip("\n") for line in lines), start=1):
        if is_comment(line, rows[0][1] if rows else None, f"{where}: line {i}"):
            comments.append(line[1:].strip())
        elif line.strip():
            rows.append((i, line))
    if not rows:
        raise InputError("holds no table", where=where)
    delimiter = delimiter_of(rows[0][1])
    cells = [split_cells(line, delimiter, f"{where}: line {i}") for i, line in rows]
    names = cells[0]
    if header and len(names) == len(header) and not {name.lower() for name in names} & set(header):
        names, numbers, body = list(header), rows, cells
    else:
        numbers, body = rows[1:], cells[1:]
    for (number, _), row in zip(numbers, body, strict=True):
        if len(row) != len(names):
            raise InputError(
                f"has {len(row)} cells, the header has {len(names)}", where=f"{where}: line {number}"
            )
    if len(set(names)) != len(names):
        raise InputError("names a column twice", where=where)
    columns = {name: [row[i] for row in body] for i, name in enumerate(names)}
    return Table(where, columns, tuple(comments), hashlib.sha256(data).hexdigest())


# ------------------------------------------------------------------------------------------------ labels


def read_truth(path: str | Path, alphabet: Alphabet) -> list[LabelledSequence]:
    """Read labels by id: a labelled table, or two columns of id and label without a header.

    Returns
    -------
    list of LabelledSequence
        With empty letters where the table has no column ``sequence``.

    Raises
    ------
    InputError
        For a missing column, an empty or repeated id, an empty label, an unknown split or letter.
    """
    table = _read_text(path, header=("id", "label"))
    columns = {name.lower(): cells for name, cells in table.columns.items()}
    missing = [name for name in ("id", "label") if name not in columns]
    if missing:
        raise InputError(
            f"needs a column '{missing[0]}', found {', '.join(columns)}",
            where=table.where,
            remedy=f"name the columns {TRUTH_COLUMNS}",
        )
    _refuse_repeated(columns["id"], table.where)
    truth = [
        _labelled({name: cells[i] for name, cells in columns.items()}, alphabet, table.where)
        for i in range(len(table))
    ]
    if not truth:
        raise InputError("holds a header but no labels", where=table.where)
    return truth


def _labelled(row: dict[str, str], alphabet: Alphabet, file: str) -> LabelledSequence:
    where = f"{file}: record '{row['id']}'"
    if not row["label"]:
        raise InputError("has no label", where=where)
    split = row.get("split") or None
    if split not in (None, *SPLITS):
        raise InputError(
            f"has the split '{split}'", where=where, remedy=f"use {', '.join(SPLITS)} or nothing"
        )
    letters = row.get("sequence", "")
    return LabelledSequence(
        sequence=alphabet.normalize(letters, where=where) if letters else "",
        label=row["label"],
        id=row["id"],
        group=row.get("group") or None,
        split=split,
        context=row.get("context") or None,
        file=file,
    )


def _refuse_repeated(ids: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for identifier in ids:
        if not identifier:
            raise InputError("holds a row without an id", where=where)
        if identifier in seen:
            raise InputError(
                f"holds the id '{identifier}' twice", where=where, remedy="a join needs each id once"
            )
        seen.add(identifier)


# -------------------------------------------------------------------------------------------------- join


def rows_by_id(table: Table, id_column: str, ids: Sequence[str], labels_name: str) -> list[int]:
    """Row of each id in a table of predictions; rows that none asks for are left out.

    Raises
    ------
    InputError
        For a repeated id, a missing column, and ids without a prediction.
    """
    if id_column not in table.columns:
        raise InputError(
            f"has no column '{id_column}', found {', '.join(table.columns)}",
            where=table.where,
            remedy="name the one of the ids: --id-column NAME",
        )
    _refuse_repeated(table.columns[id_column], table.where)
    place = {identifier: i for i, identifier in enumerate(table.columns[id_column])}
    missing = [identifier for identifier in ids if identifier not in place]
    if missing:
        shown = ", ".join(f"'{identifier}'" for identifier in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise InputError(
            f"has no prediction for {shown}{more}",
            where=table.where,
            remedy=f"predict all records of {labels_name}, or take them out of it",
        )
    return [place[identifier] for identifier in ids]


def column_of(name: str) -> str:
    """The column of a class in a table of predictions."""
    return "p_" + re.sub(r"\s+", "_", name.strip())


def numbers(table: Table, column: str, rows: Sequence[int]) -> np.ndarray:
    """Numbers of a column: (N,).

    Raises
    ------
    InputError
        For a column that isn't there and a cell that is no finite number.
    """
    if column not in table.columns:
        raise InputError(f"has no column '{column}', found {', '.join(table.columns)}", where=table.where)
    cells, values = table.columns[column], np.empty(len(rows))
    for place, row in enumerate(rows):
        try:
            values[place] = float(cells[row])
        except ValueError:
            values[place] = math.nan
        if not math.isfinite(values[place]):
            raise InputError(
                f"column '{column}' holds '{cells[row]}', which is no number",
                where=f"{table.where}: row {row + 1}",
            )
    return values
