"""Metrics of linear baselines: on the given split, on its part without relatives, and on grouped folds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from seqray.core import Bools, Floats, Ints
from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import EVERY_CLASS, AuditSet
from seqray.datasets.audit.validation import UNRELATED, Bootstrap, Validation

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

SECTION = "baselines"
MAX_CLASSES = 50  # with more of them a fit takes too long
KMER, WEIGHTS = "kmer_logistic", "position_weights"


def baselines_for(data: AuditSet) -> dict[str, ClassifierMixin]:
    """Baselines that can be fitted: k-mers and positions; for two classes of one length also the matrix.

    Empty for more than `MAX_CLASSES`.
    """
    if len(data.classes) > MAX_CLASSES:
        return {}
    from seqray.metrics import PositionWeightMatrix, default_baseline  # here, for they load scikit-learn

    found: dict[str, ClassifierMixin] = {KMER: default_baseline(data.alphabet, max_iter=300)}
    if len(data.classes) == 2 and len({len(s) for s in data.sequences}) == 1:
        found[WEIGHTS] = PositionWeightMatrix(alphabet=data.alphabet.name)
    return found


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
) -> list[AuditFigure]:
    """Measure the baselines: MCC and AUROC of each class against the rest.

    ``chosen`` (N,) are rows to use; the others are neither trained nor tested on. If ``related`` (N,), rows
    with a relative in training, is given, the figures without them are added as ``unrelated``.
    """
    from seqray.metrics import held_out_probabilities

    pairs = [(train[chosen[train]], rows[chosen[rows]]) for train, rows in validation.pairs]
    rows = np.concatenate([test for _, test in pairs])
    figures = []
    for name, model in baselines_for(data).items():
        probabilities = np.concatenate(
            [
                held_out_probabilities(
                    model, data.take(train), data.labels[train], data.take(test), len(data.classes)
                )
                for train, test in pairs
            ]
        )
        figures += _measured(data, name, validation.name, rows, probabilities, bootstrap)
        if related is not None:
            fresh = ~related[rows]
            if len(np.unique(data.labels[rows[fresh]])) == len(data.classes):
                figures += _measured(data, name, UNRELATED, rows[fresh], probabilities[fresh], bootstrap)
    return figures


def _measured(
    data: AuditSet, baseline: str, split: str, rows: Ints, probabilities: Floats, bootstrap: Bootstrap
) -> list[AuditFigure]:
    calls = probabilities.argmax(axis=1)
    figures = [AuditFigure(SECTION, split, EVERY_CLASS, f"{baseline}_n", len(rows))]
    for label, name in data.target_classes():
        prefix = AuditFigure(SECTION, split, name, baseline, math.nan)
        truth = data.labels[rows] == label
        if not truth.any():  # a class too rare for folds
            continue
        figures += bootstrap.figures(prefix, rows, truth, probabilities[:, label], calls == label)
    return figures
