"""Explanations of a locator: the letters and the genes around its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seqray.cli.explain.arguments import ExplainRequest
from seqray.cli.explain.genome import Genome, find_genome
from seqray.cli.explain.letters import LetterExplainer
from seqray.core import SequenceRecord
from seqray.core.results import Explanation, Faithfulness, InputShares
from seqray.explanations import (
    Stretch,
    check_calls,
    check_explained_calls,
    cut_stretches,
    explain_calls,
    input_shares,
)
from seqray.io.tables import write_shares
from seqray.kinds import tracks_reader
from seqray.modelfile import TrainedModel

MAX_SHOWN_RADIUS = 100  # letters around the site in the page and the plot, and in which motifs are searched


class LocatorExplainer(LetterExplainer[Stretch]):
    """Explains the scores of calls."""

    most_checked = 40  # a call takes some thousand answers of the model for long stretches

    @staticmethod
    def open_genome(request: ExplainRequest, model: TrainedModel) -> Genome:
        return find_genome(request, model)

    def __init__(self, model: TrainedModel, request: ExplainRequest, genome: Genome) -> None:
        self._calls = check_explained_calls(request.target.calls)
        super().__init__(model, request, genome)
        self._stretches: list[Stretch] = []
        self._radius = model.locators[0].radius

    def facts(self) -> dict[str, str]:
        genes = self.genome.genes
        facts = super().facts() | {
            "letters": f"{self._radius} on either side of the site: no others can change its score; page, "
            f"plot and motifs take {self._site}",
            "genes": genes.source if genes else "not known",
        }
        if self.request.outputs.inputs:
            facts["inputs"] = (
                "letters, genes: share in the sum of absolute effects by gradient times input; "
                "without_genes, letters_shuffled: change of the log-odds; first_track: the gene track of the "
                "largest effect"
            )
        return facts

    def _explanations(self, records: Iterable[SequenceRecord]) -> Iterator[Explanation]:
        calls, genes = self._read_calls(self._calls), self.genome.genes
        self._stretches = cut_stretches(
            self.model,
            records,
            calls,
            tracks_reader(self.model, genes.find if genes else None),
            circular=self.genome.circular,
            source=self._calls,
            best=self.request.target.best_calls,
        )
        return explain_calls(self.model, self._stretches, self.options)

    def _record_of(self, explanation: Explanation) -> Stretch:
        return self._stretches[explanation.record]

    def _shown_part(self, explanation: Explanation) -> Explanation:
        around = self._radius - self._site
        return explanation.part(around, len(explanation.sequence) - around)

    @property
    def _site(self) -> int:
        return min(MAX_SHOWN_RADIUS, self._radius)

    def _check(self, records: Iterable[Stretch]) -> Faithfulness:
        return check_calls(self.model, records, self.options)

    def _write_others(self, staged: Mapping[str, Path], provenance: Sequence[str]) -> None:
        if path := self.request.outputs.inputs:
            write_shares(staged[path], self._shares(), provenance)
        super()._write_others(staged, provenance)

    def _shares(self) -> Iterator[InputShares]:
        for number, stretch in enumerate(self._stretches):
            yield input_shares(self.model, number, stretch, self.options)
