"""Folds and parts that keep groups whole: dealing examples by class and group."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqray.core import InputError, Ints, counted, number_by_appearance

if TYPE_CHECKING:
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

Values = Sequence[Hashable] | np.ndarray


def random_folds(labels: Values, n_folds: int = 5, seed: int = 0) -> Ints:
    """Assign examples to folds at random, each class evenly: int64 (N,) of fold numbers.

    Relatives may be on both sides; such folds serve to compare with papers that used them.

    Parameters
    ----------
    labels
        (N,) class of each example.
    n_folds
        From 2 to the size of the smallest class.
    seed
        Of the shuffling.
    """
    from sklearn.model_selection import StratifiedKFold  # here, because parts of other sizes need none of it

    y = number_by_appearance(labels)
    _require_folds(n_folds, int(np.bincount(y).min()), "examples in the smallest class")
    splitter = StratifiedKFold(n_splits=n_folds, shuffle=True, random_state=seed)
    return _fold_numbers(splitter, y)


def grouped_folds(labels: Values, groups: Values, n_folds: int = 5, seed: int = 0) -> Ints:
    """Assign whole groups to folds, keeping the classes as even as the groups allow.

    Parameters
    ----------
    labels, groups
        (N,) class and group of each example.
    n_folds
        From 2 to the number of groups.
    seed
        Of the shuffling.

    Returns
    -------
    int64 (N,)
        Fold numbers from 0.

    Examples
    --------
    >>> folds = grouped_folds(["a", "b"] * 6, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], n_folds=3)
    >>> np.bincount(folds).tolist(), bool((folds[::2] == folds[1::2]).all())
    ([4, 4, 4], True)
    """
    from sklearn.model_selection import StratifiedGroupKFold

    y, g = _classes_and_groups(labels, groups)
    _require_folds(n_folds, int(g.max()) + 1, "groups")
    _require_folds(n_folds, int(np.bincount(y).max()), "examples in the largest class")
    splitter = StratifiedGroupKFold(n_splits=n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class with fewer members than folds is missing in some of them; that is up to the caller.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return _fold_numbers(splitter, y, g)


def _fold_numbers(
    splitter: StratifiedKFold | StratifiedGroupKFold, labels: Ints, groups: Ints | None = None
) -> Ints:
    folds = np.empty(len(labels), dtype=np.int64)
    for fold, (_, held_out) in enumerate(splitter.split(np.zeros(len(labels)), labels, groups)):
        folds[held_out] = fold
    return folds


def _classes_and_groups(labels: Values, groups: Values) -> tuple[Ints, Ints]:
    y, g = number_by_appearance(labels), number_by_appearance(groups)
    if len(y) != len(g):
        raise InputError(f"{len(y)} labels but {len(g)} groups")
    return y, g


def deal_groups(labels: Values, groups: Values, shares: Sequence[float], seed: int = 0) -> Ints:
    """Deal whole groups into parts of given shares, each class as evenly as the groups allow.

    Larger groups are dealt first, each to the part that lacks most of its classes; examples that are alone
    in their group are dealt last and even out the differences. In contrast to `grouped_folds` (scikit-learn's
    StratifiedGroupKFold) the parts may differ in size, and a hundred thousand groups take seconds.

    The P shares are scaled to sum to 1; a share of 0 gives an empty part. The result int64 (N,) is the number
    of the part of each example, from 0. The seed decides among groups of one size, and which single examples
    go where.

    Raises an InputError for negative shares, shares that are all 0, or fewer groups than parts.
    """
    (y, g), wanted = _classes_and_groups(labels, groups), np.asarray(shares, dtype=np.float64)
    if wanted.ndim != 1 or not np.isfinite(wanted).all() or (wanted < 0).any() or wanted.sum() <= 0:
        raise InputError(f"shares of {shares}", remedy="give numbers of 0 or more, not all 0")
    totals = np.bincount(y)
    lacking = np.outer(wanted / wanted.sum(), totals)  # (P, K) examples that are still missing
    rng = np.random.default_rng(seed)
    part = _deal_large(y, g, lacking, wanted > 0, rng)
    for k in range(len(totals)):
        rows = rng.permutation(np.flatnonzero((part < 0) & (y == k)))
        part[rows] = np.repeat(np.arange(len(wanted)), _apportion(lacking[:, k], len(rows)))
    parts, groups_there = np.flatnonzero(wanted > 0), int(g.max(initial=-1)) + 1
    if 0 < groups_there < len(parts):
        raise InputError(
            f"{counted(groups_there, 'group')} can't fill {len(parts)} parts",
            remedy="ask for fewer parts, or for smaller groups",
        )
    return _fill_empty(part, g, parts) if len(y) else part


def _fill_empty(part: np.ndarray, g: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Give an empty part the smallest group of the part with most groups."""
    sizes = np.bincount(g)
    part_of_group = np.empty(len(sizes), dtype=np.int64)
    part_of_group[g] = part
    for p in parts:
        if not (part_of_group == p).any():
            richest = np.bincount(part_of_group, minlength=int(parts.max()) + 1).argmax()
            own = np.flatnonzero(part_of_group == richest)
            part_of_group[own[sizes[own].argmin()]] = p
    return part_of_group[g]


def _deal_large(
    y: np.ndarray, g: np.ndarray, lacking: np.ndarray, open_parts: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Deal the groups of two and more, and reduce what the parts lack; -1 for single examples."""
    sizes = np.bincount(g)
    part_of_group = np.full(len(sizes), -1, dtype=np.int64)
    weight = 1 / np.maximum(lacking.sum(axis=0), 1)  # a rare class counts as much as a common one
    closed = np.where(open_parts, 0.0, -np.inf)
    rows_of = np.split(np.argsort(g, kind="stable"), np.cumsum(sizes)[:-1]) if len(sizes) else []
    shuffled = rng.permutation(len(sizes))
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        if sizes[group] < 2:
            break
        counts = np.bincount(y[rows_of[group]], minlength=lacking.shape[1])
        # What the part lacks of its classes decides, and then what it lacks in total.
        best = int(
            np.argmax(lacking @ (counts * weight) + lacking.sum(axis=1) * len(counts) / len(y) + closed)
        )
        lacking[best] -= counts
        part_of_group[group] = best
    return part_of_group[g] if len(g) else np.empty(0, dtype=np.int64)


def _apportion(lacking: np.ndarray, count: int) -> np.ndarray:
    """Divide ``count`` examples in proportion to what the parts lack, in whole numbers: int64 (P,)."""
    need = np.maximum(lacking, 0)
    exact = need * (count / need.sum()) if need.sum() > 0 else np.eye(len(lacking))[lacking.argmax()] * count
    given = np.floor(exact + 1e-9).astype(np.int64)
    given[np.argsort(given - exact, kind="stable")[: count - given.sum()]] += 1
    return given


def _require_folds(n_folds: int, available: int, what: str) -> None:
    if n_folds < 2 or n_folds > available:
        raise InputError(f"{n_folds} folds from {available} {what}", remedy=f"ask for 2 to {available}")
