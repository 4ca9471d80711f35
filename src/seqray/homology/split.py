"""Divide examples into parts or folds by whole groups, measure the boundary, and mend what leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqray.core import Alphabet, InputError, LabelledSequence
from seqray.homology.options import PARTS, RelationOptions, SplitOptions
from seqray.homology.proof import Boundary, leaks, measure_boundary, remeasure
from seqray.homology.relations import Related
from seqray.homology.similarity import merge_groups
from seqray.homology.splits import deal_groups

_ROUNDS = 5  # of moving; one is nearly always enough
_SHRUNK = 0.95


@dataclass(frozen=True)
class Division:
    """Where each example goes.

    Attributes
    ----------
    split
        (N,) ``train``, ``validation``, ``test`` or None.
    fold
        (N,) 1 to K, or None.
    dropped : bool (N,)
        Left out because a relative is kept elsewhere.
    groups : int64 (N,)
        As they were dealt.
    boundaries
        The proof.
    mended
        Pairs that only the proof found, and that were brought to one side.
    """

    split: list[str | None]
    fold: list[int | None]
    dropped: np.ndarray
    groups: np.ndarray
    boundaries: tuple[Boundary, ...] = ()
    mended: int = 0


def split_data(
    data: Sequence[LabelledSequence],
    related: Related,
    alphabet: Alphabet,
    options: SplitOptions,
    relation: RelationOptions,
) -> Division:
    """Deal, prove, and move what the proof finds to be related across a boundary, until it finds no more.

    Parameters
    ----------
    data
        N examples.
    related
        Their groups.
    alphabet
        Of the sequences.
    options, relation
        How to divide, and what counts as related.

    Raises
    ------
    InputError
        Where the groups don't fill the parts, or no example is of a part to be kept.
    """
    division = deal(data, related.groups, options)
    division = replace(division, boundaries=prove(data, division, alphabet, options, relation))
    kept = np.array([example.split in options.keep for example in data], dtype=bool)
    for _ in range(_ROUNDS if relation.identity else 0):
        found = [leaks(boundary, relation.identity) for boundary in division.boundaries]
        one, two = np.concatenate([np.empty((2, 0), dtype=np.int64), *found], axis=1)
        curable = ~(kept[one] & kept[two])  # what is kept on both sides stays as it is
        if not curable.any():
            break
        groups = _join_pairs(division.groups, one[curable], two[curable])
        mended = division.mended + int(curable.sum())
        moved, before = deal(data, groups, options, division), division.boundaries
        if _shrunk(division, moved, options):
            moved, before = deal(data, groups, options), ()
        boundaries = prove(data, moved, alphabet, options, relation, before)
        division = replace(moved, boundaries=boundaries, mended=mended)
    return division


def _shrunk(before: Division, after: Division, options: SplitOptions) -> bool:
    """Whether moving took so much from a part that dealing anew is better."""
    bins = 1 + max(len(PARTS), options.folds)
    sizes = [np.bincount(_bins(d, options) + 1, minlength=bins)[1:] for d in (before, after)]
    return bool((sizes[1] < _SHRUNK * sizes[0]).any())


def _join_pairs(groups: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Join the groups of each pair of rows."""
    pair = int(groups.max(initial=-1)) + 1 + np.arange(len(one))
    rows = np.concatenate((np.arange(len(groups)), one, two))
    return merge_groups(np.concatenate((groups, pair, pair)), rows)[: len(groups)]


def deal(
    data: Sequence[LabelledSequence],
    groups: np.ndarray,
    options: SplitOptions,
    before: Division | None = None,
) -> Division:
    """Give each example its part or fold, without a proof.

    With an earlier division of smaller groups, each goes where most of its examples were.
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


def _kept_parts(data: Sequence[LabelledSequence], options: SplitOptions) -> np.ndarray:
    """Number of the part of each example that is to be kept, else -1."""
    kept = [PARTS.index(e.split) if e.split in options.keep else -1 for e in data]
    for name in options.keep:
        if PARTS.index(name) not in kept:
            raise InputError(f"no example is of split '{name}', which is to be kept")
    return np.array(kept, dtype=np.int64)


def _bound_parts(groups: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Part of the kept examples in each example's group: test before validation before train, -1 for none."""
    strongest = np.full(int(groups.max(initial=-1)) + 1, -1, dtype=np.int64)
    np.maximum.at(strongest, groups, fixed)
    return strongest[groups]


def _bins(division: Division, options: SplitOptions) -> np.ndarray:
    """Number of the part or fold of each example, -1 for none."""
    if options.folds:
        return np.array([(fold or 0) - 1 for fold in division.fold])
    return np.array([-1 if name is None else PARTS.index(name) for name in division.split])


def _majority(groups: np.ndarray, bins: np.ndarray, count: int) -> np.ndarray:
    """Bin that holds most of each example's group, the first of equals."""
    votes = np.zeros((int(groups.max(initial=-1)) + 1, count), dtype=np.int64)
    voting = bins >= 0
    np.add.at(votes, (groups[voting], bins[voting]), 1)
    return votes.argmax(axis=1)[groups]


def prove(
    data: Sequence[LabelledSequence],
    division: Division,
    alphabet: Alphabet,
    options: SplitOptions,
    relation: RelationOptions,
    before: Sequence[Boundary] = (),
) -> tuple[Boundary, ...]:
    """Measure each boundary: test against the rest, validation against train, or a fold against others.

    Of boundaries that were measured ``before`` only what changed is measured anew.
    """
    sequences = [example.sequence for example in data]
    known = {boundary.name: boundary for boundary in before}
    both = relation.both_strands
    found = []
    for name, against, rows, others in _sides(division, options):
        if name in known:
            old = known[name]
            found.append(remeasure(old, sequences, rows, others, alphabet, both_strands=both))
        elif len(rows) and len(others):
            sides = (sequences, rows, others, alphabet)
            found.append(measure_boundary(name, against, *sides, word=relation.word, both_strands=both))
    return tuple(found)


def _sides(division: Division, options: SplitOptions) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    split = np.array([name or "" for name in division.split])
    sides = []
    if options.folds:
        fold = np.array([number or 0 for number in division.fold])
        for number in range(1, options.folds + 1):
            rows = np.flatnonzero(fold == number)
            sides.append(
                (f"fold {number}", "other folds", rows, np.flatnonzero((fold > 0) & (fold != number)))
            )
        others = np.flatnonzero((fold > 0) | np.isin(split, ("train", "validation")))
        return [*sides, ("test", "folds", np.flatnonzero(split == "test"), others)]
    train, validation, test = (np.flatnonzero(split == name) for name in PARTS)
    both = np.sort(np.concatenate((train, validation)))
    rest = "train and validation" if len(validation) else "train"
    return [("test", rest, test, both), ("validation", "train", validation, train)]
