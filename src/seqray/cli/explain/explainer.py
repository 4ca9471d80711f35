"""Explains records and writes the files: tables while explanations come, all others at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from seqray.cli.explain.arguments import ExplainRequest
from seqray.cli.explain.files import faithfulness_path
from seqray.cli.explain.genome import Genome
from seqray.core import Alignment, Reservoir, SequenceRecord
from seqray.core.results import Faithfulness
from seqray.explanations import AlignmentOptions, ExplainOptions, Stretch
from seqray.explanations.attribution import METHODS, wanted_class
from seqray.io import write_file
from seqray.io.tables import open_table, write_checks
from seqray.modelfile import TrainedModel

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
