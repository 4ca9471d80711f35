"""What is learnt from and what is measured: the split of the data, random folds, or folds of relatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.datasets.audit.data import AuditSet
from seqray.homology import grouped_folds, homology_groups, kmer_groups, merge_groups, random_folds

FOLDS = 5
IDENTITY = 0.8
MOST_LETTERS = 4_000_000  # aligned with each other in about a minute; the time grows with the square
GIVEN, UNRELATED, GROUPED = "given", "unrelated", "grouped"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Pairs of rows to learn from and rows to measure on; no row is measured twice.

    Attributes
    ----------
    name
        ``given`` (the split of the data, or random folds where they name none) or ``grouped``.
    description
        What it is, in words.
    pairs
        (training rows, measured rows), int64 arrays.
    """

    name: str
    description: str
    pairs: tuple[tuple[np.ndarray, np.ndarray], ...]

    @property
    def measured(self) -> np.ndarray:
        """All rows that are measured on, in the order of the pairs."""
        return np.concatenate([rows for _, rows in self.pairs])


def given_plan(data: AuditSet, seed: int) -> Plan | None:
    """Learn from training and measure on the held-out split, or in random folds where there is none."""
    if data.held_out:
        pair = (data.rows("train"), data.rows(data.held_out))
        return _checked(Plan(GIVEN, f"the given split, measured on '{data.held_out}'", (pair,)), data)
    return folds_plan(data, None, seed)


def folds_plan(data: AuditSet, groups: np.ndarray | None, seed: int) -> Plan | None:
    """Cross-validate over all of the data, in random folds or folds of whole groups.

    Classes of fewer examples (or groups) than folds are left out, where two others remain.

    Returns
    -------
    Plan or None
        None where fewer than two classes have two examples or groups.
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
    folds = (
        random_folds(data.labels[rows], count, seed)
        if groups is None
        else grouped_folds(data.labels[rows], groups[rows], count, seed)
    )
    parts = tuple((rows[folds != fold], rows[folds == fold]) for fold in range(count))
    kind = "random folds" if groups is None else "folds that keep relatives together"
    left = f", without classes of fewer than {least}" if len(kept) < len(sizes) else ""
    return _checked(Plan(GIVEN if groups is None else GROUPED, f"{count} {kind}{left}", parts), data)


def _checked(plan: Plan, data: AuditSet) -> Plan | None:
    """None where fewer than two classes are in a training part, or nothing is left to measure."""
    learnt = all(len(np.unique(data.labels[train])) >= 2 for train, _ in plan.pairs)
    return plan if learnt and all(len(rows) for _, rows in plan.pairs) else None


def is_learnt(plan: Plan, truth: np.ndarray) -> bool:
    """Whether every training part has examples of a class, truth (N,), and others."""
    return all(truth[train].any() and not truth[train].all() for train, _ in plan.pairs)


def describe_relatives(data: AuditSet, k: int) -> str:
    """Say what `relative_groups` keeps together."""
    alike = [f"{100 * IDENTITY:.0f} % identity"] if _is_aligned(data) else []
    named = ["a named group"] if any(group is not None for group in data.groups) else []
    return " or ".join([f"a shared word of {k} letters", *alike, *named])


def _is_aligned(data: AuditSet) -> bool:
    return sum(map(len, data.sequences)) <= MOST_LETTERS


def relative_groups(data: AuditSet, k: int) -> np.ndarray:
    """Group relatives, directly or through others: int64 (N,).

    Relatives share a word of ``k`` letters, are as alike as `IDENTITY` by alignment, or belong to one named
    group. Above `MOST_LETTERS` letters nothing is aligned.
    """
    groupings = [kmer_groups(data.sequences, k, alphabet=data.alphabet)]
    if _is_aligned(data):
        groupings.append(homology_groups(data.sequences, IDENTITY, data.alphabet))
    if any(group is not None for group in data.groups):
        own = (("", i) if group is None else (group, -1) for i, group in enumerate(data.groups))
        numbers: dict[tuple[str, int], int] = {}
        groupings.append(np.array([numbers.setdefault(key, len(numbers)) for key in own], dtype=np.int64))
    return merge_groups(*groupings)
