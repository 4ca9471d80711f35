"""Splits that don't leak: groups of related sequences, folds that keep groups whole, and a leakage check.

Two sequences are related here when they share a word of ``k`` letters on either strand. That is exact,
needs no aligner, and catches duplicates, overlapping windows and close paralogues; distant homologues
(no identical stretch of ``k`` letters) are not caught.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from seqray.core import (
    DNA,
    Alphabet,
    CodeStack,
    InputError,
    reverse_complement,
    reverse_complement_codes,
    stack_sequences,
    word_starts,
)

_BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)
_LETTER_SEED = 20_240_229


def _powers(base: int, n: int) -> np.ndarray:
    """Return base**0 ... base**(n-1) modulo 2^64, by doubling: uint64 (n,)."""
    powers = np.ones(max(n, 1), dtype=np.uint64)
    filled = 1
    while filled < n:
        step = np.uint64(pow(base, filled, 2**64))
        take = min(filled, n - filled)
        powers[filled : filled + take] = powers[:take] * step
        filled += take
    return powers[:n]


def _window_hashes(codes: np.ndarray, k: int) -> np.ndarray:
    """Polynomial hash of every window of ``k`` codes, modulo 2^64: uint64 (T - k + 1,).

    The prefix sums of value x base^i give a window's hash as a difference, shifted back to power 0.
    """
    n = len(codes)
    if n < k:
        return np.empty(0, dtype=np.uint64)
    values = np.random.default_rng(_LETTER_SEED).integers(0, 2**64, size=256, dtype=np.uint64)
    prefix = np.zeros(n + 1, dtype=np.uint64)
    np.cumsum(values[codes] * _powers(_BASE, n), out=prefix[1:])
    return (prefix[k:] - prefix[:-k]) * _powers(_INVERSE, n - k + 1)


def _mix(hashes: np.ndarray) -> np.ndarray:
    """Scatter hashes (the finaliser of splitmix64), so that the smaller of two is still evenly spread."""
    z = hashes ^ (hashes >> np.uint64(30))
    z = z * np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _canonical_hashes(stack: CodeStack, k: int, both_strands: bool) -> np.ndarray:
    """Hash every window of the stack; with both strands a word and its reverse complement hash alike."""
    forward = _mix(_window_hashes(stack.codes, k))
    if not both_strands:
        return forward
    backward = _mix(_window_hashes(reverse_complement_codes(stack.codes), k))
    return np.minimum(forward, backward[::-1])


def _keys(
    sequences: Sequence[str], k: int, both_strands: bool, alphabet: Alphabet
) -> tuple[np.ndarray, np.ndarray]:
    """Return (key, owner) of every word, and of each sequence shorter than ``k`` as a whole."""
    if k < 1:
        raise InputError(f"words of {k} letters", remedy="give k of 1 or more")
    both_strands = both_strands and alphabet.name != "protein"
    stack = stack_sequences(sequences, alphabet)
    start, owner, _ = word_starts(stack, k, len(alphabet.letters))
    key = _canonical_hashes(stack, k, both_strands)[start]
    short = np.flatnonzero(stack.lengths < k)
    whole = [_whole_key(sequences[int(i)], both_strands, alphabet) for i in short]
    return np.concatenate((key, np.array(whole, dtype=np.uint64))), np.concatenate((owner, short))


def _whole_key(sequence: str, both_strands: bool, alphabet: Alphabet) -> int:
    if both_strands:
        sequence = min(sequence, reverse_complement(sequence, alphabet))
    codes = np.frombuffer(f"short:{sequence}".encode("ascii"), dtype=np.uint8)
    return int(_mix(_window_hashes(codes, len(codes)))[0])


def kmer_groups(
    sequences: Sequence[str], k: int = 40, reverse_complement: bool = True, alphabet: Alphabet = DNA
) -> np.ndarray:
    """Group sequences that share a word of ``k`` letters, directly or through others.

    Parameters
    ----------
    sequences
        Validated letters, N of them. One shorter than ``k`` is grouped with its exact copies only.
    k
        Length of the word. Words that hold an ambiguous letter don't count.
    reverse_complement
        Whether a word and its reverse complement are the same; of no effect for protein.
    alphabet
        Of the sequences.

    Returns
    -------
    int64 (N,)
        Group numbers, from 0 in order of first appearance. Words are compared by a 64-bit hash: among ten
        million different ones the chance of any false match is below 1 in 100,000.
    """
    key, owner = _keys(sequences, k, reverse_complement, alphabet)
    order = np.argsort(key, kind="stable")
    key, owner = key[order], owner[order]
    same = np.flatnonzero(key[1:] == key[:-1])
    n = len(sequences)
    edges = coo_array((np.ones(len(same), dtype=np.int8), (owner[same], owner[same + 1])), shape=(n, n))
    _, labels = connected_components(edges, directed=False)
    return number_by_appearance(labels)


def number_by_appearance(labels: np.ndarray) -> np.ndarray:
    """Number groups from 0 in order of first appearance: int64 (N,)."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def position_groups(
    contigs: Sequence[str], positions: Sequence[int] | np.ndarray, block: int, min_gap: int = 0
) -> np.ndarray:
    """Group sites by blocks of the genome.

    Parameters
    ----------
    contigs, positions
        (N,) where each site lies; 0-based.
    block
        Length of a block in letters.
    min_gap
        Neighbours nearer than this stay together even where a block border falls between them, so that
        windows which overlap are never split: give the window's length.

    Returns
    -------
    int64 (N,)
        Group numbers in order of contig and position.
    """
    if block < 1:
        raise InputError(f"a block of {block} letters", remedy="give 1 or more")
    _, contig = np.unique(np.asarray(contigs), return_inverse=True)
    position = np.asarray(positions, dtype=np.int64)
    if contig.shape != position.shape:
        raise InputError(f"{len(contig)} contigs but {len(position)} positions")
    order = np.lexsort((position, contig))
    c, p = contig[order], position[order]
    crosses = (p[1:] // block != p[:-1] // block) & (p[1:] - p[:-1] >= min_gap)
    fresh = np.concatenate(([0], np.cumsum((c[1:] != c[:-1]) | crosses)))[: len(p)]
    groups = np.empty(len(p), dtype=np.int64)
    groups[order] = fresh
    return groups


def leakage(
    train: Sequence[str],
    test: Sequence[str],
    k: int = 40,
    reverse_complement: bool = True,
    alphabet: Alphabet = DNA,
) -> float:
    """Share of the test sequences that hold a word of ``k`` letters found in a training sequence."""
    if not test:
        raise InputError("no test sequence to check")
    return float(shares_word(train, test, k, reverse_complement, alphabet).mean())


def shares_word(
    train: Sequence[str],
    test: Sequence[str],
    k: int = 40,
    reverse_complement: bool = True,
    alphabet: Alphabet = DNA,
) -> np.ndarray:
    """Tell which of M test sequences hold a word of ``k`` letters found in a training sequence: bool (M,)."""
    found = np.zeros(len(test), dtype=bool)
    seen = np.sort(_keys(train, k, reverse_complement, alphabet)[0])
    key, owner = _keys(test, k, reverse_complement, alphabet)
    if len(seen):
        place = np.minimum(np.searchsorted(seen, key), len(seen) - 1)
        found[owner[seen[place] == key]] = True
    return found


def random_folds(labels: Sequence[Hashable] | np.ndarray, n_folds: int = 5, seed: int = 0) -> np.ndarray:
    """Deal examples into folds at random, each class evenly: int64 (N,) of fold numbers.

    Relatives may fall on both sides; the figures of such folds are for comparison with papers that used them.
    """
    y = _as_classes(labels)
    _require_folds(n_folds, int(np.bincount(y).min()), "examples in the smallest class")
    splitter = StratifiedKFold(n_splits=n_folds, shuffle=True, random_state=seed)
    folds = np.empty(len(y), dtype=np.int64)
    for fold, (_, held_out) in enumerate(splitter.split(np.zeros(len(y)), y)):
        folds[held_out] = fold
    return folds


def grouped_folds(
    labels: Sequence[Hashable] | np.ndarray,
    groups: Sequence[Hashable] | np.ndarray,
    n_folds: int = 5,
    seed: int = 0,
) -> np.ndarray:
    """Deal whole groups into folds, keeping the classes as even as the groups allow: int64 (N,)."""
    y, g = _as_classes(labels), _as_classes(groups)
    if len(y) != len(g):
        raise InputError(f"{len(y)} labels but {len(g)} groups")
    _require_folds(n_folds, int(g.max()) + 1, "groups")
    _require_folds(n_folds, int(np.bincount(y).max()), "examples in the largest class")
    splitter = StratifiedGroupKFold(n_splits=n_folds, shuffle=True, random_state=seed)
    folds = np.empty(len(y), dtype=np.int64)
    with warnings.catch_warnings():
        # A class of fewer members than folds is missing in some of them, which is for the caller to judge.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for fold, (_, held_out) in enumerate(splitter.split(np.zeros(len(y)), y, g)):
            folds[held_out] = fold
    return folds


def holdout(
    labels: Sequence[Hashable] | np.ndarray,
    groups: Sequence[Hashable] | np.ndarray,
    share: float,
    seed: int = 0,
) -> np.ndarray:
    """Hold out about ``share`` of the examples in whole groups: bool (N,), True where held out."""
    if not 0 < share < 1:
        raise InputError(f"a held-out share of {share}", remedy="give one between 0 and 1")
    if share > 0.5:
        return ~holdout(labels, groups, 1 - share, seed)
    return grouped_folds(labels, groups, max(2, round(1 / share)), seed) == 0


def deal_groups(
    labels: Sequence[Hashable] | np.ndarray,
    groups: Sequence[Hashable] | np.ndarray,
    shares: Sequence[float],
    seed: int = 0,
) -> np.ndarray:
    """Deal whole groups into parts of given shares, each class as evenly as the groups allow.

    Larger groups are dealt first, each to the part that lacks most of its classes; examples that are alone
    in their group are dealt last and make up what is uneven. In contrast to `grouped_folds` (scikit-learn's
    StratifiedGroupKFold) the parts may differ in size, and a hundred thousand groups take seconds.

    Parameters
    ----------
    labels, groups
        (N,) class and group of each example.
    shares
        Of each of P parts; they are scaled to sum to 1. A share of 0 gives an empty part.
    seed
        Decides among groups of one size, and which single examples go where.

    Returns
    -------
    int64 (N,)
        Number of the part, from 0.

    Raises
    ------
    InputError
        For shares that are none, or fewer groups than parts.
    """
    y, g, wanted = _as_classes(labels), _as_classes(groups), np.asarray(shares, dtype=np.float64)
    if len(y) != len(g):
        raise InputError(f"{len(y)} labels but {len(g)} groups")
    if wanted.ndim != 1 or not np.isfinite(wanted).all() or (wanted < 0).any() or wanted.sum() <= 0:
        raise InputError(f"shares of {shares}", remedy="give numbers of 0 or more, not all 0")
    totals = np.bincount(y)
    lacking = np.outer(wanted / wanted.sum(), totals)  # (P, K) examples that are still to come
    rng = np.random.default_rng(seed)
    part = _deal_large(y, g, lacking, wanted > 0, rng)
    for k in range(len(totals)):
        rows = rng.permutation(np.flatnonzero((part < 0) & (y == k)))
        part[rows] = np.repeat(np.arange(len(wanted)), _apportion(lacking[:, k], len(rows)))
    parts, groups_there = np.flatnonzero(wanted > 0), int(g.max(initial=-1)) + 1
    if 0 < groups_there < len(parts):
        raise InputError(
            f"{groups_there} groups don't fill {len(parts)} parts",
            remedy="ask for fewer parts, or for smaller groups",
        )
    return _fill_empty(part, g, parts) if len(y) else part


def _fill_empty(part: np.ndarray, g: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Give a part that got nothing the smallest group of the part that has most groups."""
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
    """Deal the groups of two and more, and take them off what the parts lack; -1 for single examples."""
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
        # What its classes lack decides, and then what is lacking in all.
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


def _as_classes(values: Sequence[Hashable] | np.ndarray) -> np.ndarray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(v, len(numbers)) for v in values], dtype=np.int64)


def _require_folds(n_folds: int, available: int, what: str) -> None:
    if n_folds < 2 or n_folds > available:
        raise InputError(f"{n_folds} folds from {available} {what}", remedy=f"ask for 2 to {available}")
