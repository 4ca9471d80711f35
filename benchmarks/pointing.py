"""Whether scores of letters point at letters that are known to matter; one figure a record.

Scores and truth are (N, n) arrays, a row for each record. Ties count as if they were broken at random, so a
method that gives three neighbors one score gains nothing by their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Measure = Callable[[Floats, Mask], Floats]

DRAWS, RESAMPLES = 20, 2000


def average_precision(scores: Floats, truth: Mask) -> Floats:
    """Area under the precision-recall curve of each record (AUPRC, step-wise): (N,)."""
    rows = zip(truth, scores, strict=True)
    return np.array([average_precision_score(known, row) for known, row in rows], dtype=np.float64)


def precision_at(scores: Floats, truth: Mask, k: int | None = None) -> Floats:
    """Share of true letters among the k with the highest scores: (N,).

    Parameters
    ----------
    scores, truth
        (N, n).
    k
        Number of true letters of the record by default.
    """
    rows = zip(scores, truth, strict=True)
    return np.array([_precision_at(row, known, int(known.sum()) if k is None else k) for row, known in rows])


def _precision_at(scores: Floats, truth: Mask, k: int) -> float:
    last = np.sort(scores)[-k]
    above, level = scores > last, scores == last
    room = k - np.count_nonzero(above)
    return float((np.count_nonzero(truth & above) + room * truth[level].mean()) / k)


def share_below_zero(scores: Floats, truth: Mask) -> Floats:
    """Share of the true letters whose score is below 0: (N,)."""
    return (truth & (scores < 0)).sum(axis=1) / truth.sum(axis=1)


def by_chance(measure: Measure, truth: Mask, seed: int = 0) -> Floats:
    """Give the mean figure of each record over random scores of either sign: (N,)."""
    rng = np.random.default_rng(seed)
    return np.mean([measure(rng.normal(size=truth.shape), truth) for _ in range(DRAWS)], axis=0)


def mean_with_interval(figures: Floats, seed: int = 0) -> tuple[float, float, float]:
    """Mean over records and its 95 % interval by the bootstrap over records; nan without a record."""
    if len(figures) == 0:
        return math.nan, math.nan, math.nan
    rng = np.random.default_rng(seed)
    means = figures[rng.integers(0, len(figures), (RESAMPLES, len(figures)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(figures.mean()), float(low), float(high)
