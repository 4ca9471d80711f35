"""Peaks of a profile of scores: local maxima, and non-maximum suppression.

`scipy.signal.find_peaks` does not replace this. It returns one point of a plateau and none at the ends, so a
profile can't be cut into pieces; its distance counts samples, not positions, and does not cross an origin.
"""

from __future__ import annotations

import numpy as np

from seqray.core.arrays import Bools, Floats, Ints


def local_maxima(scores: Floats) -> Bools:
    """Mark the points that neither neighbor exceeds.

    Every point of a plateau is marked, because any of them may lead to the best refined score.

    Parameters
    ----------
    scores
        (n,) profile in order of position; NaN if not scored.

    Returns
    -------
    ndarray
        (n,) booleans; False if the score is NaN.
    """
    padded = np.pad(np.where(np.isnan(scores), -np.inf, scores), 1, constant_values=-np.inf)
    center = padded[1:-1]
    return (center >= padded[:-2]) & (center >= padded[2:]) & ~np.isnan(scores)


def suppress_neighbors(sites: Ints, scores: Floats, min_distance: int, length: int | None = None) -> Ints:
    """Greedy non-maximum suppression in one dimension.

    The best site is kept and excludes all others nearer than ``min_distance``; then the best of those
    left, and so on. Of equal scores the lower site is first, so the result doesn't depend on the order of
    the input. The sites above a threshold are the same whether it is applied before or after.

    Parameters
    ----------
    sites, scores
        (n,) positions and their scores.
    min_distance
        Smallest distance between two kept sites, at least 1.
    length
        Length of a circular sequence, where distances run across the origin as well.

    Returns
    -------
    ndarray
        Indices of the kept sites, in order of site.
    """
    order = np.argsort(sites, kind="stable")
    ordered = sites[order]
    reach = min_distance - 1
    low = np.searchsorted(ordered, ordered - reach, "left").tolist()
    high = np.searchsorted(ordered, ordered + reach, "right").tolist()
    turn = (
        np.iinfo(np.int64).max // 4 if length is None else length
    )  # so far that no neighbor is across the origin
    head = np.searchsorted(ordered, ordered + (reach - turn), "right").tolist()
    tail = np.searchsorted(ordered, ordered + (turn - reach), "left").tolist()
    free = np.ones(len(sites), dtype=bool)
    kept = np.zeros(len(sites), dtype=bool)
    for i in np.lexsort((ordered, -scores[order])).tolist():
        if free[i]:
            kept[i] = True
            free[low[i] : high[i]] = False
            free[: head[i]] = False
            free[tail[i] :] = False
    return order[kept]
