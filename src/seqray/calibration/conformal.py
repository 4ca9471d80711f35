"""Sets of classes with a chosen coverage of the true class: split-conformal prediction, class by class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqray.core import Card, ConfigError, InputError, fits_label_sets, reading_card

RECALIBRATE = "calibrate on more labeled data (seqray calibrate)"
RETRAIN = "train a model on more labeled data"  # of alignments, which calibrate does not take
MAX_RANKS = 200
_DENSE_RANKS = 100  # the lowest ranks, which high coverage asks for, are kept one by one
_SLACK = 1e-9  # (n + 1) x (1 - coverage) is often whole on paper and a hair below in binary


@dataclass(frozen=True, eq=False)
class Conformal:
    """Low order statistics of the probability of the true class, for held-out examples of each class.

    A class belongs to the prediction set of a sequence if its probability is at least that of the j-th lowest
    held-out example of that class, j = floor((n + 1)(1 - coverage)). If the sequence is exchangeable with the
    n held-out examples of its class, the set misses its class with probability j / (n + 1) or less.

    Attributes
    ----------
    classes
        Names [K].
    counts
        Held-out examples of each class [K].
    ranks, probabilities
        For each class: ranks from 1, and the probability at each, rounded down. Of more than 200 examples
        the lowest 100 ranks are kept, then ever fewer; a rank between two takes the lower, which makes sets
        a little larger, never smaller.

    Source: Vovk 2012, Conditional validity of inductive conformal predictors (Mondrian: class by class).
    Sadinle, Lei and Wasserman 2019, Least ambiguous set-valued classifiers with bounded error levels.
    """

    classes: tuple[str, ...]
    counts: tuple[int, ...]
    ranks: tuple[np.ndarray, ...]
    probabilities: tuple[np.ndarray, ...]

    @classmethod
    def fit(cls, probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[str]) -> Conformal:
        """Compute the order statistics from held-out probabilities.

        Parameters
        ----------
        probabilities
            (N, K) of held-out examples.
        labels
            (N,) class indices.
        classes
            Names [K].
        """
        p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels).astype(np.int64)
        if p.ndim != 2 or p.shape != (len(y), len(classes)):
            raise InputError(f"probabilities {p.shape} and labels {y.shape} don't go together")
        own = [np.sort(p[y == k, k]) for k in range(len(classes))]
        ranks = tuple(_kept_ranks(len(values)) for values in own)
        cuts = tuple(_round_down(values[rank - 1]) for values, rank in zip(own, ranks, strict=True))
        return cls(tuple(classes), tuple(map(len, own)), ranks, cuts)

    def cutoffs(self, coverage: float, advice: str = RECALIBRATE) -> np.ndarray:
        """Lowest probability at which each class belongs to a set: (K,).

        Raises ConfigError for a coverage outside 0 to 1, or one that a class has too few held-out examples
        for; ``advice`` says how to get more.
        """
        if not 0 < coverage < 1:
            raise ConfigError(f"the coverage is {coverage:g}", remedy="give a share above 0 and below 1")
        found = []
        for n, ranks, cuts in zip(self.counts, self.ranks, self.probabilities, strict=True):
            rank = missed_rank(n, coverage)
            if rank < 1:
                rarest, fewest = min(zip(self.classes, self.counts, strict=True), key=lambda pair: pair[1])
                raise ConfigError(_too_few(coverage, rarest, fewest), remedy=_remedy(fewest, advice))
            found.append(cuts[np.searchsorted(ranks, rank, side="right") - 1])
        return np.array(found)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card."""
        return {
            name: {"n": n, "rank": ranks.tolist(), "probability": cuts.tolist()}
            for name, n, ranks, cuts in zip(
                self.classes, self.counts, self.ranks, self.probabilities, strict=True
            )
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], classes: Sequence[str]) -> Conformal:
        """Read what `to_mapping` wrote.

        Raises ModelFileError if a class or a part is missing, or the numbers don't rise.
        """
        with reading_card("conformal"):
            parts = [mapping[name] for name in classes]
            ranks = tuple(np.asarray(part["rank"], dtype=np.int64) for part in parts)
            cuts = tuple(np.asarray(part["probability"], dtype=np.float64) for part in parts)
            counts = tuple(int(part["n"]) for part in parts)
            if not all(map(_is_valid, counts, ranks, cuts)):
                raise ValueError("ranks or probabilities that don't rise")
        return cls(tuple(classes), counts, ranks, cuts)


def coverage_cutoffs(card: Card, coverage: float) -> np.ndarray:
    """Lowest probability at which each class belongs to the set of a record: (K,).

    Raises ConfigError for a model that holds no ranks of held-out examples, too few of them, or a class name
    that the table of predictions could not distinguish from a set.
    """
    recalibrates = card.model.kind != "alignment"
    if not card.conformal:
        raise ConfigError(
            f"model '{card.name}' holds no held-out scores for coverage",
            remedy="add them with 'seqray calibrate' and labeled sequences" if recalibrates else RETRAIN,
        )
    for name in card.classes:
        if not fits_label_sets(name):
            raise ConfigError(f"class '{name}' can't be written in a set", remedy="rename it and train again")
    ranks = Conformal.from_mapping(card.conformal, card.classes)
    return ranks.cutoffs(coverage, RECALIBRATE if recalibrates else RETRAIN)


def label_sets(
    probabilities: np.ndarray, cutoffs: np.ndarray, classes: Sequence[str]
) -> list[tuple[str, ...]]:
    """Name the classes in the set of each record, in the order of the classes.

    Parameters
    ----------
    probabilities
        (N, K) calibrated probabilities.
    cutoffs
        (K,) of `coverage_cutoffs`.
    classes
        Names [K].

    Examples
    --------
    >>> label_sets(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([0.4, 0.4]), ("a", "b"))
    [('b',), ('a', 'b')]
    """
    inside = (probabilities >= cutoffs).tolist()
    return [tuple(name for name, held in zip(classes, row, strict=True) if held) for row in inside]


def _kept_ranks(n: int) -> np.ndarray:
    if n <= MAX_RANKS:
        return np.arange(1, n + 1)
    sparse = np.geomspace(_DENSE_RANKS, n, MAX_RANKS - _DENSE_RANKS + 1)[1:]
    return np.unique(np.concatenate((np.arange(1, _DENSE_RANKS + 1), sparse.astype(np.int64))))


def _round_down(values: np.ndarray) -> np.ndarray:
    """Six significant digits, never above the value; rising values stay so."""
    down = Context(prec=6, rounding=ROUND_FLOOR)
    return np.array([float(down.create_decimal_from_float(float(v))) for v in values])


def _is_valid(n: int, ranks: np.ndarray, cuts: np.ndarray) -> bool:
    fits = ranks.ndim == 1 and ranks.shape == cuts.shape and len(ranks) <= n and bool(np.isfinite(cuts).all())
    rises = bool((np.diff(ranks) > 0).all()) and bool((np.diff(cuts) >= 0).all())
    return fits and rises and (n == 0 or (len(ranks) > 0 and ranks[0] == 1 and int(ranks[-1]) <= n))


def missed_rank(n: int, coverage: float) -> int:
    """Rank, from 1, of the lowest of ``n`` held-out probabilities that sets of a coverage hold."""
    return math.floor((n + 1) * (1 - coverage) + _SLACK)


def _too_few(coverage: float, name: str, n: int) -> str:
    needed = math.ceil((1 - _SLACK) / (1 - coverage)) - 1
    return f"coverage {coverage:g} needs {needed} held-out examples of each class, and '{name}' has {n}"


def _remedy(n: int, more: str) -> str:
    return more if n < 1 else f"ask for {math.floor(1000 * n / (n + 1)) / 1000:g} or less, or {more}"
