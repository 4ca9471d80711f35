"""The audit as a whole: labeled sequences in, figures and findings out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Floats, Ints, number_by_appearance
from seqray.core.errors import OnProgress, track
from seqray.core.labels import label_faults
from seqray.core.records import LabeledSequence
from seqray.core.results import Audit, AuditFigure, Histogram
from seqray.datasets.audit import dataset
from seqray.datasets.audit.dataset import EVERY_CLASS, AuditSet
from seqray.datasets.audit.findings import draw_findings
from seqray.homology.kmers import chance_length, kmer_table, word_length
from seqray.homology.split import grouped_folds, random_folds
from seqray.metrics.classification import Form, choose_form, learn_rule, mcc_and_auroc

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

# --- Rows to train and to test on, and how what is measured on them becomes figures

FOLDS = 5
GIVEN, UNRELATED, GROUPED = "given", "unrelated", "grouped"


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Pairs of rows to train and to test on, int64; no row is tested twice. ``name`` is given or grouped."""

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
    """Cross-validate over all data with whole ``groups`` (N,), or random folds; None if classes are few."""
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
        """MCC and AUROC of a rule on the test rows (M,), with intervals; ``prefix`` begins their names."""
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
    """MCC and AUROC of the baselines, of each class against the rest, for the rows ``chosen`` (N,).

    Those ``related`` (N,) to training are left out of the figures called ``unrelated``.
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


# --- Trivial rules of `seqray.metrics.classification`: one feature each


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One number or category (codes from 0) for each of N sequences, named as in docs/concepts/audit.md."""

    name: str
    values: np.ndarray
    categorical: bool = False


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
    """Measure every rule, MCC and AUROC of each class against the rest; of two classes, of the second."""
    rows = np.concatenate([test for _, test in validation.pairs])
    for label, name in data.target_classes():
        truth = data.labels == label
        if not all(truth[train].any() and not truth[train].all() for train, _ in validation.pairs):
            continue
        for feature in rule_features(data):
            # All folds take the form that most of them choose: the scores of others have another scale.
            values = feature.values
            forms: list[Form] = ["shares"]
            if not feature.categorical:
                forms = [choose_form(values[train], truth[train]) for train, _ in validation.pairs]
            form = max(forms, key=forms.count)
            edges = np.arange(1, int(values.max()) + 1) if feature.categorical else None
            scores, calls = [], []
            for train, test in validation.pairs:
                rule = learn_rule(values[train], truth[train], form, edges)
                scores.append(rule.scores(values[test]))
                calls.append(scores[-1] >= rule.threshold)
            prefix = AuditFigure("rules", validation.name, name, feature.name, math.nan)
            yield from bootstrap.figures(
                prefix, rows, truth[rows], np.concatenate(scores), np.concatenate(calls)
            )


MAX_KMERS = 1 << 25  # of more letters an even sample of their k-mers is compared: bounds memory
SAMPLE = 16_000  # rows of each split that the baselines use
RESAMPLES = 300


def audit(
    examples: Sequence[LabeledSequence],
    alphabet: Alphabet,
    letters: Sequence[str] | None = None,
    *,
    in_file_order: bool = True,
    baselines: bool = True,
    seed: int = 0,
    sample: int = SAMPLE,
    resamples: int = RESAMPLES,
    skipped: int = 0,
    on_progress: OnProgress | None = None,
) -> Audit:
    """Find what would mislead a model trained on these sequences: leaks, copies, shortcuts.

    ``letters`` are as in the file, ``skipped`` those without any; baselines use ``sample`` rows of a split.
    """
    data = AuditSet(examples, alphabet, letters, in_file_order)
    k = word_length(data.sequences, alphabet)
    table = kmer_table(data.sequences, k, alphabet, most=MAX_KMERS)
    given, (groups, relatives) = given_validation(data, seed), dataset.relative_groups(data, table, k)
    bootstrap = Bootstrap(groups, resamples, seed)
    identities: list[AuditFigure] = []
    histograms: list[Histogram] = dataset.composition_histograms(data)
    if given is not None:
        identities, drawn = dataset.identity_figures(data, *given.pairs[0], seed)
        histograms += drawn
    checks: list[Callable[[], Iterable[AuditFigure]]] = [
        partial(dataset.composition_figures, data, groups),
        partial(dataset.copy_figures, data),
        partial(dataset.relative_figures, data, table),
        lambda: identities,
        partial(dataset.order_figures, data),
    ]
    if given is not None:
        checks.append(partial(rule_figures, data, given, bootstrap))
    grouped = cross_validation(data, groups, seed) if baselines else None
    if baselines:
        related = None  # (N,) held-out rows that share a k-mer with training
        if data.held_out:
            rows = data.rows(data.held_out)
            related = np.zeros(len(data), dtype=bool)
            related[rows] = table.sharing_across(rows, data.rows("train"))
        chosen = sample_rows(data, sample, seed)
        for validation, left_out in ((given, related), (grouped, None)):
            if validation is not None:
                checks.append(partial(baseline_figures, data, validation, chosen, left_out, bootstrap))
    figures = [figure for check in track(checks, len(checks), "audit", on_progress) for figure in check()]
    settings = {
        "alphabet": alphabet.name,
        "word": str(k),
        "chance_word": str(chance_length(data.sequences, alphabet)),
        "held_out": data.held_out or "",
        "given": given.description if given else "none: a class has too few examples",
        "relatives": relatives,
        "grouped": grouped.description if grouped else "none",
        "seed": str(seed),
        "resamples": str(resamples),
        "sample": str(sample),
    }
    return Audit(
        figures, histograms, draw_findings(figures, settings, skipped, label_faults(examples)), settings
    )
