"""Divide examples into parts or folds by whole groups, measure the boundaries, and repair leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqray.core import Alphabet, Bools, InputError, Ints, LabeledSequence, OnProgress
from seqray.homology.folds import deal_groups
from seqray.homology.groups import merge_groups
from seqray.homology.options import PARTS, RelationOptions, SplitOptions
from seqray.homology.proof import Boundary, Sides, leaking_pairs, measure_boundary, remeasure
from seqray.homology.relatives import Related

_MAX_REPAIR_ROUNDS = 5  # one is nearly always enough
_MIN_KEPT_SHARE = 0.95  # of a part: below, it is better to deal anew


@dataclass(frozen=True)
class Division:
    """The part or fold of each example.

    Attributes
    ----------
    split
        (N,) ``train``, ``validation``, ``test`` or None.
    fold
        (N,) 1 to K, or None.
    dropped : bool (N,)
        Left out because a relative is kept elsewhere.
    groups : int64 (N,)
        That were kept whole.
    boundaries
        The proof.
    mended
        Pairs that only the proof found, and that were moved to one side.
    """

    split: list[str | None]
    fold: list[int | None]
    dropped: Bools
    groups: Ints
    boundaries: tuple[Boundary, ...] = ()
    mended: int = 0


def split_data(
    data: Sequence[LabeledSequence],
    related: Related,
    alphabet: Alphabet,
    options: SplitOptions,
    relation: RelationOptions,
    on_progress: OnProgress | None = None,
) -> Division:
    """Divide examples, measure the boundaries, and move relatives found across one, until none is found.

    Parameters
    ----------
    data, related, alphabet
        N examples, their groups, and the alphabet of their sequences.
    options, relation
        How to divide, and what counts as related.
    on_progress
        Called while held-out sequences are aligned with the others.

    Raises an InputError if there are fewer groups than parts, or no example is in a part to be kept.

    Examples
    --------
    >>> from seqray.core import DNA
    >>> from seqray.homology import find_relatives
    >>> ends = ("TTGACAGGCGCC", "TTGACAGGCGCT", "ATATAACCATGG", "ATATAACCATGC")
    >>> sequences = [end[:6] + end for end in ends]
    >>> data = [LabeledSequence(s, "ab"[i % 2], str(i)) for i, s in enumerate(sequences)]
    >>> relation = RelationOptions(identity=0.9, word=10)
    >>> related = find_relatives(sequences, DNA, relation)
    >>> found = split_data(data, related, DNA, SplitOptions(folds=2), relation)
    >>> found.groups.tolist(), found.fold[0] == found.fold[1]
    ([0, 0, 1, 1], True)
    """
    division = assign_parts(data, related.groups, options)
    boundaries = measure_boundaries(data, division, alphabet, options, relation, on_progress=on_progress)
    division = replace(division, boundaries=boundaries)
    kept = np.array([example.split in options.keep for example in data], dtype=bool)
    for _ in range(_MAX_REPAIR_ROUNDS if relation.identity else 0):
        found = [leaking_pairs(boundary, relation.identity) for boundary in division.boundaries]
        one, two = np.concatenate([np.empty((2, 0), dtype=np.int64), *found], axis=1)
        movable = ~(kept[one] & kept[two])
        if not movable.any():
            break
        groups = _join_pairs(division.groups, one[movable], two[movable])
        mended = division.mended + int(movable.sum())
        moved, before = assign_parts(data, groups, options, division), division.boundaries
        if _has_shrunk(division, moved, options):
            moved, before = assign_parts(data, groups, options), ()
        boundaries = measure_boundaries(data, moved, alphabet, options, relation, before)
        division = replace(moved, boundaries=boundaries, mended=mended)
    return division


def _has_shrunk(before: Division, after: Division, options: SplitOptions) -> bool:
    """Whether moving made a part so small that dealing anew is better."""
    bins = 1 + max(len(PARTS), options.folds)
    sizes = [np.bincount(_bins(d, options) + 1, minlength=bins)[1:] for d in (before, after)]
    return bool((sizes[1] < _MIN_KEPT_SHARE * sizes[0]).any())


def _join_pairs(groups: Ints, one: Ints, two: Ints) -> Ints:
    """Join the groups of each pair of rows."""
    pair = int(groups.max(initial=-1)) + 1 + np.arange(len(one))
    rows = np.concatenate((np.arange(len(groups)), one, two))
    return merge_groups(np.concatenate((groups, pair, pair)), rows)[: len(groups)]


def assign_parts(
    data: Sequence[LabeledSequence],
    groups: Ints,
    options: SplitOptions,
    before: Division | None = None,
) -> Division:
    """Assign each example a part or fold, without measuring the boundaries.

    ``groups`` (N,) are numbers of groups that stay whole. After an earlier division of smaller groups, each
    group goes where most of its examples were.
    """
    fixed = _kept_parts(data, options)
    bound = _bound_parts(groups, fixed)
    joins = (options.relatives == "join") | ((bound == PARTS.index("train")) & (options.folds == 0))
    dropped = (fixed < 0) & (bound >= 0) & ~joins
    part = np.where(fixed >= 0, fixed, np.where(dropped, -1, bound))
    free = np.flatnonzero((part < 0) & ~dropped)
    shares = [0.0 if p in options.keep else s for p, s in zip(PARTS, options.shares, strict=True)]
    shares = [1.0] * options.folds or shares
    if len(free) and not any(shares):
        raise InputError(
            f"{len(free)} examples have no split, and every part is kept as it is",
            remedy="keep fewer parts, or leave these examples out",
        )
    if before is not None:
        dealt = _majority(groups[free], _bins(before, options)[free], len(shares))
    elif len(free):
        dealt = deal_groups([data[int(i)].label for i in free], groups[free], shares, options.seed)
    else:
        dealt = free
    fold = np.full(len(data), -1)
    (fold if options.folds else part)[free] = dealt
    return Division(
        [None if p < 0 else PARTS[p] for p in part.tolist()],
        [None if f < 0 else f + 1 for f in fold.tolist()],
        dropped,
        groups,
    )


def _kept_parts(data: Sequence[LabeledSequence], options: SplitOptions) -> np.ndarray:
    """Number of the part of each kept example, else -1."""
    kept = [PARTS.index(e.split) if e.split in options.keep else -1 for e in data]
    for name in options.keep:
        if PARTS.index(name) not in kept:
            raise InputError(f"no example has the split '{name}' that is to be kept")
    return np.array(kept, dtype=np.int64)


def _bound_parts(groups: Ints, fixed: Ints) -> Ints:
    """Part of the kept examples in each group (test before validation before train), by example; else -1."""
    strongest = np.full(int(groups.max(initial=-1)) + 1, -1, dtype=np.int64)
    np.maximum.at(strongest, groups, fixed)
    return strongest[groups]


def _bins(division: Division, options: SplitOptions) -> np.ndarray:
    """Number of the part or fold of each example, -1 for none."""
    if options.folds:
        return np.array([(fold or 0) - 1 for fold in division.fold])
    return np.array([-1 if name is None else PARTS.index(name) for name in division.split])


def _majority(groups: Ints, bins: Ints, count: int) -> Ints:
    """Bin that holds most of each example's group, the first of equals."""
    votes = np.zeros((int(groups.max(initial=-1)) + 1, count), dtype=np.int64)
    voting = bins >= 0
    np.add.at(votes, (groups[voting], bins[voting]), 1)
    return votes.argmax(axis=1)[groups]


def measure_boundaries(
    data: Sequence[LabeledSequence],
    division: Division,
    alphabet: Alphabet,
    options: SplitOptions,
    relation: RelationOptions,
    before: Sequence[Boundary] = (),
    on_progress: OnProgress | None = None,
) -> tuple[Boundary, ...]:
    """Measure each boundary: test against the rest, validation against train, or a fold against others.

    If boundaries are given as they were measured ``before``, only what changed is measured again.
    """
    sequences = [example.sequence for example in data]
    known = {boundary.name: boundary for boundary in before}
    found = []
    for sides in _sides(division, options):
        if sides.name in known:
            found.append(remeasure(known[sides.name], sides, sequences, alphabet, relation))
        elif len(sides.rows) and len(sides.others):
            found.append(measure_boundary(sides, sequences, alphabet, relation, on_progress=on_progress))
    return tuple(found)


def _sides(division: Division, options: SplitOptions) -> list[Sides]:
    split = np.array([name or "" for name in division.split])
    sides = []
    if options.folds:
        fold = np.array([number or 0 for number in division.fold])
        for number in range(1, options.folds + 1):
            rows = np.flatnonzero(fold == number)
            others = np.flatnonzero((fold > 0) & (fold != number))
            sides.append(Sides(f"fold {number}", "other folds", rows, others))
        others = np.flatnonzero((fold > 0) | np.isin(split, ("train", "validation")))
        return [*sides, Sides("test", "folds", np.flatnonzero(split == "test"), others)]
    train, validation, test = (np.flatnonzero(split == name) for name in PARTS)
    both = np.sort(np.concatenate((train, validation)))
    rest = "train and validation" if len(validation) else "train"
    return [Sides("test", rest, test, both), Sides("validation", "train", validation, train)]
