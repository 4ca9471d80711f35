"""The -10 and -35 boxes of promoters that sigma 70 reads, as the letters before a site show them.

A letter of a box counts the base-2 logarithm of its share in 112 promoters of *E. coli* over a quarter, and
each arrangement of the two boxes costs the bits by which it is rarer than the usual one: together they say
how many times likelier the letters are in a promoter than by chance. Of all arrangements in which both boxes
count more than 0 the best is reported if it reaches `THRESHOLD`, else the best -10 box alone if that does.

Letters at random, each as frequent as the others, show a pair before 4 % of sites and a -10 box alone before
another 3 %; with 30 % of G and C it is 16 % and 9 %, with 70 % below 1 %. The mapped promoters of sigma 70 in
*E. coli* show a pair before 64 % of sites and a -10 box alone before another 16 %
(``benchmarks/boxes.py``). The boxes of other sigma factors are not looked for, and no model reads what is
found.

References
----------
Hawley and McClure 1983, Nucleic Acids Research 11, 2237: letters of the boxes.
Harley and Reynolds 1987, Nucleic Acids Research 15, 2343: 92 % of spacers have 16 to 18 letters, and 75 % of
sites lie 6 to 8 letters after the last one of the -10 box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqray.core import Bools, Codes, Floats

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
    """Boxes before N sites.

    ``minus10`` and ``minus35`` (N,) are letters from the site to the first one of the box, below 0, `MISSING`
    where there is none; ``extended`` (N,) says whether TG lies one letter before the -10 box.
    """

    minus10: npt.NDArray[np.int64]
    minus35: npt.NDArray[np.int64]
    extended: Bools


def find_boxes(codes: Codes, site: int) -> FoundBoxes:
    """Find the boxes before sites.

    Parameters
    ----------
    codes
        (N, W) codes of DNA in the direction of reading; 4 and above are unknown letters.
    site
        Index of the site in each row; at least `REACH`.
    """
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
    return FoundBoxes(minus10, np.where(two, pair.minus35, MISSING), _extended(codes, site, minus10))


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


def _extended(codes: Codes, site: int, minus10: npt.NDArray[np.int64]) -> Bools:
    rows, first = np.arange(len(codes)), site + minus10
    thymine, guanine = codes[rows, first - 3] == 3, codes[rows, first - 2] == 2
    return (minus10 != MISSING) & thymine & guanine
