"""Spaced words: which to look up, how many a related pair shares, and how surely it is found.

A spaced word is the letters at some places of a window. Two sequences of identity p share it at a place
with probability p**weight, as an unspaced word of as many letters, but neighbouring places are less alike,
so a related pair is less often missed (Ma, Tromp & Li 2002).

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
_LIGHTEST = {4: 5, 20: 2}  # letters of the alphabet -> weight: below it, unrelated sequences share most words

SENSITIVITY = 0.98  # share of pairs at the threshold that a plan has to find, if the budget lets it
WORD_PAIRS = 1e8
MAX_OWNERS = 200  # sequences that a word is looked up in; beyond, see `seqray.homology.kmers`
_CROWD = MAX_OWNERS / 8  # expected owners of a word by chance alone
_SHORT = {4: 6, 20: 3}  # letters of the alphabet -> letters of a short word
_MAX_WORDS = 4**12  # different words of one pattern: columns of a matrix
_FEWEST_WORDS = 4**7
_SPARSE = 64
_SIMULATED = 2000
_SIMULATED_LETTERS = 300  # longer pairs share words more surely still


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """How pairs are found.

    Attributes
    ----------
    patterns
        Places of the letters of each pattern, from 0.
    share
        A pair is looked at when it shares this share of the words of the sequence that has fewer.
    short, short_share
        Letters of the short words of a second look, and the share of them that a pair must have in common;
        0 where there is no second look.
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
        """Letters of a word."""
        return len(self.patterns[0])


def offsets(pattern: str) -> tuple[int, ...]:
    """Places of the ones in a pattern such as ``1101``."""
    return tuple(i for i, letter in enumerate(pattern) if letter == "1")


def make_plan(
    lengths: np.ndarray,
    others: np.ndarray,
    identity: float,
    alphabet: Alphabet,
    *,
    budget: float = WORD_PAIRS,
) -> SeedPlan:
    """Choose the longest words that find related pairs, or the shortest that the budget allows.

    Parameters
    ----------
    lengths, others : int64 (N,), (M,)
        Letters of the sequences on either side of the comparison.
    identity
        Pairs of this identity have to be found.
    alphabet
        Of the sequences.
    budget
        Pairs of equal words that may be looked at, for each pattern and strand.
    """
    letters = len(alphabet.letters)
    affordable = [
        w for w in _PATTERNS if w >= _LIGHTEST[letters] and _fits(w, lengths, others, letters, budget)
    ]
    length = int(np.median(np.concatenate((lengths, others)))) if len(lengths) + len(others) else 0
    plans = []
    for weight in reversed(affordable or [max(w for w in _PATTERNS if letters**w <= _MAX_WORDS)]):
        plans.append(_plan(weight, length, identity, letters))
        if plans[-1].sensitivity >= SENSITIVITY:  # long words are the cheapest
            return plans[-1]
    return max(plans, key=lambda plan: plan.sensitivity)


def _fits(weight: int, lengths: np.ndarray, others: np.ndarray, letters: int, budget: float) -> bool:
    words = letters**weight
    owners = float(others.sum()) / words
    pairs = float(lengths.sum()) * owners
    return words <= _most_words(others) and owners <= _CROWD and pairs <= budget


def _most_words(lengths: np.ndarray) -> float:
    """A table much larger than the set costs time and gains nothing."""
    return min(max(_SPARSE * float(lengths.sum()), _FEWEST_WORDS), _MAX_WORDS)


def _plan(weight: int, length: int, identity: float, letters: int) -> SeedPlan:
    patterns = tuple(offsets(pattern) for pattern in _PATTERNS[weight])
    size = min(length, _SIMULATED_LETTERS)
    shared, words = simulate(patterns, size, identity)
    if words == 0:
        return SeedPlan(patterns, 0.0, 0, 0.0, 0.0)
    # Two words at least, because one is shared by chance in a large set, unless that loses too much.
    least = max(_low(shared), 2 if words > 2 else 1)
    short = _SHORT[letters] if letters ** _SHORT[letters] >= 8 * length else 0
    found, short_share = shared >= least, 0.0
    if short:
        alike, short_words = simulate((tuple(range(short)),), size, identity)  # of the same pairs
        short_share = _low(alike) / max(short_words, 1)
        found &= alike >= _low(alike)
    return SeedPlan(patterns, least / words, short, short_share, float(found.mean()))


def _low(counts: np.ndarray) -> int:
    return int(np.quantile(counts, (1 - SENSITIVITY) / 2, method="lower"))


def simulate(patterns: tuple[tuple[int, ...], ...], length: int, identity: float) -> tuple[np.ndarray, int]:
    """Count the words that random pairs without gaps share: (2000,) counts, and the words of a sequence.

    Each pair has the same number of identical letters, the smallest that reaches the identity.
    """
    rng = np.random.default_rng(0)
    kept = int(np.ceil(identity * length - 1e-9))
    same = rng.permuted(np.tile(np.arange(length) < kept, (_SIMULATED, 1)), axis=1)
    shared, words = np.zeros(_SIMULATED, dtype=np.int64), 0
    for places in patterns:
        n = max(length - places[-1], 0)
        hit = np.ones((_SIMULATED, n), dtype=bool)
        for place in places:
            hit &= same[:, place : place + n]
        shared += hit.sum(axis=1)
        words += n
    return shared, words
