"""A run of ``seqray explain`` with a model of sequences: letters, heads, motifs and tracks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from seqray.core import SequenceRecord
from seqray.core.results import Explanation, Faithfulness, HeadFigures, Place
from seqray.explanations import check, explain_records, extract_call_windows, heads
from seqray.explanations.attribution import check_heads
from seqray.io.tables import write_heads
from seqray.kinds.explanation_files import ExplanationRequest
from seqray.kinds.letter_explanations import LetterRun
from seqray.modelfile import TrainedModel


class SequenceRun(LetterRun[SequenceRecord]):
    """Explains sequences, or the windows of calls."""

    most_checked = 200

    def __init__(self, model: TrainedModel, request: ExplanationRequest) -> None:
        if request.files.heads:
            check_heads(model)
        super().__init__(model, request, attention=bool(request.files.html))

    def _explanations(self, records: Iterable[SequenceRecord]) -> Iterator[Explanation]:
        places: list[Place] | None = None
        if self.request.calls:
            records, places = self._windows(records, self.request.calls)
        source = self.request.source
        return explain_records(self.model, records, self.options, places=places, source=source)

    def _windows(
        self, records: Iterable[SequenceRecord], path: str
    ) -> tuple[list[SequenceRecord], list[Place]]:
        calls = self._read_calls(path)
        alphabet, window = self.model.alphabet, self.model.card.window
        return extract_call_windows(records, calls, alphabet, window, path, self.request.best_calls)

    def _record_of(self, explanation: Explanation) -> SequenceRecord:
        return SequenceRecord(explanation.id, explanation.sequence)

    def _check(self, records: Iterable[SequenceRecord]) -> Faithfulness:
        return check(self.model, records, self.options)

    def _write_others(self, staged: Mapping[str, Path], provenance: Sequence[str]) -> None:
        if path := self.request.files.heads:
            write_heads(staged[path], self._heads, provenance)
        super()._write_others(staged, provenance)

    @cached_property
    def _heads(self) -> Sequence[HeadFigures]:
        return heads(self.model, self.sample(), self.options)

    @property
    def _head_figures(self) -> Sequence[HeadFigures]:
        return (
            self._heads if self.model.card.model.backbone is None else ()
        )  # those of a backbone stay hidden
