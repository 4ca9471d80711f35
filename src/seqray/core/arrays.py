"""Types of arrays by what they hold, and arrays of numbers for arbitrary values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def number_by_appearance(values: Iterable[Hashable]) -> Ints:
    """Number the distinct values from 0 in order of first appearance: int64 (N,)."""
    numbers: dict[Hashable, int] = {}
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)
