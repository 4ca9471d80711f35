"""Explanations of each kind of model, written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from seqray.cli.explain_options import ExplainRequest, Genome, faithfulness_path, find_genome, track_names
from seqray.cli.inputs import describe_input
from seqray.core.alignment import omits_letters
from seqray.core.arrays import Reservoir
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import (
    AlignmentExplanation,
    Explanation,
    Faithfulness,
    HeadFigures,
    InputShares,
    Motif,
    Place,
)
from seqray.core.records import Alignment, SequenceRecord
from seqray.core.results import Call
from seqray.explanations.alignments import check_alignments, explain_alignments
from seqray.explanations.calls import (
    Stretch,
    best_calls,
    check_calls,
    cut_stretches,
    explain_calls,
    extract_call_windows,
    input_shares,
)
from seqray.explanations.methods import METHODS
from seqray.explanations.options import AlignmentOptions, ExplainOptions
from seqray.explanations.sequences import check, check_heads, explain_records, heads
from seqray.explanations.targets import wanted_class
from seqray.inference.alignments import depth_read
from seqray.io.explanations import (
    COLUMN_COLUMNS,
    EXPLANATION_COLUMNS,
    ROW_COLUMNS,
    ScoreTrack,
    column_lines,
    explanation_rows,
    row_lines,
    write_checks,
    write_heads,
    write_shares,
)
from seqray.io.files import write_file
from seqray.io.gff3 import read_gff3_calls
from seqray.io.lines import EXPECTED, read_scan_statement
from seqray.io.tables import open_table
from seqray.kinds.kinds import tracks_reader
from seqray.modelfile.model import TrainedModel

# --- Explains records and writes the files: tables while explanations come, all others at the end

Record = TypeVar("Record", SequenceRecord, Alignment, Stretch)
Found = TypeVar("Found")
Options = TypeVar("Options", ExplainOptions, AlignmentOptions)
Rows = Callable[[Any], Iterable[tuple[object, ...]]]


class Explainer(ABC, Generic[Record, Found, Options]):
    """Explains records, checks the rankings on a sample of them, and writes the files.

    Call `explain`, `check` and `write` in this order.

    Attributes
    ----------
    most_checked
        Most records that the checks use, unless the request names a number.
    count, truncated
        Records explained so far, and how many of them were read in part.
    cautions
        What the scores leave out, and what went wrong and spoiled nothing else.
    """

    most_checked: ClassVar[int]

    @staticmethod
    def open_genome(request: ExplainRequest, model: TrainedModel) -> Genome:
        """Find what is read beside the records, before these are opened."""
        return Genome()

    def __init__(self, model: TrainedModel, request: ExplainRequest, genome: Genome) -> None:
        self.model, self.request, self.genome = model, request, genome
        self.options = self._options()
        self.count = self.truncated = 0
        self.cautions = _composition_cautions(model, self.options.methods)
        self.shown: list[Found] = []
        checks = request.checks
        size = checks.check_records or self.most_checked
        self._called: Reservoir[Record] = Reservoir(size, checks.seed)
        self._any: Reservoir[Record] = Reservoir(size, checks.seed)

    def explain(
        self,
        records: Iterable[Any],
        staged: Mapping[str, Path],
        provenance: Sequence[str],
        advance: Callable[[], None],
    ) -> None:
        """Explain records, write the tables, and keep what the checks and the other files need.

        ``staged`` says where each file is written until all are complete; ``advance`` is called after each
        record.
        """
        found = iter(self._explanations(records))
        first = list(islice(found, 1))  # an input that can't be read leaves no header on standard output
        with ExitStack() as stack:
            tables = [
                (stack.enter_context(open_table(staged[path], columns, provenance)), rows)
                for path, columns, rows in self._tables()
                if path
            ]
            for explanation in chain(first, found):
                before = self.count
                self._keep(explanation)
                for write, rows in tables:
                    write(rows(explanation))
                if self.count > before:
                    advance()

    def sample(self) -> list[Record]:
        """Records for the checks: those called as the explained class, or all if there are none."""
        return self._called.kept or self._any.kept

    def check(self, watch: Callable[[Iterable[Record]], Iterable[Record]]) -> Faithfulness | None:
        """Check the rankings on the sample unless the request disables it; ``watch`` receives each record."""
        return None if self.request.checks.no_check else self._check(watch(self.sample()))

    def write(
        self, staged: Mapping[str, Path], provenance: Sequence[str], faithfulness: Faithfulness | None
    ) -> None:
        """Write all files but the tables of `explain`."""
        outputs, checks = self.request.outputs, faithfulness_path(self.request)
        if checks and faithfulness is not None:
            verdicts = [f"verdict: {verdict}" for verdict in faithfulness.verdicts.values()]
            write_checks(staged[checks], faithfulness.checks, [*provenance, *verdicts])
        self._write_others(staged, provenance)
        if outputs.plot:
            self._plot(staged[outputs.plot])
        if outputs.html:
            write_file(staged[outputs.html], self._page(provenance, faithfulness))

    def _offer(self, record: Record, *, called: bool, truncated: bool) -> None:
        """Count a record, and draw it for the checks or not; ``called`` the class explained."""
        self.count += 1
        self.truncated += truncated
        self._any.offer(record)
        if called:
            self._called.offer(record)

    @property
    def _checked(self) -> str:
        """Which records the checks used, in a sentence; empty if all or none."""
        called, used = self._called.offered, len(self.sample())
        if self.request.checks.no_check or used == self.count:
            return ""
        if called == self.count:
            return f"The checks use {used} of the {called} records, drawn at random."
        name = wanted_class(self.model.card, self.options.target)
        if not called:
            return f"No record is called {name}: the checks use {used} of all {self.count}, drawn at random."
        which = "those" if used == called else f"drawn from the {called}"
        return f"The checks use {used} of the {self.count} records: {which} that are called {name}."

    @property
    def _omitted(self) -> int:
        """Records that the page leaves out."""
        return max(0, self.count - self.request.shown)

    def _methods_fact(self, signed: Mapping[str, bool]) -> str:
        kinds = (f"{m} ({'signed' if signed[m] else 'unsigned shares'})" for m in self.options.methods)
        return ", ".join(kinds)

    @property
    def _target_fact(self) -> str:
        card, asked = self.model.card, self.options.target
        note = " (the positive one)" if asked is None and len(card.classes) <= 2 else ""
        return wanted_class(card, asked) + note

    @abstractmethod
    def _options(self) -> Options:
        """The request, for the library."""

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """What the columns mean, for the header."""

    @abstractmethod
    def _explanations(self, records: Iterable[Any]) -> Iterator[Found]:
        """Explain what was read."""

    @abstractmethod
    def _tables(self) -> list[tuple[str | None, Sequence[str], Rows]]:
        """Name of each table, its columns, and the cells of its rows for an explanation."""

    @abstractmethod
    def _keep(self, explanation: Found) -> None: ...

    @abstractmethod
    def _check(self, records: Iterable[Record]) -> Faithfulness: ...

    def remarks(self) -> list[str]:
        """What to tell the user beside the verdicts on rankings."""
        return [self._checked[0].lower() + self._checked[1:-1]] if self._checked else []

    def _write_others(self, staged: Mapping[str, Path], provenance: Sequence[str]) -> None:
        """Write the files that only this kind has."""

    @abstractmethod
    def _plot(self, path: Path) -> None: ...

    @abstractmethod
    def _page(self, provenance: Sequence[str], faithfulness: Faithfulness | None) -> str: ...


def _composition_cautions(model: TrainedModel, methods: Sequence[str]) -> list[str]:
    """Say which methods do not see the composition that a model reads beside the letters."""
    blind = [name for name in methods if not METHODS[name].predicts]
    if not (blind and model.card.model.composition):
        return []
    seeing = [name for name, method in METHODS.items() if method.predicts]
    return [
        f"model '{model.card.name}' reads the composition of the sequence beside its attention, and "
        f"{', '.join(blind)} can't show that part; {' and '.join(seeing)} do"
    ]


# --- What is the same for all models whose letters are scored: tables, motifs, tracks, plot and page

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
            from seqray.io.explanations import write_motifs

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
        from seqray.report.pages.sequences import SequenceReport, render_sequences

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


# --- Explanations of a model of sequences: letters and heads


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


# --- Explanations of a locator: the letters and the genes around its calls

MAX_SHOWN_RADIUS = 100  # letters around the site in the page and the plot, and in which motifs are searched


class LocatorExplainer(LetterExplainer[Stretch]):
    """Explains the scores of calls."""

    most_checked = 40  # a call takes some thousand answers of the model for long stretches

    @staticmethod
    def open_genome(request: ExplainRequest, model: TrainedModel) -> Genome:
        return find_genome(request, model)

    def __init__(self, model: TrainedModel, request: ExplainRequest, genome: Genome) -> None:
        if request.target.calls is None:
            raise ConfigError(
                "a locator is explained by its calls",
                remedy="write them by 'seqray scan --out calls.gff3' and name them by --calls",
            )
        self._calls = request.target.calls
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


# --- Explanations of a model of alignments: columns and rows


class AlignmentExplainer(Explainer[Alignment, AlignmentExplanation, AlignmentOptions]):
    """Explains alignments."""

    most_checked = 40  # an alignment takes an answer of the model for each of its columns

    def _options(self) -> AlignmentOptions:
        request = self.request
        return request.for_library(AlignmentOptions, rows=request.rows.limit())

    def facts(self) -> dict[str, str]:
        options = self.options
        depth = depth_read(self.model, options.rows)
        facts = {
            "methods": self._methods_fact({name: m.signed for name, m in METHODS.items()}),
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
        return facts

    def _explanations(self, records: Iterable[Alignment]) -> Iterator[AlignmentExplanation]:
        return explain_alignments(self.model, records, self.options)

    def _tables(self) -> list[tuple[str | None, Sequence[str], Rows]]:
        outputs = self.request.outputs
        return [
            (outputs.out, COLUMN_COLUMNS, lambda e: column_lines(e, outputs.top)),
            (self.request.alignments.row_profile, ROW_COLUMNS, row_lines),
        ]

    def _keep(self, explanation: AlignmentExplanation) -> None:
        e = explanation
        truncated = omits_letters(e.alignment, e.rows, e.columns)
        self._offer(e.alignment, called=e.label == e.target, truncated=truncated)
        if self.count <= self.request.shown:
            self.shown.append(explanation)

    def _check(self, records: Iterable[Alignment]) -> Faithfulness:
        return check_alignments(self.model, records, self.options)

    def _plot(self, path: Path) -> None:
        from seqray.report.plots import plot_alignments

        plot_alignments(path, self.shown)

    def _page(self, provenance: Sequence[str], faithfulness: Faithfulness | None) -> str:
        from seqray.report.pages.alignments import AlignmentReport, render_alignments

        return render_alignments(
            AlignmentReport(
                title=f"{self.model.card.name}: columns that drive the predictions",
                shown=self.shown,
                card=self.model.card,
                provenance=provenance,
                faithfulness=faithfulness,
                omitted=self._omitted,
                checked=self._checked,
            )
        )


# --- The explainer of each kind of model

EXPLAINERS: Mapping[str, type[Explainer[Any, Any, Any]]] = {
    "sequence": SequenceExplainer,
    "backbone": SequenceExplainer,
    "alignment": AlignmentExplainer,
    "locator": LocatorExplainer,
}
"""By the kind of model that a card names, as `seqray.kinds.table`."""
