"""Metrics of trivial rules: one feature, with a threshold or a small table learned on the training part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from seqray.core import Bools, Floats, Ints, number_by_appearance
from seqray.core.results import AuditFigure
from seqray.datasets.audit.composition import SequenceFeatures
from seqray.datasets.audit.dataset import AuditSet
from seqray.datasets.audit.validation import Bootstrap, Validation
from seqray.metrics import auroc, matthews

Form = Literal["rising", "falling", "shares"]
"""Of a score: a number in either direction, or the share of the class in a bin or category."""
SECTION = "rules"
BINS = 16
MARGIN = 0.02  # AUROC by which bins must beat a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One number or one category for each sequence, named as in docs/concepts/audit.md.

    The (N,) values are floats, or codes from 0 for a categorical feature, whose values have no order.
    """

    name: str
    values: np.ndarray
    categorical: bool = False


def rule_features(data: AuditSet, features: SequenceFeatures) -> list[Feature]:
    """List the features that differ between sequences."""
    found = [
        Feature("length", features.length.astype(np.float64)),
        Feature("ambiguous", features.ambiguous.astype(np.float64)),
        Feature("first_letter", features.first, True),
        Feature("last_letter", features.last, True),
        Feature("letter_case", features.lower),
        Feature("first_capital", features.first_capital),
    ]
    if data.alphabet.is_nucleotide:
        found.insert(1, Feature("gc", features.gc))
    else:
        found.append(
            Feature("initial_m", (features.first == data.alphabet.letters.index("M")).astype(np.float64))
        )
    if any(data.contexts):
        found.append(Feature("context", number_by_appearance(data.contexts), True))
    return [feature for feature in found if len(np.unique(feature.values)) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A score computed from a feature, and the threshold at or above which it calls the class.

    Attributes
    ----------
    edges
        Borders between the bins; None for a category, or for a threshold rule, whose score is the value
        itself times the sign in ``table``.
    table
        Share of the class in each bin or category of the training part; 1 or -1 for a threshold rule.
    threshold
        Lowest score that is called.
    """

    edges: Floats | None
    table: Floats
    threshold: float = math.nan

    def scores(self, feature: Feature, rows: Ints) -> Floats:
        """Scores of rows: (len(rows),)."""
        values = feature.values[rows]
        if feature.categorical:
            return self.table[values.astype(np.int64)]
        if self.edges is None:
            return values * self.table[0]
        return self.table[np.searchsorted(self.edges, values, "right")]


def choose_form(feature: Feature, labels: Bools, rows: Ints) -> Form:
    """The kind of score that does best on training rows; ``labels`` (N,) are True for the class.

    The score of a number is the number itself, in the direction that does better, or, if that ranks the
    rows clearly better, the share of the class in each of `BINS` bins; the score of a category is the share
    of the class in it. Shares are judged on the half of the rows from which they are not learned: many bins
    fit few rows well by chance.
    """
    if feature.categorical:
        return "shares"
    rising = auroc(labels[rows], feature.values[rows])
    mixed = np.random.default_rng(0).permutation(rows)
    halves = mixed[::2], mixed[1::2]
    binned = [
        auroc(labels[other], learn_rule(feature, labels, half, "shares").scores(feature, other))
        for half, other in (halves, halves[::-1])
        if len(half)
    ]
    if np.mean(binned) > max(rising, 1 - rising) + MARGIN:
        return "shares"
    return "rising" if rising >= 0.5 else "falling"


def learn_rule(feature: Feature, labels: Bools, rows: Ints, form: Form) -> Rule:
    """Learn a rule of one form from training rows; ``labels`` (N,) are True for the class.

    Notes
    -----
    Shares are drawn towards that of all rows by one pseudo-example. The threshold has the highest MCC on the
    training rows.
    """
    y, values = labels[rows], feature.values[rows]
    if form != "shares":
        rule = Rule(None, np.array([1.0 if form == "rising" else -1.0]))
    elif feature.categorical:
        rule = Rule(None, _class_shares(values.astype(np.int64), y, int(feature.values.max()) + 1))
    else:
        edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
        rule = Rule(edges, _class_shares(np.searchsorted(edges, values, "right"), y, len(edges) + 1))
    return replace(rule, threshold=best_threshold(y, rule.scores(feature, rows)))


def _class_shares(codes: Ints, labels: Bools, size: int) -> Floats:
    overall = float(labels.mean())
    return (np.bincount(codes, labels, size) + overall) / (np.bincount(codes, minlength=size) + 1)


def best_threshold(labels: Bools, scores: Floats) -> float:
    """Threshold of the highest MCC."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(labels[order], dtype=np.float64)
    ends = np.flatnonzero(np.concatenate((ranked[1:] != ranked[:-1], [True])))  # last row of each score
    tp, called, n, p = hits[ends], ends + 1.0, float(len(labels)), float(labels.sum())
    mcc = matthews(tp, called - tp, n - p - called + tp, p - tp)
    return float(ranked[ends[np.argmax(mcc)]])


def rule_figures(
    data: AuditSet, features: SequenceFeatures, validation: Validation, bootstrap: Bootstrap
) -> list[AuditFigure]:
    """Measure every rule: MCC and AUROC of each class against the rest.

    Of two classes the figures are those of the second; they hold for the first as well.
    """
    figures = []
    rows = validation.tested
    for label, name in data.target_classes():
        truth = data.labels == label
        if not validation.covers(truth):
            continue
        for feature in rule_features(data, features):
            # All folds take the form that most of them choose: the scores of others have another scale.
            forms: list[Form] = [choose_form(feature, truth, train) for train, _ in validation.pairs]
            form = max(forms, key=forms.count)
            scores, calls = [], []
            for train, test in validation.pairs:
                rule = learn_rule(feature, truth, train, form)
                scores.append(rule.scores(feature, test))
                calls.append(scores[-1] >= rule.threshold)
            prefix = AuditFigure(SECTION, validation.name, name, feature.name, math.nan)
            figures += bootstrap.figures(
                prefix, rows, truth[rows], np.concatenate(scores), np.concatenate(calls)
            )
    return figures
