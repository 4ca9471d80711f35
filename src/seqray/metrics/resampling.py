"""The bootstrap over groups as weights: how often each record occurs in each draw, and what follows.

A draw takes as many groups as there are, with replacement, and each group whole: records of one group
are not independent. The same draws serve all that is measured, so that differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from seqray.core import Floats

CELLS = 1 << 21  # weights held at once: 16 MiB
LEVEL = 0.95
FEW_GROUPS = 20


def group_numbers(groups: Sequence[object] | np.ndarray | None, n: int) -> np.ndarray:
    """Number the groups of n records from 0: (n,); without groups each record is its own."""
    if groups is None:
        return np.arange(n)
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)


def weight_blocks(groups: np.ndarray, draws: int, seed: int) -> Iterator[Floats]:
    """Yield the weights of the draws, some at a time: (C, N) whole numbers, together ``draws`` rows.

    Parameters
    ----------
    groups
        (N,) group numbers from 0; the draws depend on the number of groups and not on the order of records.
    draws, seed
        Number of draws, and seed of the generator.
    """
    count, rng = int(groups.max(initial=-1)) + 1, np.random.default_rng(seed)
    size = max(1, CELLS // max(1, len(groups)))
    even = np.full(count, 1 / max(1, count))
    for start in range(0, draws, size):
        drawn = rng.multinomial(count, even, size=min(size, draws - start))
        yield drawn[:, groups].astype(np.float64)


def interval(samples: Floats) -> tuple[float, float]:
    """Percentile interval of a figure over draws (S,), those left out on which it is undefined."""
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan, math.nan
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return float(low), float(high)


def p_of_no_difference(samples: Floats) -> float:
    """Two-sided p-value that a difference is 0, from its draws (S,): twice the rarer side of 0.

    One draw is added to each side, so that p is never 0; nan where no draw is defined.

    References
    ----------
    Davison and Hinkley 1997, Bootstrap methods and their application, section 4.4.
    """
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan
    below, above = int(np.sum(defined <= 0)), int(np.sum(defined >= 0))
    return min(1.0, 2 * (1 + min(below, above)) / (1 + len(defined)))
