"""What trivial rules score: one feature, a threshold or a small table learnt on the training part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core.results import AuditFigure
from seqray.datasets.audit.composition import Columns
from seqray.datasets.audit.data import AuditSet
from seqray.datasets.audit.plans import Plan, is_learnt
from seqray.metrics import auroc, mcc_and_auroc

SECTION = "rules"
BINS = 16
WORTH = 0.02  # AUROC on training by which bins must beat a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One number or one category for each sequence.

    Attributes
    ----------
    name
        As in docs/concepts/audit.md.
    values
        (N,) floats; of a categorical feature codes from 0.
    categorical
        Whether the values have no order.
    """

    name: str
    values: np.ndarray
    categorical: bool = False


def features_of(data: AuditSet, columns: Columns) -> list[Feature]:
    """List the features that differ between sequences."""
    found = [
        Feature("length", columns.length.astype(np.float64)),
        Feature("ambiguous", columns.ambiguous.astype(np.float64)),
        Feature("first_letter", columns.first, True),
        Feature("last_letter", columns.last, True),
        Feature("letter_case", columns.lower),
        Feature("first_capital", columns.first_capital),
    ]
    if data.alphabet.is_nucleotide:
        found.insert(1, Feature("gc", columns.gc))
    else:
        found.append(
            Feature("initial_m", (columns.first == data.alphabet.letters.index("M")).astype(np.float64))
        )
    if any(data.contexts):
        numbers: dict[str | None, int] = {}
        codes = [numbers.setdefault(context, len(numbers)) for context in data.contexts]
        found.append(Feature("context", np.array(codes), True))
    return [feature for feature in found if len(np.unique(feature.values)) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A feature turned into a score, and the score from which on it speaks for the class.

    Attributes
    ----------
    edges
        Upper borders of the bins but the last; None for a threshold rule, whose score is the value itself,
        turned round where low values speak for the class.
    table
        Share of the class in each bin or category of the training part; for a threshold rule its sign.
    threshold
        Least score that is called.
    """

    edges: np.ndarray | None
    table: np.ndarray
    threshold: float

    def scores(self, feature: Feature, rows: np.ndarray) -> np.ndarray:
        """Scores of rows: float64 (len(rows),)."""
        return _scores(self.edges, self.table, feature.values[rows], feature.categorical)


def _scores(edges: np.ndarray | None, table: np.ndarray, values: np.ndarray, categorical: bool) -> np.ndarray:
    if categorical:
        return table[values.astype(np.int64)]
    if edges is None:
        return values * table[0]
    return table[np.searchsorted(edges, values, "right")]


def learn(feature: Feature, labels: np.ndarray, rows: np.ndarray) -> Rule:
    """Learn the rule that does best on training rows.

    Parameters
    ----------
    feature
        To learn from.
    labels : bool (N,)
        True for the class.
    rows
        Training rows.

    Notes
    -----
    A number is judged by a threshold, in the direction that does better, or, where that ranks the training
    rows clearly better, by the share of the class in each of `BINS` bins; a category by the share of the
    class in it. Shares are drawn towards that of all rows by one pseudo-example. The threshold is the one of
    the highest MCC on the training rows.
    """
    y, values = labels[rows], feature.values[rows]
    if feature.categorical:
        codes = values.astype(np.int64)
        return _with_threshold(None, _shares(codes, y, int(feature.values.max()) + 1), y, values, True)
    sign = 1.0 if auroc(y, values) >= 0.5 else -1.0
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    table = _shares(np.searchsorted(edges, values, "right"), y, len(edges) + 1)
    binned = auroc(y, _scores(edges, table, values, False))
    if binned > auroc(y, values * sign) + WORTH:
        return _with_threshold(edges, table, y, values, False)
    return _with_threshold(None, np.array([sign]), y, values, False)


def _shares(codes: np.ndarray, labels: np.ndarray, size: int) -> np.ndarray:
    overall = float(labels.mean())
    return (np.bincount(codes, labels, size) + overall) / (np.bincount(codes, minlength=size) + 1)


def _with_threshold(
    edges: np.ndarray | None, table: np.ndarray, labels: np.ndarray, values: np.ndarray, categorical: bool
) -> Rule:
    return Rule(edges, table, best_threshold(labels, _scores(edges, table, values, categorical)))


def best_threshold(labels: np.ndarray, scores: np.ndarray) -> float:
    """Score from which on calling gives the highest MCC."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(labels[order], dtype=np.float64)
    ends = np.flatnonzero(np.concatenate((ranked[1:] != ranked[:-1], [True])))  # last row of each score
    tp, called, n, p = hits[ends], ends + 1.0, float(len(labels)), float(labels.sum())
    spread = np.sqrt(np.maximum(called * (n - called) * p * (n - p), 1e-300))
    mcc = np.where(called < n, (tp * n - called * p) / spread, 0.0)
    return float(ranked[ends[np.argmax(mcc)]])


def rule_figures(
    data: AuditSet, columns: Columns, plan: Plan, groups: np.ndarray, resamples: int, seed: int
) -> list[AuditFigure]:
    """Score every rule under a plan: MCC and AUROC of each class against the rest.

    Of two classes the figures are those of the second; they hold for the first as well.
    """
    figures = []
    rows = plan.measured
    for label in targets(data):
        truth = data.labels == label
        if not is_learnt(plan, truth):
            continue
        for feature in features_of(data, columns):
            rules = [learn(feature, truth, train) for train, _ in plan.pairs]
            pieces = [rule.scores(feature, part) for rule, (_, part) in zip(rules, plan.pairs, strict=True)]
            calls = [s >= rule.threshold for s, rule in zip(pieces, rules, strict=True)]
            scores = np.concatenate(pieces)
            found = mcc_and_auroc(truth[rows], scores, np.concatenate(calls), groups[rows], resamples, seed)
            figures += [
                AuditFigure(
                    SECTION,
                    plan.name,
                    target_name(data, label),
                    f"{feature.name}_{metric}",
                    m.value,
                    m.low,
                    m.high,
                )
                for metric, m in found.items()
            ]
    return figures


def targets(data: AuditSet) -> list[int]:
    """Classes that rules are learnt for: one of two, else the largest."""
    return [1] if len(data.classes) == 2 else [label for label, _ in data.largest_classes()]


def target_name(data: AuditSet, label: int) -> str:
    """Name of the class in figures: ``*`` where there are two, whose figures are the same."""
    return "*" if len(data.classes) == 2 else data.classes[label]
