"""Match ranked calls with known transcription starts; recall, precision, and their areas.

A call may claim one start: the nearest unclaimed one of the same strand within the tolerance. Calls claim in
the order of their score, so what the first k calls claim doesn't depend on the calls after them, and two
calls at one start earn once.

Recall counts starts of one set (strong ones), precision counts calls that claim one of another set
(supported ones); the two sets may be the same. The area under the precision-recall curve is the sum over
ranks k of (R_k - R_{k-1}) * P_k (average precision, no interpolation), over at most ``depth`` calls per kb;
recall that isn't reached by then adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ecoli_split import TOLERANCE
from seqray.core.arrays import suppress_neighbors
from seqray.metrics.classification import UNCLAIMED, average_precision, claim_sites


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls sorted by falling score; ties by position, then plus before minus.

    Attributes
    ----------
    position
        0-based transcription start of each call, (N,) int64.
    plus
        True on the plus strand, (N,) bool.
    score
        Falling, (N,) float64.
    """

    position: np.ndarray
    plus: np.ndarray
    score: np.ndarray

    def __len__(self) -> int:
        return len(self.position)

    def take(self, chosen: np.ndarray) -> Calls:
        """Return the calls chosen by a mask or by indices in rising order."""
        return Calls(self.position[chosen], self.plus[chosen], self.score[chosen])


def rank_calls(position: Sequence[int], strand: Sequence[str], score: Sequence[float]) -> Calls:
    """Sort calls by falling score."""
    where = np.asarray(position, dtype=np.int64)
    plus = np.array([letter == "+" for letter in strand], dtype=bool)
    value = np.asarray(score, dtype=np.float64)
    order = np.lexsort((~plus, where, -value))
    return Calls(where[order], plus[order], value[order])


def thin(calls: Calls, min_distance: int) -> Calls:
    """Drop each call nearer than ``min_distance`` to a better one of the same strand, as a scan does."""
    kept = [
        np.flatnonzero(strand)[suppress_neighbors(calls.position[strand], calls.score[strand], min_distance)]
        for strand in (calls.plus, ~calls.plus)
    ]
    return calls.take(np.sort(np.concatenate(kept)))


@dataclass(frozen=True, slots=True)
class Starts:
    """Distinct transcription starts of both strands: 0-based positions, plus strand first."""

    position: np.ndarray
    plus: np.ndarray

    def __len__(self) -> int:
        return len(self.position)

    def take(self, chosen: np.ndarray) -> Starts:
        """Return the starts chosen by a mask."""
        return Starts(self.position[chosen], self.plus[chosen])


def make_starts(by_strand: Mapping[str, Sequence[int]]) -> Starts:
    """Join sorted positions per strand into one table."""
    plus, minus = by_strand.get("+", []), by_strand.get("-", [])
    position = np.array([*plus, *minus], dtype=np.int64)
    return Starts(position, np.arange(len(position)) < len(plus))


def claim(calls: Calls, starts: Starts, tolerance: int = TOLERANCE) -> np.ndarray:
    """Return for each call the index of the start that it claims, or ``UNCLAIMED``; (N,) int64."""
    claimed = np.full(len(calls), UNCLAIMED, dtype=np.int64)
    for plus in (True, False):
        rows, known = np.flatnonzero(calls.plus == plus), np.flatnonzero(starts.plus == plus)
        found = claim_sites(calls.position[rows], calls.score[rows], starts.position[known], tolerance)
        hit = found != UNCLAIMED
        claimed[rows[hit]] = known[found[hit]]
    return claimed


@dataclass(frozen=True, slots=True)
class Curve:
    """What ranked calls claim, with the genome block of every call and start for the bootstrap.

    ``call_block`` (N,), ``start_block`` (M,) block numbers; ``recalled`` (N,) the start of the recall set
    that a call claims or ``UNCLAIMED``; ``correct`` (N,) True where it claims one of the precision set.
    """

    call_block: np.ndarray
    start_block: np.ndarray
    recalled: np.ndarray
    correct: np.ndarray

    def at(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return recall and precision after each call, blocks weighted by ``weight`` (blocks,)."""
        gained, total = self._gained(weight)
        calls = weight[self.call_block]
        precision = np.cumsum(calls * self.correct) / np.maximum(np.cumsum(calls), 1e-12)
        return np.cumsum(gained) / total, precision

    def area(self, weight: np.ndarray, depth: int) -> float:
        """Return the average precision of the first ``depth`` calls, with the weights of `at`."""
        gained, total = self._gained(weight)
        calls = weight[self.call_block[:depth]]
        return average_precision(gained[:depth], self.correct[:depth], total, calls)

    def _gained(self, weight: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the weight of the start that each call recalls, and that of all starts."""
        hit = self.recalled != UNCLAIMED
        gained = np.zeros(len(self.call_block))
        gained[hit] = weight[self.start_block[self.recalled[hit]]]
        return gained, max(float(weight[self.start_block].sum()), 1e-12)


def make_curve(
    calls: Calls, recall: Starts, precision: Starts, origin: int, block: int, tolerance: int = TOLERANCE
) -> Curve:
    """Match calls with both sets; blocks of ``block`` letters are counted from ``origin``."""
    recalled = claim(calls, recall, tolerance)
    correct = claim(calls, precision, tolerance) != UNCLAIMED
    blocks = ((calls.position - origin) // block, (recall.position - origin) // block)
    return Curve(blocks[0], blocks[1], recalled, correct)


def at_depth(values: np.ndarray, depth: int) -> float:
    """Return the value after ``depth`` calls, or NaN where there are fewer calls than that."""
    return float(values[depth - 1]) if 0 < depth <= len(values) else float("nan")


def block_weights(blocks: int, replicates: int, seed: int) -> np.ndarray:
    """Return (1 + replicates, blocks) weights: all ones, then multinomial resamples of the blocks."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=replicates)
    return np.vstack([np.ones((1, blocks)), drawn.astype(np.float64)])
