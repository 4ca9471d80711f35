"""Models that read alignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqray.core import Alignment, Alphabet, ConfigError, Example
from seqray.io.alignments import read_alignments
from seqray.io.sequences import OnSkip
from seqray.io.tables import COLUMN_COLUMNS, column_lines
from seqray.kinds.kind import Kind, Records, checked_options
from seqray.kinds.labeled import LabeledFiles, read_labeled_alignments
from seqray.kinds.python_objects import as_alignments

if TYPE_CHECKING:
    from seqray.core.results import AlignmentExplanation, Prediction
    from seqray.inference import PredictOptions
    from seqray.kinds.alignment_explanations import AlignmentRun
    from seqray.kinds.explanation_files import ExplanationRequest
    from seqray.modelfile import TrainedModel


def _read_labeled(
    files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
) -> Sequence[Example]:
    return read_labeled_alignments(files, alphabet)


def _adapt(examples: Sequence[Example], window: int) -> Sequence[Example]:
    if not all(isinstance(one, Alignment) for one in examples):
        raise ConfigError("the model reads alignments, and the data are sequences")
    return examples


def _predict(
    model: TrainedModel, records: Records, options: PredictOptions, source: str
) -> Iterator[Prediction]:
    from seqray.inference import predict_alignments

    return predict_alignments(model, records, options)


def _explain(
    model: TrainedModel, records: Records, methods: tuple[str, ...], options: Mapping[str, Any]
) -> Iterator[AlignmentExplanation]:
    from seqray.explanations import AlignmentOptions, explain_alignments

    known = checked_options(AlignmentOptions, options, "methods", "pairs", "seed", "settings")
    return explain_alignments(model, records, AlignmentOptions(methods=methods, **known))


def _explanation_run(model: TrainedModel, request: ExplanationRequest) -> AlignmentRun:
    from seqray.kinds.alignment_explanations import AlignmentRun

    return AlignmentRun(model, request)


ALIGNMENTS = Kind(
    unit="alignments",
    example=Alignment,
    pretraining_unit="alignments",
    reads_each_record=False,
    options=frozenset(
        {
            *("--rows", "--query-only", "--row-profile"),
            *("--pairs", "--pairs-by", "--best-pairs", "--separation"),
        }
    ),
    read=read_alignments,
    convert=as_alignments,
    read_labeled=_read_labeled,
    adapt=_adapt,
    unlabeled=lambda alignment: alignment,
    predict=_predict,
    explain=_explain,
    explanation_columns=COLUMN_COLUMNS,
    explanation_rows=column_lines,
    explanation_run=_explanation_run,
)
