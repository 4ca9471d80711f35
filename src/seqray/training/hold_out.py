"""Groups of relatives, and validation parts that keep them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Alphabet, Example, canonical_strand, number_by_appearance
from seqray.homology import deal_groups, merge_groups, named_groups


def related_groups(data: Sequence[Example], alphabet: Alphabet) -> np.ndarray:
    """Number the examples so that relatives share a number: int64 (N,).

    Relatives are examples of one group, copies, and (nucleotides) copies on the other strand, directly or
    through others.
    """
    copies = number_by_appearance(canonical_strand(example.sequence, alphabet) for example in data)
    return merge_groups(copies, named_groups([example.group for example in data]))


def hold_out_in_turn(
    labels: np.ndarray, groups: np.ndarray, share: float, seed: int, member: int
) -> np.ndarray:
    """Hold out rows that no earlier member held out: bool (N,).

    Together the members then learn from all rows, and more rows are available for calibration. If about one
    share is left, all of it is taken; if less is left, all rows are available again.

    ``share`` is that of each class, 0 to 1; members are numbered from 1.
    """
    free = held = np.ones(len(labels), dtype=bool)
    for number in range(member):
        rows = np.flatnonzero(free)
        share_of_rest = share * len(labels) / max(len(rows), 1)
        held = np.zeros(len(labels), dtype=bool)
        if share_of_rest < 0.9:
            held[rows] = hold_out(labels[rows], groups[rows], share_of_rest, seed + number)
        elif share_of_rest < 1.25:
            held = free.copy()
        if len(np.unique(labels[held])) < len(np.unique(labels)):
            free, held = np.ones(len(labels), dtype=bool), hold_out(labels, groups, share, seed + number)
        free = free & ~held
    return held


def hold_out(labels: np.ndarray, groups: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Hold out whole groups: bool (N,), True where held out.

    Groups of one row, often nearly all of them, are drawn at random within each class, so that both parts
    have some of each; larger groups are dealt.

    ``share`` is the approximate share of each class, 0 to 1.
    """
    alone = np.bincount(groups)[groups] == 1
    held = np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng(seed)
    for k in np.unique(labels):
        rows = np.flatnonzero(alone & (labels == k))
        count = min(max(round(share * len(rows)), 1), len(rows) - 1)  # both parts get some of each class
        held[rng.permutation(rows)[: max(count, 0)]] = True
    shared = np.flatnonzero(~alone)
    n_groups = len(np.unique(groups[shared]))
    if n_groups >= (2 if not alone.any() else 1 / min(share, 1 - share)):  # else all are learned from
        held[shared] = deal_groups(labels[shared], groups[shared], (1 - share, share), seed) == 1
    return held
