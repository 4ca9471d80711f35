"""Figures of classification, their intervals, rules of one number, and the matching of calls with sites."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from seqray.core.arrays import Bools, Floats, Ints, number_by_appearance

# --- Metrics of a classifier, each defined once, for many sets of record weights at a time

CALL_METRICS = ("mcc", "f1", "sensitivity", "specificity", "precision", "balanced_accuracy", "accuracy")
PROBABILITY_METRICS = ("brier", "ece", "log_loss")
METRICS = ("mcc", "auroc", "auprc", *CALL_METRICS[1:], *PROBABILITY_METRICS)
BINS = 15  # of the calibration error
MIN_PROBABILITY = float(np.finfo(np.float64).eps)  # bounds the loss of a probability of 0


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN where the denominator is 0."""
    safe = np.where(denominator == 0, 1.0, denominator)
    return np.where(denominator == 0, np.nan, numerator / safe)


def matthews(tp: Floats, fp: Floats, tn: Floats, fn: Floats) -> Floats:
    """Matthews correlation coefficient of confusion tables (W,); 0 where a row or column is empty."""
    squared = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return np.where(squared > 0, (tp * tn - fp * fn) / np.sqrt(np.where(squared > 0, squared, 1.0)), 0.0)


def call_metrics(labels: np.ndarray, calls: np.ndarray, weights: Floats) -> dict[str, Floats]:
    """Measure the calls (N,) of one class by weights (W, N): (W,) for each of `CALL_METRICS`."""
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
    """Measure a ranking by weights (W, N): ``auroc``, where a tie counts a half, and ``auprc``."""
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
        # Without a negative every ranking has an average precision of 1.
        "auprc": np.where(fp[:, -1] > 0, ratio(np.sum(more_tp * precision, axis=1), tp[:, -1]), np.nan),
    }


def probability_metrics(labels: np.ndarray, scores: Floats, weights: Floats) -> dict[str, Floats]:
    """Brier score, calibration error and log loss in nats of probabilities (N,) of class 1."""
    y, total = labels.astype(np.float64), weights.sum(axis=1)
    right = np.clip(np.where(labels == 1, scores, 1 - scores), MIN_PROBABILITY, 1)
    return {
        "brier": ratio(weights @ (scores - y) ** 2, total),
        "ece": _calibration_error(scores, y, weights),
        "log_loss": ratio(weights @ -np.log(right), total),
    }


def _calibration_error(confidence: Floats, hits: np.ndarray, weights: Floats) -> Floats:
    """Expected calibration error over bins of equal width: (N,), (N,), (W, N) -> (W,).

    Source: Guo et al. 2017, On calibration of modern neural networks, eq. 3.
    """
    bin_of = np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)
    gaps = np.zeros((len(confidence), BINS))
    gaps[np.arange(len(confidence)), bin_of] = hits - confidence
    return ratio(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


def class_metrics(
    labels: np.ndarray, scores: Floats, calls: np.ndarray, weights: Floats, *, probabilities: bool
) -> dict[str, Floats]:
    """Measure one class, of labels and scores (N,), against the rest, in the order of `METRICS`."""
    found = call_metrics(labels, calls, weights) | ranking_metrics(labels, scores, weights)
    if probabilities:
        found |= probability_metrics(labels, scores, weights)
    return {metric: found[metric] for metric in METRICS if metric in found}


def multiclass_metrics(
    labels: np.ndarray, scores: Floats, calls: np.ndarray, weights: Floats, *, probabilities: bool
) -> dict[str, Floats]:
    """Measure all K classes, of class indices (N,) and scores (N, K), at once.

    ``mcc``: Gorodkin 2004; ``brier``: sums of squares over classes; ``ece``: of the top class.
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
        own = np.clip(scores[np.arange(len(labels)), labels], MIN_PROBABILITY, 1)
        found["brier"] = ratio(weights @ np.sum((scores - true) ** 2, axis=1), total)
        found["ece"] = _calibration_error(scores.max(axis=1), scores.argmax(axis=1) == labels, weights)
        found["log_loss"] = ratio(weights @ -np.log(own), total)
    return found


def macro_metrics(
    labels: np.ndarray, by_class: Sequence[Mapping[str, Floats]], weights: Floats
) -> dict[str, Floats]:
    """Mean over the classes present of the metrics of each class against the rest; NaN is left out."""
    present = weights @ np.eye(len(by_class))[labels] > 0  # (W, K)
    tables = {name: np.stack([rows[name] for rows in by_class], axis=1) for name in by_class[0]}
    means = {}
    for name, table in tables.items():
        table = np.where(present, table, np.nan)
        means[name] = ratio(np.nansum(table, axis=1), np.sum(~np.isnan(table), axis=1).astype(np.float64))
    return means


# ------------------------------------------------------------------------ records of equal weight


def auroc(labels: np.ndarray, scores: Floats) -> float:
    """Area under the ROC curve; NaN where only one class is present."""
    return float(ranking_metrics(labels, scores, np.ones((1, len(labels))))["auroc"][0])


def auprc(labels: np.ndarray, scores: Floats) -> float:
    """Average precision, the step-wise area under the precision-recall curve; NaN without a positive."""
    return float(ranking_metrics(labels, scores, np.ones((1, len(labels))))["auprc"][0])


def calibration_error(probabilities: Floats, labels: np.ndarray, positive: int) -> float:
    """Expected calibration error of the positive class (two classes) or of the most probable one (more)."""
    if probabilities.shape[1] == 2:
        confidence, hits = probabilities[:, positive], labels == positive
    else:
        confidence, hits = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    return float(_calibration_error(confidence, hits, np.ones((1, len(labels))))[0])


# --- Trivial rules: one number, with a threshold or a small table learned on the training part

Form = Literal["rising", "falling", "shares"]
"""Of a score: a number in either direction, or the share of the class in a bin or category."""
RULE_BINS = 16
MARGIN = 0.02  # AUROC by which bins must beat a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A score of a number: its bin's share in ``table``, or the number times 1 or -1; and its threshold."""

    edges: np.ndarray | None
    table: Floats
    threshold: float = math.nan

    def scores(self, values: np.ndarray) -> Floats:
        """Scores of numbers (N,)."""
        if self.edges is None:
            return values * self.table[0]
        return self.table[np.searchsorted(self.edges, values, "right")]


def choose_form(values: np.ndarray, truth: Bools) -> Form:
    """The kind of score that does best on training data, numbers (N,) of which some are True for the class.

    Shares must rank clearly better on the half that they are not learned from: many bins fit by chance.
    """
    rising = auroc(truth, values)
    mixed = np.random.default_rng(0).permutation(len(values))
    halves = mixed[::2], mixed[1::2]
    binned = [
        auroc(truth[other], learn_rule(values[half], truth[half], "shares").scores(values[other]))
        for half, other in (halves, halves[::-1])
        if len(half)
    ]
    if np.mean(binned) > max(rising, 1 - rising) + MARGIN:
        return "shares"
    return "rising" if rising >= 0.5 else "falling"


def learn_rule(values: np.ndarray, truth: Bools, form: Form, edges: np.ndarray | None = None) -> Rule:
    """Learn a rule of one form, with the threshold of the highest MCC, and shares drawn to their mean."""
    table = np.array([-1.0 if form == "falling" else 1.0])
    if form == "shares":
        edges = (
            np.unique(np.quantile(values, np.arange(1, RULE_BINS) / RULE_BINS)) if edges is None else edges
        )
        bins, size = np.searchsorted(edges, values, "right"), len(edges) + 1
        table = (np.bincount(bins, truth, size) + truth.mean()) / (np.bincount(bins, minlength=size) + 1)
    rule = Rule(edges, table)
    return replace(rule, threshold=threshold_of_best_mcc(truth, rule.scores(values)))


def threshold_of_best_mcc(labels: Bools, scores: Floats) -> float:
    """Threshold of the highest MCC on the data that it is chosen on."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(labels[order], dtype=np.float64)
    ends = np.flatnonzero(np.concatenate((ranked[1:] != ranked[:-1], [True])))  # last row of each score
    tp, called, n, p = hits[ends], ends + 1.0, float(len(labels)), float(labels.sum())
    mcc = matthews(tp, called - tp, n - p - called + tp, p - tp)
    return float(ranked[ends[np.argmax(mcc)]])


# --- Match ranked calls with known sites of one strand, and measure the ranking

UNCLAIMED = -1


def claim_sites(positions: ArrayLike, scores: ArrayLike, sites: ArrayLike, tolerance: int) -> Ints:
    """Index of the site (M,), rising, that each call (N,) within the tolerance claims, best first, or -1."""
    place, known = np.asarray(positions, dtype=np.int64), np.asarray(sites, dtype=np.int64)
    order = np.lexsort((place, -np.asarray(scores, dtype=np.float64)))
    low = np.searchsorted(known, place - tolerance, "left").tolist()
    high = np.searchsorted(known, place + tolerance, "right").tolist()
    free = [True] * len(known)
    claimed = np.full(len(place), UNCLAIMED, dtype=np.int64)
    for call in order.tolist():
        near = [site for site in range(low[call], high[call]) if free[site]]
        if near:
            best = min(near, key=lambda site: abs(int(known[site]) - int(place[call])))
            claimed[call], free[best] = best, False
    return claimed


def average_precision(
    gained: ArrayLike, correct: ArrayLike, total: float, weights: ArrayLike | None = None
) -> float:
    """Area under precision and recall of calls (N,) by falling score, not interpolated; NaN without a site.

    ``gained`` is the weight of the site that a call claims, ``weights`` its count for precision.
    """
    if not total:
        return float("nan")
    right = np.asarray(correct, dtype=np.float64)
    counted = np.ones(len(right)) if weights is None else np.asarray(weights, dtype=np.float64)
    calls = np.cumsum(counted)
    precision: Floats = np.cumsum(counted * right) / np.where(calls > 0, calls, 1)
    return float((np.asarray(gained, dtype=np.float64) * precision).sum() / total)


# --- The bootstrap over groups of records: draws as weights, percentile intervals, p-values of differences.
# A draw takes as many groups as there are, with replacement, and each group whole: records of one group are
# not independent. All metrics are measured on the same draws, so differences between classifiers are paired.

CELLS = 1 << 21  # weights held at once: 16 MiB
LEVEL = 0.95
MIN_RELIABLE_GROUPS = 20

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric and its interval; NaN where undefined."""

    value: float
    low: float
    high: float


def group_numbers(groups: Sequence[object] | np.ndarray | None, n: int) -> Ints:
    """Number the groups of n records from 0: (n,); without groups each record is a group of its own."""
    return np.arange(n) if groups is None else number_by_appearance(groups)


def bootstrap_weights(groups: Ints, draws: int, seed: int, *, one_by_one: bool = False) -> Iterator[Floats]:
    """Yield how often each record occurs in some draws, (C, N), ``draws`` in all, by groups (N,)."""
    count, rng = int(groups.max(initial=-1)) + 1, np.random.default_rng(seed)
    size = max(1, CELLS // max(1, len(groups)))
    even = np.full(count, 1 / max(1, count))
    for start in range(0, draws, size):
        block = min(size, draws - start)
        if one_by_one:
            drawn = np.stack(
                [np.bincount(rng.integers(0, count, count), minlength=count) for _ in range(block)]
            )
        else:
            drawn = rng.multinomial(count, even, size=block)
        yield drawn[:, groups].astype(np.float64)


def bootstrap_samples(
    measure: Callable[[Floats], Mapping[Key, Floats]],
    groups: Ints,
    draws: int,
    seed: int,
    *,
    one_by_one: bool = False,
) -> dict[Key, tuple[float, Floats]]:
    """Compute metrics, functions of weights (W, N), of all records, and of each draw of their groups (N,)."""
    values = {key: float(row[0]) for key, row in measure(np.ones((1, len(groups)))).items()}
    samples: dict[Key, list[Floats]] = {key: [] for key in values}
    draws = draws if groups.max(initial=-1) > 0 else 0
    for weights in bootstrap_weights(groups, draws, seed, one_by_one=one_by_one):
        for key, row in measure(weights).items():
            samples[key].append(row)
    return {key: (value, np.concatenate([np.empty(0), *samples[key]])) for key, value in values.items()}


def percentile_interval(samples: Floats) -> tuple[float, float]:
    """Percentile interval of a metric over draws (S,); draws on which it is undefined are left out."""
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan, math.nan
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return float(low), float(high)


def difference_p_value(samples: Floats) -> float:
    """Two-sided p-value that a difference is 0, from draws (S,), and one more on each side; NaN without any.

    Source: Davison and Hinkley 1997, Bootstrap methods and their application, section 4.4.
    """
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan
    below, above = int(np.sum(defined <= 0)), int(np.sum(defined >= 0))
    return min(1.0, 2 * (1 + min(below, above)) / (1 + len(defined)))


def mcc_and_auroc(
    labels: Bools, scores: Floats, calls: Bools, groups: Ints, draws: int = 300, seed: int = 0
) -> dict[str, Estimate]:
    """Measure scores and calls (N,) of a two-class rule, with 95 % intervals over whole groups."""

    def measure(weights: Floats) -> dict[str, Floats]:
        return {
            "mcc": call_metrics(labels, calls, weights)["mcc"],
            "auroc": ranking_metrics(labels, scores, weights)["auroc"],
        }

    numbers = np.unique(groups, return_inverse=True)[1]
    found = bootstrap_samples(measure, numbers, draws, seed, one_by_one=True)
    return {name: Estimate(value, *percentile_interval(samples)) for name, (value, samples) in found.items()}
