"""Ranks of scores."""

from __future__ import annotations

import numpy as np

from seqray.core import Floats


def mean_ranks(values: Floats) -> Floats:
    """Rank of each value along the last axis, 1 for the lowest; equal values share their mean rank: (..., n).

    As `scipy.stats.rankdata`, whose import takes longer than an explanation.
    """
    ranks = np.empty(values.shape)
    for row in np.ndindex(values.shape[:-1]):
        ordered = np.sort(values[row])
        below, up_to = (np.searchsorted(ordered, values[row], side) for side in ("left", "right"))
        ranks[row] = (below + up_to + 1) / 2
    return ranks
