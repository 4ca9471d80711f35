"""Refinement of peaks: the best of several positions. `seqray.core` finds the peaks of a profile."""

from __future__ import annotations

import numpy as np

from seqray.core import Floats, Ints


def best_of_each(positions: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Pick the best position of every row; of equal ones the first.

    Parameters
    ----------
    positions, scores
        (n, m) alternatives of n candidates; a position with a score of NaN is excluded, and at least one
        score of a row is a number.

    Returns
    -------
    positions, scores
        (n,) each.
    """
    best = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
    rows = np.arange(len(best))
    return positions[rows, best], scores[rows, best]
