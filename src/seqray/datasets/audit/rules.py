"""What simple rules and linear baselines reach on the split of the data, on random or on grouped folds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seqray.core.arrays import Bools, Floats, Ints, number_by_appearance
from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import EVERY_CLASS, AuditSet
from seqray.homology.split import grouped_folds, random_folds
from seqray.metrics.bootstrap import mcc_and_auroc
from seqray.metrics.rules import Form, Rule, choose_form, learn_rule

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

# --- Rows to train and to test on, and how what is measured on them becomes figures

FOLDS = 5
GIVEN, UNRELATED, GROUPED = "given", "unrelated", "grouped"


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Pairs of rows to train and to test on, int64 arrays; no row is tested twice.

    ``name`` is ``given`` (the split of the data, or random folds if there is none) or ``grouped``; the
    description is in words.
    """

    name: str
    description: str
    pairs: tuple[tuple[Ints, Ints], ...]

    def if_possible(self, labels: Ints) -> Validation | None:
        """None if a training part has fewer than two classes, or a test part is empty; labels are (N,)."""
        possible = all(len(np.unique(labels[train])) >= 2 and len(rows) for train, rows in self.pairs)
        return self if possible else None


def given_validation(data: AuditSet, seed: int) -> Validation | None:
    """Train and test on the given split, or on random folds if there is none."""
    if not data.held_out:
        return cross_validation(data, None, seed)
    description = f"the given split, measured on '{data.held_out}'"
    pair = (data.rows("train"), data.rows(data.held_out))
    return Validation(GIVEN, description, (pair,)).if_possible(data.labels)


def cross_validation(data: AuditSet, groups: Ints | None, seed: int) -> Validation | None:
    """Cross-validate over all of the data.

    ``groups`` (N,) are numbers of groups to keep whole, None for random folds. Classes of fewer examples (or
    groups) than folds are left out, if two others remain. The result is None if fewer than two classes have
    two examples or groups.
    """
    units = np.arange(len(data)) if groups is None else groups
    pairs = np.unique(np.stack((data.labels, units), axis=1), axis=0)
    sizes = np.bincount(pairs[:, 0], minlength=len(data.classes))
    least = FOLDS if np.sum(sizes >= FOLDS) >= 2 else 2
    classes = np.flatnonzero(sizes >= least)
    if len(classes) < 2:
        return None
    rows = np.flatnonzero(np.isin(data.labels, classes))
    count = min(FOLDS, int(sizes[classes].min()))
    if groups is None:
        name, kind, folds = GIVEN, "random folds", random_folds(data.labels[rows], count, seed)
    else:
        name, kind = GROUPED, "folds that keep relatives together"
        folds = grouped_folds(data.labels[rows], groups[rows], count, seed)
    left = f", without classes of fewer than {least}" if len(classes) < len(sizes) else ""
    parts = tuple((rows[folds != fold], rows[folds == fold]) for fold in range(count))
    return Validation(name, f"{count} {kind}{left}", parts).if_possible(data.labels)


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """How intervals are computed: (N,) numbers of groups that are drawn whole, number of draws, and seed."""

    groups: Ints
    resamples: int
    seed: int

    def figures(
        self, prefix: AuditFigure, rows: Ints, truth: Bools, scores: Floats, calls: Bools
    ) -> Iterator[AuditFigure]:
        """MCC and AUROC of a two-class rule, with intervals.

        ``prefix`` has section, split, label and beginning of the name of the figures. ``rows`` (M,) are those
        of the data that were tested; truth, scores and calls (M,) are of these rows.
        """
        measured = mcc_and_auroc(truth, scores, calls, self.groups[rows], self.resamples, self.seed)
        for metric, m in measured.items():
            name = f"{prefix.quantity}_{metric}"
            yield AuditFigure(prefix.section, prefix.split, prefix.label, name, m.value, m.low, m.high)


# --- Linear baselines: on the given split, on its part without relatives, and on grouped folds

MAX_CLASSES = 50  # with more of them a fit takes too long


def sample_rows(data: AuditSet, most: int, seed: int) -> Bools:
    """Choose at most ``most`` rows of each split at random: bool (N,)."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(data), dtype=bool)
    for split in data.parts:
        rows = data.rows(split)
        chosen[rng.choice(rows, most, replace=False) if len(rows) > most else rows] = True
    return chosen


def baseline_figures(
    data: AuditSet, validation: Validation, chosen: Bools, related: Bools | None, bootstrap: Bootstrap
) -> Iterator[AuditFigure]:
    """Measure the baselines: MCC and AUROC of each class against the rest.

    They are k-mers and positions, and for two classes of one length also the matrix; none for more than
    `MAX_CLASSES`. ``chosen`` (N,) are rows to use; the others are neither trained nor tested on. If
    ``related`` (N,), rows with a relative in training, is given, the figures without them are added as
    ``unrelated``.
    """
    from seqray.metrics.baselines import PositionWeightMatrix, default_baseline, held_out_probabilities

    classes = len(data.classes)
    baselines: dict[str, ClassifierMixin] = {}
    if classes <= MAX_CLASSES:
        baselines["kmer_logistic"] = default_baseline(data.alphabet, max_iter=300)
    if classes == 2 and len(np.unique(data.length)) == 1:
        baselines["position_weights"] = PositionWeightMatrix(alphabet=data.alphabet.name)
    pairs = [(train[chosen[train]], rows[chosen[rows]]) for train, rows in validation.pairs]
    rows = np.concatenate([test for _, test in pairs])
    tested = {validation.name: np.ones(len(rows), dtype=bool)}
    if related is not None and len(np.unique(data.labels[rows[~related[rows]]])) == classes:
        tested[UNRELATED] = ~related[rows]
    for baseline, model in baselines.items():
        each = [
            held_out_probabilities(model, data.take(train), data.labels[train], data.take(test), classes)
            for train, test in pairs
        ]
        probabilities = np.concatenate(each)
        for split, part in tested.items():
            shares, own = probabilities[part], rows[part]
            yield AuditFigure("baselines", split, EVERY_CLASS, f"{baseline}_n", len(own))
            for label, name in data.target_classes():
                truth = data.labels[own] == label
                if truth.any():  # a class may be too rare for folds
                    prefix = AuditFigure("baselines", split, name, baseline, math.nan)
                    calls = shares.argmax(axis=1) == label
                    yield from bootstrap.figures(prefix, own, truth, shares[:, label], calls)


# --- Trivial rules of `seqray.metrics.rules`: one feature each


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One number or one category for each sequence, named as in docs/concepts/audit.md.

    The (N,) values are floats, or codes from 0 for a categorical feature, whose values have no order.
    """

    name: str
    values: np.ndarray
    categorical: bool = False

    def form(self, labels: Bools, rows: Ints) -> Form:
        """The kind of score that does best on training rows; ``labels`` (N,) are True for the class."""
        return "shares" if self.categorical else choose_form(self.values[rows], labels[rows])

    def rule(self, labels: Bools, rows: Ints, form: Form) -> Rule:
        """Learn a rule of one form from training rows."""
        edges = np.arange(1, int(self.values.max()) + 1) if self.categorical else None
        return learn_rule(self.values[rows], labels[rows], form, edges)


def rule_features(data: AuditSet) -> list[Feature]:
    """List the features that differ between sequences."""
    features = [
        Feature("length", data.length.astype(np.float64)),
        Feature("ambiguous", data.ambiguous.astype(np.float64)),
        Feature("first_letter", data.first, True),
        Feature("last_letter", data.last, True),
        Feature("letter_case", data.lower),
        Feature("first_capital", data.first_capital),
    ]
    if data.alphabet.is_nucleotide:
        features.insert(1, Feature("gc", data.gc))
    else:
        initial = data.first == data.alphabet.letters.index("M")
        features.append(Feature("initial_m", initial.astype(np.float64)))
    if any(data.contexts):
        features.append(Feature("context", number_by_appearance(data.contexts), True))
    return [feature for feature in features if len(np.unique(feature.values)) > 1]


def rule_figures(data: AuditSet, validation: Validation, bootstrap: Bootstrap) -> Iterator[AuditFigure]:
    """Measure every rule: MCC and AUROC of each class against the rest.

    Of two classes the figures are those of the second; they hold for the first as well.
    """
    rows = np.concatenate([test for _, test in validation.pairs])
    for label, name in data.target_classes():
        truth = data.labels == label
        if not all(truth[train].any() and not truth[train].all() for train, _ in validation.pairs):
            continue
        for feature in rule_features(data):
            # All folds take the form that most of them choose: the scores of others have another scale.
            forms: list[Form] = [feature.form(truth, train) for train, _ in validation.pairs]
            form = max(forms, key=forms.count)
            scores, calls = [], []
            for train, test in validation.pairs:
                rule = feature.rule(truth, train, form)
                scores.append(rule.scores(feature.values[test]))
                calls.append(scores[-1] >= rule.threshold)
            prefix = AuditFigure("rules", validation.name, name, feature.name, math.nan)
            yield from bootstrap.figures(
                prefix, rows, truth[rows], np.concatenate(scores), np.concatenate(calls)
            )
