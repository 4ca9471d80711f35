"""Arrays: the logistic function against scipy, and items at equal distances."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit

from seqray.core.arrays import logistic, mark_intervals, pick_evenly


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
