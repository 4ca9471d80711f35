"""Tables of predictions and labels by id in; predictions and skipped records out."""

from __future__ import annotations

import hashlib
import io
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats, Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.labels import known_positive, unknown_positive
from seqray.core.records import LabeledSequence
from seqray.core.results import Prediction
from seqray.core.text import first_and_more, label_set_cell, parse_float, round_number
from seqray.io.files import display_name, encode_text, open_input, open_output
from seqray.io.sequences import KNOWN, OnUnread, labeled_sequence, report_unread
from seqray.io.tables import Columns, column_places, delimited_rows, write_table

# ------------------------------------------------------------------- in: made by seqray or by another tool

_TRUTH_COLUMNS = "id, label[, sequence, group, split, context, subclass]"
_MAX_SHOWN_IDENTIFIERS = 3
_MAX_ROWS = 100_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of text: cells by column, comments, and the hash of its bytes, decompressed."""

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
    """Read predictions: TSV or CSV, plain or compressed, or Parquet."""
    table = _read_parquet(path) if str(path).lower().endswith(".parquet") else _read_text(path)
    if not len(table):
        raise InputError("contains no predictions", where=table.where, remedy="run seqray predict")
    return table


def _read_parquet(path: str | Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_input(path, is_text=False) as handle:
        data = handle.read()
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        parts = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        if sum(parts) != file.metadata.num_rows or sum(parts) > _MAX_ROWS:  # memory is taken for so many
            raise ValueError("an impossible number of rows")
        table = file.read()
        columns = {
            name: ["" if cell is None else str(cell) for cell in table[name].to_pylist()]
            for name in table.column_names
        }
    except pa.ArrowInvalid:
        raise InputError("is not Parquet", where=str(path), remedy="write it again") from None
    except MemoryError:
        raise
    except Exception:  # of many types: damage, and dates and numbers that Python can't hold
        raise InputError("is damaged Parquet", where=str(path), remedy="write it again") from None
    notes = (table.schema.metadata or {}).get(b"seqray", b"").decode("utf-8", "replace").splitlines()
    return Table(str(path), columns, tuple(notes), hashlib.sha256(data).hexdigest())


def _read_text(path: str | Path, header: Sequence[str] = ()) -> Table:
    """Read a TSV or CSV; ``header`` replaces a first row of as many cells that has none of these names."""
    where = display_name(path)
    with open_input(path) as handle:
        data = handle.read()
    comments: list[str] = []
    rows = [cells for _, cells in delimited_rows(io.BytesIO(data), where, comments)]
    if not rows:
        raise InputError("contains no table", where=where, remedy="give a header and rows")
    names = rows[0]
    if len(names) == len(header) and {name.lower() for name in names}.isdisjoint(header):
        names = list(header)
    else:
        del rows[0]
    if len(set(names)) != len(names):
        raise InputError("names a column twice", where=where, remedy="rename one")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return Table(where, columns, tuple(comments), hashlib.sha256(data).hexdigest())


def read_labels(
    path: str | Path, alphabet: Alphabet, on_unread: OnUnread | None = None, columns: Columns | None = None
) -> list[LabeledSequence]:
    """Read labels by id: a labeled table, perhaps without sequences, or two columns without a header."""
    needed = ("id", "label")
    table = _read_text(path, header=() if columns else needed)
    remedy = f"name the columns {_TRUTH_COLUMNS}"
    at = column_places([*table.columns], needed, columns or {}, table.where, remedy)
    report_unread(at, KNOWN, path, on_unread, columns)
    read = [*table.columns.values()]
    places = _rows_of_ids(read[at["id"]], table.where)
    if not places:
        raise InputError("contains a header but no labels", where=table.where, remedy="give rows")
    return [
        labeled_sequence(
            {name: read[place][i] for name, place in at.items()},
            identifier,
            alphabet,
            where=f"{table.where}: record '{identifier}'",
            file=table.where,
        )
        for identifier, i in places.items()
    ]


def _rows_of_ids(ids: Sequence[str], where: str) -> dict[str, int]:
    """The row of each id; `InputError` for one that is empty or occurs twice."""
    rows: dict[str, int] = {}
    for identifier in ids:
        if not identifier:
            raise InputError("contains a row without an id", where=where, remedy="give each an id")
        if identifier in rows:
            what = f"contains the id '{identifier}' twice"
            raise InputError(what, where=where, remedy="a join needs each id once")
        rows[identifier] = len(rows)
    return rows


def rows_by_id(table: Table, id_column: str, ids: Sequence[str], labels_name: str) -> list[int]:
    """Row of each labeled id in a table of predictions; ``labels_name`` names the labels in errors."""
    if id_column not in table.columns:
        what = f"has no column '{id_column}', found {', '.join(table.columns)}"
        raise InputError(what, where=table.where, remedy="name the column of the ids: --id-column NAME")
    place = _rows_of_ids(table.columns[id_column], table.where)
    missing = [f"'{identifier}'" for identifier in ids if identifier not in place]
    if missing:
        shown = first_and_more(missing, _MAX_SHOWN_IDENTIFIERS)
        remedy = f"predict all records of {labels_name}, or remove these from it"
        raise InputError(f"has no prediction for {shown}", where=table.where, remedy=remedy)
    return [place[identifier] for identifier in ids]


def numeric_column(table: Table, column: str, rows: Sequence[int]) -> np.ndarray:
    """Numbers of a column at some rows (N,): float64 (N,)."""
    if column not in table.columns:
        raise InputError(f"has no column '{column}', found {', '.join(table.columns)}", where=table.where)
    cells, values = table.columns[column], np.empty(len(rows))
    for place, row in enumerate(rows):
        values[place] = parse_float(cells[row])
        if not math.isfinite(values[place]):
            what = f"column '{column}' contains '{cells[row]}', which is not a finite number"
            raise InputError(what, where=f"{table.where}: row {row + 1}")
    return values


def name_classes(
    table: Table,
    labels: Sequence[str],
    labels_name: str,
    *,
    score: str | None = None,
    positive: str | None = None,
) -> tuple[tuple[str, ...], str]:
    """Names of the classes in the order of the columns, and the positive one; ``labels`` are those in use."""
    columns = [name for name in table.columns if name.startswith("p_")]
    if not score and not columns:
        remedy = "name the score: --score-column NAME"
        raise InputError("has no column p_<class>", where=table.where, remedy=remedy)
    classes = tuple(labels)
    if not score and len(columns) > 1:
        by_column = {probability_column(label): label for label in labels}
        classes = tuple(by_column.get(column, column[2:]) for column in columns)
    elif len(labels) == 1 and positive:  # one score does not name the other class
        classes = (labels[0] if positive not in labels else f"not-{positive}", positive)
    elif len(labels) == 1:
        remedy = "name the positive class, --positive CLASS, or give labels of both classes"
        raise InputError(f"all labels are '{labels[0]}'", where=labels_name, remedy=remedy)
    elif len(labels) != 2:
        what = f"one score a record, but {len(labels)} labels: {', '.join(labels[:5])}"
        raise InputError(what, where=labels_name, remedy="give a column p_<class> for each class")
    named = positive or table.positive()
    if named is not None and named not in classes:
        remedy = f"give --positive {' or '.join(classes[:5])}"
        raise ConfigError(f"'{named}' is not a class", remedy=remedy)
    named = named or (known_positive(classes) if len(classes) == 2 else classes[0])
    if named is None:
        raise unknown_positive(classes, "--positive CLASS")
    return classes, named


def scores_and_calls(
    table: Table,
    column: str,
    rows: Sequence[int],
    classes: Sequence[str],
    positive: str,
    threshold: float | None,
) -> tuple[Floats, Ints, bool, float]:
    """Scores (N, 2) and calls (N,), whether they are probabilities, within 0 to 1, and the lowest called."""
    k = classes.index(positive)
    if column == probability_column(classes[1 - k]):
        raise ConfigError(
            f"column '{column}' holds the probabilities of '{classes[1 - k]}', and '{positive}' is positive",
            remedy=f"give --score-column {probability_column(positive)}, or --positive {classes[1 - k]}",
        )
    values = numeric_column(table, column, rows)
    inside = bool(values.min() >= 0 and values.max() <= 1)
    if threshold is None and not inside:
        what, remedy = "has scores outside 0 to 1", "give the lowest score that is called: --threshold"
        raise InputError(f"column '{column}' {what}", where=table.where, remedy=remedy)
    limit, other = 0.5 if threshold is None else threshold, 1 - values if inside else -values
    scores = np.stack((values, other) if k == 0 else (other, values), axis=1)
    return scores, np.where(values >= limit, k, 1 - k), inside, limit


# -------------------------------------------------------------------------------------------------- out

PARQUET_ROWS = 10_000  # rows of a row group: bounds memory


def table_format(path: str | Path) -> str:
    """``tsv`` or ``parquet`` by the end of the name; ``-`` is TSV on standard output."""
    name = str(path).lower()
    if name == "-" or name.endswith((".tsv", ".tsv.gz")):
        return "tsv"
    if name.endswith(".parquet"):
        return "parquet"
    what = "does not end in the suffix of a known table format"
    raise InputError(what, where=str(path), remedy="use .tsv, .tsv.gz, .parquet or '-'")


def probability_column(name: str) -> str:
    """The column of a class in a table of predictions."""
    return "p_" + "_".join(name.split())


def prediction_columns(classes: Sequence[str], sets: bool = False) -> list[str]:
    """Column names of a prediction table; ``set`` is the last if sets of classes are given."""
    return ["id", "length", "label", *map(probability_column, classes), "flags", *(["set"] if sets else [])]


def prediction_row(p: Prediction, sets: bool) -> list[Any]:
    """Cells of a prediction, in the order of `prediction_columns`."""
    flags, label_set = ",".join(p.flags) or ".", label_set_cell(p.label_set or ())
    return [p.id, p.length, p.label, *p.probabilities, flags, *([label_set] if sets else [])]


def write_predictions(
    path: str | Path,
    predictions: Iterable[Prediction],
    classes: Sequence[str],
    provenance: Sequence[str],
    sets: bool = False,
) -> int:
    """Write one row per prediction as they come, as TSV or Parquet, and return how many."""
    columns = prediction_columns(classes, sets)
    rows = (prediction_row(p, sets) for p in predictions)
    if table_format(path) == "parquet":
        return _write_parquet(path, columns, rows, provenance)
    return write_table(path, columns, rows, provenance)


def _write_parquet(
    path: str | Path, columns: Sequence[str], rows: Iterator[list[Any]], provenance: Sequence[str]
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"length": pa.int64(), **dict.fromkeys(("id", "label", "flags", "set"), pa.string())}
    fields = [(name, types.get(name, pa.float64())) for name in columns]
    schema = pa.schema(fields, metadata={"seqray": encode_text("\n".join(provenance))})
    count = 0
    with open_output(path) as handle, pq.ParquetWriter(handle, schema) as writer:
        while chunk := list(itertools.islice(rows, PARQUET_ROWS)):
            # The same digits as in a TSV: a table has the same values in both formats.
            rounded = [
                [round_number(cell) if isinstance(cell, float) else cell for cell in row] for row in chunk
            ]
            cells = zip(zip(*rounded, strict=True), fields, strict=True)
            arrays = [pa.array(column, type=kind) for column, (_, kind) in cells]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(chunk)
    return count
