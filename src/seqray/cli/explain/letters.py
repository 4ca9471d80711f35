"""What is the same for all models whose letters are scored: tables, motifs, tracks, plot and page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from seqray.cli.explain.arguments import ExplainRequest
from seqray.cli.explain.explainer import Explainer, Record, Rows
from seqray.cli.explain.files import track_names
from seqray.cli.explain.genome import Genome
from seqray.core import InputError
from seqray.core.results import Call, Explanation, Faithfulness, HeadFigures, Motif
from seqray.explanations import ExplainOptions, best_calls
from seqray.explanations.attribution import METHODS
from seqray.io.tables import EXPLANATION_COLUMNS, explanation_rows
from seqray.io.tracks import EXPECTED, ScoreTrack, read_gff3_calls, read_scan_statement
from seqray.modelfile import TrainedModel

MAX_MOTIF_RECORDS = 5000
SCORE_TOLERANCE = 0.02  # scores of --dtype bf16 are not exact


class LetterExplainer(Explainer[Record, Explanation, ExplainOptions]):
    """Explains records by scores of their letters."""

    def __init__(self, model: TrainedModel, request: ExplainRequest, genome: Genome) -> None:
        super().__init__(model, request, genome)
        calls, methods = request.target.calls, self.options.methods
        self._scan = read_scan_statement(calls) if calls else None
        if self._scan is not None and not self._scan.made_by(model.sha256):
            made_by = self._scan.facts["model"].split(" ")[0]
            self.cautions.append(f"{self._scan.file} has the calls of another model or version: {made_by}")
        self._tracks = {method: ScoreTrack() for method in methods} if request.outputs.track else {}
        self._for_motifs: list[Explanation] = []
        self._listed: dict[str, Call] = {}
        self._other_scores: list[str] = []

    def _options(self) -> ExplainOptions:
        return self.request.for_library(ExplainOptions, effects=not self.request.checks.no_check)

    def facts(self) -> dict[str, str]:
        facts = {
            "methods": self._methods_fact({name: method.signed for name, method in METHODS.items()}),
            "class": f"{self._target_fact}; rollout and value-rollout are the same for every class",
            "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
            "ism_delta": "change of the log-odds of the class, mean over the three or more other letters",
        }
        if copies := self.options.shuffles:
            facts["p"] = f"share of letters in {copies} shuffled copies of the record that score as high"
            facts["q"] = "p after Benjamini and Hochberg over the positions of the record"
        if self._scan is not None:
            facts["calls"] = self._scan.file
            facts |= {f"scan {key}": text for key, text in self._scan.facts.items()}
            if self._scan.lacks:
                facts["scan lacks"] = ", ".join(self._scan.lacks)
        return facts

    def remarks(self) -> list[str]:
        return [*super().remarks(), *self._moved_calls(), *self._judgement()]

    def _moved_calls(self) -> list[str]:
        """That scores are not those of the file of calls: what was explained is not what was called."""
        if not self._other_scores:
            return []
        return [
            f"caution: calls with another score here: {len(self._other_scores)} of {self.count}, such as "
            f"{self._other_scores[0]}; give the sequences and the genes of the scan"
        ]

    def _judgement(self) -> list[str]:
        if self._scan is None:
            return []
        if self._scan.lacks:
            unknown = f"{self._scan.file} does not state {' and '.join(self._scan.lacks)}"
            return [f"caution: {unknown}, so it is not known how many of the calls are right"]
        judged = ("threshold", *EXPECTED)
        stated = "; ".join(f"{key}: {self._scan.facts[key]}" for key in judged if key in self._scan.facts)
        return [f"this does not test whether the calls are right; {self._scan.file} states {stated}"]

    def _read_calls(self, path: str) -> list[Call]:
        calls = read_gff3_calls(path)
        if not calls and not self.request.records.allow_empty:
            remedy = "--allow-empty gives an empty output instead"
            raise InputError("holds no calls of 'seqray scan'", where=path, remedy=remedy)
        self._listed = dict(best_calls(calls, self.request.target.best_calls))
        return calls

    def _tables(self) -> list[tuple[str | None, Sequence[str], Rows]]:
        outputs = self.request.outputs
        return [(outputs.out, EXPLANATION_COLUMNS, lambda e: explanation_rows(e, outputs.top))]

    def _keep(self, explanation: Explanation) -> None:
        e = explanation
        if e.method == self.options.methods[0] and e.member == "mean":
            self._offer(self._record_of(e), called=e.label == e.target, truncated=e.is_of_part)
            self._compare(e)
            if e.label == e.target and self._motifs_wanted and len(self._for_motifs) < MAX_MOTIF_RECORDS:
                self._for_motifs.append(replace(self._shown_part(e), attention=None, effects=None))
        if self.count <= self.request.shown:
            self.shown.append(self._shown_part(e))
        if e.member == "mean" and e.method in self._tracks:
            self._tracks[e.method].add(e)

    def _compare(self, explanation: Explanation) -> None:
        """Note a call whose score is not that of its file."""
        call, here = self._listed.get(explanation.id), explanation.probability
        if call and call.label == explanation.target and not abs(here - call.score) <= SCORE_TOLERANCE:
            self._other_scores.append(f"{explanation.id} ({here:.3g}, in the file {call.score:.3g})")

    @abstractmethod
    def _record_of(self, explanation: Explanation) -> Record:
        """What was explained."""

    def _shown_part(self, explanation: Explanation) -> Explanation:
        """What the page and the plot show, and motifs are searched in."""
        return explanation

    @property
    def _site(self) -> int | None:
        """Index of the site in what is shown."""
        return self.model.card.site

    @property
    def _motifs_wanted(self) -> bool:
        return bool(self.request.outputs.motifs or self.request.outputs.html)

    def _write_others(self, staged: Mapping[str, Path], provenance: Sequence[str]) -> None:
        for method, track in self._tracks.items():
            for path in track_names(self.request, method):
                name = f"{method} of {self.model.card.name}"
                track.write(path, provenance, name, lambda one: staged[str(one)])
        if paths := self.request.outputs.motifs:
            from seqray.explanations.motifs import background_of
            from seqray.io.tables import write_motifs

            alphabet = self.model.alphabet
            background = background_of(self._for_motifs, alphabet)
            for path in paths:
                write_motifs(staged[path], self._motifs, alphabet, provenance, background=background)

    @cached_property
    def _motifs(self) -> Sequence[Motif]:
        from seqray.explanations.motifs import find_motifs

        return find_motifs(self._for_motifs, self.model.alphabet)

    @property
    def _head_figures(self) -> Sequence[HeadFigures]:
        """Figures of attention heads for the page."""
        return ()

    def _plot(self, path: Path) -> None:
        from seqray.report.plots import plot_explanations

        plot_explanations(path, self.shown, self.model.alphabet, self._site)

    def _page(self, provenance: Sequence[str], faithfulness: Faithfulness | None) -> str:
        from seqray.report.pages import SequenceReport, render_sequences

        card = self.model.card
        return render_sequences(
            SequenceReport(
                title=f"{card.name}: positions that drive the predictions",
                explanations=self.shown,
                alphabet=self.model.alphabet,
                card=card,
                site=self._site,
                provenance=provenance,
                faithfulness=faithfulness,
                heads=self._head_figures,
                motifs=self._motifs,
                omitted=self._omitted,
                checked=self._checked,
                scan=self._scan,
            )
        )
