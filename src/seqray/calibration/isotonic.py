"""Isotonic calibration of two classes: a rising map of the log-odds, see `RisingMap`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from seqray.core.arrays import Floats, log_probabilities, logistic
from seqray.core.card import Card
from seqray.core.card_parts import RisingMap
from seqray.core.errors import InputError

MAX_KNOTS = 100
_DECIMALS = 9  # of log-odds: scores that differ by less are one score
_MAX_LOG_ODDS = 36.0  # beyond, float64 has no number between the probability and 1


def fit_isotonic(log_odds: ArrayLike, positive: ArrayLike, max_knots: int = MAX_KNOTS) -> RisingMap:
    """Fit a map to held-out examples by pooling adjacent violators.

    ``log_odds`` (N,) are of the positive class, ``positive`` (N,) tells if an example is of it. Each block
    of equal values gives one knot: the mean of its log-odds and the share of positives in it. A share of 0 or
    1, which the first and the last block may have, is taken for half an example against: 0.5 / (n + 1).
    Neighboring blocks are merged where there are more than ``max_knots``. Raises InputError where the scores
    don't rank the positive class above the other at all.

    Source: Zadrozny and Elkan 2002, Transforming classifier scores into accurate multiclass probability
    estimates. Oron and Flournoy 2017, Centered isotonic regression (one knot at the center of a block).
    """
    from scipy.special import logit
    from sklearn.isotonic import IsotonicRegression  # slow to import, and applying a map needs neither

    x, y = np.asarray(log_odds, dtype=np.float64), np.asarray(positive, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(f"log-odds {x.shape} and labels {y.shape} don't go together")
    x = np.round(x, _DECIMALS)  # scikit-learn silently pools what is closer than 1e-15
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(x, y).predict(x)
    block = np.concatenate(([0], np.cumsum(np.diff(fitted) > 1e-12)))
    size = np.bincount(block)
    if len(size) > max_knots:
        middle = np.cumsum(size) - size / 2
        merged = np.minimum((middle * max_knots / size.sum()).astype(np.int64), max_knots - 1)
        block = np.unique(merged, return_inverse=True)[1][block]
        size = np.bincount(block)
    if len(size) < 2:
        raise InputError(
            "the scores don't rank the positive class above the rest, so no isotonic map fits",
            remedy="see that the labels are not swapped, and that the model is meant for such sequences",
        )
    center, share = np.bincount(block, x) / size, np.bincount(block, y) / size
    if share[0] <= 0:
        share[0] = min(0.5 / (size[0] + 1), share[1] / 2)
    if share[-1] >= 1:
        share[-1] = 1 - min(0.5 / (size[-1] + 1), (1 - share[-2]) / 2)
    knots = []
    for values in (logit(share), center):
        rounded = np.round(values, 6)  # what a card needs, as long as no two knots become one
        knots.append(rounded if (np.diff(rounded) > 0).all() else values)
    return RisingMap(*knots)


def map_probabilities(rising: RisingMap, probabilities: Floats, positive: int) -> Floats:
    """Map a table (N, 2) of probabilities whose column ``positive`` is the positive class."""
    logs = log_probabilities(probabilities)
    mapped = np.clip(rising(logs[:, positive] - logs[:, 1 - positive]), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    table = np.empty_like(logs)
    table[:, positive], table[:, 1 - positive] = logistic(mapped), logistic(-mapped)
    return table


def apply_isotonic(probabilities: Floats, card: Card) -> Floats:
    """Apply the card's isotonic map or shift, if any, to probabilities (N, K) after the temperature."""
    if card.isotonic is None:
        return probabilities
    return map_probabilities(card.isotonic, probabilities, card.positive_index)
