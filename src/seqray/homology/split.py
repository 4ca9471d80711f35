"""Splits and folds that keep relatives together, with a proof by alignment."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Floats, Ints, number_by_appearance
from seqray.core.errors import InputError, OnProgress
from seqray.core.host import own_warnings
from seqray.core.records import LabeledSequence
from seqray.core.text import Brief, counted
from seqray.homology.kmers import kmer_table, merge_groups
from seqray.homology.options import INSEPARABLE, PARTS, RelationOptions, SplitOptions
from seqray.homology.similarity import Related, best_matches

if TYPE_CHECKING:
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold


# ------------------------------------------------------------------ dealing whole groups into folds and parts

Values = Sequence[Hashable] | np.ndarray


def random_folds(labels: Values, n_folds: int = 5, seed: int = 0) -> Ints:
    """Assign examples to folds at random, each class evenly: int64 (N,); relatives may be on both sides."""
    from sklearn.model_selection import StratifiedKFold  # here, because parts of other sizes need none of it

    y = number_by_appearance(labels)
    _require_folds(n_folds, int(np.bincount(y).min()), "examples in the smallest class")
    return _fold_numbers(StratifiedKFold(n_splits=n_folds, shuffle=True, random_state=seed), y)


def grouped_folds(labels: Values, groups: Values, n_folds: int = 5, seed: int = 0) -> Ints:
    """Assign whole groups to folds from 0, keeping the classes as even as the groups allow: int64 (N,)."""
    from sklearn.model_selection import StratifiedGroupKFold

    y, g = number_by_appearance(labels), number_by_appearance(groups)
    _require_folds(n_folds, int(g.max()) + 1, "groups")
    _require_folds(n_folds, int(np.bincount(y).max()), "examples in the largest class")
    # A class with fewer members than folds is missing in some of them; that is up to the caller.
    with own_warnings(UserWarning, message="The least populated class"):
        return _fold_numbers(StratifiedGroupKFold(n_splits=n_folds, shuffle=True, random_state=seed), y, g)


def _fold_numbers(
    splitter: StratifiedKFold | StratifiedGroupKFold, labels: Ints, groups: Ints | None = None
) -> Ints:
    folds = np.empty(len(labels), dtype=np.int64)
    for fold, (_, held_out) in enumerate(splitter.split(np.zeros(len(labels)), labels, groups)):
        folds[held_out] = fold
    return folds


def _require_folds(n_folds: int, available: int, what: str) -> None:
    if n_folds < 2 or n_folds > available:
        raise InputError(f"{n_folds} folds from {available} {what}", remedy=f"ask for 2 to {available}")


def deal_groups(labels: Values, groups: Values, shares: Sequence[float], seed: int = 0) -> Ints:
    """Deal whole groups, the larger first, into parts of some shares, one a class to each: int64 (N,)."""
    y, g, wanted = number_by_appearance(labels), number_by_appearance(groups), np.asarray(shares, float)
    if wanted.ndim != 1 or not np.isfinite(wanted).all() or (wanted < 0).any() or wanted.sum() <= 0:
        raise InputError(f"shares of {shares}", remedy="give numbers of 0 or more, not all 0")
    totals = np.bincount(y)
    lacking = np.outer(wanted / wanted.sum(), totals)  # (P, K) examples that are still missing
    rng = np.random.default_rng(seed)
    part = _deal_large(y, g, lacking, wanted > 0, rng)
    for k in range(len(totals)):
        rows = rng.permutation(np.flatnonzero((part < 0) & (y == k)))
        part[rows] = np.repeat(np.arange(len(wanted)), _apportion(lacking[:, k], len(rows)))
    parts, sizes = np.flatnonzero(wanted > 0), np.bincount(g)
    if 0 < len(sizes) < len(parts):
        raise InputError(
            f"{counted(len(sizes), 'group')} can't fill {len(parts)} parts",
            remedy="ask for fewer parts, or for smaller groups" if len(sizes) > 1 else INSEPARABLE,
        )
    part_of_group = np.empty(len(sizes), dtype=np.int64)
    part_of_group[g] = part
    has = np.zeros((len(sizes), len(totals) + 1), dtype=bool)
    has[g, y] = has[:, -1] = True  # each group counts in its classes, and in the last column, which is all
    # The larger part first, of equal ones the last: a class of two groups is in train and in test.
    for k, p in product(range(has.shape[1] if len(y) else 0), sorted(parts, key=lambda p: (-wanted[p], -p))):
        counts = np.bincount(part_of_group[has[:, k]], minlength=len(wanted))
        there = part_of_group == counts.argmax()
        alone = has[:, :-1] & (has[there, :-1].sum(axis=0) == 1)  # it may not leave a part without its class
        free = np.flatnonzero(there & has[:, k] & ~(alone.any(axis=1) & (k < len(totals))))
        if not counts[p] and len(free):
            part_of_group[free[sizes[free].argmin()]] = p
    return part_of_group[g]


def _deal_large(
    y: np.ndarray, g: np.ndarray, lacking: np.ndarray, open_parts: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Deal the groups of two and more, and reduce what the parts lack; -1 for single examples."""
    sizes = np.bincount(g)
    part_of_group = np.full(len(sizes), -1, dtype=np.int64)
    weight = 1 / np.maximum(lacking.sum(axis=0), 1)  # a rare class counts as much as a common one
    closed = np.where(open_parts, 0.0, -np.inf)
    rows_of = np.split(np.argsort(g, kind="stable"), np.cumsum(sizes)[:-1])
    shuffled = rng.permutation(len(sizes))
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        if sizes[group] < 2:
            break
        counts = np.bincount(y[rows_of[group]], minlength=lacking.shape[1])
        # What the part lacks of its classes decides, and then what it lacks in total.
        of_all = lacking.sum(axis=1) * len(counts) / len(y)
        best = int(np.argmax(lacking @ (counts * weight) + of_all + closed))
        lacking[best] -= counts
        part_of_group[group] = best
    return part_of_group[g]


def _apportion(lacking: np.ndarray, count: int) -> np.ndarray:
    """Divide ``count`` examples in proportion to what the parts lack, in whole numbers: int64 (P,)."""
    need = np.maximum(lacking, 0)
    exact = need * (count / need.sum()) if need.sum() > 0 else np.eye(len(lacking))[lacking.argmax()] * count
    whole = np.floor(exact + 1e-9).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: count - whole.sum()]] += 1
    return whole


# --------------------- the proof: how similar held-out sequences are to those on the other side of a boundary

QUANTILES = (0.5, 0.9, 0.99)
_TOLERANCE = 1e-9  # an identity is a fraction of whole letters; rounding must not move it across a threshold


@dataclass(frozen=True, repr=False)
class Sides(Brief):
    """The two sides of a boundary, as rows: (M,) of the one held out (``test``, ``fold 3``), and (N,)."""

    name: str
    against: str
    rows: Ints
    others: Ints


@dataclass(frozen=True, repr=False)
class Boundary(Sides):
    """Held-out rows (M,) with the best identity, the nearest other row (or -1), and if a word is shared."""

    identity: Floats
    nearest: Ints
    word: int
    shared: Bools


@dataclass(frozen=True)
class ProofLine:
    """Summary of one boundary and class (``all`` for the classes together)."""

    boundary: str
    against: str
    label: str
    sequences: int
    shared: int | None
    above: int
    quantiles: tuple[float, ...]
    highest: float
    row: int
    nearest: int


def measure_boundary(
    sides: Sides,
    sequences: Sequence[str],
    alphabet: Alphabet,
    relation: RelationOptions,
    *,
    candidates: int = 5,
    on_progress: OnProgress | None = None,
) -> Boundary:
    """Align each held-out sequence with its best match on the other side; see `best_matches`."""
    rows, others = sides.rows, sides.others
    both_strands, word = relation.both_strands, relation.word
    held, rest = [sequences[int(i)] for i in rows], [sequences[int(i)] for i in others]
    identity, index = best_matches(
        rest, held, alphabet, both_strands=both_strands, candidates=candidates, on_progress=on_progress
    )
    nearest = np.where(index >= 0, others[index], -1) if len(others) else index
    shared = np.zeros(len(rows), dtype=bool)
    if word and len(rows) and len(others):
        table, n = kmer_table([*held, *rest], word, alphabet, both_strands=both_strands), len(held)
        shared = table.sharing_across(np.arange(n), np.arange(n, n + len(rest)))
    return Boundary(sides.name, sides.against, rows, others, identity, nearest, word, shared)


def remeasure(
    old: Boundary, sides: Sides, sequences: Sequence[str], alphabet: Alphabet, relation: RelationOptions
) -> Boundary:
    """Measure a boundary again after a few sequences changed sides; only what changed is aligned."""
    rows, others = sides.rows, sides.others
    place = np.full(len(sequences), -1)
    place[old.rows] = np.arange(len(old.rows))
    stayed = place[rows] >= 0
    taken = place[rows[stayed]]  # their nearest sequence must still be on the other side
    stayed[stayed] = np.isin(old.nearest[taken], others) & ~old.shared[taken]
    identity, nearest = np.zeros(len(rows)), np.full(len(rows), -1, dtype=np.int64)
    shared = np.zeros(len(rows), dtype=bool)
    taken = place[rows[stayed]]
    identity[stayed], nearest[stayed] = old.identity[taken], old.nearest[taken]
    # Against the few that came over, two candidates are enough to find a relative.
    for asked, side, candidates in ((~stayed, others, 5), (stayed, np.setdiff1d(others, old.others), 2)):
        part = Sides(old.name, old.against, rows[asked], side)
        part = measure_boundary(part, sequences, alphabet, relation, candidates=candidates)
        better = part.identity > identity[asked]
        identity[asked] = np.where(better, part.identity, identity[asked])
        nearest[asked] = np.where(better, part.nearest, nearest[asked])
        shared[asked] |= part.shared
    return Boundary(old.name, old.against, rows, others, identity, nearest, old.word, shared)


def proof_lines(boundary: Boundary, labels: Sequence[str], threshold: float) -> Iterator[ProofLine]:
    """Summarize a boundary by a threshold: all classes together, then each of its classes, by name."""
    own = np.array([labels[int(i)] for i in boundary.rows])
    for number, label in enumerate(("all", *map(str, np.unique(own)))):
        chosen = own == label if number else np.ones(len(own), dtype=bool)
        identity, rows = boundary.identity[chosen], boundary.rows[chosen]
        top = int(np.argmax(identity)) if len(identity) else -1
        quantiles = np.quantile(identity, QUANTILES) if len(identity) else np.full(len(QUANTILES), np.nan)
        yield ProofLine(
            boundary.name,
            boundary.against,
            label,
            len(rows),
            int(boundary.shared[chosen].sum()) if boundary.word else None,
            int((identity >= threshold - _TOLERANCE).sum()),
            tuple(quantiles.tolist()),
            float(identity[top]) if top >= 0 else float("nan"),
            int(rows[top]) if top >= 0 else -1,
            int(boundary.nearest[chosen][top]) if top >= 0 else -1,
        )


def leaking_pairs(boundary: Boundary, threshold: float) -> tuple[Ints, Ints]:
    """Pairs of rows across the boundary at or above the threshold: held-out one, nearest one."""
    over = (boundary.identity >= threshold - _TOLERANCE) & (boundary.nearest >= 0)
    return boundary.rows[over], boundary.nearest[over]


# --------------------------------------------- dividing examples, measuring the boundaries, repairing leaks

_MAX_REPAIR_ROUNDS = 5  # one is nearly always enough
_MIN_KEPT_SHARE = 0.95  # of a part: below, it is better to deal anew


@dataclass(frozen=True, repr=False)
class Division(Brief):
    """The part or fold of each of N examples."""

    split: list[str | None]  # ``train``, ``validation``, ``test`` or None
    fold: list[int | None]  # 1 to K
    dropped: Bools  # left out because a relative is kept elsewhere
    groups: Ints  # that were kept whole
    boundaries: tuple[Boundary, ...] = ()  # the proof
    mended: int = 0  # pairs that only the proof found, which were moved to one side


def split_data(
    data: Sequence[LabeledSequence],
    related: Related,
    alphabet: Alphabet,
    options: SplitOptions,
    relation: RelationOptions,
    on_progress: OnProgress | None = None,
) -> Division:
    """Divide examples, measure the boundaries, and move relatives found across one, until none is found."""
    division = assign_parts(data, related.groups, options)
    boundaries = measure_boundaries(data, division, alphabet, options, relation, on_progress=on_progress)
    division = replace(division, boundaries=boundaries)
    fixed = np.array([example.split in options.keep for example in data], dtype=bool)
    for _ in range(_MAX_REPAIR_ROUNDS if relation.identity else 0):
        leaks = [leaking_pairs(boundary, relation.identity) for boundary in division.boundaries]
        one, two = np.concatenate([np.empty((2, 0), dtype=np.int64), *leaks], axis=1)
        movable = ~(fixed[one] & fixed[two])
        if not movable.any():
            break
        one, two, mended = one[movable], two[movable], division.mended + int(movable.sum())
        pairs = int(division.groups.max(initial=-1)) + 1 + np.arange(len(one))  # a group of its own for each
        rows = np.concatenate((np.arange(len(data)), one, two))
        groups = merge_groups(np.concatenate((division.groups, pairs, pairs)), rows)[: len(data)]
        moved, before = assign_parts(data, groups, options, division), division.boundaries
        bins = 1 + max(len(PARTS), options.folds)
        sizes = [np.bincount(_bins(d, options) + 1, minlength=bins) for d in (division, moved)]
        if (sizes[1][1:] < _MIN_KEPT_SHARE * sizes[0][1:]).any():  # dealing anew is better
            moved, before = assign_parts(data, groups, options), ()
        boundaries = measure_boundaries(data, moved, alphabet, options, relation, before)
        division = replace(moved, boundaries=boundaries, mended=mended)
    return division


def assign_parts(
    data: Sequence[LabeledSequence], groups: Ints, options: SplitOptions, before: Division | None = None
) -> Division:
    """Assign each example a part or fold by ``groups`` (N,); after another division, where most were."""
    for name in options.keep:
        if all(example.split != name for example in data):
            raise InputError(f"no example has the split '{name}' that is to be kept")
    fixed = np.array([PARTS.index(e.split) if e.split in options.keep else -1 for e in data], dtype=np.int64)
    strongest = np.full(int(groups.max(initial=-1)) + 1, -1, dtype=np.int64)  # test before validation, train
    np.maximum.at(strongest, groups, fixed)
    bound = strongest[groups]  # the part of the kept examples in each group, by example
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
        bins = _bins(before, options)[free]
        votes = np.zeros((len(strongest), len(shares)), dtype=np.int64)
        np.add.at(votes, (groups[free][bins >= 0], bins[bins >= 0]), 1)
        dealt = votes.argmax(axis=1)[groups[free]]  # the first of equals
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


def _bins(division: Division, options: SplitOptions) -> np.ndarray:
    """Number of the part or fold of each example, -1 for none."""
    if options.folds:
        return np.array([(fold or 0) - 1 for fold in division.fold])
    return np.array([-1 if name is None else PARTS.index(name) for name in division.split])


def measure_boundaries(
    data: Sequence[LabeledSequence],
    division: Division,
    alphabet: Alphabet,
    options: SplitOptions,
    relation: RelationOptions,
    before: Sequence[Boundary] = (),
    on_progress: OnProgress | None = None,
) -> tuple[Boundary, ...]:
    """Measure each boundary, of test, validation or a fold; of those ``before`` only what changed."""
    sequences = [example.sequence for example in data]
    measured = {boundary.name: boundary for boundary in before}
    boundaries = []
    for sides in _sides(division, options):
        if sides.name in measured:
            boundaries.append(remeasure(measured[sides.name], sides, sequences, alphabet, relation))
        elif len(sides.rows) and len(sides.others):
            boundaries.append(measure_boundary(sides, sequences, alphabet, relation, on_progress=on_progress))
    return tuple(boundaries)


def _sides(division: Division, options: SplitOptions) -> list[Sides]:
    split = np.array([name or "" for name in division.split])
    if options.folds:
        fold, sides = np.array([number or 0 for number in division.fold]), []
        for number in range(1, options.folds + 1):
            rows, others = np.flatnonzero(fold == number), np.flatnonzero((fold > 0) & (fold != number))
            sides.append(Sides(f"fold {number}", "other folds", rows, others))
        others = np.flatnonzero((fold > 0) | np.isin(split, ("train", "validation")))
        return [*sides, Sides("test", "folds", np.flatnonzero(split == "test"), others)]
    train, validation, test = (np.flatnonzero(split == name) for name in PARTS)
    both = np.sort(np.concatenate((train, validation)))
    rest = "train and validation" if len(validation) else "train"
    return [Sides("test", rest, test, both), Sides("validation", "train", validation, train)]
