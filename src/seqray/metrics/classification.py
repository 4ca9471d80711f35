"""Figures of merit of a two-class classifier, and intervals from the bootstrap.

Ranking metrics come from scikit-learn; those of a confusion table are written out, since the bootstrap
calls them thousands of times. Labels are 1 (positive) and 0; a score at or above the threshold is a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score, roc_auc_score

from seqray.core import InputError

Metric = Callable[[np.ndarray, np.ndarray], float]


def _checked(labels: ArrayLike, scores: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    y, s = np.asarray(labels).astype(np.int64), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != s.shape:
        raise InputError(f"labels {y.shape} and scores {s.shape} are not two lists of one length")
    if len(y) == 0:
        raise InputError("no example to measure on")
    if not np.isin(y, (0, 1)).all():
        raise InputError("labels are not 0 and 1")
    return y, s


def confusion_counts(labels: np.ndarray, calls: np.ndarray) -> tuple[int, int, int, int]:
    """Count true positives, false positives, true negatives and false negatives."""
    positive, called = np.asarray(labels).astype(bool), np.asarray(calls).astype(bool)
    tp = int(np.count_nonzero(positive & called))
    fp = int(np.count_nonzero(called)) - tp
    fn = int(np.count_nonzero(positive)) - tp
    return tp, fp, len(positive) - tp - fp - fn, fn


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan


def matthews(tp: int, fp: int, tn: int, fn: int) -> float:
    """Matthews correlation coefficient of a confusion table; 0 where a row or column is empty."""
    squared = float(tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / math.sqrt(squared) if squared else 0.0


def expected_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    """Mean gap between confidence and observed frequency over equal-width bins, weighted by their size.

    Parameters
    ----------
    probabilities
        (N,) probability of the positive class, or (N, K) of every class, where the confidence is that of
        the top class.
    labels
        (N,) 0/1, or class indices.
    bins
        Number of bins over [0, 1].

    References
    ----------
    Guo et al. 2017, On calibration of modern neural networks, eq. 3.
    """
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels).astype(np.int64)
    if p.shape[:1] != y.shape or len(y) == 0:
        raise InputError(f"probabilities {p.shape} and labels {y.shape} don't go together")
    confidence, hit = (p, y) if p.ndim == 1 else (p.max(axis=1), p.argmax(axis=1) == y)
    index = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    gap = np.bincount(index, weights=hit - confidence, minlength=bins)  # count x (frequency - confidence)
    return float(np.abs(gap).sum() / len(y))


def auroc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Area under the ROC curve; NaN where only one class is present."""
    return float(roc_auc_score(labels, scores)) if 0 < np.sum(labels) < len(labels) else math.nan


def auprc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Average precision, the step-wise area under the precision-recall curve; NaN without a positive."""
    return float(average_precision_score(labels, scores)) if np.sum(labels) else math.nan


def threshold_metrics(labels: np.ndarray, calls: np.ndarray) -> dict[str, float]:
    """Measure calls: mcc, f1, sensitivity, specificity, precision, accuracy; NaN where undefined."""
    tp, fp, tn, fn = confusion_counts(labels, calls)
    return {
        "mcc": matthews(tp, fp, tn, fn),
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "sensitivity": _ratio(tp, tp + fn),
        "specificity": _ratio(tn, tn + fp),
        "precision": _ratio(tp, tp + fp),
        "accuracy": _ratio(tp + tn, tp + fp + tn + fn),
    }


def binary_metrics(labels: ArrayLike, scores: ArrayLike, threshold: float = 0.5) -> dict[str, float]:
    """Measure probabilities of the positive class against labels.

    Parameters
    ----------
    labels
        (N,) of 0 and 1.
    scores
        (N,) probabilities of the positive class.
    threshold
        Scores at or above it are called positive.

    Returns
    -------
    dict
        mcc, auroc, auprc, f1, sensitivity, specificity, precision, accuracy, brier, ece; NaN where a
        metric is undefined because a class is absent.

    Raises
    ------
    InputError
        For arrays that don't go together, or hold no example.
    """
    y, s = _checked(labels, scores)
    ranking = {"auroc": auroc(y, s), "auprc": auprc(y, s)}
    probability = {"brier": float(np.mean((s - y) ** 2)), "ece": expected_calibration_error(s, y)}
    return threshold_metrics(y, s >= threshold) | ranking | probability


def _resamples(
    n: int, groups: Sequence[object] | np.ndarray | None
) -> Callable[[np.random.Generator], np.ndarray]:
    if groups is None:
        return lambda rng: rng.integers(0, n, size=n)
    _, inverse = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(inverse))[:-1])
    return lambda rng: np.concatenate([members[g] for g in rng.integers(0, len(members), size=len(members))])


def bootstrap_interval(
    metric: Metric,
    labels: ArrayLike,
    scores: ArrayLike,
    groups: Sequence[object] | np.ndarray | None = None,
    n: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a metric.

    Parameters
    ----------
    metric
        Function of (labels, scores).
    labels, scores
        (N,) each.
    groups
        (N,) keys; whole groups are drawn, since examples of one group are not independent.
    n
        Number of resamples; those on which the metric is undefined (a class is absent) are left out.
    seed
        Of the resampling.
    level
        Coverage aimed at.

    Returns
    -------
    low, high
        NaN where the metric is undefined on every resample.
    """
    [(low, high)] = _intervals(lambda y, s: [metric(y, s)], labels, scores, groups, n, seed, level)
    return low, high


def _intervals(
    metrics: Callable[[np.ndarray, np.ndarray], list[float]],
    labels: ArrayLike,
    scores: ArrayLike,
    groups: Sequence[object] | np.ndarray | None,
    n: int,
    seed: int,
    level: float,
) -> list[tuple[float, float]]:
    y, s = _checked(labels, scores)
    draw, rng = _resamples(len(y), groups), np.random.default_rng(seed)
    rows = [metrics(y[index], s[index]) for index in (draw(rng) for _ in range(n))]
    tail = (1 - level) / 2
    intervals = []
    for column in np.asarray(rows, dtype=np.float64).T:
        defined = column[~np.isnan(column)]
        low, high = np.quantile(defined, (tail, 1 - tail)) if len(defined) else (math.nan, math.nan)
        intervals.append((float(low), float(high)))
    return intervals


def metrics_with_intervals(
    labels: ArrayLike,
    scores: ArrayLike,
    threshold: float = 0.5,
    groups: Sequence[object] | np.ndarray | None = None,
    n: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """`binary_metrics`, each as ``{"value", "low", "high"}`` with its 95 % bootstrap interval.

    All metrics are measured on the same resamples. For a model card: the values are plain floats.
    """
    values = binary_metrics(labels, scores, threshold)
    bounds = _intervals(
        lambda y, s: list(binary_metrics(y, s, threshold).values()), labels, scores, groups, n, seed, 0.95
    )
    return {
        name: {"value": value, "low": low, "high": high}
        for (name, value), (low, high) in zip(values.items(), bounds, strict=True)
    }
