"""Which windows a prefilter lets pass at a threshold, and whether it pays."""

from __future__ import annotations

from collections.abc import Sequence

Levels = Sequence[tuple[float, float, float]]
MOST_PASSED = 0.1
"""Share of the windows. Stride 10 scores as many: a prefilter that lets more pass is left out."""


def prefilter_cutoff(levels: Levels, threshold: float) -> tuple[float | None, float]:
    """The cutoff of a prefilter at a threshold, and the share of windows that pass.

    Parameters
    ----------
    levels
        Of the model's card.
    threshold
        Probability from which sites are called.

    Returns
    -------
    cutoff
        Of the highest level that the threshold reaches; None where more than `MOST_PASSED` would pass.
    passed
        Share of all windows.
    """
    reached = [(cutoff, passed) for level, cutoff, passed in levels if level <= threshold]
    cutoff, passed = reached[-1] if reached else (None, 1.0)
    return (cutoff if passed <= MOST_PASSED else None), passed
