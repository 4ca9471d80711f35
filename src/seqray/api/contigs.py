"""Contigs of a scan, and of its calls: their names, their genes, and the letters around calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from seqray.annotation import Annotation
from seqray.api.frames import frame_calls
from seqray.core import ConfigError, InputError, SequenceRecord
from seqray.core.results import Call, Place
from seqray.explanations import Stretch, cut_stretches, extract_call_windows
from seqray.io.tracks import read_circular, read_gff3_calls
from seqray.kinds import as_records, has_unread_genes, holds_genes, tracks_reader
from seqray.modelfile import TrainedModel
from seqray.scanning import GeneSource, choose_genes

_UNREAD = (
    "the genes of a SeqRecord are not read, and genes are predicted: give its GenBank file, as the sequences "
    "or as genes=..., or genes='predict'"
)


def call_stretches(
    model: TrainedModel,
    sequences: Any,
    calls: pd.DataFrame | str | Path | None,
    genes: str | Path | Annotation | None,
    circular: bool | Collection[str] | None,
) -> list[Stretch]:
    """The letters and genes around calls."""
    if calls is None:
        raise ConfigError("a locator is explained by its calls", remedy="give calls=seqray.scan(...)")
    listed = _listed(calls)
    records = list(distinct_records(as_records(sequences, model.alphabet)))
    named = _circular_of(calls) if circular is None else circular
    named = {named} if isinstance(named, str) else named

    def is_circular(record: SequenceRecord) -> bool:
        return record.circular or named is True or (bool(named) and record.id in named)

    source = gene_source(genes, None, records, sequences, is_circular)
    tracks = tracks_reader(model, source.find if source else None)
    circles = {record.id for record in records if is_circular(record)}
    names = {*circles, *(source.circular if source else ())}
    return cut_stretches(model, records, listed, tracks, circular=names)


def call_windows(
    model: TrainedModel, contigs: Iterable[SequenceRecord], calls: pd.DataFrame | str | Path
) -> tuple[list[SequenceRecord], list[Place]]:
    """The windows that calls of a model of windows lie in, and where each is on its contig."""
    source = "" if isinstance(calls, pd.DataFrame) else str(calls)
    contigs = distinct_records(contigs)
    return extract_call_windows(contigs, _listed(calls), model.alphabet, model.card.window, source)


def gene_source(
    genes: str | Path | Annotation | None,
    table: int | None,
    records: Sequence[SequenceRecord],
    sequences: Any,
    is_circular: Callable[[SequenceRecord], bool],
) -> GeneSource | None:
    """Where the genes that a locator reads are from; warns where they should be predicted and can't be."""
    genbank = sequences if holds_genes(sequences) else None
    if isinstance(genes, str) and genes == "auto" and has_unread_genes(sequences):
        warnings.warn(_UNREAD, stacklevel=3)
    wanted = "none" if genes is None else genes
    source, reason = choose_genes(wanted, lambda: records, is_circular, table=table, genbank=genbank)
    if reason:
        warnings.warn(f"scanned without genes: {reason}", stacklevel=3)
    return source


def distinct_records(records: Iterable[SequenceRecord]) -> Iterator[SequenceRecord]:
    """Refuse two sequences of the same name: their calls would be ambiguous."""
    seen: set[str] = set()
    for record in records:
        if record.id in seen:
            raise InputError(
                "the name occurs twice", where=f"record '{record.id}'", remedy="give names that differ"
            )
        seen.add(record.id)
        yield record


def _listed(calls: pd.DataFrame | str | Path) -> list[Call]:
    return frame_calls(calls) if isinstance(calls, pd.DataFrame) else read_gff3_calls(calls)


def _circular_of(calls: pd.DataFrame | str | Path) -> Collection[str]:
    """Names of the contigs that calls say are circular."""
    return calls.attrs.get("circular", ()) if isinstance(calls, pd.DataFrame) else read_circular(calls)
