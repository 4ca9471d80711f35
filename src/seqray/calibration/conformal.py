"""Prediction sets, and scores of a file that are unlike those of held-out examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

import numpy as np
from numpy.typing import ArrayLike

from seqray.core.arrays import Floats, Ints
from seqray.core.card import Card
from seqray.core.card_parts import HeldOutRanks
from seqray.core.errors import ConfigError

# --- Sets of classes with a chosen coverage of the true class: split-conformal prediction, class by class

RECALIBRATE = "calibrate on more labeled data (seqray calibrate)"
RETRAIN = "train a model on more labeled data"  # of alignments, which calibrate does not take
MAX_RANKS = 200
_DENSE_RANKS = 100  # the lowest ranks, which high coverage asks for, are kept one by one
_SLACK = 1e-9  # (n + 1) x (1 - coverage) is often whole on paper and a hair below in binary


def fit_ranks(probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[str]) -> dict[str, HeldOutRanks]:
    """Low order statistics of the probability (N, K) of the true class (N,), of examples of each class."""
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels).astype(np.int64)
    down = Context(prec=6, rounding=ROUND_FLOOR)  # never above the value; rising values stay so
    ranks = {}
    for k, name in enumerate(classes):
        own = np.sort(p[y == k, k])
        rank = np.arange(1, len(own) + 1)
        if len(own) > MAX_RANKS:
            sparse = np.geomspace(_DENSE_RANKS, len(own), MAX_RANKS - _DENSE_RANKS + 1)[1:]
            rank = np.unique(np.concatenate((rank[:_DENSE_RANKS], sparse.astype(np.int64))))
        cuts = [float(down.create_decimal_from_float(float(value))) for value in own[rank - 1]]
        ranks[name] = HeldOutRanks(len(own), np.array(cuts), rank)
    return ranks


def class_cutoffs(ranks: Mapping[str, HeldOutRanks], coverage: float, advice: str = RECALIBRATE) -> Floats:
    """Lowest probability at which each class belongs to a set: (K,)."""
    if not 0 < coverage < 1:
        raise ConfigError(f"the coverage is {coverage:g}", remedy="give a share above 0 and below 1")
    cutoffs = []
    for held in ranks.values():
        rank = missed_rank(held.n, coverage)
        if rank < 1:
            rarest = min(ranks, key=lambda name: ranks[name].n)
            n, needed = ranks[rarest].n, math.ceil((1 - _SLACK) / (1 - coverage)) - 1
            less = f"ask for {math.floor(1000 * n / (n + 1)) / 1000:g} or less, or " if n else ""
            raise ConfigError(
                f"coverage {coverage:g} needs {needed} held-out examples of each class, "
                f"and '{rarest}' has {n}",
                remedy=less + advice,
            )
        cutoffs.append(held.probability[np.searchsorted(held.rank, rank, side="right") - 1])
    return np.array(cutoffs)


def coverage_cutoffs(card: Card, coverage: float) -> Floats:
    """`class_cutoffs` of a model that can give sets."""
    advice = RECALIBRATE if not card.model.reads_alignments else RETRAIN
    if not card.conformal:
        add = "add them with 'seqray calibrate' and labeled sequences"
        raise ConfigError(
            f"model '{card.name}' holds no held-out scores for coverage",
            remedy=add if not card.model.reads_alignments else RETRAIN,
        )
    for name in card.classes:
        if "|" in name:
            raise ConfigError(f"class '{name}' can't be written in a set", remedy="rename it and train again")
    return class_cutoffs({name: card.conformal[name] for name in card.classes}, coverage, advice)


def label_sets(
    probabilities: np.ndarray, cutoffs: np.ndarray, classes: Sequence[str]
) -> list[tuple[str, ...]]:
    """Name the classes in the set of each record: probabilities (N, K) at or above the cutoffs (K,)."""
    inside = (probabilities >= cutoffs).tolist()
    return [tuple(name for name, held in zip(classes, row, strict=True) if held) for row in inside]


def missed_rank(n: int, coverage: float) -> int:
    """Rank, from 1, of the lowest of ``n`` held-out probabilities that sets of a coverage hold."""
    return math.floor((n + 1) * (1 - coverage) + _SLACK)


# --- Whether the scores of a whole file are like those of the held-out examples of a model

MIN_RECORDS = 50
STANDARD_ERRORS = 4.0  # beyond what is expected: 1 of 30,000 files by chance
MAX_FALSE_REFUSAL_RATE = 1e-3  # of mixtures, by chance (Dvoretzky, Kiefer and Wolfowitz)
TOLERANCE = 0.05  # a class whose scores move by this much loses this much coverage at most
COVERAGE = 0.9  # of the sets that are judged where none is asked for
_SHARES = np.linspace(0, 1, 201)[:, None]


@dataclass(frozen=True, slots=True)
class EmptySets:
    """Sets of ``coverage`` without any class: their ``share``, and the most that held-out examples have."""

    coverage: float
    share: float
    expected: float


class HeldOutScores:
    """Scores of held-out examples of each class, as a card keeps them, to judge those of a file."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._ranks = {name: card.conformal[name] for name in card.classes}
        self._held = list(self._ranks.values())
        self._counts = [held.n for held in self._held]
        self._has_two = len(card.classes) == 2 and min(self._counts) > 0  # with held-out examples

    def empty_sets(self, probabilities: Floats, coverage: float | None = None) -> EmptySets | None:
        """Tell whether more sets are empty than of held-out examples; None if not, or if unknown."""
        n, coverage = len(probabilities), COVERAGE if coverage is None else coverage
        try:
            cutoffs = class_cutoffs(self._ranks, coverage)
        except ConfigError:  # too few held-out examples
            return None
        empty = int(np.all(probabilities < cutoffs, axis=1).sum())
        if len(cutoffs) == 2:
            numbers = self._empty_of_two(n, cutoffs, coverage)
        else:
            counts = np.bincount(probabilities.argmax(axis=1), minlength=len(cutoffs))
            misses = zip(counts, self._counts, strict=True)
            mean, variance = np.sum([_misses(int(own), held, coverage) for own, held in misses], axis=0)
            numbers = [(float(mean), float(variance))]
        if n < MIN_RECORDS or empty <= max(
            mean + STANDARD_ERRORS * math.sqrt(variance) for mean, variance in numbers
        ):
            return None
        return EmptySets(coverage, empty / n, max(mean for mean, _ in numbers) / n)

    def _empty_of_two(self, n: int, cutoffs: Floats, coverage: float) -> list[tuple[float, float]]:
        """Mean and variance of the number of empty sets of n records of the one and of the other class."""
        positive, found = self._card.positive_index, list[tuple[float, float]]()
        ends = np.array([1 - cutoffs[1 - positive], cutoffs[positive]])
        for k, held in enumerate(self._counts):
            low, high = self._share_below(ends, k)
            share = max(float(high - low), 1 / (held + 1))
            empty = n * share, n * share * (1 - share) * (1 + n / held)
            found.append(min(empty, _misses(n, held, coverage)))
        return found

    def unclear_scores(self, probabilities: Floats) -> float | None:
        """Least share of records nearer to the middle than in a mixture of two classes; None if one fits."""
        n = len(probabilities)
        if n < MIN_RECORDS or not self._has_two:
            return None
        positive = self._card.positive_index
        ends = self._held[positive].probability, 1 - self._held[1 - positive].probability
        places = np.unique(np.concatenate(ends))  # (P,)
        below = [self._share_below(places, k) for k in (1 - positive, positive)]
        mixtures = (1 - _SHARES) * below[0] + _SHARES * below[1]  # (S, P), of each share of positives
        scores = np.sort(probabilities[:, positive])
        observed = np.searchsorted(scores, places, side="right") / n
        left = below[1] < 1 - below[0]  # of the middle
        missing = np.where(left, mixtures - observed, observed - mixtures)
        excess = float(missing.max(axis=1).min())
        by_chance = math.sqrt(math.log(2 / MAX_FALSE_REFUSAL_RATE) / 2 * (1 / n + 1 / min(self._counts)))
        return excess if excess > by_chance + TOLERANCE else None

    def has_few_calls(self, probabilities: Floats, prior: float | None = None) -> bool:
        """Whether clearly fewer records are called than the expected share of positives gives."""
        n, card = len(probabilities), self._card
        expected = card.prevalence if prior is None else prior
        if n < MIN_RECORDS or not self._has_two:
            return False
        positive, place = card.positive_index, np.array([card.threshold])
        hit, false = (1 - float(self._share_below(place, k)[0]) for k in (positive, 1 - positive))
        rate = expected * hit + (1 - expected) * false
        variance = (
            rate * (1 - rate) / n
            + expected**2 * hit * (1 - hit) / self._counts[positive]
            + (1 - expected) ** 2 * false * (1 - false) / self._counts[1 - positive]
        )
        called = float(np.mean(probabilities[:, positive] >= card.threshold))
        return rate - called > STANDARD_ERRORS / 2 * math.sqrt(variance)

    def lost_coverage(self, probabilities: Floats, labels: Ints) -> dict[str, float]:
        """Share of the sets that hold the true class (N,), by class; empty where the promise may be kept."""
        try:
            inside = probabilities >= class_cutoffs(self._ranks, COVERAGE)
        except ConfigError:
            return {}
        held, lost = dict[str, float](), False
        for k, name in enumerate(self._card.classes):
            own = inside[labels == k, k]
            mean, variance = _misses(len(own), self._counts[k], COVERAGE)
            lost |= bool((~own).sum() > mean + STANDARD_ERRORS * math.sqrt(variance))
            if len(own):
                held[name] = float(own.mean())
        return held if lost else {}

    def _share_below(self, places: Floats, k: int) -> Floats:
        """Share of the held-out examples of a class whose positive probability is at most each place."""
        held = self._held[k]
        values = np.concatenate(([0.0], held.probability, [1.0]))
        shares = np.concatenate(([0.0], held.rank / (held.n + 1), [1.0]))
        if k == self._card.positive_index:
            return np.interp(places, values, shares)
        return 1 - np.interp(1 - places, values, shares)


def _misses(n: int, held: int, coverage: float) -> tuple[float, float]:
    """Mean and variance of how many sets of n records of a class miss it.

    It is beta-binomial where records are exchangeable with held-out ones (Angelopoulos and Bates 2023, 3.2).
    """
    a = missed_rank(held, coverage)
    b = held + 1 - a
    mean = n * a / (a + b)
    return mean, mean * b * (a + b + n) / ((a + b) * (a + b + 1))
