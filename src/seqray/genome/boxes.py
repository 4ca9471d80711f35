"""The -10 and -35 boxes of promoters that sigma 70 reads, as the letters before a site show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seqray.core.arrays import Bools, Codes, Floats, Ints

LENGTH = 6
THRESHOLD = 4.0
MISSING = 0  # no box begins at the site

# Counts of A, C, G and T at the six positions of each box.
_COUNTS_10 = (
    *((2, 10, 11, 89), (106, 2, 1, 3), (29, 16, 18, 49)),
    *((66, 14, 17, 15), (57, 22, 14, 19), (1, 3, 0, 108)),
)
_COUNTS_35 = (
    *((2, 7, 11, 92), (6, 6, 6, 94), (2, 11, 88, 11)),
    *((72, 18, 3, 19), (26, 60, 11, 15), (50, 8, 17, 37)),
)
_SPACERS = {15: 3.5, 16: 1.0, 17: 0.0, 18: 1.0, 19: 3.5}  # letters: bits, which give 16 to 18 a share of 92 %
# From the last letter of the -10 box to the site: bits, which give 6 to 8 a share of 75 %.
_DISTANCES = {4: 2.0, 5: 2.0, 6: 0.0, 7: 0.0, 8: 0.0, 9: 2.0, 10: 2.0}
REACH = max(_DISTANCES) + LENGTH + max(_SPACERS) + LENGTH  # letters before the site that are looked at
_NEVER = -1e9


def _weights(counts: tuple[tuple[int, ...], ...]) -> Floats:
    """Bits of each letter at each position: (6, 5); the last column is for unknown letters."""
    table = np.array(counts, dtype=np.float64) + 1
    bits = np.log2(4 * table / table.sum(axis=1, keepdims=True))
    return np.concatenate((bits, np.full((LENGTH, 1), _NEVER)), axis=1)


_WEIGHTS_10, _WEIGHTS_35 = _weights(_COUNTS_10), _weights(_COUNTS_35)


class FoundBoxes(NamedTuple):
    """Boxes before N sites: letters from the site to the first one of a box, below 0, or `MISSING`.

    ``extended`` says whether TG lies one letter before the -10 box.
    """

    minus10: Ints
    minus35: Ints
    extended: Bools


def find_boxes(codes: Codes, site: int) -> FoundBoxes:
    """Find the boxes before sites, the index ``site`` of codes (N, W) of DNA in the direction of reading."""
    pair, alone = _Best(len(codes)), _Best(len(codes))
    for distance, cost in _DISTANCES.items():
        ten = 1 - distance - LENGTH
        bits = _score(codes, site + ten, _WEIGHTS_10) - cost
        alone.offer(bits, ten, MISSING)
        for spacer, more in _SPACERS.items():
            other = ten - spacer - LENGTH
            pair.offer(bits + _score(codes, site + other, _WEIGHTS_35) - more, ten, other)
    two, one = pair.bits >= THRESHOLD, alone.bits >= THRESHOLD
    minus10 = np.select([two, one], [pair.minus10, alone.minus10], MISSING)
    rows, first = np.arange(len(codes)), site + minus10
    extended = (minus10 != MISSING) & (codes[rows, first - 3] == 3) & (codes[rows, first - 2] == 2)  # TG
    return FoundBoxes(minus10, np.where(two, pair.minus35, MISSING), extended)


class _Best:
    """The best arrangement so far before each of N sites."""

    def __init__(self, count: int) -> None:
        self.bits = np.full(count, -np.inf)
        self.minus10, self.minus35 = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def offer(self, bits: Floats, minus10: int, minus35: int) -> None:
        better = bits > self.bits
        self.bits[better], self.minus10[better], self.minus35[better] = bits[better], minus10, minus35


def _score(codes: Codes, start: int, weights: Floats) -> Floats:
    """Bits of the letters from one index on: (N,)."""
    letters = np.minimum(codes[:, start : start + LENGTH], 4)
    bits = weights[np.arange(LENGTH), letters].sum(axis=1)
    return np.where(bits > 0, bits, _NEVER)
