"""Write predictions and skipped records as tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqray.core import InputError, format_number
from seqray.core.results import Prediction, SkippedRecord
from seqray.io.files import encode_text, open_output
from seqray.io.tables.writing import open_table, write_table

PARQUET_ROWS = 10_000  # rows of a row group: bounds memory


def table_format(path: str | Path) -> str:
    """``tsv`` or ``parquet`` by the end of the name; ``-`` is TSV on standard output.

    Raises `InputError` for any other name.
    """
    name = str(path).lower()
    if name == "-" or name.endswith((".tsv", ".tsv.gz")):
        return "tsv"
    if name.endswith(".parquet"):
        return "parquet"
    raise InputError(
        "does not end in the suffix of a known table format",
        where=str(path),
        remedy="use .tsv, .tsv.gz, .parquet or '-'",
    )


def probability_column(name: str) -> str:
    """The column of a class in a table of predictions."""
    return "p_" + "_".join(name.split())


def prediction_columns(classes: Sequence[str], sets: bool = False) -> list[str]:
    """Column names of a prediction table; ``set`` is the last if sets of classes are given."""
    return ["id", "length", "label", *map(probability_column, classes), "flags", *(["set"] if sets else [])]


def format_flags(prediction: Prediction) -> str:
    """Flags of a prediction as a cell."""
    return ",".join(prediction.flags) or "."


def format_label_set(prediction: Prediction) -> str:
    """Classes of a prediction's set as a cell."""
    return "|".join(prediction.label_set or ()) or "-"


def prediction_row(p: Prediction, sets: bool) -> list[Any]:
    """Cells of a prediction, in the order of `prediction_columns`."""
    return [p.id, p.length, p.label, *p.probabilities, format_flags(p), *([format_label_set(p)] * sets)]


def write_predictions(
    path: str | Path,
    predictions: Iterable[Prediction],
    classes: Sequence[str],
    provenance: Sequence[str],
    sets: bool = False,
) -> int:
    """Write one row per prediction as they come, and return how many.

    Parameters
    ----------
    path
        ``.tsv``, ``.tsv.gz`` or ``.parquet``; ``-`` is standard output.
    predictions
        Each with one probability per class.
    classes
        Names of the classes in the order of the probabilities, for the columns ``p_<class>``.
    provenance
        Written as ``#`` lines above the header, or under the key ``seqray`` in the schema of a Parquet file.
    sets
        Whether to write the column ``set``.

    Notes
    -----
    Flags are joined by commas, ``.`` if there are none; the classes of a set by ``|``, ``-`` for the empty
    set. Probabilities have six significant digits.
    """
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

    types = {"length": pa.int64()} | {
        name: pa.string() for name in ("id", "label", "flags", "set") if name in columns
    }
    fields = [(name, types.get(name, pa.float64())) for name in columns]
    schema = pa.schema(fields, metadata={"seqray": encode_text("\n".join(provenance))})
    count = 0
    with open_output(path) as handle, pq.ParquetWriter(handle, schema) as writer:
        while chunk := list(itertools.islice(rows, PARQUET_ROWS)):
            # The same digits as in a TSV: a table has the same values in both formats.
            rounded = [[float(format_number(c)) if isinstance(c, float) else c for c in row] for row in chunk]
            arrays = [
                pa.array(column, type=kind)
                for column, (_, kind) in zip(zip(*rounded, strict=True), fields, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(chunk)
    return count


@contextmanager
def open_skipped(
    path: str | Path, provenance: Sequence[str] = ()
) -> Iterator[Callable[[SkippedRecord], object]]:
    """Open a TSV of skipped records; yields a function that writes the ``id`` and ``reason`` of one."""
    with open_table(path, ("id", "reason"), provenance) as write:
        yield lambda record: write([(record.id, record.reason)])
