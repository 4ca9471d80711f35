"""What to expect of a locator's calls, measured on mapped sites of regions and species that were held out.

Mapped sites are never all sites: a call far from any of them may still be right, so precision is a lower
bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from seqray.core.arrays import Floats
from seqray.core.card import reading_card

_FIELDS = 6  # numbers of a row: threshold, calls per kb, recall, precision and its interval
_HELD_OUT = ("region", "species")
_PER_KB, _RECALL, _PRECISION = 1, 2, 3  # its columns
_MODES = {True: "genes", False: "letters"}


class SpeciesRow(NamedTuple):
    """Figures of one species at a threshold.

    Attributes
    ----------
    species
        Its name.
    held_out
        ``region`` where other parts of its genome were seen in training, ``species`` where nothing was.
    calls_per_kb
        On both strands.
    recall
        Share of the mapped sites that a call is near.
    precision, low, high
        Share of the calls near a mapped site, and its interval.
    """

    species: str
    held_out: str
    calls_per_kb: float
    recall: float
    precision: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect at a threshold.

    Attributes
    ----------
    rows
        One per species; never empty.
    left_out
        Whether the spread is that of species that training did not see; else of all, for want of them.
    low, median, high
        Precision over these species: the lowest, the median, the highest.
    """

    rows: tuple[SpeciesRow, ...]
    left_out: bool
    low: float
    median: float
    high: float

    @property
    def spread(self) -> tuple[SpeciesRow, ...]:
        """The species of the spread."""
        return _left_out(self.rows) or self.rows

    def of(self, species: str | None) -> SpeciesRow | None:
        """The row of a species; of two, the one of its held-out region. None if it was not measured."""
        return min((row for row in self.rows if row.species == species), key=_order, default=None)


@dataclass(frozen=True, eq=False)
class SpeciesTable:
    """Figures of one species by threshold; ``genes`` says whether the model was given genes.

    A row of the (M, 6) is threshold, calls per kb, recall, precision and its interval; thresholds rise.
    """

    species: str
    held_out: Literal["region", "species"]
    genes: bool
    rows: Floats

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> SpeciesTable:
        """Read an entry of ``expected``; raises KeyError, TypeError or ValueError if it is damaged."""
        species, held_out, genes = mapping["species"], mapping["held_out"], mapping["genes"]
        if not isinstance(species, str) or held_out not in _HELD_OUT or not isinstance(genes, bool):
            raise ValueError("a species with no name, or without 'held_out' or 'genes'")
        rows = np.asarray(mapping["rows"], dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != _FIELDS or not len(rows) or not np.isfinite(rows).all():
            raise ValueError(f"the rows of {species} are no table of {_FIELDS} columns")
        rows = rows[::-1]
        if np.any(np.diff(rows[:, 0]) <= 0):
            raise ValueError(f"the thresholds of {species} don't fall")
        shares = rows[:, [0, 2, 3, 4, 5]]
        if (
            np.any(shares < 0)
            or np.any(shares > 1)
            or np.any(rows[:, 1] < 0)
            or np.any(rows[:, 4] > rows[:, 5])
        ):
            raise ValueError(f"a figure of {species} is out of range")
        return cls(species, held_out, genes, rows)

    def at(self, threshold: float) -> SpeciesRow:
        """The figures at a threshold: linear between two rows, the nearest row outside the table."""
        figures = (float(np.interp(threshold, self.rows[:, 0], column)) for column in self.rows[:, 1:].T)
        return SpeciesRow(self.species, self.held_out, *figures)


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A rising map from the score of a call to the share of calls near a mapped site.

    Both (M,) are between 0 and 1; scores rise, values don't fall.
    """

    scores: Floats
    values: Floats

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> ScoreMap:
        """Read an entry of ``probability``; raises KeyError, TypeError or ValueError if it is damaged."""
        scores, values = (np.asarray(mapping[name], dtype=np.float64) for name in ("scores", "values"))
        if scores.ndim != 1 or scores.shape != values.shape or not len(scores):
            raise ValueError("scores and values of different length")
        both = np.stack((scores, values))
        if not np.isfinite(both).all() or np.any(both < 0) or np.any(both > 1):
            raise ValueError("a score or a value is outside 0 to 1")
        if np.any(np.diff(scores) <= 0) or np.any(np.diff(values) < 0):
            raise ValueError("scores that don't rise, or values that fall")
        return cls(scores, values)

    def __call__(self, scores: Floats) -> Floats:
        """Values at scores (n,): linear between two points, the nearest one outside."""
        return np.interp(scores, self.scores, self.values)


@dataclass(frozen=True, eq=False)
class ExpectedPrecision:
    """The figures of a locator's card.

    Attributes
    ----------
    tolerance
        Letters between a call and a mapped site within which the call counts as right.
    tables
        One per species and mode.
    maps
        From scores to probabilities, with genes (True) and without; may lack either.

    Examples
    --------
    >>> rows = [[0.8, 0.5, 0.4, 0.6, 0.5, 0.7], [0.4, 1.5, 0.8, 0.2, 0.1, 0.3]]
    >>> entry = {"species": "E. coli", "held_out": "region", "genes": True, "rows": rows}
    >>> expected = ExpectedPrecision.from_mapping({"tolerance": 25, "probability": {}, "expected": [entry]})
    >>> round(expected.at(0.6, genes=True).median, 6), round(expected.threshold_for(0.5, genes=True), 6)
    (0.4, 0.7)
    """

    tolerance: int
    tables: tuple[SpeciesTable, ...]
    maps: Mapping[bool, ScoreMap]

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], *, foreign: bool = False) -> ExpectedPrecision:
        """Read the ``locator`` part of a card, which may lack all figures.

        Parameters
        ----------
        mapping
            That part.
        foreign
            Whether they are wanted for a genome that no training data is like. There, figures hold only if
            species were left out of training; of regions that were left out, nothing is returned.

        Raises
        ------
        ModelFileError
            If a part is missing, of the wrong shape or out of range.
        """
        with reading_card("locator"):
            maps, entries = mapping.get("probability", {}), mapping.get("expected", ())
            tolerance = mapping["tolerance"] if maps or entries else mapping.get("tolerance", 0)
            if isinstance(tolerance, bool) or not isinstance(tolerance, int) or tolerance < 0:
                raise ValueError(f"a tolerance of {tolerance!r}")
            if not set(maps) <= set(_MODES.values()):
                raise ValueError(f"a probability of {', '.join(map(str, maps))}")
            read = {
                genes: ScoreMap.from_mapping(maps[name]) for genes, name in _MODES.items() if name in maps
            }
            tables = tuple(map(SpeciesTable.from_mapping, entries))
        if foreign and all(table.held_out == "region" for table in tables):
            return cls(tolerance, (), {})
        return cls(tolerance, tables, read)

    def at(self, threshold: float, genes: bool) -> Expectation | None:
        """What to expect at a threshold, with genes or without; None if no species was measured so."""
        rows = tuple(table.at(threshold) for table in self.tables if table.genes == genes)
        if not rows:
            return None
        precision = [row.precision for row in _left_out(rows) or rows]
        return Expectation(
            rows, bool(_left_out(rows)), min(precision), float(np.median(precision)), max(precision)
        )

    def precisions(self, scores: Floats, genes: bool, species: str | None = None) -> Floats | None:
        """Precision to expect of the calls of at least each score.

        Parameters
        ----------
        scores
            (n,) scores.
        genes
            Whether the model is given genes.
        species
            One that was measured gives its own figure; any other the median of `Expectation`.

        Returns
        -------
        ndarray or None
            (n,), nan below `lowest_measured`; None if no species was measured so.
        """
        tables = self._deciding(genes, species)
        if not tables:
            return None
        figures = [np.interp(scores, table.rows[:, 0], table.rows[:, _PRECISION]) for table in tables]
        measured = scores >= (self.lowest_measured(genes, species) or 0)
        return np.where(measured, np.median(figures, axis=0), np.nan)

    def lowest_measured(self, genes: bool, species: str | None = None) -> float | None:
        """The score below which precision is not known; arguments and result as of `precisions`.

        Of several species it is the median of their lowest thresholds.
        """
        lowest = [table.rows[0, 0] for table in self._deciding(genes, species)]
        return float(np.median(lowest)) if lowest else None

    def precision_at(self, threshold: float, genes: bool, species: str | None = None) -> float | None:
        """Precision to expect at one threshold, nan below those measured; see `precisions`."""
        found = self.precisions(np.array([threshold]), genes, species)
        return None if found is None else float(found[0])

    def recall_at(self, calls_per_kb: float, genes: bool, species: str | None = None) -> float | None:
        """Share of the mapped sites found at this number of calls per kb.

        For the species, or as the mean of the other species. None if no species was measured so.

        Parameters
        ----------
        calls_per_kb
            On both strands.
        genes, species
            As in `precisions`.
        """
        tables = [table.rows[::-1] for table in self._deciding(genes, species)]
        found = [np.interp(calls_per_kb, rows[:, _PER_KB], rows[:, _RECALL]) for rows in tables]
        return float(np.mean(found)) if found else None

    def _deciding(self, genes: bool, species: str | None) -> list[SpeciesTable]:
        """The table of the species, else those of the species left out, else all."""
        tables = [table for table in self.tables if table.genes == genes]
        own = [table for table in tables if table.species == species]
        left_out = [table for table in tables if table.held_out == "species"]
        return sorted(own, key=_order)[:1] or left_out or tables

    def threshold_for(self, precision: float, genes: bool, species: str | None = None) -> float | None:
        """Lowest threshold at which this precision is to be expected; None if no threshold will do.

        Parameters
        ----------
        precision
            Between 0 and 1.
        genes, species
            As in `precisions`.
        """
        below: float | None = None
        for threshold in self._thresholds(genes).tolist():
            if (self.precision_at(threshold, genes, species) or 0) >= precision:
                return (
                    threshold if below is None else self._bisect(below, threshold, precision, genes, species)
                )
            below = threshold
        return None

    def highest_precision(self, genes: bool, species: str | None = None) -> float:
        """The highest precision to expect at any threshold; arguments as of `precisions`."""
        found = self.precisions(self._thresholds(genes), genes, species)
        return 0.0 if found is None else float(np.nanmax(found, initial=0.0))

    def _thresholds(self, genes: bool) -> Floats:
        """All that were measured, in ascending order."""
        own = [table.rows[:, 0] for table in self.tables if table.genes == genes]
        return np.unique(np.concatenate([np.empty(0), *own]))

    def _bisect(
        self, below: float, enough: float, precision: float, genes: bool, species: str | None
    ) -> float:
        """Narrow down to the threshold between one that is too low and one that is enough."""
        for _ in range(40):
            middle = (below + enough) / 2
            if (self.precision_at(middle, genes, species) or 0) >= precision:
                enough = middle
            else:
                below = middle
        return enough

    def probability(self, scores: Floats, genes: bool) -> Floats | None:
        """Share of calls of such scores (n,) that are near a mapped site; None if it was not measured."""
        return self.maps[genes](np.asarray(scores)) if genes in self.maps else None


def _order(measured: SpeciesRow | SpeciesTable) -> int:
    return _HELD_OUT.index(measured.held_out)


def _left_out(rows: Sequence[SpeciesRow]) -> tuple[SpeciesRow, ...]:
    return tuple(row for row in rows if row.held_out == "species")
