"""Results as pandas frames, with the same columns and words as the output tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

import pandas as pd

from seqray.core import InputError
from seqray.core.results import Call, Prediction
from seqray.io.tables import prediction_columns, prediction_row
from seqray.io.tracks import CALL_COLUMNS, CONTEXT_COLUMNS, call_rows

_CALL_TYPES = {"start": "int64", "end": "int64", "site": "int64", "score": "float64"}
_CONTEXT_TYPES = {
    **dict.fromkeys(("probability", "precision"), "float64"),
    **dict.fromkeys(("distance", "minus10_start", "minus35_start", "spacer"), "Int64"),
}
_EXPLANATION_TYPES = {
    **dict.fromkeys(("position", "column", "rank"), "int64"),
    **dict.fromkeys(("genomic_position", "query_position"), "Int64"),
    **dict.fromkeys(("score", "ism_delta", "p", "q", "occupancy", "conservation"), "float64"),
}


def prediction_frame(
    predictions: Iterable[Prediction], classes: Sequence[str], sets: bool = False
) -> pd.DataFrame:
    """One row per prediction, with the columns of `write_predictions` and unrounded probabilities."""
    columns = prediction_columns(classes, sets)
    frame = pd.DataFrame([prediction_row(p, sets) for p in predictions], columns=columns)
    return frame.astype({"length": "int64", **dict.fromkeys(columns[3 : 3 + len(classes)], "float64")})


def call_frame(calls: Iterable[Call], described: bool = False) -> pd.DataFrame:
    """A row per call, with the columns of `write_calls_tsv`: 0-based, half-open, on the plus strand.

    With ``described`` the contexts of the calls of a locator are added.
    """
    columns = [*CALL_COLUMNS, *(CONTEXT_COLUMNS if described else ())]
    types = _CALL_TYPES | (_CONTEXT_TYPES if described else {})
    return pd.DataFrame(list(call_rows(calls, described=described)), columns=columns).astype(types)


def frame_calls(frame: pd.DataFrame) -> list[Call]:
    """The calls of a frame of `call_frame`, or of some of its rows.

    Raises `InputError` where a column is missing.
    """
    names = [field.name for field in fields(Call) if field.name not in ("context", "id")]
    if missing := [name for name in names if name not in frame]:
        raise InputError(f"the calls lack the column '{missing[0]}'", remedy="give what seqray.scan gave")
    ids = frame["id"].tolist() if "id" in frame else [""] * len(frame)
    rows = zip(*(frame[name].tolist() for name in names), strict=True)
    return [Call(*row, id=str(name)) for name, row in zip(ids, rows, strict=True)]


def explanation_frame(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> pd.DataFrame:
    """One row per letter or column, method and member, as in the tables of ``seqray explain``.

    Numbers that were not computed are nan; unknown positions and ranks are missing.
    """
    cells, rank = list(rows), list(columns).index("rank")
    frame = pd.DataFrame(cells, columns=list(columns))
    types = {name: kind for name, kind in _EXPLANATION_TYPES.items() if name in frame}
    if "column" in frame or any(row[rank] is None for row in cells):  # what the model did not read has none
        types["rank"] = "Int64"
    return frame.astype(types).fillna({"contig": ".", "strand": "."})
