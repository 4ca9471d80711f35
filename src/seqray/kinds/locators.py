"""Models that read whole strands with their genes: locators, which find sites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from seqray.annotation import gene_tracks, track_rows
from seqray.core import Card, ConfigError, SequenceRecord
from seqray.explanations import ExplainOptions
from seqray.io.sequences import read_sequences
from seqray.io.tables import EXPLANATION_COLUMNS, explanation_rows
from seqray.kinds.kind import Kind
from seqray.kinds.sequences import convert_records, describe_cut_sequences

if TYPE_CHECKING:
    from seqray.annotation import Gene, Tracks
    from seqray.explanations import TracksOf
    from seqray.modelfile import TrainedModel

    GenesOf = Callable[[SequenceRecord, bool], Sequence[Gene] | None]


def tracks_reader(model: TrainedModel, find: GenesOf | None) -> TracksOf:
    """Give `cut_stretches` the gene tracks that a locator names; None without genes.

    Parameters
    ----------
    model
        A locator.
    find
        A contig, and whether it is circular, to its genes.
    """
    rows = track_rows(model.card.model.tracks)

    def tracks_of(contig: SequenceRecord, strand: str, circular: bool) -> Tracks | None:
        genes = find(contig, circular) if find and rows else None
        if genes is None:
            return None
        return np.ascontiguousarray(gene_tracks(genes, len(contig), strand, circular=circular)[rows])

    return tracks_of


def _no_examples(*_: object, **__: object) -> NoReturn:
    raise ConfigError(
        "a locator reads genomes and a table of sites, not labeled examples",
        remedy="use 'seqray train --genome' or 'seqray scan'",
    )


def _refuse(card: Card) -> NoReturn:
    raise ConfigError(
        f"model '{card.name}' is a locator, which classifies no sequences",
        remedy="use 'seqray scan' to find sites",
    )


LOCATORS = Kind(
    unit="genomes",
    example=SequenceRecord,
    pretraining_unit="genomes",
    reads_each_record=True,
    describe_truncation=describe_cut_sequences,
    options=frozenset(
        {
            *("--calls", "--best-calls", "--track", "--motifs", "--shuffles", "--inputs"),
            *("--genes", "--codon-table", "--members", "--fuse", "--spread", "--steps"),
        }
    ),
    read=read_sequences,
    convert=convert_records,
    read_labeled=_no_examples,
    adapt=_no_examples,
    unlabeled=lambda record: record.sequence,
    predict=lambda model, records, options, source: _refuse(model.card),
    explain=lambda model, records, options: _refuse(model.card),
    explain_options=ExplainOptions,
    explanation_columns=EXPLANATION_COLUMNS,
    explanation_rows=explanation_rows,
)
