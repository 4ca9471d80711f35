"""Types of arrays by what they hold, and arrays of numbers for arbitrary values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

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
    """A copy of part of the last axis, which may reach beyond its ends.

    On a circle it continues past the origin; on a line, ``outside`` fills the places beyond the ends.
    """
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
