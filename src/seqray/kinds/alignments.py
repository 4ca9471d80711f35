"""Models that read alignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.core import Alignment, Alphabet, ConfigError, Example
from seqray.io.alignments import read_alignments
from seqray.io.sequences import Duplicates, OnSkip
from seqray.io.tables import COLUMN_COLUMNS, column_lines
from seqray.kinds import labeled
from seqray.kinds.kind import Kind, checked_options

if TYPE_CHECKING:
    from seqray.core.results import AlignmentExplanation, Prediction
    from seqray.inference import PredictOptions
    from seqray.kinds.alignment_explanations import AlignmentRun
    from seqray.kinds.explanation_files import ExplanationRequest
    from seqray.kinds.labeled import LabeledFiles
    from seqray.modelfile import TrainedModel


class AlignmentKind(Kind[Alignment]):
    """Reads alignments of Stockholm, A3M or aligned FASTA files."""

    unit = "alignments"
    example = Alignment
    pretraining_unit = "alignments"
    options = frozenset(
        {
            *("--rows", "--query-only", "--row-profile"),
            *("--pairs", "--pairs-by", "--best-pairs", "--separation"),
        }
    )
    explanation_columns = COLUMN_COLUMNS

    def read(
        self,
        path: str | Path,
        alphabet: Alphabet,
        *,
        duplicates: Duplicates = "error",
        on_skip: OnSkip | None = None,
    ) -> Iterator[Alignment]:
        return read_alignments(path, alphabet, duplicates=duplicates, on_skip=on_skip)

    def read_labeled(
        self, files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
    ) -> Sequence[Example]:
        return labeled.read_labeled_alignments(files, alphabet)

    def adapt(self, examples: Sequence[Example], window: int) -> Sequence[Example]:
        if not all(isinstance(one, Alignment) for one in examples):
            raise ConfigError("the model reads alignments, and the data are sequences")
        return examples

    def unlabeled(self, record: Alignment) -> Alignment:
        return record

    def convert(self, things: Any, alphabet: Alphabet) -> Iterator[Alignment]:
        from seqray.kinds.python_objects import as_alignments

        return as_alignments(things, alphabet)

    def predict(
        self,
        model: TrainedModel,
        records: Iterable[Alignment],
        options: PredictOptions,
        source: str = "",
    ) -> Iterator[Prediction]:
        from seqray.inference import predict_alignments

        return predict_alignments(model, records, options)

    def explain(
        self,
        model: TrainedModel,
        records: Iterable[Alignment],
        methods: tuple[str, ...],
        options: Mapping[str, Any],
    ) -> Iterator[AlignmentExplanation]:
        from seqray.explanations import AlignmentOptions, explain_alignments

        known = checked_options(AlignmentOptions, options, "methods", "pairs", "seed", "settings")
        return explain_alignments(model, records, AlignmentOptions(methods=methods, **known))

    def explanation_rows(
        self, explanation: AlignmentExplanation, top: int | None = None
    ) -> Iterator[tuple[object, ...]]:
        return column_lines(explanation, top)

    def explanation_run(self, model: TrainedModel, request: ExplanationRequest) -> AlignmentRun:
        from seqray.kinds.alignment_explanations import AlignmentRun

        return AlignmentRun(model, request)
