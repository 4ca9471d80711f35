"""Explanations of a model of alignments: columns, rows and pairs of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from seqray.cli.explain.arguments import ExplainRequest
from seqray.cli.explain.explainer import Explainer, Rows
from seqray.cli.explain.genome import Genome
from seqray.core import Alignment, ConfigError
from seqray.core.msa import omits_letters
from seqray.core.results import AlignmentExplanation, Faithfulness
from seqray.explanations import AlignmentOptions, check_alignments, explain_alignments
from seqray.explanations.attribution import (
    ALIGNMENT_METHODS,
    SEPARATION,
    PairTable,
    Ranking,
    Structure,
    pair_table,
    structure_of,
)
from seqray.inference import depth_read
from seqray.io.tables import COLUMN_COLUMNS, PAIR_COLUMNS, ROW_COLUMNS, column_lines, pair_lines, row_lines
from seqray.modelfile import TrainedModel

Explained = tuple[AlignmentExplanation, PairTable | None]
"""An explanation, and its best pairs where a file needs them."""


class AlignmentExplainer(Explainer[Alignment, Explained, AlignmentOptions]):
    """Explains alignments."""

    most_checked = 40  # an alignment takes an answer of the model for each of its columns

    def __init__(self, model: TrainedModel, request: ExplainRequest, genome: Genome) -> None:
        outputs = request.alignments
        for name in ("separation", "best_pairs", "pairs_by"):
            if getattr(outputs, name) is not None and not request.scores_pairs:
                option = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{option} is about pairs", remedy="name a file by --pairs")
        super().__init__(model, request, genome)
        self._separation = outputs.separation or SEPARATION
        self._ranking: Ranking = outputs.pairs_by or "attention"

    def _options(self) -> AlignmentOptions:
        request = self.request
        return request.for_library(AlignmentOptions, rows=request.rows.limit(), pairs=request.scores_pairs)

    def facts(self) -> dict[str, str]:
        options = self.options
        depth = depth_read(self.model, options.rows)
        facts = {
            "methods": self._methods_fact({name: m.signed for name, m in ALIGNMENT_METHODS.items()}),
            "class": f"{self._target_fact}; rollout is the same for every class",
            "coordinates": "columns and rows of the file and positions in the query (the first row), from 1; "
            "'.' where the query has no letter, and for the score of what was not read",
            "read": f"{depth} rows and {self.model.card.window} columns at most; columns without letters in "
            "these rows are left out",
            "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
            "occupancy": "share of all rows of the file with a letter",
            "conservation": "1 - entropy / log of the number of letters, of all rows of the file",
        }
        if "occlusion" in options.methods:
            block = options.settings.block or 1
            hidden = f"{block} columns at a time are" if block > 1 else "a column is"
            facts["occlusion"] = (
                f"fall of the log-odds when {hidden} masked in all rows, or a row is left out"
            )
        return facts | (self._pair_facts() if self.request.alignments.pairs else {})

    def _pair_facts(self) -> dict[str, str]:
        facts = {
            "pairs": "maps of row attention made symmetric, average product taken out; the two columns "
            f"{self._separation} or more apart; ranked by {self._ranking}",
            "covariation": "mutual information of all rows of the file, weighted, corrected in that way",
        }
        if self.model.alphabet.is_nucleotide:
            facts["helix"] = (
                "probability of a base pair, by energies of all rows of the file; not the model's"
            )
        return facts

    def _explanations(self, records: Iterable[Alignment]) -> Iterator[Explained]:
        for number, explanation in enumerate(explain_alignments(self.model, records, self.options)):
            needed = self.request.alignments.pairs or number < self.request.shown
            yield explanation, self._pairs(explanation) if needed else None

    def _pairs(self, explanation: AlignmentExplanation) -> PairTable:
        most = self.request.alignments.best_pairs
        if most == 0 and explanation.pairs is not None:
            most = explanation.pairs.size
        structure = self._structure(explanation.alignment)
        return pair_table(explanation, structure, most, self._separation, self._ranking)

    def _structure(self, alignment: Alignment) -> Structure | None:
        try:
            return structure_of(alignment)
        except ValueError as error:
            self.cautions.append(f"alignment '{alignment.id}': SS_cons: {error}; its pairs are left out")
            return None

    def _tables(self) -> list[tuple[str | None, Sequence[str], Rows]]:
        outputs, files = self.request.outputs, self.request.alignments
        top = outputs.top
        return [
            (outputs.out, COLUMN_COLUMNS, lambda explained: column_lines(explained[0], top)),
            (files.row_profile, ROW_COLUMNS, lambda explained: row_lines(explained[0])),
            (files.pairs, PAIR_COLUMNS, lambda explained: pair_lines(explained[0], explained[1].best)),
        ]

    def _keep(self, explanation: Explained) -> None:
        found = explanation[0]
        truncated = omits_letters(found.alignment, found.rows, found.columns)
        self._offer(found.alignment, called=found.label == found.target, truncated=truncated)
        if self.count <= self.request.shown:
            self.shown.append(explanation)

    def _check(self, records: Iterable[Alignment]) -> Faithfulness:
        return check_alignments(self.model, records, replace(self.options, pairs=False))

    def _shown(self) -> list[tuple[AlignmentExplanation, PairTable]]:
        return [(explanation, pairs) for explanation, pairs in self.shown if pairs is not None]

    def _plot(self, path: Path) -> None:
        from seqray.report.plots import plot_alignments

        plot_alignments(path, self._shown())

    def _page(self, provenance: Sequence[str], faithfulness: Faithfulness | None) -> str:
        from seqray.report.pages import AlignmentReport, render_alignments

        return render_alignments(
            AlignmentReport(
                title=f"{self.model.card.name}: columns that drive the predictions",
                shown=self._shown(),
                card=self.model.card,
                provenance=provenance,
                faithfulness=faithfulness,
                omitted=self._omitted,
                checked=self._checked,
            )
        )
