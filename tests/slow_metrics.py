"""Metrics that scikit-learn lacks, by their definitions: for tests to compare with."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np


def calibration_error(confidence: np.ndarray, hits: np.ndarray, bins: int = 15) -> float:
    """Guo et al. 2017, eq. 3: each bin's gap of mean confidence and share of hits, weighted by its size."""
    edges = np.arange(bins + 1) / bins
    edges[-1] = np.inf  # 1 is in the last bin
    inside = [(low <= confidence) & (confidence < high) for low, high in pairwise(edges)]
    gaps = [abs(confidence[rows].mean() - hits[rows].mean()) * rows.mean() for rows in inside if rows.any()]
    return float(sum(gaps))


def bootstrap_interval(
    metric: Callable[[np.ndarray, np.ndarray], float],
    labels: np.ndarray,
    scores: np.ndarray,
    groups: np.ndarray,
    draws: int,
) -> np.ndarray:
    """95 % percentile interval (2,) of a function of (labels, scores); whole groups are drawn."""
    rng, members = np.random.default_rng(99), [np.flatnonzero(groups == key) for key in np.unique(groups)]
    figures = []
    for _ in range(draws):
        rows = np.concatenate([members[i] for i in rng.choice(len(members), len(members))])
        figures.append(metric(labels[rows], scores[rows]))
    return np.quantile(figures, (0.025, 0.975))
