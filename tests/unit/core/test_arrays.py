"""Arrays: stretches, peaks, and a random sample of a stream."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit

from seqray.core.arrays import Reservoir, logistic, mark_intervals, pick_evenly


@given(st.floats(-1e6, 1e6))
def test_the_logistic_function_is_that_of_scipy(log_odds):
    assert logistic(np.array([log_odds]))[0] == pytest.approx(expit(log_odds), rel=1e-12, abs=1e-200)


@given(st.integers(0, 50), st.integers(2, 60))
def test_items_are_picked_from_the_first_to_the_last(count, most):
    picked = pick_evenly(range(count), most)
    assert len(picked) == len(set(picked)) == min(count, most)
    assert picked == sorted(picked)
    if count:
        assert (picked[0], picked[-1]) == (0, count - 1)
        steps = np.diff(picked)
        assert not len(steps) or steps.max() - steps.min() <= 1


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(-10, 40), st.integers(0, 20)), max_size=5))
def test_positions_in_intervals_are_marked(length, intervals):
    starts = np.array([start for start, _ in intervals], dtype=np.int64)
    ends = np.array([start + size for start, size in intervals], dtype=np.int64)
    expected = [any(a <= i < b for a, b in zip(starts, ends, strict=True)) for i in range(length)]
    assert mark_intervals(starts, ends, length).tolist() == expected


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
