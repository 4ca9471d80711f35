"""Match ranked calls with known sites of one strand, and measure the ranking.

A call may claim one site: the nearest unclaimed one within the tolerance. Calls claim in the order of their
score, so what the first k calls claim doesn't depend on the calls after them, and two calls at one site earn
once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from seqray.core import Floats, Ints

UNCLAIMED = -1


def claim_sites(positions: ArrayLike, scores: ArrayLike, sites: ArrayLike, tolerance: int) -> Ints:
    """Index of the site that each call claims, or -1: (N,).

    Parameters
    ----------
    positions, scores
        (N,) of the calls of a strand, in any order. Of equal scores the lower position is first.
    sites
        (M,) positions of the known sites of the strand, rising.
    tolerance
        Most letters between a call and the site that it claims.

    Examples
    --------
    >>> claim_sites([90, 110, 300], [0.9, 0.5, 0.8], [100, 120], tolerance=25).tolist()
    [0, 1, -1]
    """
    place, known = np.asarray(positions, dtype=np.int64), np.asarray(sites, dtype=np.int64)
    order = np.lexsort((place, -np.asarray(scores, dtype=np.float64)))
    low = np.searchsorted(known, place - tolerance, "left").tolist()
    high = np.searchsorted(known, place + tolerance, "right").tolist()
    free = [True] * len(known)
    claimed = np.full(len(place), UNCLAIMED, dtype=np.int64)
    for call in order.tolist():
        near = [site for site in range(low[call], high[call]) if free[site]]
        if near:
            best = min(near, key=lambda site: abs(int(known[site]) - int(place[call])))
            claimed[call], free[best] = best, False
    return claimed


def average_precision(
    gained: ArrayLike, correct: ArrayLike, total: float, weights: ArrayLike | None = None
) -> float:
    """Area under the curve of precision and recall of ranked calls, without interpolation.

    Recall that no call reaches adds nothing. NaN without a site.

    Parameters
    ----------
    gained
        (N,) weight of the site that each call claims, 0 for none; by falling score.
    correct
        (N,) whether each call is right, for the precision.
    total
        Weight of all sites.
    weights
        (N,) how often each call counts for the precision, as in a draw of the bootstrap; once by default.
    """
    if not total:
        return float("nan")
    right = np.asarray(correct, dtype=np.float64)
    counted = np.ones(len(right)) if weights is None else np.asarray(weights, dtype=np.float64)
    calls = np.cumsum(counted)
    precision: Floats = np.cumsum(counted * right) / np.where(calls > 0, calls, 1)
    return float((np.asarray(gained, dtype=np.float64) * precision).sum() / total)
