"""Explanations of a model of sequences: letters and heads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from seqray.cli.common import describe_input
from seqray.cli.explain.arguments import ExplainRequest
from seqray.cli.explain.genome import Genome
from seqray.cli.explain.letters import LetterExplainer
from seqray.core import SequenceRecord
from seqray.core.results import Explanation, Faithfulness, HeadFigures, Place
from seqray.explanations import ExplainOptions, check, explain_records, extract_call_windows, heads
from seqray.explanations.attribution import check_heads
from seqray.io.tables import write_heads
from seqray.modelfile import TrainedModel


class SequenceExplainer(LetterExplainer[SequenceRecord]):
    """Explains sequences, or the windows of calls."""

    most_checked = 200

    def __init__(self, model: TrainedModel, request: ExplainRequest, genome: Genome) -> None:
        if request.outputs.heads:
            check_heads(model)
        super().__init__(model, request, genome)

    def _options(self) -> ExplainOptions:
        return replace(super()._options(), attention=bool(self.request.outputs.html))

    def _explanations(self, records: Iterable[SequenceRecord]) -> Iterator[Explanation]:
        places: list[Place] | None = None
        if calls := self.request.target.calls:
            records, places = self._windows(records, calls)
        source = describe_input(self.request.input)
        return explain_records(self.model, records, self.options, places=places, source=source)

    def _windows(
        self, records: Iterable[SequenceRecord], path: str
    ) -> tuple[list[SequenceRecord], list[Place]]:
        calls = self._read_calls(path)
        alphabet, window = self.model.alphabet, self.model.card.window
        return extract_call_windows(records, calls, alphabet, window, path, self.request.target.best_calls)

    def _record_of(self, explanation: Explanation) -> SequenceRecord:
        return SequenceRecord(explanation.id, explanation.sequence)

    def _check(self, records: Iterable[SequenceRecord]) -> Faithfulness:
        return check(self.model, records, self.options)

    def _write_others(self, staged: Mapping[str, Path], provenance: Sequence[str]) -> None:
        if path := self.request.outputs.heads:
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
