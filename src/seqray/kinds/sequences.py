"""Models that read single sequences, with networks of seqray or on a backbone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.core import Alignment, Alphabet, ConfigError, Example, LabelledSequence, SequenceRecord
from seqray.io.sequences import Duplicates, OnSkip, read_sequences
from seqray.io.tables import EXPLANATION_COLUMNS, explanation_rows
from seqray.kinds import labeled
from seqray.kinds.kind import Kind, checked_options

if TYPE_CHECKING:
    from seqray.core.results import Explanation, Prediction
    from seqray.inference import PredictOptions
    from seqray.kinds.explanation_files import ExplanationRequest
    from seqray.kinds.labeled import LabeledFiles
    from seqray.kinds.sequence_explanations import SequenceRun
    from seqray.modelfile import TrainedModel


class SequenceKind(Kind[SequenceRecord]):
    """Reads records of FASTA or GenBank files."""

    unit = "sequences"
    example = LabelledSequence
    pretraining_unit = "windows"
    options = frozenset(
        {
            *("--calls", "--best-calls", "--track", "--motifs", "--heads", "--shuffles"),
            *("--members", "--fuse", "--spread", "--steps"),
        }
    )
    explanation_columns = EXPLANATION_COLUMNS

    def read(
        self,
        path: str | Path,
        alphabet: Alphabet,
        *,
        duplicates: Duplicates = "error",
        on_skip: OnSkip | None = None,
    ) -> Iterator[SequenceRecord]:
        return read_sequences(path, alphabet, duplicates=duplicates, on_skip=on_skip)

    def read_labeled(
        self, files: LabeledFiles, alphabet: Alphabet, on_skip: OnSkip | None = None
    ) -> Sequence[Example]:
        if files.query_only:
            return labeled.read_labeled_alignments(files, alphabet)
        if files.alignment_labels:
            raise ConfigError(
                "--alignment-labels is for models that read alignments, and this one reads sequences",
                remedy="choose another model, or add --query-only to take the first rows",
            )
        return labeled.read_labeled_sequences(files, alphabet, on_skip=on_skip)

    def adapt(self, examples: Sequence[Example], window: int) -> Sequence[Example]:
        alignments = [one for one in examples if isinstance(one, Alignment)]
        return labeled.queries(alignments, window) if alignments else examples

    def unlabeled(self, record: SequenceRecord) -> str:
        return record.sequence

    def convert(self, things: Any, alphabet: Alphabet) -> Iterator[SequenceRecord]:
        from seqray.kinds.python_objects import as_records

        return as_records(things, alphabet)

    def predict(
        self,
        model: TrainedModel,
        records: Iterable[SequenceRecord],
        options: PredictOptions,
        source: str = "",
    ) -> Iterator[Prediction]:
        from seqray.inference import predict_records

        return predict_records(model, records, options, source=source)

    def explain(
        self,
        model: TrainedModel,
        records: Iterable[SequenceRecord],
        methods: tuple[str, ...],
        options: Mapping[str, Any],
    ) -> Iterator[Explanation]:
        from seqray.explanations import ExplainOptions, explain_records

        known = checked_options(ExplainOptions, options, "methods")
        return explain_records(model, records, ExplainOptions(methods=methods, **known))

    def explanation_rows(
        self, explanation: Explanation, top: int | None = None
    ) -> Iterator[tuple[object, ...]]:
        return explanation_rows(explanation, top)

    def explanation_run(self, model: TrainedModel, request: ExplanationRequest) -> SequenceRun:
        from seqray.kinds.sequence_explanations import SequenceRun

        return SequenceRun(model, request)
