"""A run of ``seqray explain`` with a locator: the letters and the genes around its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqray.annotation import Tracks, gene_tracks, track_rows
from seqray.core import SequenceRecord
from seqray.core.results import Explanation, Faithfulness, InputShares
from seqray.explanations import (
    Stretch,
    TracksOf,
    check_calls,
    check_explained_calls,
    cut_stretches,
    explain_calls,
    input_shares,
)
from seqray.io.tables import write_shares
from seqray.kinds.explanation_files import ExplanationRequest
from seqray.kinds.letter_explanations import LetterRun
from seqray.modelfile import TrainedModel

if TYPE_CHECKING:
    from seqray.kinds.explanation_files import GenesOf

SHOWN = 100  # letters on either side of the site in the page and the plot, and in which motifs are searched


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


class LocatorRun(LetterRun[Stretch]):
    """Explains the scores of calls."""

    most_checked = 40  # a call takes some thousand answers of the model for long stretches

    def __init__(self, model: TrainedModel, request: ExplanationRequest) -> None:
        self._calls = check_explained_calls(request.calls)
        super().__init__(model, request, attention=False)
        self._stretches: list[Stretch] = []
        self._radius = model.locators[0].radius

    def facts(self) -> dict[str, str]:
        facts = super().facts() | {
            "letters": f"{self._radius} on either side of the site: no others can change its score; page, "
            f"plot and motifs take {self._site}",
            "genes": self.request.gene_source or "not known",
        }
        if self.request.files.inputs:
            facts["inputs"] = (
                "letters, genes: share in the sum of absolute effects by gradient times input; "
                "without_genes, letters_shuffled: change of the log-odds; first_track: the gene track of the "
                "largest effect"
            )
        return facts

    def _explanations(self, records: Iterable[SequenceRecord]) -> Iterator[Explanation]:
        calls = self._read_calls(self._calls)
        self._stretches = cut_stretches(
            self.model,
            records,
            calls,
            tracks_reader(self.model, self.request.genes),
            circular=self.request.circular,
            source=self._calls,
            best=self.request.best_calls,
        )
        return explain_calls(self.model, self._stretches, self.options)

    def _record_of(self, explanation: Explanation) -> Stretch:
        return self._stretches[explanation.record]

    def _shown_part(self, explanation: Explanation) -> Explanation:
        around = self._radius - self._site
        return explanation.part(around, len(explanation.sequence) - around)

    @property
    def _site(self) -> int:
        return min(SHOWN, self._radius)

    def _check(self, records: Iterable[Stretch]) -> Faithfulness:
        return check_calls(self.model, records, self.options)

    def _write_others(self, staged: Mapping[str, Path], provenance: Sequence[str]) -> None:
        if path := self.request.files.inputs:
            write_shares(staged[path], self._shares(), provenance)
        super()._write_others(staged, provenance)

    def _shares(self) -> Iterator[InputShares]:
        for number, stretch in enumerate(self._stretches):
            yield input_shares(self.model, number, stretch, self.options)
