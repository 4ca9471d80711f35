"""Results as frames, and contigs from Python objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from seqray.core.errors import ConfigError, InputError, field_name
from seqray.core.records import SequenceRecord
from seqray.core.results import Call, Prediction
from seqray.explanations.calls import Stretch, cut_stretches
from seqray.genome.find import choose_genes, genes_of_records, read_genes
from seqray.genome.genes import Annotation, tracks_reader
from seqray.io.calls import CALL_COLUMNS, call_rows
from seqray.io.gff3 import read_called
from seqray.io.predictions import prediction_columns, prediction_row
from seqray.kinds.objects import annotated_records, as_records, holds_genes
from seqray.modelfile.model import TrainedModel
from seqray.scanning.gene_starts import GENE_COLUMNS

# --- Results as pandas frames, with the same columns and words as the output tables

_CALL_TYPES = {"start": "int64", "end": "int64", "site": "int64", "score": "float64"}
_GENE_TYPES = {"site": "Int64", "distance": "Int64", "score": "Float64", "precision": "Float64"}
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


class CallFrame(pd.DataFrame):
    """The calls of a scan, a row each; what is derived from it is a plain frame."""

    _gene_rows: Sequence[Sequence[object]] = ()

    def genes(self) -> pd.DataFrame:
        """A row a gene: its best start, or why it has none, as ``seqray scan --genes-out`` writes it.

        Returns
        -------
        pandas.DataFrame
            The columns that docs/formats.md lists; empty where no genes were known.
        """
        frame = pd.DataFrame(list(self._gene_rows), columns=list(GENE_COLUMNS))
        return _with_na(frame.astype({"start": "int64", "end": "int64", **_GENE_TYPES}))


def call_frame(calls: Iterable[Call], context: Sequence[str] = ()) -> CallFrame:
    """A row per call, 0-based, half-open, on the plus strand; ``context`` are columns of a locator."""
    whole = [name for name in context if name in ("distance", "spacer") or name.endswith("_start")]
    types = _CALL_TYPES | dict.fromkeys(whole, "Int64") | ({"precision": "Float64"} if context else {})
    frame = pd.DataFrame(list(call_rows(calls, context)), columns=[*CALL_COLUMNS, *context])
    return CallFrame(_with_na(frame.astype(types)))


def _with_na(frame: pd.DataFrame) -> pd.DataFrame:
    """Write what is missing in columns of texts as ``pandas.NA``, as other columns do."""
    for name in frame.columns[[not is_numeric_dtype(kind) for kind in frame.dtypes]]:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), pd.NA)
    return frame


def explanation_frame(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> pd.DataFrame:
    """One row per letter or column, method and member; what was not computed is nan or pandas.NA."""
    cells, rank = list(rows), list(columns).index("rank")
    frame = pd.DataFrame(cells, columns=list(columns))
    types = {name: kind for name, kind in _EXPLANATION_TYPES.items() if name in frame}
    if "column" in frame or any(row[rank] is None for row in cells):  # what the model did not read has none
        types["rank"] = "Int64"
    return _with_na(frame.astype(types).fillna({"contig": ".", "strand": "."}))


# --- Contigs of a scan, and of its calls: their names, their genes, and the letters around calls


def call_stretches(
    model: TrainedModel,
    sequences: Any,
    calls: pd.DataFrame | str | Path | None,
    genes: str | Path | Annotation | None,
    circular: bool | Collection[str] | None,
) -> list[Stretch]:
    """The letters and genes around calls."""
    if calls is None:
        what = "a model for genomes is explained by its calls"
        raise ConfigError(what, remedy="give calls=seqray.scan(...)")
    listed, named = listed_calls(calls)
    records = list(distinct_records(as_records(sequences, model.alphabet)))
    named = named if circular is None else circular
    named = {named} if isinstance(named, str) else named

    def is_circular(record: SequenceRecord) -> bool:
        return record.circular or named is True or (bool(named) and record.id in named)

    source = gene_source(genes, None, records, sequences, is_circular, model.card.locator.introns)
    tracks = tracks_reader(model.card.model.tracks, source.find if source else None)
    circles = {record.id for record in records if is_circular(record)}
    names = {*circles, *(source.circular if source else ())}
    return cut_stretches(model, records, listed, tracks, circular=names)


def listed_calls(calls: pd.DataFrame | str | Path) -> tuple[list[Call], Any]:
    """The calls of GFF3, or of a frame of `call_frame`, and the contigs that it calls circular."""
    if not isinstance(calls, pd.DataFrame):
        return read_called(calls)[:2]
    names = [field.name for field in fields(Call) if field.name not in ("context", "id")]
    if missing := [name for name in names if name not in calls]:
        raise InputError(f"the calls lack the column '{missing[0]}'", remedy="give what seqray.scan gave")
    ids = calls["id"].tolist() if "id" in calls else [""] * len(calls)
    rows = zip(*(calls[name].tolist() for name in names), strict=True)
    listed = [Call(*row, id=str(name)) for name, row in zip(ids, rows, strict=True)]
    return listed, calls.attrs.get("circular", ())


def gene_source(
    genes: str | Path | Annotation | None,
    table: int | None,
    records: Sequence[SequenceRecord],
    sequences: Any,
    is_circular: Callable[[SequenceRecord], bool],
    introns: bool,
) -> Annotation | None:
    """Where the genes that a locator reads are from; warns where they should be predicted and can't be."""
    if not isinstance(genes, str | Path | Annotation | None):
        remedy = "give a GenBank or GFF3 file, what read_genes gave, 'predict', 'none' or 'auto'"
        raise ConfigError(f"{field_name('genes')} is a {type(genes).__name__}", remedy=remedy)
    own = partial(read_genes, sequences) if holds_genes(sequences) else None
    if annotated := annotated_records(sequences):
        own = partial(genes_of_records, annotated, "the records")
    wanted = "none" if genes is None else genes
    source, reason = choose_genes(wanted, records, is_circular, table=table, own=own, introns=introns)
    if reason:
        warnings.warn(f"scanned without genes: {reason}", stacklevel=4)
    for note in source.notes if source else ():
        warnings.warn(note, stacklevel=4)
    return source


def distinct_records(records: Iterable[SequenceRecord]) -> Iterator[SequenceRecord]:
    """Refuse two sequences of the same name: their calls would be ambiguous."""
    seen: set[str] = set()
    for record in records:
        if record.id in seen:
            what = "the name occurs twice"
            raise InputError(what, where=f"record '{record.id}'", remedy="give names that differ")
        seen.add(record.id)
        yield record
