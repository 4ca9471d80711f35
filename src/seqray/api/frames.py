"""What the verbs return as pandas frames, with the columns and words of the tables that they write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from seqray.core.msa import conservation, occupancy
from seqray.core.results import AlignmentExplanation, AlignmentScores, Call, Explanation, Prediction
from seqray.io.tables import (
    COLUMN_COLUMNS,
    EXPLANATION_COLUMNS,
    format_flags,
    format_label_set,
    prediction_columns,
    ranks,
)
from seqray.io.tracks import CALL_COLUMNS, call_ids

_CALL_TYPES = {"start": "int64", "end": "int64", "site": "int64", "score": "float64"}
_SIGNS = np.array(["-", "0", "+"], dtype=object)


def prediction_frame(
    predictions: Iterable[Prediction], classes: Sequence[str], sets: bool = False
) -> pd.DataFrame:
    """A row per prediction, with the columns of `write_predictions` and all digits of the probabilities."""
    rows = list(predictions)
    columns: list[Any] = [[p.id for p in rows], [p.length for p in rows], [p.label for p in rows]]
    columns += list(np.array([p.probabilities for p in rows]).reshape(len(rows), len(classes)).T)
    columns += [[format_flags(p) for p in rows]]
    columns += [[format_label_set(p) for p in rows]] * sets
    frame = pd.DataFrame(dict(zip(prediction_columns(classes, sets), columns, strict=True)))
    return frame.astype({"length": "int64"})


def call_frame(calls: Iterable[Call]) -> pd.DataFrame:
    """A row per call, with the columns of `write_calls_tsv`: 0-based, half-open, on the plus strand."""
    rows = [
        (name, c.contig, c.start, c.end, c.strand, c.site, c.score, c.label) for name, c in call_ids(calls)
    ]
    return pd.DataFrame(rows, columns=list(CALL_COLUMNS)).astype(_CALL_TYPES)


def explanation_frame(explanations: Iterable[Explanation], top: int | None = None) -> pd.DataFrame:
    """A row per letter, method and member, with the columns of `write_explanations`.

    Parameters
    ----------
    explanations
        Of any records and methods.
    top
        Keep the letters of that many best ranks of each explanation only.

    Returns
    -------
    pandas.DataFrame
        Numbers that weren't computed are nan; a genomic position that isn't known is missing.
    """
    parts = [_letters(e, top) for e in explanations]
    columns = {name: [part[name] for part in parts] for name in EXPLANATION_COLUMNS}
    frame = pd.DataFrame(
        {name: np.concatenate(values) if values else np.empty(0) for name, values in columns.items()}
    )
    integers = {"position": "int64", "genomic_position": "Int64", "rank": "int64"}
    return frame.astype(integers | dict.fromkeys(("score", "ism_delta", "p", "q"), "float64"))


def _letters(e: Explanation, top: int | None) -> dict[str, np.ndarray]:
    """Columns of one explanation."""
    count = len(e.scores)
    rank, unknown = ranks(e.scores), np.full(count, np.nan)
    sign = (
        _SIGNS[np.sign(np.nan_to_num(e.scores)).astype(int) + 1] if e.signed else np.full(count, ".", object)
    )
    columns = {
        "record": np.full(count, e.id, object),
        "position": np.arange(count),
        "contig": np.full(count, e.place.contig if e.place else ".", object),
        "genomic_position": e.place.positions().astype(float) if e.place else unknown,
        "strand": np.full(count, e.place.strand if e.place else ".", object),
        "base": np.array(list(e.sequence), object),
        "method": np.full(count, e.method, object),
        "member": np.full(count, e.member, object),
        "class": np.full(count, e.target, object),
        "score": e.scores,
        "rank": rank,
        "sign": sign,
        "ism_delta": unknown if e.effects is None else e.effects.sum(axis=1) / (e.effects.shape[1] - 1),
        "p": unknown if e.p is None else e.p,
        "q": unknown if e.q is None else e.q,
    }
    return columns if top is None else {name: values[rank <= top] for name, values in columns.items()}


def column_frame(explanations: Iterable[AlignmentExplanation], top: int | None = None) -> pd.DataFrame:
    """A row per column and method, with the columns of `column_lines`, counted from 1.

    Parameters
    ----------
    explanations
        Of any alignments and methods.
    top
        Keep that many of the best ranks of each explanation only.

    Returns
    -------
    pandas.DataFrame
        A column that the model did not read has no score and no rank; one where the query has no letter, no
        position in it.
    """
    parts = [_columns(e, found, top) for e in explanations for found in e.scores]
    empty = pd.DataFrame({name: np.empty(0, dtype=object) for name in COLUMN_COLUMNS})
    frame = pd.concat(parts, ignore_index=True) if parts else empty
    integers = {"column": "int64", "query_position": "Int64", "rank": "Int64"}
    return frame.astype(integers | dict.fromkeys(("score", "occupancy", "conservation"), "float64"))


def _columns(e: AlignmentExplanation, found: AlignmentScores, top: int | None) -> pd.DataFrame:
    alignment, scores = e.alignment, e.by_column(found)
    read = np.isfinite(scores)
    rank, places = np.full(len(scores), np.nan), alignment.query_positions().astype(float) + 1
    rank[read] = ranks(scores[read])
    places[places == 0] = np.nan
    sign = _SIGNS[np.sign(np.nan_to_num(scores)).astype(int) + 1]
    columns = {
        "record": e.id,
        "column": np.arange(1, len(scores) + 1),
        "query_position": places,
        "letter": list(alignment.text(0)),
        "method": found.method,
        "class": e.target,
        "score": scores,
        "rank": rank,
        "sign": np.where(read & found.signed, sign, "."),
        "occupancy": occupancy(alignment.codes, alignment.alphabet),
        "conservation": conservation(alignment.codes, alignment.alphabet),
    }
    frame = pd.DataFrame(columns)
    return frame if top is None else frame.take(np.flatnonzero(rank <= top))
