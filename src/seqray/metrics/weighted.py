"""Figures of merit of weighted records, for many sets of weights at once.

With weights of 1 these are the usual figures; with the weights of `resampling.weight_blocks` they are those
of as many bootstrap draws, at a cost of a few passes over the records each. Shapes: W draws, N records,
K classes. A figure is nan where a class that it needs is absent.
"""

from __future__ import annotations

import numpy as np

from seqray.core import Floats

CALL_METRICS = ("mcc", "f1", "sensitivity", "specificity", "precision", "balanced_accuracy", "accuracy")
RANK_METRICS = ("auroc", "auprc")
PROBABILITY_METRICS = ("brier", "ece", "log_loss")
METRICS = ("mcc", "auroc", "auprc", *CALL_METRICS[1:], *PROBABILITY_METRICS)
TABLE_METRICS = ("mcc", "balanced_accuracy", "accuracy", *PROBABILITY_METRICS)  # of more than two classes
BINS = 15  # of the calibration error, as in seqray.metrics.classification
LOWEST = float(np.finfo(np.float64).eps)  # a probability of 0 would cost without limit


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; nan where the denominator is 0."""
    safe = np.where(denominator == 0, 1.0, denominator)
    return np.where(denominator == 0, np.nan, numerator / safe)


def call_figures(labels: np.ndarray, calls: np.ndarray, weights: Floats) -> dict[str, Floats]:
    """Measure calls of one class: labels and calls (N,) of 0 and 1, weights (W, N) -> (W,) each."""
    y, called = labels.astype(np.float64), calls.astype(np.float64)
    tp, positives = weights @ (y * called), weights @ y
    predicted, total = weights @ called, weights.sum(axis=1)
    fp, fn = predicted - tp, positives - tp
    negatives = total - positives
    tn = negatives - fp
    sensitivity, specificity = ratio(tp, positives), ratio(tn, negatives)
    spread = predicted * positives * negatives * (total - predicted)
    mcc = (tp * tn - fp * fn) / np.sqrt(np.where(spread > 0, spread, 1.0))
    return {
        "mcc": np.where(spread > 0, mcc, 0.0),
        "f1": ratio(2 * tp, predicted + positives),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": ratio(tp, predicted),
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "accuracy": ratio(tp + tn, total),
    }


def rank_figures(labels: np.ndarray, scores: Floats, weights: Floats) -> dict[str, Floats]:
    """Measure a ranking: labels (N,) of 0 and 1, scores (N,), weights (W, N) -> (W,) each.

    Records of one score are one step of the curves, as in scikit-learn: AUROC counts a tie as a half, AUPRC
    is the average precision.
    """
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of each run of ties
    drawn, y = weights[:, order], labels[order].astype(np.float64)
    tp = np.cumsum(drawn * y, axis=1)[:, last]
    fp = np.cumsum(drawn, axis=1)[:, last] - tp
    positives, negatives = tp[:, -1], fp[:, -1]
    more_tp = np.diff(tp, axis=1, prepend=0.0)
    more_fp = np.diff(fp, axis=1, prepend=0.0)
    area = np.sum(more_fp * (tp - more_tp / 2), axis=1)
    called = tp + fp
    precision = np.divide(tp, called, out=np.zeros_like(tp), where=called > 0)
    return {
        "auroc": ratio(area, positives * negatives),
        "auprc": ratio(np.sum(more_tp * precision, axis=1), positives),
    }


def probability_figures(labels: np.ndarray, scores: Floats, weights: Floats) -> dict[str, Floats]:
    """Measure probabilities of one class: labels (N,) 0 or 1, scores (N,), weights (W, N) -> (W,) each."""
    y, total = labels.astype(np.float64), weights.sum(axis=1)
    right = np.clip(np.where(labels == 1, scores, 1 - scores), LOWEST, 1)
    return {
        "brier": ratio(weights @ (scores - y) ** 2, total),
        "ece": calibration_error(scores, y, weights),
        "log_loss": ratio(weights @ -np.log(right), total),
    }


def calibration_error(confidence: Floats, hits: Floats, weights: Floats) -> Floats:
    """Expected calibration error over equal bins of confidence: (N,), (N,), (W, N) -> (W,)."""
    bin_of = np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)
    gaps = np.zeros((len(confidence), BINS))
    gaps[np.arange(len(confidence)), bin_of] = hits - confidence
    return ratio(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


def class_figures(
    labels: np.ndarray, scores: Floats, calls: np.ndarray, weights: Floats, *, probabilities: bool
) -> dict[str, Floats]:
    """Figures of one class against the rest, in the order of `METRICS`; the last three of probabilities."""
    found = call_figures(labels, calls, weights) | rank_figures(labels, scores, weights)
    if probabilities:
        found |= probability_figures(labels, scores, weights)
    return {metric: found[metric] for metric in METRICS if metric in found}


def table_figures(
    labels: np.ndarray, scores: Floats, calls: np.ndarray, weights: Floats, *, probabilities: bool
) -> dict[str, Floats]:
    """Figures of all K classes at once, in the order of `TABLE_METRICS`.

    Parameters
    ----------
    labels, calls
        (N,) class indices.
    scores
        (N, K).
    weights
        (W, N).

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
    spread = (total**2 - np.sum(t * t, axis=1)) * (total**2 - np.sum(c * c, axis=1))
    recall = ratio(weights @ (true * hit[:, None]), t)
    present = np.sum(t > 0, axis=1)
    found = {
        "mcc": np.where(spread > 0, across / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0),
        "balanced_accuracy": ratio(np.nansum(recall, axis=1), present.astype(np.float64)),
        "accuracy": ratio(hits, total),
    }
    if probabilities:
        top = scores.argmax(axis=1)
        own = np.clip(scores[np.arange(len(labels)), labels], LOWEST, 1)
        found["brier"] = ratio(weights @ np.sum((scores - true) ** 2, axis=1), total)
        found["ece"] = calibration_error(scores.max(axis=1), (top == labels).astype(np.float64), weights)
        found["log_loss"] = ratio(weights @ -np.log(own), total)
    return found
