"""Models that read alignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from seqray.core import Alignment, Alphabet, ConfigError, Example, describe_cropping
from seqray.explanations import AlignmentOptions
from seqray.io.alignments import read_alignments
from seqray.io.tables import COLUMN_COLUMNS, column_lines
from seqray.kinds.kind import Kind
from seqray.kinds.labeled import read_alignment_examples

if TYPE_CHECKING:
    from seqray.core.results import AlignmentExplanation, Prediction
    from seqray.inference import PredictOptions
    from seqray.modelfile import TrainedModel


def _convert(alignments: Any, alphabet: Alphabet) -> Iterator[Alignment]:
    from seqray.kinds.python_objects import as_alignments  # and Biopython, which files do without

    return as_alignments(alignments, alphabet)


def _adapt(examples: Sequence[Example], window: int) -> Sequence[Example]:
    if not all(isinstance(one, Alignment) for one in examples):
        raise ConfigError("the model reads alignments, and the data are sequences")
    return examples


def _predict(
    model: TrainedModel, records: Iterable[Alignment], options: PredictOptions, source: str
) -> Iterator[Prediction]:
    from seqray.inference import predict_alignments  # and torch, which models of sequences may do without

    return predict_alignments(model, records, options)


def _explain(
    model: TrainedModel, records: Iterable[Alignment], options: AlignmentOptions
) -> Iterator[AlignmentExplanation]:
    from seqray.explanations import explain_alignments  # predict needs none of it

    return explain_alignments(model, records, options)


ALIGNMENTS = Kind(
    unit="alignments",
    example=Alignment,
    pretraining_unit="alignments",
    reads_each_record=False,
    describe_truncation=lambda count, total, card: describe_cropping(count, total, card.window),
    options=frozenset(
        {
            *("--rows", "--query-only", "--row-profile"),
            *("--pairs", "--pairs-by", "--best-pairs", "--separation"),
        }
    ),
    read=read_alignments,
    convert=_convert,
    read_labeled=lambda files, alphabet, on_skip=None: read_alignment_examples(files, alphabet),
    adapt=_adapt,
    unlabeled=lambda alignment: alignment,
    predict=_predict,
    explain=_explain,
    explain_options=AlignmentOptions,
    explanation_columns=COLUMN_COLUMNS,
    explanation_rows=column_lines,
)
