"""A rising map of the log-odds of two classes, kept as a short table: isotonic calibration, or a shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqray.core.arrays import log_probabilities, logistic
from seqray.core.card import Card, reading_card
from seqray.core.errors import InputError

MAX_KNOTS = 100
_DECIMALS = 9  # of log-odds: scores that differ by less are one score
_MAX_MAGNITUDE = 1e30  # of log-odds and slopes: other engines compute in float32
_MAX_LOG_ODDS = 36.0  # beyond, float64 has no number between the probability and 1


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """A strictly rising, piecewise linear map of log-odds.

    Attributes
    ----------
    before, after : float64 (M,)
        Log-odds of the positive class before and after the map at its M knots; both rise. Between knots the
        map is linear, beyond the first and the last it goes on with slope 1, so that no two scores are made
        equal and no probability becomes 0 or 1.
    """

    before: np.ndarray
    after: np.ndarray

    @classmethod
    def fit(cls, log_odds: ArrayLike, positive: ArrayLike, max_knots: int = MAX_KNOTS) -> IsotonicMap:
        """Fit to held-out examples by pooling adjacent violators.

        Parameters
        ----------
        log_odds
            (N,) of the positive class.
        positive
            (N,) bool, whether the example is of that class.
        max_knots
            Most knots to keep; neighboring blocks are merged where there are more.

        Raises
        ------
        InputError
            Where the scores don't rank the positive class above the other at all.

        Notes
        -----
        Each block of equal values gives one knot: the mean of its log-odds and the share of positives in it.
        A share of 0 or 1, which the first and the last block may have, is taken for half an example
        against: 0.5 / (n + 1).

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
        block = _merge_blocks(block, max_knots)
        size = np.bincount(block).astype(np.float64)
        center, share = np.bincount(block, x) / size, np.bincount(block, y) / size
        if len(size) < 2:
            raise InputError(
                "the scores don't rank the positive class above the rest, so no isotonic map fits",
                remedy="see that the labels are not swapped, and that the model is meant for such sequences",
            )
        if share[0] <= 0:
            share[0] = min(0.5 / (size[0] + 1), share[1] / 2)
        if share[-1] >= 1:
            share[-1] = 1 - min(0.5 / (size[-1] + 1), (1 - share[-2]) / 2)
        return cls(_rounded_knots(center), _rounded_knots(logit(share)))

    def __call__(self, log_odds: ArrayLike) -> np.ndarray:
        """Map log-odds of any shape."""
        x = np.asarray(log_odds, dtype=np.float64)
        inside = np.interp(x, self.before, self.after)
        return inside + np.minimum(x - self.before[0], 0) + np.maximum(x - self.before[-1], 0)

    @property
    def inverse(self) -> IsotonicMap:
        """The map back."""
        return IsotonicMap(self.after, self.before)

    def probabilities(self, probabilities: np.ndarray, positive: int) -> np.ndarray:
        """Map a table (N, 2) of probabilities whose column ``positive`` is the positive class."""
        logs = log_probabilities(probabilities)
        mapped = self(logs[:, positive] - logs[:, 1 - positive])
        mapped = np.clip(mapped, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        table = np.empty_like(logs)
        table[:, positive], table[:, 1 - positive] = logistic(mapped), logistic(-mapped)
        return table

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card."""
        return {"before": self.before.tolist(), "after": self.after.tolist()}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> IsotonicMap:
        """Read what `to_mapping` wrote.

        Raises ModelFileError if a part is missing, the knots don't rise, or float32 can't hold the map.
        """
        with reading_card("isotonic"):
            before, after = (np.asarray(mapping[name], dtype=np.float64) for name in ("before", "after"))
            fits = before.ndim == 1 and before.shape == after.shape and len(before) > 0
            if not (fits and all((abs(v) < _MAX_MAGNITUDE).all() for v in (before, after))):
                raise ValueError("no lists of knots")
            if not all((np.diff(v) > 0).all() for v in (before, after)):
                raise ValueError("knots that don't rise")
            if not (np.diff(after) < _MAX_MAGNITUDE * np.diff(before)).all():
                raise ValueError("too steep")
        return cls(before, after)


def apply_isotonic(probabilities: np.ndarray, card: Card) -> np.ndarray:
    """Apply the card's isotonic map or shift, if any, to probabilities (N, K) after the temperature."""
    if not card.isotonic:
        return probabilities
    return IsotonicMap.from_mapping(card.isotonic).probabilities(probabilities, card.positive_index)


def _merge_blocks(block: np.ndarray, most: int) -> np.ndarray:
    """Renumber the blocks and merge neighbors if there are more than ``most``."""
    if block[-1] < most:
        return block
    size = np.bincount(block)
    middle = np.cumsum(size) - size / 2
    bin_ = np.minimum((middle * most / size.sum()).astype(np.int64), most - 1)
    return np.unique(bin_, return_inverse=True)[1][block]


def _rounded_knots(values: np.ndarray) -> np.ndarray:
    """Round to what a card needs, as long as no two knots become one."""
    rounded = np.round(values, 6)
    return rounded if (np.diff(rounded) > 0).all() else values
