"""Metrics of a classifier, each defined once, for many sets of record weights at a time.

With weights of 1 these are the usual metrics; with the weights of `bootstrap_weights` they are those of as
many bootstrap draws, at the cost of a few matrix products (scikit-learn takes one set of weights per call).
Shapes: W sets of weights, N records, K classes. A metric is NaN if a class that it needs is absent. Labels
are 1 (positive) and 0; a score at or above the threshold is a call.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from seqray.core import Floats, InputError

CALL_METRICS = ("mcc", "f1", "sensitivity", "specificity", "precision", "balanced_accuracy", "accuracy")
PROBABILITY_METRICS = ("brier", "ece", "log_loss")
METRICS = ("mcc", "auroc", "auprc", *CALL_METRICS[1:], *PROBABILITY_METRICS)
BINS = 15  # of the calibration error
LOWEST = float(np.finfo(np.float64).eps)  # bounds the loss of a probability of 0


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN where the denominator is 0."""
    safe = np.where(denominator == 0, 1.0, denominator)
    return np.where(denominator == 0, np.nan, numerator / safe)


def matthews(tp: Floats, fp: Floats, tn: Floats, fn: Floats) -> Floats:
    """Matthews correlation coefficient of confusion tables (W,); 0 where a row or column is empty."""
    squared = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return np.where(squared > 0, (tp * tn - fp * fn) / np.sqrt(np.where(squared > 0, squared, 1.0)), 0.0)


def call_metrics(labels: np.ndarray, calls: np.ndarray, weights: Floats) -> dict[str, Floats]:
    """Measure the calls of one class.

    Parameters
    ----------
    labels, calls
        (N,) of 0 and 1.
    weights
        (W, N).

    Returns
    -------
    dict
        (W,) for each of `CALL_METRICS`.
    """
    y, called = labels.astype(np.float64), calls.astype(np.float64)
    tp, positives = weights @ (y * called), weights @ y
    predicted, total = weights @ called, weights.sum(axis=1)
    fp, fn, negatives = predicted - tp, positives - tp, total - positives
    tn = negatives - fp
    sensitivity, specificity = ratio(tp, positives), ratio(tn, negatives)
    both = (positives > 0) & (negatives > 0)
    return {
        "mcc": np.where(both, matthews(tp, fp, tn, fn), np.nan),
        "f1": ratio(2 * tp, predicted + positives),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": ratio(tp, predicted),
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "accuracy": ratio(tp + tn, total),
    }


def ranking_metrics(labels: np.ndarray, scores: Floats, weights: Floats) -> dict[str, Floats]:
    """Measure a ranking: ``auroc`` counts a tie as a half, ``auprc`` is the average precision.

    ``labels`` (N,) are 0 and 1, ``weights`` are (W, N). Scores (N,) have any unit; records of one score are
    one step of the curves.
    """
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of each run of ties
    drawn, y = weights[:, order], labels[order].astype(np.float64)
    tp = np.cumsum(drawn * y, axis=1)[:, last]
    fp = np.cumsum(drawn, axis=1)[:, last] - tp
    more_tp, more_fp = np.diff(tp, axis=1, prepend=0.0), np.diff(fp, axis=1, prepend=0.0)
    area = np.sum(more_fp * (tp - more_tp / 2), axis=1)
    called = tp + fp
    precision = np.divide(tp, called, out=np.zeros_like(tp), where=called > 0)
    return {
        "auroc": ratio(area, tp[:, -1] * fp[:, -1]),
        "auprc": ratio(np.sum(more_tp * precision, axis=1), tp[:, -1]),
    }


def probability_metrics(labels: np.ndarray, scores: Floats, weights: Floats) -> dict[str, Floats]:
    """Measure probabilities of one class: Brier score, calibration error and log loss in nats.

    ``scores`` (N,) are probabilities of class 1; labels and weights are as in `ranking_metrics`.
    """
    y, total = labels.astype(np.float64), weights.sum(axis=1)
    right = np.clip(np.where(labels == 1, scores, 1 - scores), LOWEST, 1)
    return {
        "brier": ratio(weights @ (scores - y) ** 2, total),
        "ece": _calibration_error(scores, y, weights),
        "log_loss": ratio(weights @ -np.log(right), total),
    }


def _calibration_error(confidence: Floats, hits: Floats, weights: Floats) -> Floats:
    """Expected calibration error: (N,), (N,), (W, N) -> (W,)."""
    return ratio(np.abs(weights @ _calibration_gaps(confidence, hits)).sum(axis=1), weights.sum(axis=1))


def _calibration_gaps(confidence: Floats, hits: Floats, bins: int = BINS) -> Floats:
    """Hit minus confidence of each record in the column of its bin: (N, bins)."""
    bin_of = np.clip((confidence * bins).astype(np.int64), 0, bins - 1)
    gaps = np.zeros((len(confidence), bins))
    gaps[np.arange(len(confidence)), bin_of] = hits - confidence
    return gaps


def class_metrics(
    labels: np.ndarray, scores: Floats, calls: np.ndarray, weights: Floats, *, probabilities: bool
) -> dict[str, Floats]:
    """Measure one class against the rest, in the order of `METRICS`.

    Parameters
    ----------
    labels, calls
        (N,) of 0 and 1.
    scores
        (N,) scores of class 1.
    weights
        (W, N).
    probabilities
        Whether the scores are probabilities; else `PROBABILITY_METRICS` are left out.
    """
    found = call_metrics(labels, calls, weights) | ranking_metrics(labels, scores, weights)
    if probabilities:
        found |= probability_metrics(labels, scores, weights)
    return {metric: found[metric] for metric in METRICS if metric in found}


def multiclass_metrics(
    labels: np.ndarray, scores: Floats, calls: np.ndarray, weights: Floats, *, probabilities: bool
) -> dict[str, Floats]:
    """Measure all K classes at once.

    Parameters
    ----------
    labels, calls, scores
        (N,) class indices, twice, and (N, K).
    weights, probabilities
        See `class_metrics`.

    Returns
    -------
    dict
        (W,) each. ``mcc`` is the correlation of the whole table (Gorodkin 2004), ``balanced_accuracy`` the
        mean sensitivity over the classes present, ``brier`` sums the squares over the classes (Brier 1950),
        ``ece`` is of the top class.

    References
    ----------
    Gorodkin 2004, Comparing two K-category assignments by a K-category correlation coefficient.
    """
    true, called = np.eye(scores.shape[1])[labels], np.eye(scores.shape[1])[calls]
    hit = (labels == calls).astype(np.float64)
    total, hits = weights.sum(axis=1), weights @ hit
    t, c = weights @ true, weights @ called  # (W, K)
    across = hits * total - np.sum(t * c, axis=1)
    mixture = total**2 - np.sum(t * t, axis=1)  # 0 where one class is present alone
    spread = mixture * (total**2 - np.sum(c * c, axis=1))
    correlation = np.where(spread > 0, across / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)
    recall = ratio(weights @ (true * hit[:, None]), t)
    present = np.sum(t > 0, axis=1)
    found = {
        "mcc": np.where(mixture > 0, correlation, np.nan),
        "balanced_accuracy": ratio(np.nansum(recall, axis=1), present.astype(np.float64)),
        "accuracy": ratio(hits, total),
    }
    if probabilities:
        top = scores.argmax(axis=1)
        own = np.clip(scores[np.arange(len(labels)), labels], LOWEST, 1)
        found["brier"] = ratio(weights @ np.sum((scores - true) ** 2, axis=1), total)
        found["ece"] = _calibration_error(scores.max(axis=1), (top == labels).astype(np.float64), weights)
        found["log_loss"] = ratio(weights @ -np.log(own), total)
    return found


# ------------------------------------------------------------------------ records of equal weight


def _single(found: Mapping[str, Floats]) -> dict[str, float]:
    return {name: float(values[0]) for name, values in found.items()}


def auroc(labels: np.ndarray, scores: Floats) -> float:
    """Area under the ROC curve; NaN where only one class is present.

    Examples
    --------
    >>> auroc(np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.6, 0.9]))
    0.875
    """
    return float(ranking_metrics(labels, scores, np.ones((1, len(labels))))["auroc"][0])


def auprc(labels: np.ndarray, scores: Floats) -> float:
    """Average precision, the step-wise area under the precision-recall curve; NaN without a positive."""
    return float(ranking_metrics(labels, scores, np.ones((1, len(labels))))["auprc"][0])


def threshold_metrics(labels: np.ndarray, calls: np.ndarray) -> dict[str, float]:
    """Measure calls: mcc, f1, sensitivity, specificity, precision, accuracy; NaN where undefined."""
    found = _single(call_metrics(labels, calls, np.ones((1, len(labels)))))
    return {name: value for name, value in found.items() if name != "balanced_accuracy"}


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
        mcc, f1, sensitivity, specificity, precision, accuracy, auroc, auprc, brier, ece; NaN where a metric
        is undefined because a class is absent.

    Raises an InputError if the arrays differ in length, are empty, or the labels are not 0 and 1.

    Examples
    --------
    >>> found = binary_metrics([1, 1, 0, 0], [0.9, 0.4, 0.3, 0.1], threshold=0.5)
    >>> found["sensitivity"], found["specificity"], found["auroc"]
    (0.5, 1.0, 1.0)
    """
    y, s = np.asarray(labels).astype(np.int64), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != s.shape:
        raise InputError(f"labels {y.shape} and scores {s.shape} are not two lists of the same length")
    if len(y) == 0:
        raise InputError("no example to measure")
    if not np.isin(y, (0, 1)).all():
        raise InputError("labels are not 0 and 1")
    ranking = _single(ranking_metrics(y, s, np.ones((1, len(y)))))
    probability = {"brier": float(np.mean((s - y) ** 2)), "ece": expected_calibration_error(s, y)}
    return threshold_metrics(y, s >= threshold) | ranking | probability


def expected_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = BINS) -> float:
    """Mean gap between confidence and observed frequency over equal-width bins, weighted by their size.

    Parameters
    ----------
    probabilities
        (N,) probability of the positive class, or (N, K) of every class, where the confidence is that of the
        top class.
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
        raise InputError(f"probabilities {p.shape} and labels {y.shape} don't match")
    confidence, hits = (
        (p, y.astype(np.float64))
        if p.ndim == 1
        else (p.max(axis=1), (p.argmax(axis=1) == y).astype(np.float64))
    )
    return float(np.abs(_calibration_gaps(confidence, hits, bins).sum(axis=0)).sum() / len(y))
