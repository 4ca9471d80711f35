"""Types of arrays, intervals and peaks of profiles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

# --- Types of arrays by what they hold, and arrays of numbers for arbitrary values

Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

T = TypeVar("T")


def number_by_appearance(values: Iterable[Hashable]) -> Ints:
    """Number the distinct values from 0 in order of first appearance: int64 (N,)."""
    numbers: dict[Hashable, int] = {}
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def logistic(log_odds: Floats) -> Floats:
    """Probabilities of log-odds; scipy has it, too, but takes long to load."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))  # beyond, nothing changes but overflows


def log_probabilities(probabilities: Floats) -> Floats:
    """Logarithms that are finite also where a probability is 0."""
    return np.log(np.maximum(probabilities, 1e-300))


def mark_intervals(starts: Ints, ends: Ints, length: int) -> Bools:
    """Mark the positions (length,) in intervals, 0-based and half-open; parts beyond are left out."""
    begun = np.bincount(np.clip(starts, 0, length), minlength=length + 1)
    ended = np.bincount(np.clip(ends, 0, length), minlength=length + 1)
    return np.cumsum(begun - ended)[:length] > 0


def cut_stretch(
    values: npt.NDArray[Any], start: int, end: int, outside: int, *, circular: bool
) -> npt.NDArray[Any]:
    """A copy of part of the last axis; beyond its ends a circle continues, and a line has ``outside``."""
    length = values.shape[-1]
    if circular:
        return values[..., np.arange(start, end) % length]
    part = np.full((*values.shape[:-1], end - start), outside, dtype=values.dtype)
    first, last = max(start, 0), min(end, length)
    if first < last:
        part[..., first - start : last - start] = values[..., first:last]
    return part


def pick_evenly(items: Sequence[T], most: int) -> list[T]:
    """At most so many of the items, from the first to the last at equal distances."""
    chosen = np.linspace(0, len(items) - 1, min(most, len(items))).round().astype(int)
    return [items[i] for i in chosen]


# --- Which peaks of scores are calls: the same in scans and where the precision to expect is measured

MIN_DISTANCE_OF_LOCATORS, MIN_DISTANCE_OF_WINDOWS = 25, 50
"""Smallest distance between two calls of a strand, by kind of model."""
MIN_CALL_SCORE = 1e-3
"""Score below which a peak is never a call: the best calls per kilobase are sought down to this."""


# --- Peaks of a profile of scores: local maxima, and non-maximum suppression


def local_maxima(scores: Floats) -> Bools:
    """Mark the points of a profile (n,) that neither neighbor exceeds, all of a plateau; NaN is no point."""
    padded = np.pad(np.where(np.isnan(scores), -np.inf, scores), 1, constant_values=-np.inf)
    center = padded[1:-1]
    return (center >= padded[:-2]) & (center >= padded[2:]) & ~np.isnan(scores)


def suppress_neighbors(sites: Ints, scores: Floats, min_distance: int, length: int | None = None) -> Ints:
    """Greedy non-maximum suppression of sites (n,) by scores (n,); of equal ones the lower site is first.

    The best excludes all nearer than ``min_distance``, and so on. ``length`` is that of a circle.
    """
    order = np.argsort(sites, kind="stable")
    ordered = sites[order]
    reach = min_distance - 1
    low = np.searchsorted(ordered, ordered - reach, "left").tolist()
    high = np.searchsorted(ordered, ordered + reach, "right").tolist()
    turn = (
        np.iinfo(np.int64).max // 4 if length is None else length
    )  # so far that no neighbor is across the origin
    head = np.searchsorted(ordered, ordered + (reach - turn), "right").tolist()
    tail = np.searchsorted(ordered, ordered + (turn - reach), "left").tolist()
    free = np.ones(len(sites), dtype=bool)
    kept = np.zeros(len(sites), dtype=bool)
    for i in np.lexsort((ordered, -scores[order])).tolist():
        if free[i]:
            kept[i] = True
            free[low[i] : high[i]] = False
            free[: head[i]] = False
            free[tail[i] :] = False
    return order[kept]
