"""MCC and AUROC with bootstrap intervals over groups, fast enough for many rules on many sequences.

`seqray.metrics.bootstrap_interval` sorts the scores anew for every resample. Here a resample is a weight for
each example (how often its group was drawn), so the scores are sorted once. The figures are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqray.metrics.classification import matthews

LEVEL = 0.95
CELLS = 4_000_000  # weights in memory at once


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of merit and its interval; NaN where undefined."""

    value: float
    low: float
    high: float


def measure(
    labels: np.ndarray,
    scores: np.ndarray,
    calls: np.ndarray,
    groups: np.ndarray,
    resamples: int = 300,
    seed: int = 0,
) -> dict[str, Measured]:
    """Measure scores and calls of a two-class rule.

    Parameters
    ----------
    labels : bool (N,)
        True for the class that high scores speak for.
    scores : float64 (N,)
        Ranked by AUROC.
    calls : bool (N,)
        Judged by MCC.
    groups : int64 (N,)
        Relatives are drawn together; without two groups or more there are no intervals.
    resamples, seed
        Of the bootstrap.

    Returns
    -------
    dict
        ``mcc`` and ``auroc``, each with its 95 % percentile interval.
    """
    ones = np.ones((1, len(labels)))
    values = {"mcc": mcc_of(labels, calls, ones)[0], "auroc": auroc_of(labels, scores, ones)[0]}
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    if count < 2 or resamples < 1:
        return {name: Measured(float(value), math.nan, math.nan) for name, value in values.items()}
    draws: dict[str, list[np.ndarray]] = {"mcc": [], "auroc": []}
    rng = np.random.default_rng(seed)
    block = max(1, CELLS // len(labels))
    for begin in range(0, resamples, block):
        shape = (min(block, resamples - begin), count)
        drawn = np.stack(
            [np.bincount(rng.integers(0, count, count), minlength=count) for _ in range(shape[0])]
        )
        weights = drawn[:, group].astype(np.float64)
        draws["mcc"].append(mcc_of(labels, calls, weights))
        draws["auroc"].append(auroc_of(labels, scores, weights))
    return {name: Measured(float(values[name]), *_interval(np.concatenate(draws[name]))) for name in values}


def _interval(values: np.ndarray) -> tuple[float, float]:
    defined = values[~np.isnan(values)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return float(low), float(high)


def mcc_of(labels: np.ndarray, calls: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Matthews correlation under weights (B, N): (B,); NaN where a class is absent."""
    cells = [labels & calls, ~labels & calls, ~labels & ~calls, labels & ~calls]
    tables = weights @ np.stack(cells, axis=1).astype(np.float64)  # (B, 4)
    defined = (tables[:, 0] + tables[:, 3] > 0) & (tables[:, 1] + tables[:, 2] > 0)
    values = np.array([matthews(*row) for row in tables.astype(np.int64).tolist()])
    return np.where(defined, values, math.nan)


def auroc_of(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Area under the ROC curve under weights (B, N), ties counted half: (B,); NaN where a class is absent."""
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    begin = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    weights = weights[:, order]
    positive = np.add.reduceat(weights * labels[order], begin, axis=1)  # (B, different scores)
    negative = np.add.reduceat(weights * ~labels[order], begin, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    wins = (positive * below).sum(axis=1)
    return np.divide(wins, pairs, out=np.full(len(wins), math.nan), where=pairs > 0)
