"""Spaced seeds: which to use, how many a related pair shares, and the sensitivity of the search.

A spaced seed is the letters at some offsets of a window. Two sequences of identity p share it at a position
with probability p**weight, like a contiguous k-mer of as many letters, but hits at neighboring positions are
less correlated, so a related pair is less often missed (Ma, Tromp & Li 2002).

References
----------
Ma B, Tromp J, Li M. PatternHunter: faster and more sensitive homology search. Bioinformatics 2002.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet

# By weight, from a random search for two patterns that together are hit twice in most pairs of 60 letters.
_PATTERNS = {
    2: ("1001", "101"),
    3: ("10101", "1011"),
    4: ("110101", "11011"),
    5: ("101000111", "11100101"),
    6: ("10110111", "111010011"),
    7: ("11010100111", "11001111001"),
    8: ("11011000101101", "1011001110011"),
    9: ("1111010010111", "110100011110011"),
    10: ("111100100101111", "101001101110111"),
    11: ("11011100001011111", "10110111011010011"),
    12: ("111101001101011101", "11110110010110111"),
}
_LIGHTEST = {4: 5, 20: 2}  # letters of the alphabet -> weight: below it, unrelated sequences share most seeds

SENSITIVITY = 0.98  # share of pairs at the threshold that a plan has to find, if the budget allows
MAX_SEED_PAIRS = 1e8
MAX_OWNERS = 200  # sequences that a seed is looked up in; beyond, see `seqray.homology.candidates`
_MAX_CHANCE_OWNERS = MAX_OWNERS / 8  # expected owners of a seed by chance alone
_SHORT = {4: 6, 20: 3}  # letters of the alphabet -> letters of a short k-mer
_MAX_SEEDS = 4**12  # different seeds of one pattern: columns of a matrix
_MIN_SEEDS = 4**7
_MAX_SEEDS_PER_LETTER = 64
_SIMULATED_PAIRS = 2000
_SIMULATED_LETTERS = 300  # longer pairs share seeds even more surely


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """How pairs are found.

    Attributes
    ----------
    patterns
        Offsets of the letters of each pattern, from 0.
    share
        A pair is a candidate if it shares this fraction of the seeds of the sequence that has fewer.
    short, short_share
        Letters of the k-mers of a second filter, and the fraction of them that a pair must have in common;
        0 for no second filter.
    sensitivity
        Share of pairs at the threshold (of the median length, substitutions evenly spread) that pass.
    """

    patterns: tuple[tuple[int, ...], ...]
    share: float
    short: int
    short_share: float
    sensitivity: float

    @property
    def weight(self) -> int:
        """Letters of a seed."""
        return len(self.patterns[0])


def offsets(pattern: str) -> tuple[int, ...]:
    """Offsets of the ones in a pattern such as ``1101``."""
    return tuple(i for i, letter in enumerate(pattern) if letter == "1")


def make_plan(
    lengths: np.ndarray,
    others: np.ndarray,
    identity: float,
    alphabet: Alphabet,
    *,
    budget: float = MAX_SEED_PAIRS,
) -> SeedPlan:
    """Choose the longest seeds that find related pairs, or the shortest that the budget allows.

    Parameters
    ----------
    lengths, others : int64 (N,), (M,)
        Letters of the sequences on either side of the comparison.
    identity
        Pairs of this identity must be found.
    budget
        Pairs of equal seeds that may be examined, for each pattern and strand.
    """
    letters = len(alphabet.letters)
    affordable = [
        w for w in _PATTERNS if w >= _LIGHTEST[letters] and _fits(w, lengths, others, letters, budget)
    ]
    length = int(np.median(np.concatenate((lengths, others)))) if len(lengths) + len(others) else 0
    plans = []
    for weight in reversed(affordable or [max(w for w in _PATTERNS if letters**w <= _MAX_SEEDS)]):
        plans.append(_plan(weight, length, identity, letters))
        if plans[-1].sensitivity >= SENSITIVITY:  # long seeds are the cheapest
            return plans[-1]
    return max(plans, key=lambda plan: plan.sensitivity)


def _fits(weight: int, lengths: np.ndarray, others: np.ndarray, letters: int, budget: float) -> bool:
    seeds = letters**weight
    owners = float(others.sum()) / seeds
    pairs = float(lengths.sum()) * owners
    most = min(
        max(_MAX_SEEDS_PER_LETTER * float(others.sum()), _MIN_SEEDS), _MAX_SEEDS
    )  # a larger table gains nothing
    return seeds <= most and owners <= _MAX_CHANCE_OWNERS and pairs <= budget


def _plan(weight: int, length: int, identity: float, letters: int) -> SeedPlan:
    patterns = tuple(offsets(pattern) for pattern in _PATTERNS[weight])
    size = min(length, _SIMULATED_LETTERS)
    shared, seeds = simulate(patterns, size, identity)
    if seeds == 0:
        return SeedPlan(patterns, 0.0, 0, 0.0, 0.0)
    # At least two seeds, because one is shared by chance in a large set, unless that loses too much.
    least = max(_lower_quantile(shared), 2 if seeds > 2 else 1)
    short = _SHORT[letters] if letters ** _SHORT[letters] >= 8 * length else 0
    found, short_share = shared >= least, 0.0
    if short:
        alike, kmers = simulate((tuple(range(short)),), size, identity)  # of the same pairs
        short_share = _lower_quantile(alike) / max(kmers, 1)
        found &= alike >= _lower_quantile(alike)
    return SeedPlan(patterns, least / seeds, short, short_share, float(found.mean()))


def _lower_quantile(counts: np.ndarray) -> int:
    return int(np.quantile(counts, (1 - SENSITIVITY) / 2, method="lower"))


def simulate(patterns: tuple[tuple[int, ...], ...], length: int, identity: float) -> tuple[np.ndarray, int]:
    """Count the seeds that random pairs without gaps share: (2000,) counts, and the seeds of a sequence.

    Each pair has the same number of identical letters, the smallest that reaches the identity.

    ``patterns`` are offsets of letters; ``length`` is that of either sequence, ``identity`` the fraction of
    letters that are identical.
    """
    rng = np.random.default_rng(0)
    kept = int(np.ceil(identity * length - 1e-9))
    same = rng.permuted(np.tile(np.arange(length) < kept, (_SIMULATED_PAIRS, 1)), axis=1)
    shared, seeds = np.zeros(_SIMULATED_PAIRS, dtype=np.int64), 0
    for pattern in patterns:
        n = max(length - pattern[-1], 0)
        hit = np.ones((_SIMULATED_PAIRS, n), dtype=bool)
        for offset in pattern:
            hit &= same[:, offset : offset + n]
        shared += hit.sum(axis=1)
        seeds += n
    return shared, seeds
