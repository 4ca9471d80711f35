"""Whether the order of the rows depends on their labels: the runs test."""

from __future__ import annotations

import math

import numpy as np

from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import AuditSet


def runs_test(labels: np.ndarray) -> tuple[int, float, float]:
    """Count runs of one label, and compare with labels in random order.

    Parameters
    ----------
    labels
        (N,) of any number of classes.

    Returns
    -------
    runs
        Stretches of equal labels.
    expected
        Their mean over all orders of the same labels.
    z
        Standard deviations above the mean: far below 0 if labels come in blocks; NaN if all orders have the
        same number of runs.

    References
    ----------
    Mood 1940, The distribution theory of runs, section 4: mean and variance for any number of classes.
    """
    n = len(labels)
    runs = 1 + int(np.count_nonzero(labels[1:] != labels[:-1])) if n else 0
    sizes = np.unique(labels, return_counts=True)[1].astype(np.float64)
    if n < 2:
        return runs, float(runs), math.nan
    square, cube = float((sizes**2).sum()), float((sizes**3).sum())
    expected = (n * (n + 1) - square) / n
    variance = (square * (square + n * (n + 1)) - 2 * n * cube - n**3) / (n**2 * (n - 1))
    return runs, expected, (runs - expected) / math.sqrt(variance) if variance > 1e-12 else math.nan


def order_figures(data: AuditSet) -> list[AuditFigure]:
    """Test the order of the rows of each split, if the data are in the order of one table."""
    if not data.in_file_order:
        return []
    figures = []
    for split in data.parts:
        tested = zip(("runs", "expected_runs", "z"), runs_test(data.labels[data.rows(split)]), strict=True)
        figures += [AuditFigure("order", split, "*", quantity, float(value)) for quantity, value in tested]
    return figures
