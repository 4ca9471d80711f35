"""What linear baselines score on the split as given, on its part without relatives, and on grouped folds."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, clone

from seqray.core.results import AuditFigure
from seqray.datasets.audit.data import AuditSet
from seqray.datasets.audit.plans import UNRELATED, Plan
from seqray.datasets.audit.rules import target_name, targets
from seqray.metrics import KmerPositionalBaseline, PositionWeightMatrix, mcc_and_auroc

SECTION = "baselines"
MOST_CLASSES = 50  # with more of them a fit takes too long
KMER, WEIGHTS = "kmer_logistic", "position_weights"


def baselines_for(data: AuditSet) -> dict[str, ClassifierMixin]:
    """Baselines that can be fitted: words plus positions, and for two classes of one length the matrix.

    None where there are more than `MOST_CLASSES` classes.
    """
    if len(data.classes) > MOST_CLASSES:
        return {}
    name = data.alphabet.name
    words = (2, 3, 4, 5) if data.alphabet.is_nucleotide else (1, 2)
    placed = (1, 3) if data.alphabet.is_nucleotide else (1,)
    found: dict[str, ClassifierMixin] = {
        KMER: KmerPositionalBaseline(kmers=words, positional=placed, alphabet=name, max_iter=300)
    }
    if len(data.classes) == 2 and len({len(s) for s in data.sequences}) == 1:
        found[WEIGHTS] = PositionWeightMatrix(alphabet=name)
    return found


def sampled(data: AuditSet, most: int, seed: int) -> np.ndarray:
    """Choose at most ``most`` rows of each split at random: bool (N,)."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(data), dtype=bool)
    for split in data.parts:
        rows = data.rows(split)
        chosen[rng.choice(rows, most, replace=False) if len(rows) > most else rows] = True
    return chosen


def floor_figures(
    data: AuditSet,
    plan: Plan,
    chosen: np.ndarray,
    groups: np.ndarray,
    related: np.ndarray | None,
    resamples: int,
    seed: int,
) -> list[AuditFigure]:
    """Score the baselines under a plan: MCC and AUROC of each class against the rest.

    Parameters
    ----------
    data, plan, groups
        As for rules.
    chosen : bool (N,)
        Rows to use; the others are left out of fitting and of measuring.
    related : bool (N,) or None
        Rows with a relative in training; where given, the figures without them are added under ``unrelated``.
    resamples, seed
        Of the bootstrap.
    """
    pairs = [(train[chosen[train]], rows[chosen[rows]]) for train, rows in plan.pairs]
    figures = []
    for name, model in baselines_for(data).items():
        probabilities = np.concatenate([_fitted(data, model, train, rows) for train, rows in pairs])
        rows = np.concatenate([measured for _, measured in pairs])
        figures += _measured(data, name, plan.name, rows, probabilities, groups, resamples, seed)
        if related is not None:
            fresh = ~related[rows]
            if len(np.unique(data.labels[rows[fresh]])) == len(data.classes):
                figures += _measured(
                    data, name, UNRELATED, rows[fresh], probabilities[fresh], groups, resamples, seed
                )
    return figures


def _fitted(data: AuditSet, model: ClassifierMixin, train: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Fit to training rows and return the probabilities of the others (len(rows), classes)."""
    fresh = clone(model)
    fresh.fit(data.take(train), data.labels[train])  # type: ignore[attr-defined]
    found = np.zeros((len(rows), len(data.classes)))  # a class that isn't in training is never called
    found[:, fresh.classes_] = fresh.predict_proba(data.take(rows))  # type: ignore[attr-defined]
    return found


def _measured(
    data: AuditSet,
    name: str,
    split: str,
    rows: np.ndarray,
    probabilities: np.ndarray,
    groups: np.ndarray,
    resamples: int,
    seed: int,
) -> list[AuditFigure]:
    calls = probabilities.argmax(axis=1)
    figures = [AuditFigure(SECTION, split, "*", f"{name}_n", len(rows))]
    for label in targets(data):
        truth = data.labels[rows] == label
        found = mcc_and_auroc(truth, probabilities[:, label], calls == label, groups[rows], resamples, seed)
        figures += [
            AuditFigure(SECTION, split, target_name(data, label), f"{name}_{metric}", m.value, m.low, m.high)
            for metric, m in found.items()
        ]
    return figures
