"""Models that read whole strands with their genes: locators, which find sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from seqray.core import Card, ConfigError, SequenceRecord
from seqray.explanations import ExplainOptions
from seqray.io.sequences import read_sequences
from seqray.io.tables import EXPLANATION_COLUMNS, explanation_rows
from seqray.kinds.kind import Kind
from seqray.kinds.sequences import convert_records, describe_cut_sequences

if TYPE_CHECKING:
    from seqray.kinds.explanation_files import ExplanationRequest
    from seqray.kinds.locator_explanations import LocatorRun
    from seqray.modelfile import TrainedModel


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


def _explanation_run(model: TrainedModel, request: ExplanationRequest) -> LocatorRun:
    from seqray.kinds.locator_explanations import LocatorRun

    return LocatorRun(model, request)


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
    explanation_run=_explanation_run,
)
