"""McNemar's test: whether two classifiers are right equally often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest


@dataclass(frozen=True, slots=True)
class McNemar:
    """Calls on which two classifiers disagree.

    ``first_only`` counts the records that the first alone calls right, ``second_only`` those of the second;
    ``p`` is the exact two-sided p-value, 1 where they never differ.
    """

    first_only: int
    second_only: int
    p: float


def mcnemar(labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> McNemar:
    """Compare the calls of two classifiers on the same records, exactly.

    Parameters
    ----------
    labels, first, second
        (N,) class indices: the truth and the two calls.

    Notes
    -----
    It takes records as independent. Where they come in groups, the paired bootstrap over groups is the one
    to go by.

    References
    ----------
    McNemar 1947, Note on the sampling error of the difference between correlated proportions.
    """
    first_right, second_right = first == labels, second == labels
    first_only = int(np.sum(first_right & ~second_right))
    second_only = int(np.sum(second_right & ~first_right))
    trials = first_only + second_only
    p = float(binomtest(first_only, trials, 0.5).pvalue) if trials else 1.0
    return McNemar(first_only, second_only, p)
