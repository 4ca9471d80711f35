"""Precision to expect of a locator's calls: a lower bound, for mapped sites are never all sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import Floats
from seqray.core.boxes import BOXES
from seqray.core.card_parts import LocatorFacts, SpeciesTable
from seqray.core.results import SpeciesRow

_PER_KB, _RECALL, _PRECISION = 1, 2, 3  # columns of a table


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect at a threshold."""

    rows: tuple[SpeciesRow, ...]  # one per species; never empty
    # whether the spread is that of species that training did not see; else of all, for want of them
    left_out: bool
    low: float  # precision over these species: the lowest, the median, the highest
    median: float
    high: float

    @property
    def spread(self) -> tuple[SpeciesRow, ...]:
        """The species of the spread."""
        return tuple(row for row in self.rows if row.held_out == "species") or self.rows

    def of(self, species: str | None) -> SpeciesRow | None:
        """The row of a species; of two, the one of its held-out region. None if it was not measured."""
        own = [row for row in self.rows if row.species == species]
        return min(own, key=lambda row: row.held_out, default=None)


class ExpectedPrecision:
    """The figures of a locator's card; of a ``foreign`` genome, those of species left out of training."""

    def __init__(self, facts: LocatorFacts, *, foreign: bool = False) -> None:
        self.tolerance = facts.tolerance or 0
        self.boxes = BOXES[facts.kingdom or "bacteria"]
        known = not (foreign and all(table.held_out == "region" for table in facts.expected))
        self.tables: Sequence[SpeciesTable] = facts.expected if known else ()

    def at(self, threshold: float, genes: bool) -> Expectation | None:
        """What to expect at a threshold, with genes or without; None if no species was measured so."""
        rows = []
        for table in self.tables:
            if table.genes == genes:
                at = [float(np.interp(threshold, table.rows[::-1, 0], v)) for v in table.rows[::-1, 1:].T]
                rows.append(SpeciesRow(table.species, table.held_out, *at))
        if not rows:
            return None
        left_out = tuple(row for row in rows if row.held_out == "species")
        spread = left_out or tuple(rows)
        precision = [row.precision for row in spread]
        middle = float(np.median(precision))
        return Expectation(tuple(rows), bool(left_out), min(precision), middle, max(precision))

    def precisions(self, scores: Floats, genes: bool, species: str | None = None) -> Floats | None:
        """Precision of calls of at least each score (n,), nan below `lowest_measured`; None if unknown."""
        tables = self._deciding(genes, species)
        if not tables:
            return None
        figures = [np.interp(scores, rows[::-1, 0], rows[::-1, _PRECISION]) for rows in tables]
        measured = scores >= (self.lowest_measured(genes, species) or 0)
        return np.where(measured, np.median(figures, axis=0), np.nan)

    def of_calls(self, scores: Floats, genes: bool, species: str | None = None) -> Floats | None:
        """Share right of calls of about each score (n,), which rises with it; else as `precisions`.

        The species' own value is used only above the median of species: with few mapped sites it is too low.
        """
        tables = self._peers(genes, species)
        if not tables:
            return None
        curves = [(table.species, np.interp(scores, *_rising(table.rows))) for table in tables]
        shares = np.median([curve for _, curve in curves], axis=0)
        for name, curve in curves:
            shares = np.maximum(shares, curve) if name == species else shares
        return np.where(scores >= (self.lowest_measured(genes, species) or 0), shares, np.nan)

    def basis_of_calls(self, genes: bool, species: str | None = None) -> str:
        """Where `of_calls` was measured; empty where it was not."""
        tables = self._peers(genes, species)
        names = {table.species for table in tables}
        if len(names) < 2:
            return "".join(f"the share in {name}" for name in names)
        left_out = tables[0].held_out == "species"
        median = f"the median of {len(names)} species{' that training did not see' * left_out}"
        return f"the share in {species}, or {median} where that is higher" if species in names else median

    def _peers(self, genes: bool, species: str | None) -> list[SpeciesTable]:
        """Tables of one kind: of regions left out if training saw the species, else of species left out."""
        tables = [table for table in self.tables if table.genes == genes]
        own = {table.held_out for table in tables if table.species == species}
        kind = min(own, default="species")
        return [table for table in tables if table.held_out == kind] or tables

    def lowest_measured(self, genes: bool, species: str | None = None) -> float | None:
        """The score below which precision is not known; of several species, the median of theirs."""
        lowest = [rows[-1, 0] for rows in self._deciding(genes, species)]
        return float(np.median(lowest)) if lowest else None

    def recall_at(self, calls_per_kb: float, genes: bool, species: str | None = None) -> float | None:
        """Share of the mapped sites found at so many calls per kb, of the species or the mean of others."""
        tables = self._deciding(genes, species)
        recalls = [np.interp(calls_per_kb, rows[:, _PER_KB], rows[:, _RECALL]) for rows in tables]
        return float(np.mean(recalls)) if recalls else None

    def _deciding(self, genes: bool, species: str | None) -> list[Floats]:
        """The table of the species (of two, that of its region), else of those left out, else all."""
        tables = [table for table in self.tables if table.genes == genes]
        own = sorted((t for t in tables if t.species == species), key=lambda table: table.held_out)
        left_out = [table for table in tables if table.held_out == "species"]
        return [table.rows for table in own[:1] or left_out or tables]

    def threshold_for(
        self, precision: float, genes: bool, species: str | None = None, *, single: bool = False
    ) -> float | None:
        """Lowest threshold to expect a precision from, of all calls or each ``single`` one; None without."""
        figures = self.of_calls if single else self.precisions

        def is_enough(threshold: float) -> bool:
            at = figures(np.array([threshold]), genes, species)
            return at is not None and bool(at[0] >= precision)

        below: float | None = None
        for threshold in self._thresholds(genes).tolist():
            if is_enough(threshold):
                for _ in range(40 if below is not None else 0):
                    middle = (below + threshold) / 2
                    below, threshold = (below, middle) if is_enough(middle) else (middle, threshold)
                return threshold
            below = threshold
        return None

    def highest_precision(self, genes: bool, species: str | None = None) -> float:
        """The highest precision to expect at any threshold; arguments as of `precisions`."""
        at = self.precisions(self._thresholds(genes), genes, species)
        return 0.0 if at is None else float(np.nanmax(at, initial=0.0))

    def _thresholds(self, genes: bool) -> Floats:
        """All that were measured, in ascending order."""
        own = [table.rows[:, 0] for table in self.tables if table.genes == genes]
        return np.unique(np.concatenate([np.empty(0), *own]))


def _rising(rows: Floats) -> tuple[Floats, Floats]:
    """Scores in ascending order, and the share right of the calls around each, by isotonic regression."""
    from scipy.optimize import isotonic_regression

    calls = np.diff(rows[:, _PER_KB], prepend=0)  # between a threshold and the one above
    right = np.diff(rows[:, _PER_KB] * rows[:, _PRECISION], prepend=0)
    middle = (rows[:, 0] + np.concatenate((rows[:1, 0], rows[:-1, 0]))) / 2
    some = calls > 0
    fitted = isotonic_regression(right[some] / calls[some], weights=calls[some], increasing=False).x
    return middle[some][::-1], np.clip(fitted[::-1], 0, 1)
