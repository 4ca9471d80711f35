"""Training and test rows: the split of the data, random folds, or folds that keep relatives together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from seqray.core import Bools, Floats, Ints
from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import AuditSet
from seqray.homology import grouped_folds, random_folds
from seqray.metrics import mcc_and_auroc

FOLDS = 5
GIVEN, UNRELATED, GROUPED = "given", "unrelated", "grouped"


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Pairs of rows to train and to test on; no row is tested twice.

    ``name`` is ``given`` (the split of the data, or random folds if there is none) or ``grouped``; the
    description is in words. A pair is (training rows, test rows), int64 arrays.
    """

    name: str
    description: str
    pairs: tuple[tuple[Ints, Ints], ...]

    @property
    def tested(self) -> Ints:
        """All test rows, in the order of the pairs."""
        return np.concatenate([rows for _, rows in self.pairs])

    def covers(self, truth: Bools) -> bool:
        """Whether every training part has examples of a class, truth (N,), and others."""
        return all(truth[train].any() and not truth[train].all() for train, _ in self.pairs)


def given_validation(data: AuditSet, seed: int) -> Validation | None:
    """Train and test on the given split, or on random folds if there is none."""
    if data.held_out:
        description = f"the given split, measured on '{data.held_out}'"
        pair = (data.rows("train"), data.rows(data.held_out))
        return _if_possible(Validation(GIVEN, description, (pair,)), data)
    return cross_validation(data, None, seed)


def cross_validation(data: AuditSet, groups: Ints | None, seed: int) -> Validation | None:
    """Cross-validate over all of the data.

    Classes of fewer examples (or groups) than folds are left out, if two others remain.

    ``groups`` (N,) are numbers of groups to keep whole, None for random folds. The result is None if fewer
    than two classes have two examples or groups.
    """
    units = np.arange(len(data)) if groups is None else groups
    pairs = np.unique(np.stack((data.labels, units), axis=1), axis=0)
    sizes = np.bincount(pairs[:, 0], minlength=len(data.classes))
    least = FOLDS if np.sum(sizes >= FOLDS) >= 2 else 2
    kept = np.flatnonzero(sizes >= least)
    if len(kept) < 2:
        return None
    rows = np.flatnonzero(np.isin(data.labels, kept))
    count = min(FOLDS, int(sizes[kept].min()))
    if groups is None:
        name, kind, folds = GIVEN, "random folds", random_folds(data.labels[rows], count, seed)
    else:
        name, kind = GROUPED, "folds that keep relatives together"
        folds = grouped_folds(data.labels[rows], groups[rows], count, seed)
    left = f", without classes of fewer than {least}" if len(kept) < len(sizes) else ""
    parts = tuple((rows[folds != fold], rows[folds == fold]) for fold in range(count))
    return _if_possible(Validation(name, f"{count} {kind}{left}", parts), data)


def _if_possible(validation: Validation, data: AuditSet) -> Validation | None:
    """None if a training part has fewer than two classes, or a test part is empty."""
    possible = all(len(np.unique(data.labels[train])) >= 2 and len(rows) for train, rows in validation.pairs)
    return validation if possible else None


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """How intervals are computed: (N,) numbers of groups that are drawn whole, number of draws, and seed."""

    groups: Ints
    resamples: int
    seed: int

    def figures(
        self, prefix: AuditFigure, rows: Ints, truth: Bools, scores: Floats, calls: Bools
    ) -> list[AuditFigure]:
        """MCC and AUROC of a two-class rule, with intervals.

        ``prefix`` has section, split, label and beginning of the name of the figures. ``rows`` (M,) are those
        of the data that were tested; truth, scores and calls (M,) are of these rows.
        """
        found = mcc_and_auroc(truth, scores, calls, self.groups[rows], self.resamples, self.seed)
        return [
            replace(prefix, quantity=f"{prefix.quantity}_{metric}", value=m.value, low=m.low, high=m.high)
            for metric, m in found.items()
        ]
