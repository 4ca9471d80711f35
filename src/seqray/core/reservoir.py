"""A random sample of a stream."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class Reservoir(Generic[T]):
    """Keeps ``size`` of the items offered, each with the same probability (Vitter 1985, algorithm R).

    Parameters
    ----------
    size, seed
        Most to keep; the same things and seed give the same draw.
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        self.offered = 0
        self._size = size
        self._rng = np.random.default_rng(seed)
        self._kept: list[tuple[int, T]] = []

    def offer(self, thing: T) -> None:
        """Offer an item."""
        self.offered += 1
        if len(self._kept) < self._size:
            self._kept.append((self.offered, thing))
        elif (place := int(self._rng.integers(self.offered))) < self._size:
            self._kept[place] = (self.offered, thing)

    @property
    def kept(self) -> list[T]:
        """The items kept, in the order in which they were offered."""
        return [thing for _, thing in sorted(self._kept, key=lambda pair: pair[0])]
