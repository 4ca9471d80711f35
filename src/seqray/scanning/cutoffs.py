"""Which windows are worth the model's time at a threshold, and whether a prefilter pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

MAX_PASSED_SHARE = 0.1
"""Of the windows. Stride 10 scores as many: a prefilter that lets more pass is left out."""


@dataclass(frozen=True)
class Cutoffs:
    """What a window must reach to be read further, in log-odds.

    Attributes
    ----------
    prefilter
        What the prefilter must answer.
    second
        What its second network must answer; None for a prefilter of one.
    members
        What the first 1, 2, ... members must give together, see `seqray.inference.cascade_log_odds`.
    passed
        Share of all windows that pass the prefilter.
    """

    prefilter: float
    second: float | None = None
    members: tuple[float, ...] = ()
    passed: float = 0.0

    @classmethod
    def at(cls, facts: Mapping[str, Any], threshold: float) -> Self:
        """Those of the highest level that a threshold reaches.

        Parameters
        ----------
        facts
            Of the prefilter, from the model's card.
        threshold
            Probability from which sites are called.
        """
        levels: Sequence[Sequence[float]] = facts.get("levels", ())
        second: Sequence[float | None] = facts.get("second") or [None] * len(levels)
        members: Sequence[Sequence[float]] = facts.get("members") or [()] * len(levels)
        reached = [
            cls(cutoff, other, tuple(others), passed)
            for (level, cutoff, passed), other, others in zip(levels, second, members, strict=True)
            if level <= threshold
        ]
        return reached[-1] if reached else cls(float("-inf"), passed=1.0)

    @property
    def is_selective(self) -> bool:
        """Whether few enough windows pass."""
        return self.passed <= MAX_PASSED_SHARE
