"""The bootstrap over groups of records: draws as weights, percentile intervals, p-values of differences.

A draw takes as many groups as there are, with replacement, and each group whole: records of one group are not
independent. All metrics are measured on the same draws, so differences between classifiers are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from seqray.core.arrays import Bools, Floats, Ints, number_by_appearance
from seqray.metrics.classification import call_metrics, ranking_metrics

CELLS = 1 << 21  # weights held at once: 16 MiB
LEVEL = 0.95
MIN_RELIABLE_GROUPS = 20

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric and its interval; NaN where undefined."""

    value: float
    low: float
    high: float


def group_numbers(groups: Sequence[object] | np.ndarray | None, n: int) -> Ints:
    """Number the groups of n records from 0: (n,); without groups each record is a group of its own."""
    return np.arange(n) if groups is None else number_by_appearance(groups)


def bootstrap_weights(groups: Ints, draws: int, seed: int, *, one_by_one: bool = False) -> Iterator[Floats]:
    """Yield how often each record occurs in each draw, some draws at a time: (C, N), together ``draws`` rows.

    The draws depend on the number of groups (N,), not on the order of records. ``one_by_one`` takes other
    random numbers: those of the audit.
    """
    count, rng = int(groups.max(initial=-1)) + 1, np.random.default_rng(seed)
    size = max(1, CELLS // max(1, len(groups)))
    even = np.full(count, 1 / max(1, count))
    for start in range(0, draws, size):
        block = min(size, draws - start)
        if one_by_one:
            drawn = np.stack(
                [np.bincount(rng.integers(0, count, count), minlength=count) for _ in range(block)]
            )
        else:
            drawn = rng.multinomial(count, even, size=block)
        yield drawn[:, groups].astype(np.float64)


def bootstrap_samples(
    measure: Callable[[Floats], Mapping[Key, Floats]],
    groups: Ints,
    draws: int,
    seed: int,
    *,
    one_by_one: bool = False,
) -> dict[Key, tuple[float, Floats]]:
    """Compute metrics, functions of weights (W, N), of all records, and of each draw of their groups (N,)."""
    values = {key: float(row[0]) for key, row in measure(np.ones((1, len(groups)))).items()}
    samples: dict[Key, list[Floats]] = {key: [] for key in values}
    draws = draws if groups.max(initial=-1) > 0 else 0
    for weights in bootstrap_weights(groups, draws, seed, one_by_one=one_by_one):
        for key, row in measure(weights).items():
            samples[key].append(row)
    return {key: (value, np.concatenate([np.empty(0), *samples[key]])) for key, value in values.items()}


def percentile_interval(samples: Floats) -> tuple[float, float]:
    """Percentile interval of a metric over draws (S,); draws on which it is undefined are left out."""
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan, math.nan
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return float(low), float(high)


def difference_p_value(samples: Floats) -> float:
    """Two-sided p-value that a difference is 0, from its draws (S,): twice the smaller share on a side of 0.

    One draw is added to each side, so that p is never 0 (Davison and Hinkley 1997, Bootstrap methods and
    their application, section 4.4); NaN where no draw is defined.
    """
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return math.nan
    below, above = int(np.sum(defined <= 0)), int(np.sum(defined >= 0))
    return min(1.0, 2 * (1 + min(below, above)) / (1 + len(defined)))


def mcc_and_auroc(
    labels: Bools, scores: Floats, calls: Bools, groups: Ints, draws: int = 300, seed: int = 0
) -> dict[str, Estimate]:
    """Measure scores and calls (N,) of a two-class rule, with 95 % intervals over whole groups."""

    def measure(weights: Floats) -> dict[str, Floats]:
        return {
            "mcc": call_metrics(labels, calls, weights)["mcc"],
            "auroc": ranking_metrics(labels, scores, weights)["auroc"],
        }

    numbers = np.unique(groups, return_inverse=True)[1]
    found = bootstrap_samples(measure, numbers, draws, seed, one_by_one=True)
    return {name: Estimate(value, *percentile_interval(samples)) for name, (value, samples) in found.items()}
