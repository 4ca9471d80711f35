"""Splits that don't leak: groups of related sequences, folds that keep groups whole, and a leakage check.

Two sequences are related here when they share a word of ``k`` letters on either strand. That is exact,
needs no aligner, and catches duplicates, overlapping windows and close paralogues; distant homologues
(no identical stretch of ``k`` letters) are not caught.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from seqray.alphabet import DNA, Alphabet, reverse_complement, reverse_complement_codes
from seqray.errors import InputError
from seqray.words import CodeStack, stack_sequences, word_starts

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
    return _number_by_appearance(labels)


def _number_by_appearance(labels: np.ndarray) -> np.ndarray:
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
    seen, _ = _keys(train, k, reverse_complement, alphabet)
    key, owner = _keys(test, k, reverse_complement, alphabet)
    return len(np.unique(owner[np.isin(key, seen)])) / len(test)


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
    splitter = StratifiedGroupKFold(n_splits=n_folds, shuffle=True, random_state=seed)
    folds = np.empty(len(y), dtype=np.int64)
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


def _as_classes(values: Sequence[Hashable] | np.ndarray) -> np.ndarray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(v, len(numbers)) for v in values], dtype=np.int64)


def _require_folds(n_folds: int, available: int, what: str) -> None:
    if n_folds < 2 or n_folds > available:
        raise InputError(f"{n_folds} folds from {available} {what}", remedy=f"ask for 2 to {available}")
