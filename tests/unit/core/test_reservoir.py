"""An even draw from a stream."""

from __future__ import annotations

import numpy as np

from seqray.core.arrays import Reservoir


def drawn(size, count, seed=0):
    reservoir = Reservoir(size, seed)
    for i in range(count):
        reservoir.offer(i)
    return reservoir.kept


def test_all_of_few_and_a_sorted_draw_of_many():
    assert drawn(5, 3) == [0, 1, 2]
    kept = drawn(5, 100)
    assert len(kept) == 5 == len(set(kept))
    assert kept == sorted(kept) == drawn(5, 100)


def test_every_thing_has_the_same_chance():
    counts = np.bincount(np.concatenate([drawn(5, 20, seed) for seed in range(2000)]), minlength=20)
    assert abs(counts - 500).max() < 5 * np.sqrt(500 * 0.75)
