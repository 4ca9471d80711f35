"""From a profile of scores to peaks: local maxima, refinement and non-maximum suppression.

Pure arrays; nothing here knows what a score means or where the positions come from.
"""

from __future__ import annotations

import numpy as np

from seqray.core import Bools, Floats, Ints


def local_maxima(scores: Floats, before: float = np.nan, after: float = np.nan) -> Bools:
    """Mark the points that neither neighbour exceeds.

    Every point of a plateau counts: which of them leads to the best refined score isn't known yet.

    Parameters
    ----------
    scores
        (n,) profile in order of position; NaN where nothing was scored.
    before, after
        Scores next to the first and the last point, so that a profile can be cut into pieces; NaN at the
        end of a sequence.

    Returns
    -------
    ndarray
        (n,) booleans; False where the score is NaN.
    """
    padded = np.concatenate(([before], scores, [after]))
    padded[np.isnan(padded)] = -np.inf
    centre = padded[1:-1]
    return (centre >= padded[:-2]) & (centre >= padded[2:]) & ~np.isnan(scores)


def best_of_each(positions: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Pick the best position of every row; of equal ones the first.

    Parameters
    ----------
    positions, scores
        (n, m) alternatives of n candidates; a score of NaN rules its position out, and at least one
        score of a row is a number.

    Returns
    -------
    positions, scores
        (n,) each.
    """
    best = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
    rows = np.arange(len(best))
    return positions[rows, best], scores[rows, best]


def suppress(sites: Ints, scores: Floats, min_distance: int, length: int | None = None) -> Ints:
    """Greedy non-maximum suppression in one dimension.

    The best site is kept and rules out the others nearer than ``min_distance``; then the best of those
    left, and so on. Of equal scores the lower site goes first, so the answer doesn't depend on the order
    of the input. Sites above any threshold are the same whether one cuts before or after.

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
    turn = np.iinfo(np.int64).max // 4 if length is None else length  # so far that no neighbour lies across
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
