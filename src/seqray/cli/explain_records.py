"""Explain the records of each kind of model, and write what was found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seqray.cli.explain_options import ExplainRequest, faithfulness_path, track_names
from seqray.cli.inputs import GenomeInput, describe_input
from seqray.core.errors import ConfigError, InputError, SeqrayError, lacks_memory
from seqray.core.explanation import AlignmentExplanation, Explanation, Faithfulness, HeadFigures, Motif
from seqray.core.records import Alignment, SequenceRecord, omits_letters
from seqray.core.results import Call
from seqray.explanations.alignments import check_alignments, explain_alignments
from seqray.explanations.calls import (
    Stretch,
    best_calls,
    calls_of_gene,
    check_calls,
    cut_stretches,
    explain_calls,
    extract_call_windows,
    input_shares,
)
from seqray.explanations.checks import MIN_RECORDS
from seqray.explanations.methods import METHODS, method_cautions
from seqray.explanations.options import MAX_SHOWN_RADIUS, AlignmentOptions, ExplainOptions
from seqray.explanations.sequences import check, check_heads, explain_records, heads
from seqray.explanations.targets import wanted_class
from seqray.genome.genes import tracks_reader
from seqray.inference.alignments import depth_read
from seqray.inference.origin import Reservoir
from seqray.io import explanations as tables
from seqray.io.files import write_file
from seqray.io.gff3 import CalledFile
from seqray.io.lines import EXPECTED
from seqray.io.tables import open_table
from seqray.modelfile.model import TrainedModel

if TYPE_CHECKING:
    from seqray.genome.genes import Annotation

MAX_MOTIF_RECORDS = 5000
SCORE_TOLERANCE = 0.02  # scores of --dtype bf16 are not exact
VERDICT_ON_CALLS = (
    "For a verdict on the method, explain the best calls of a whole scan once (--best-calls 20)."
)
MAX_DESCRIBED = 20  # calls that the header describes

Tables = list[tuple[str | None, Sequence[str], Callable[[Any], Iterable[tuple[object, ...]]]]]
"""Name of each table, its columns, and the cells of its rows for an explanation."""


# --- Explains records and writes the files: tables while explanations come, all others at the end


@dataclass(eq=False)
class Explainer(ABC):
    """Explains records, checks the rankings on a sample of them, and writes the files, in this order."""

    most_checked: ClassVar[int]  # records that the checks use, unless the request names a number
    model: TrainedModel
    request: ExplainRequest
    called: CalledFile | None
    genes: Annotation | None

    def __post_init__(self) -> None:
        request, model = self.request, self.model
        self.options = self._options()
        self.count = self.truncated = 0
        self.cautions = method_cautions(model, self.options.methods)
        self.shown: list[Any] = []
        size = request.checks.check_records or self.most_checked
        self._called, self._any = (Reservoir[Any](size, request.checks.seed) for _ in range(2))

    def explain(
        self,
        records: Iterable[Any],
        staged: Mapping[str, Path],
        provenance: Sequence[str],
        advance: Callable[[], None],
    ) -> None:
        """Explain records, write the tables, and keep what the checks and the other files need."""
        explanations = iter(self._explanations(records))
        first = list(islice(explanations, 1))  # an input that can't be read leaves no header on stdout
        with ExitStack() as stack:
            tables = [
                (stack.enter_context(open_table(staged[path], columns, provenance)), rows)
                for path, columns, rows in self._tables()
                if path
            ]
            for explanation in chain(first, explanations):
                before = self.count
                self._keep(explanation)
                for write, rows in tables:
                    write(rows(explanation))
                if self.count > before:
                    advance()

    def sample(self) -> list[Any]:
        """Records for the checks: those called as the explained class, or all if there are none."""
        return self._called.kept or self._any.kept

    @abstractmethod
    def check(self, records: Iterable[Any]) -> Faithfulness:
        """Check the rankings on the `sample`."""

    def write(
        self, staged: Mapping[str, Path], provenance: Sequence[str], faithfulness: Faithfulness | None
    ) -> None:
        """Write all files but the tables of `explain`."""
        outputs, checks = self.request.outputs, faithfulness_path(self.request)
        if checks and faithfulness is not None:
            verdicts = [f"verdict: {verdict}" for verdict in faithfulness.verdicts.values()]
            tables.write_fields(
                staged[checks], tables.CHECK_COLUMNS, faithfulness.checks, [*provenance, *verdicts]
            )
        if outputs.html:
            shared = {"card": self.model.card, "provenance": provenance, "faithfulness": faithfulness}
            shared |= {"omitted": max(0, self.count - self.request.shown), "checked": self._checked}
            write_file(staged[outputs.html], self._page(shared))

    def plot(self, staged: Mapping[str, Path]) -> SeqrayError | None:
        """Draw the figure; the error where matplotlib can't, which costs no other output."""
        path = self.request.outputs.plot
        if not path:
            return None
        try:
            self._plot(staged[path])
        except (SeqrayError, OSError):
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            lacking = lacks_memory(error)
            remedy = "give it more memory" if lacking else "update matplotlib"
            kind, remedy = InputError if lacking else SeqrayError, f"all other outputs are written; {remedy}"
            return kind(f"can't be drawn ({reason})", where=path, remedy=remedy)
        return None

    def facts(self) -> dict[str, str]:
        """What the columns mean, for the header."""
        card, asked, methods = self.model.card, self.options.target, self.options.methods
        positive = " (the positive one)" if asked is None and len(card.classes) <= 2 else ""
        blind = "rollout is" if self.options.unit == "alignments" else "rollout and value-rollout are"
        signs = {name: "signed" if METHODS[name].signed else "unsigned shares" for name in methods}
        return {
            "methods": ", ".join(f"{name} ({sign})" for name, sign in signs.items()),
            "class": f"{wanted_class(card, asked)}{positive}; {blind} the same for every class",
        }

    def remarks(self) -> list[str]:
        """What to tell the user beside the verdicts on rankings."""
        return [self._checked[0].lower() + self._checked[1:-1]] if self._checked else []

    def _offer(self, record: Any, *, called: bool, truncated: bool) -> None:
        """Count a record, and draw it for the checks or not; ``called`` the class explained."""
        self.count += 1
        self.truncated += truncated
        self._any.offer(record)
        if called:
            self._called.offer(record)

    @property
    def _checked(self) -> str:
        """Which records the checks used, in a sentence; empty if none, or all and they were enough."""
        called, used = self._called.offered, len(self.sample())
        if self.request.checks.no_check:
            return ""
        if used == self.count:
            return VERDICT_ON_CALLS if self.called and 0 < used < MIN_RECORDS else ""
        if called == self.count:
            return f"The checks use {used} of the {called} records, drawn at random."
        name = wanted_class(self.model.card, self.options.target)
        if not called:
            return f"No record is called {name}: the checks use {used} of all {self.count}, drawn at random."
        which = "those" if used == called else f"drawn from the {called}"
        return f"The checks use {used} of the {self.count} records: {which} that are called {name}."

    @abstractmethod
    def _options(self) -> Any: ...

    @abstractmethod
    def _explanations(self, records: Iterable[Any]) -> Iterable[Any]: ...

    @abstractmethod
    def _tables(self) -> Tables: ...

    @abstractmethod
    def _keep(self, explanation: Any) -> None: ...

    @abstractmethod
    def _plot(self, path: Path) -> None: ...

    @abstractmethod
    def _page(self, shared: dict[str, Any]) -> str: ...


# --- Models of sequences, and what is the same for all models whose letters are scored


class SequenceExplainer(Explainer):
    """Explains sequences, or the windows of calls, by scores of their letters."""

    most_checked = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        outputs = self.request.outputs
        if outputs.heads:
            check_heads(self.model)
        self._scan = self.called.statement if self.called else None
        if self._scan is not None and not self._scan.made_by(self.model.sha256):
            made_by = self._scan.facts["model"].split(" ")[0]
            self.cautions.append(f"{self._scan.file} has the calls of another model or version: {made_by}")
        self._tracks = {m: tables.ScoreTrack() for m in self.options.methods} if outputs.track else {}
        self._for_motifs: list[Explanation] = []
        self._calls = self._chosen_calls() if self.request.target.calls else []
        self._moved: list[str] = []  # calls whose score is not that of their file

    def _options(self) -> ExplainOptions:
        request = self.request
        attention = bool(request.outputs.html) and not self.model.is_locator
        effects = not request.checks.no_check
        return request.for_library(ExplainOptions, effects=effects, attention=attention)

    def facts(self) -> dict[str, str]:
        facts = super().facts() | {
            "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
            "ism_delta": "change of the log-odds of the class, mean over all others",
        }
        if copies := self.options.shuffles:
            facts["p"] = f"share of positions in {copies} shuffled copies of the record that score as high"
            facts["q"] = "p after Benjamini and Hochberg over all positions; near 1: none stands out alone"
        if self._scan is not None:
            facts["calls"] = self._scan.file
            facts |= {f"scan {key}": text for key, text in self._scan.facts.items()}
            if self._scan.lacks:
                facts["scan lacks"] = ", ".join(self._scan.lacks)
            facts |= {f"call {call.id}": call.summary for call in self._calls[:MAX_DESCRIBED]}
        return facts

    def remarks(self) -> list[str]:
        remarks, scan = super().remarks(), self._scan
        if self.request.outputs.motifs and not self._motifs:
            from seqray.explanations.motifs import MIN_RECORDS

            remarks.append(f"no motif was found; {MIN_RECORDS} records with a common pattern are needed")
        if self._moved:
            remarks.append(
                f"caution: calls with another score here: {len(self._moved)} of {self.count}, such as "
                f"{self._moved[0]}; give the sequences and the genes of the scan"
            )
        if scan is not None and scan.lacks:
            unknown = f"{scan.file} does not state {' and '.join(scan.lacks)}"
            remarks.append(f"caution: {unknown}, so it is not known how many of the calls are right")
        elif scan is not None:
            judged = [key for key in ("threshold", *EXPECTED) if key in scan.facts]
            stated = "; ".join(f"{key}: {scan.facts[key]}" for key in judged)
            remarks.append(f"this does not test whether the calls are right; {scan.file} states {stated}")
        return remarks

    def check(self, records: Iterable[Any]) -> Faithfulness:
        return check(self.model, records, self.options, note=lambda _: None)  # noted before

    def _explanations(self, records: Iterable[SequenceRecord]) -> Iterator[Explanation]:
        places = None
        if path := self.request.target.calls:
            how = (self.model.alphabet, self.model.card.window, path)
            records, places = extract_call_windows(records, self._calls, *how)
        source = describe_input(self.request.input)
        return explain_records(self.model, records, self.options, places=places, source=source)

    def _chosen_calls(self) -> list[Call]:
        target, path = self.request.target, str(self.request.target.calls)
        calls = self.called.calls if self.called else []
        if not calls and not self.request.records.allow_empty:
            remedy = "--allow-empty gives an empty output instead"
            raise InputError("holds no calls of 'seqray scan'", where=path, remedy=remedy)
        own = calls if target.gene is None or not calls else calls_of_gene(calls, target.gene, path)
        return best_calls(own, target.best_calls)

    def _tables(self) -> Tables:
        outputs = self.request.outputs
        return [(outputs.out, tables.EXPLANATION_COLUMNS, lambda e: tables.explanation_rows(e, outputs.top))]

    def _keep(self, explanation: Explanation) -> None:
        e, outputs = explanation, self.request.outputs
        if e.method == self.options.methods[0] and e.member == "mean":
            truncated = bool(np.isnan(e.scores).any())
            self._offer(self._record_of(e), called=e.label == e.target, truncated=truncated)
            call, here = e.place and e.place.call, e.probability
            if call and call.label == e.target and not abs(here - call.score) <= SCORE_TOLERANCE:
                self._moved.append(f"{e.id} ({here:.3g}, in the file {call.score:.3g})")
            wanted = (outputs.motifs or outputs.html) and len(self._for_motifs) < MAX_MOTIF_RECORDS
            if e.label == e.target and wanted:
                self._for_motifs.append(replace(self._shown_part(e), attention=None, effects=None))
        if self.count <= self.request.shown:
            self.shown.append(self._shown_part(e))
        if e.member == "mean" and e.method in self._tracks:
            self._tracks[e.method].add(e)

    def _record_of(self, explanation: Explanation) -> Any:
        """What was explained."""
        return SequenceRecord(explanation.id, explanation.sequence)

    def _shown_part(self, explanation: Explanation) -> Explanation:
        """What the page and the plot show, and motifs are searched in."""
        return explanation

    @property
    def _site(self) -> int | None:
        """Index of the site in what is shown."""
        return self.model.card.site

    @cached_property
    def _motifs(self) -> Sequence[Motif]:
        from seqray.explanations.motifs import find_motifs

        return find_motifs(self._for_motifs, self.model.alphabet)

    @cached_property
    def _heads(self) -> Sequence[HeadFigures]:
        """Figures of attention heads; those of a backbone or a locator stay hidden."""
        is_hidden = self.model.card.model.backbone is not None or self.model.is_locator
        return () if is_hidden else heads(self.model, self.sample(), self.options)

    def write(
        self, staged: Mapping[str, Path], provenance: Sequence[str], faithfulness: Faithfulness | None
    ) -> None:
        outputs, alphabet = self.request.outputs, self.model.alphabet
        if outputs.heads:
            tables.write_fields(staged[outputs.heads], tables.HEAD_COLUMNS, self._heads, provenance)
        for method, track in self._tracks.items():
            for path in track_names(self.request, method):
                name = f"{method} of {self.model.card.name}"
                track.write(path, provenance, name, lambda one: staged[str(one)])
        if outputs.motifs:
            from seqray.explanations.motifs import background_of

            background = background_of(self._for_motifs, alphabet)
            for path in outputs.motifs:
                tables.write_motifs(staged[path], self._motifs, alphabet, provenance, background=background)
        super().write(staged, provenance, faithfulness)

    def _plot(self, path: Path) -> None:
        from seqray.report.plots import plot_explanations

        plot_explanations(path, self.shown, self.model.alphabet, self._site)

    def _page(self, shared: dict[str, Any]) -> str:
        from seqray.report.pages.sequences import SequenceReport, render_sequences

        return render_sequences(
            SequenceReport(
                title=f"{self.model.card.name}: positions that drive the predictions",
                explanations=self.shown,
                alphabet=self.model.alphabet,
                site=self._site,
                heads=self._heads,
                motifs=self._motifs,
                scan=self._scan,
                **shared,
            )
        )


# --- A locator: the letters and the genes around its calls


class LocatorExplainer(SequenceExplainer):
    """Explains the scores of calls."""

    most_checked = 40  # a call takes some hundred answers of the model

    _stretches: Sequence[Stretch] = ()

    def facts(self) -> dict[str, str]:
        facts = super().facts() | {
            "letters": f"{self.model.locators[0].radius} on either side of the site: no others can change "
            f"its score; page, plot and motifs take {self._site}",
            "genes": self.genes.source if self.genes else "not known",
        }
        if self.request.outputs.inputs:
            facts["inputs"] = (
                "letters, genes: share in the sum of absolute effects by gradient times input; "
                "without_genes, letters_shuffled: change of the log-odds; first_track: of the largest effect"
            )
        return facts

    def check(self, records: Iterable[Stretch]) -> Faithfulness:
        return check_calls(self.model, records, self.options)

    def _explanations(self, records: Iterable[SequenceRecord]) -> Iterator[Explanation]:
        path, genes = str(self.request.target.calls), self.genes
        self._stretches = cut_stretches(
            self.model,
            records,
            self._calls,
            tracks_reader(self.model.card.model.tracks, genes.find if genes else None),
            circular={*(self.called.circular if self.called else ()), *(genes.circular if genes else ())},
            source=path,
        )
        return explain_calls(self.model, self._stretches, self.options)

    def _record_of(self, explanation: Explanation) -> Stretch:
        return self._stretches[explanation.record]

    def _shown_part(self, explanation: Explanation) -> Explanation:
        around = self.model.locators[0].radius - self._site
        return explanation.part(around, len(explanation.sequence) - around)

    @property
    def _site(self) -> int:
        return min(MAX_SHOWN_RADIUS, self.model.locators[0].radius)

    def write(
        self, staged: Mapping[str, Path], provenance: Sequence[str], faithfulness: Faithfulness | None
    ) -> None:
        if path := self.request.outputs.inputs:
            numbered = enumerate(self._stretches)
            shares = (input_shares(self.model, i, stretch, self.options) for i, stretch in numbered)
            tables.write_shares(staged[path], shares, provenance)
        super().write(staged, provenance, faithfulness)


def find_genome(request: ExplainRequest, model: TrainedModel, called: CalledFile | None) -> GenomeInput:
    """Open the genome that a locator reads, and find its genes."""
    path, *others = request.input
    if request.target.calls is None:
        remedy = "write them by 'seqray scan --out calls.gff3' and name them by --calls"
        raise ConfigError("a model for genomes is explained by its calls", remedy=remedy)
    if others:
        raise ConfigError("a model for genomes explains the calls of one file", remedy="give one genome")
    circular = called.circular if called else frozenset[str]()
    opened = GenomeInput(path, model.alphabet, request.records, request.genes)
    introns = model.card.locator.introns
    opened.find_genes(lambda record: record.circular or record.id in circular, introns=introns)
    request.note(*opened.notes)
    return opened


# --- Models of alignments: columns and rows


class AlignmentExplainer(Explainer):
    """Explains alignments."""

    most_checked = 40  # an alignment takes an answer of the model for each of its columns

    def _options(self) -> AlignmentOptions:
        return self.request.for_library(AlignmentOptions, rows=self.request.rows.limit())

    def facts(self) -> dict[str, str]:
        depth = depth_read(self.model, self.options.rows)
        facts = super().facts() | {
            "coordinates": "columns and rows of the file and positions in the query (the first row), from 1; "
            "'.' where the query has no letter, and for the score of what was not read",
            "read": f"{depth} rows and {self.model.card.window} columns at most; columns without letters in "
            "these rows are left out",
            "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
            "occupancy": "share of all rows of the file with a letter",
            "conservation": "1 - entropy / log of the number of letters, of all rows of the file",
        }
        if "occlusion" in self.options.methods:
            block = self.options.settings.block or 1
            hidden = f"{block} columns at a time are" if block > 1 else "a column is"
            facts["occlusion"] = (
                f"fall of the log-odds when {hidden} masked in all rows, or a row is left out"
            )
        return facts

    def check(self, records: Iterable[Alignment]) -> Faithfulness:
        return check_alignments(self.model, records, self.options, note=lambda _: None)

    def _explanations(self, records: Iterable[Alignment]) -> Iterator[AlignmentExplanation]:
        return explain_alignments(self.model, records, self.options)

    def _tables(self) -> Tables:
        outputs = self.request.outputs
        return [
            (outputs.out, tables.COLUMN_COLUMNS, lambda e: tables.column_lines(e, outputs.top)),
            (outputs.row_profile, tables.ROW_COLUMNS, tables.row_lines),
        ]

    def _keep(self, explanation: AlignmentExplanation) -> None:
        e = explanation
        truncated = omits_letters(e.alignment, e.rows, e.columns)
        self._offer(e.alignment, called=e.label == e.target, truncated=truncated)
        if self.count <= self.request.shown:
            self.shown.append(e)

    def _plot(self, path: Path) -> None:
        from seqray.report.plots import plot_alignments

        plot_alignments(path, self.shown)

    def _page(self, shared: dict[str, Any]) -> str:
        from seqray.report.pages.alignments import AlignmentReport, render_alignments

        title = f"{self.model.card.name}: columns that drive the predictions"
        return render_alignments(AlignmentReport(title=title, shown=self.shown, **shared))


EXPLAINERS: Mapping[str, type[Explainer]] = {
    "sequence": SequenceExplainer,
    "backbone": SequenceExplainer,
    "own": SequenceExplainer,
    "alignment": AlignmentExplainer,
    "locator": LocatorExplainer,
}
"""By the kind of model that a card names, as `seqray.kinds.kinds.KINDS`."""
