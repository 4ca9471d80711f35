"""Models that read single sequences, with networks of seqray or on a backbone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from seqray.core import (
    Alignment,
    Alphabet,
    Card,
    ConfigError,
    Example,
    LabeledSequence,
    describe_truncation,
)
from seqray.explanations import ExplainOptions
from seqray.inference import predict_records
from seqray.io.sequences import OnSkip, read_sequences
from seqray.io.tables import EXPLANATION_COLUMNS, explanation_rows
from seqray.kinds.kind import Kind
from seqray.kinds.labeled import LabeledFiles, queries, read_alignment_examples, read_sequence_examples

if TYPE_CHECKING:
    from seqray.core import SequenceRecord
    from seqray.core.results import Explanation
    from seqray.modelfile import TrainedModel


def _read_labeled(
    files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
) -> Sequence[Example]:
    if files.query_only:
        return read_alignment_examples(files, alphabet)
    if files.alignment_labels:
        raise ConfigError(
            "--alignment-labels is for models that read alignments, and this one reads sequences",
            remedy="choose another model, or add --query-only to take the first rows",
        )
    return read_sequence_examples(files, alphabet, on_skip=on_skip)


def convert_records(sequences: Any, alphabet: Alphabet) -> Iterator[SequenceRecord]:
    """See `seqray.kinds.as_records`."""
    from seqray.kinds.python_objects import as_records  # and Biopython, which files do without

    return as_records(sequences, alphabet)


def describe_cut_sequences(count: int, total: int, card: Card) -> str:
    """See `seqray.core.describe_truncation`."""
    return describe_truncation(count, total, card.window, card.truncate)


def _adapt(examples: Sequence[Example], window: int) -> Sequence[Example]:
    alignments = [one for one in examples if isinstance(one, Alignment)]
    return queries(alignments, window) if alignments else examples


def _explain(
    model: TrainedModel, records: Iterable[SequenceRecord], options: ExplainOptions
) -> Iterator[Explanation]:
    from seqray.explanations import explain_records  # predict needs none of it

    return explain_records(model, records, options)


SEQUENCES = Kind(
    unit="sequences",
    example=LabeledSequence,
    pretraining_unit="windows",
    reads_each_record=True,
    describe_truncation=describe_cut_sequences,
    options=frozenset(
        {
            *("--calls", "--best-calls", "--track", "--motifs", "--heads", "--shuffles"),
            *("--members", "--fuse", "--spread", "--steps", "--truncate"),
        }
    ),
    read=read_sequences,
    convert=convert_records,
    read_labeled=_read_labeled,
    adapt=_adapt,
    unlabeled=lambda record: record.sequence,
    predict=lambda model, records, options, source: predict_records(model, records, options, source=source),
    explain=_explain,
    explain_options=ExplainOptions,
    explanation_columns=EXPLANATION_COLUMNS,
    explanation_rows=explanation_rows,
)
