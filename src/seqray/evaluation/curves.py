"""Points of curves for a report: ROC, precision and recall, reliability, and a table of thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import precision_recall_curve, roc_curve

from seqray.core import Floats
from seqray.metrics import call_metrics

RELIABILITY_BINS = 10
SHOWN_THRESHOLDS = 11


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Predicted probabilities and observed frequencies, by range of probability.

    Attributes
    ----------
    confidence, frequency, counts
        (B,) mean probability of the positive class, share of positives, and number of records, for each range
        that has records.
    low, high
        (B,) 95 % interval of the share (Clopper and Pearson 1934), records taken as independent.
    """

    confidence: Floats
    frequency: Floats
    low: Floats
    high: Floats
    counts: np.ndarray


def roc_points(labels: np.ndarray, scores: Floats) -> tuple[Floats, Floats]:
    """False positive rate and sensitivity; empty where a class is absent."""
    if not 0 < labels.sum() < len(labels):
        return np.empty(0), np.empty(0)
    fpr, tpr, _ = roc_curve(labels, scores)
    return fpr, tpr


def precision_recall_points(labels: np.ndarray, scores: Floats) -> tuple[Floats, Floats]:
    """Recall, ascending, and precision of every threshold, as steps; empty without a positive."""
    if not labels.sum():
        return np.empty(0), np.empty(0)
    precision, recall, _ = precision_recall_curve(labels, scores)
    return recall[::-1][1:], precision[::-1][1:]  # the first point, (0, 1), belongs to no threshold


def reliability(labels: np.ndarray, probabilities: Floats, bins: int = RELIABILITY_BINS) -> Reliability:
    """Compare probabilities with frequencies in equal ranges.

    Parameters
    ----------
    labels
        (N,) of 0 and 1.
    probabilities
        (N,) of class 1.
    bins
        Number of ranges of [0, 1].
    """
    bin_of = np.clip((probabilities * bins).astype(np.int64), 0, bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    filled = counts > 0
    n = counts[filled]
    hits = np.bincount(bin_of, weights=labels, minlength=bins)[filled].astype(np.int64)
    sums = np.bincount(bin_of, weights=probabilities, minlength=bins)[filled]
    bounds = [binomtest(int(k), int(m)).proportion_ci(method="exact") for k, m in zip(hits, n, strict=True)]
    low = np.array([bound.low for bound in bounds], dtype=np.float64)
    high = np.array([bound.high for bound in bounds], dtype=np.float64)
    return Reliability(sums / n, hits / n, low, high, n)


def threshold_rows(labels: np.ndarray, scores: Floats, own: float | None) -> list[dict[str, float]]:
    """Metrics of the calls at some thresholds, ascending.

    Parameters
    ----------
    labels
        (N,) of 0 and 1.
    scores
        (N,); the thresholds are quantiles of them, from all records called to few.
    own
        A further threshold.

    Returns
    -------
    list of dict
        ``threshold``, ``called`` and the metrics of `seqray.metrics.call_metrics`.
    """
    places = np.quantile(scores, np.linspace(0, 1, SHOWN_THRESHOLDS), method="lower")
    limits = np.unique([*places, *([] if own is None else [own])])
    ones = np.ones((1, len(labels)))
    rows = []
    for limit in limits.tolist():
        calls = (scores >= limit).astype(np.int64)
        figures = {name: float(row[0]) for name, row in call_metrics(labels, calls, ones).items()}
        rows.append({"threshold": limit, "called": float(calls.sum()), **figures})
    return rows
