"""Baselines that cannot know, and curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import precision_recall_curve, roc_curve

from seqray.calibration.fit import choose_threshold
from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats, Ints
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.core.results import Answers
from seqray.homology.split import grouped_folds
from seqray.metrics.baselines import ForestBaseline, RuleBaseline, default_baseline, held_out_probabilities
from seqray.metrics.classification import call_metrics

# --- Baselines for a model: logistic regression on k-mers, a forest, and rules on one number

FOLDS = 5


def floor_answers(
    examples: Sequence[LabeledSequence],
    train: Sequence[LabeledSequence],
    classes: Sequence[str],
    positive: str,
    alphabet: Alphabet,
    groups: Sequence[object] | np.ndarray,
    seed: int = 0,
) -> list[Answers]:
    """Fit the floor, the forest and the rules on ``train``, or in folds by ``groups``, and apply them."""
    for example in train:
        if example.label not in classes:
            wrong = f"has the label '{example.label}', which is none of {', '.join(classes)}"
            raise InputError(wrong, where=example.where)
    train = sorted(train, key=lambda one: (one.sequence, one.label))  # a forest depends on the order of rows
    folds, fitted = None, f"fitted on {len(train)} training records"
    if not train:
        labels, keys = [example.label for example in examples], list(groups)
        folds = grouped_folds(labels, keys, fold_count(labels, keys), seed)  # type: ignore[arg-type]
        fitted = f"cross-validated by groups in {folds.max() + 1} folds"
    found, every = [], (*train, *examples)
    for name, (description, model) in _classifiers(alphabet).items():
        if isinstance(model, RuleBaseline) and len({model.measure(e.sequence) for e in every}) == 1:
            continue
        if name == "majority":  # in folds the shares would differ a little, and therefore rank
            scores = _probabilities(model, examples, train or examples, classes, None)
            note = f"{description}, of {'training' if train else 'these'} records"
        else:
            scores, note = _probabilities(model, examples, train, classes, folds), f"{description}, {fitted}"
        found.append(answers_from_probabilities(name, note, scores, classes, positive))
    return found


def answers_from_probabilities(
    source: str,
    note: str,
    scores: Floats,
    classes: Sequence[str],
    positive: str,
    threshold: float | None = None,
) -> Answers:
    """The most probable class of (N, K); of two, the positive one at a threshold: `choose_threshold`."""
    if len(classes) != 2:
        return Answers(source, note, scores, scores.argmax(axis=1))
    k = list(classes).index(positive)
    limit = choose_threshold(scores[:, k]) if threshold is None else threshold
    calls = np.where(scores[:, k] >= limit, k, 1 - k)
    return Answers(source, note, scores, calls, threshold=limit)


def fold_count(labels: Sequence[str], groups: Sequence[object]) -> int:
    """Number of folds: at most five, and at most as many as groups or members of the largest class."""
    return min(FOLDS, len(set(groups)), max(Counter(labels).values(), default=0))


def _probabilities(
    model: object,
    examples: Sequence[LabeledSequence],
    train: Sequence[LabeledSequence],
    classes: Sequence[str],
    folds: Ints | None,
) -> Floats:
    """Probabilities (N, K) of examples, fitted on training data or, with folds, on the other folds."""
    index = {name: k for k, name in enumerate(classes)}
    known = train if folds is None else examples
    labels = np.array([index[example.label] for example in known])
    sequences = [example.sequence for example in examples]
    if folds is None:
        return held_out_probabilities(model, [e.sequence for e in train], labels, sequences, len(classes))
    scores = np.zeros((len(examples), len(classes)))
    for fold in np.unique(folds):
        held_out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        known, asked = ([sequences[i] for i in rows] for rows in (rest, held_out))
        scores[held_out] = held_out_probabilities(model, known, labels[rest], asked, len(classes))
    return scores


# ------------------------------------------------------------------------------------------- classifiers


def _classifiers(alphabet: Alphabet) -> dict[str, tuple[str, object]]:
    """Name -> description and unfitted classifier of sequences."""
    places = "k-mers at positions" if alphabet.is_nucleotide else "the composition of both ends"
    found: dict[str, tuple[str, object]] = {
        "floor": (f"logistic regression on k-mers and on {places}", default_baseline(alphabet)),
        "forest": (
            "a random forest on composition, pairs of letters, length and both ends",
            ForestBaseline(alphabet.name),
        ),
        "majority": ("the shares of the classes for every record", DummyClassifier(strategy="prior")),
        "gc": (
            "a rule on the share of G and C",
            RuleBaseline(lambda s: (s.count("G") + s.count("C")) / max(1, len(s))),
        ),
        "length": ("a rule on the length", RuleBaseline(len)),
    }
    return found if alphabet.is_nucleotide else {name: one for name, one in found.items() if name != "gc"}


# --- Points of curves for a report: ROC, precision and recall, reliability, and a table of thresholds

RELIABILITY_BINS = 10
SHOWN_THRESHOLDS = 11


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Predicted probabilities and observed frequencies, by range of probability."""

    # (B,) mean probability of the positive class, share of positives, and number of records, for each range
    # that has records
    confidence: Floats
    frequency: Floats
    low: Floats  # (B,) 95 % interval of the share (Clopper and Pearson 1934), records taken as independent
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
    """Compare probabilities (N,) of class 1 with the frequencies of labels of 0 and 1, in equal ranges."""
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
    """Metrics of the calls at some quantiles of the scores (N,), ascending; the labels are 0 and 1."""
    places = np.quantile(scores, np.linspace(0, 1, SHOWN_THRESHOLDS), method="lower")
    limits = np.unique([*places, *([] if own is None else [own])])
    ones = np.ones((1, len(labels)))
    rows = []
    for limit in limits.tolist():
        calls = (scores >= limit).astype(np.int64)
        figures = {name: float(row[0]) for name, row in call_metrics(labels, calls, ones).items()}
        rows.append({"threshold": limit, "called": float(calls.sum()), **figures})
    return rows
