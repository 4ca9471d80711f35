"""Figures by name, and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from seqray.core import format_interval
from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import EVERY_CLASS


class FigureTable:
    """Figures by section, split, class and quantity."""

    def __init__(self, figures: Iterable[AuditFigure]) -> None:
        self.figures = list(figures)
        self._by_key = {(f.section, f.split, f.label, f.quantity): f for f in self.figures}

    def get(self, section: str, split: str, quantity: str, label: str = EVERY_CLASS) -> AuditFigure | None:
        """One figure, None if it is missing; by default that of all classes."""
        return self._by_key.get((section, split, label, quantity))

    def value(self, section: str, split: str, quantity: str, label: str = EVERY_CLASS) -> float:
        """Value of a figure, by default that of all classes; NaN if it is missing."""
        found = self.get(section, split, quantity, label)
        return found.value if found else math.nan

    def named(self, section: str, quantity: str) -> list[AuditFigure]:
        """Figures of one name in a section."""
        return [f for f in self.figures if f.section == section and f.quantity == quantity]

    def ending(self, section: str, end: str) -> list[AuditFigure]:
        """Figures of a section whose name ends so."""
        return [f for f in self.figures if f.section == section and f.quantity.endswith(end)]

    def counts_across(self, section: str, quantity: str) -> list[tuple[str, str, float, float]]:
        """Counts above 0 that compare two splits: their names, the count, the size of the first."""
        found = []
        for f in self.named(section, quantity):
            one, to, other = f.split.partition(" to ")
            if to and f.label == EVERY_CLASS and f.value > 0:
                found.append((one, other, f.value, self.value("counts", one, "sequences")))
        return found


def percent(share: float) -> str:
    """Write ``0.73 %`` or ``55 %``."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def part(count: float, of: float) -> str:
    """Write ``43 of 5920`` with the share."""
    return f"{count:.0f} of {of:.0f} ({percent(count / of)})"


def with_interval(f: AuditFigure) -> str:
    """Write a figure of merit with its interval."""
    return f"{f.value:.3f}{format_interval(f.low, f.high)}"


def of_class(label: str) -> str:
    """Name the class a figure is about; nothing where it is about all of them."""
    return "" if label == EVERY_CLASS else f" '{label}'"


def place_of_given(settings: Mapping[str, str]) -> str:
    """Where figures of the type ``given`` were measured: on random folds of data without a split."""
    return "on the given split" if settings["held_out"] else "on random folds"


def plural(count: float, one: str, many: str) -> str:
    """``one`` for a count of 1, else ``many``."""
    return one if count == 1 else many


def baseline_name(quantity: str) -> str:
    """Name of a baseline in words."""
    names = {"kmer_logistic": "logistic regression on k-mers", "position_weights": "a position weight matrix"}
    return names.get(quantity.rpartition("_")[0], quantity)
