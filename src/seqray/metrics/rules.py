"""Trivial rules: one number, with a threshold or a small table learned on the training part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from seqray.core.arrays import Bools, Floats
from seqray.metrics.classification import auroc, matthews

Form = Literal["rising", "falling", "shares"]
"""Of a score: a number in either direction, or the share of the class in a bin or category."""
BINS = 16
MARGIN = 0.02  # AUROC by which bins must beat a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A score computed from a number, and the threshold at or above which it calls the class.

    The score is the share of the class, in ``table``, in each bin between the ``edges``; without edges it is
    the number itself times 1 or -1.
    """

    edges: np.ndarray | None
    table: Floats
    threshold: float = math.nan

    def scores(self, values: np.ndarray) -> Floats:
        """Scores of numbers (N,)."""
        if self.edges is None:
            return values * self.table[0]
        return self.table[np.searchsorted(self.edges, values, "right")]


def choose_form(values: np.ndarray, truth: Bools) -> Form:
    """The kind of score that does best on training data: numbers (N,), and True for the class.

    The score is the number itself, in the direction that does better, or, if that ranks clearly better, the
    share of the class in each of `BINS` bins. Shares are judged on the half of the data from which they are
    not learned: many bins fit few records well by chance.
    """
    rising = auroc(truth, values)
    mixed = np.random.default_rng(0).permutation(len(values))
    halves = mixed[::2], mixed[1::2]
    binned = [
        auroc(truth[other], learn_rule(values[half], truth[half], "shares").scores(values[other]))
        for half, other in (halves, halves[::-1])
        if len(half)
    ]
    if np.mean(binned) > max(rising, 1 - rising) + MARGIN:
        return "shares"
    return "rising" if rising >= 0.5 else "falling"


def learn_rule(values: np.ndarray, truth: Bools, form: Form, edges: np.ndarray | None = None) -> Rule:
    """Learn a rule of one form from training data; the edges are those of equal shares, or as given.

    Shares are drawn towards that of all records by one pseudo-example. The threshold has the highest MCC on
    the training data.
    """
    table = np.array([-1.0 if form == "falling" else 1.0])
    if form == "shares":
        edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS)) if edges is None else edges
        bins, size = np.searchsorted(edges, values, "right"), len(edges) + 1
        table = (np.bincount(bins, truth, size) + truth.mean()) / (np.bincount(bins, minlength=size) + 1)
    rule = Rule(edges, table)
    return replace(rule, threshold=best_threshold(truth, rule.scores(values)))


def best_threshold(labels: Bools, scores: Floats) -> float:
    """Threshold of the highest MCC."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(labels[order], dtype=np.float64)
    ends = np.flatnonzero(np.concatenate((ranked[1:] != ranked[:-1], [True])))  # last row of each score
    tp, called, n, p = hits[ends], ends + 1.0, float(len(labels)), float(labels.sum())
    mcc = matthews(tp, called - tp, n - p - called + tp, p - tp)
    return float(ranked[ends[np.argmax(mcc)]])
