"""Local maxima, refinement and suppression against worked examples and a quadratic reference."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.arrays import local_maxima, suppress_neighbors
from seqray.scanning.peaks import best_of_each

NAN = np.nan


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1, 3, 2], [1]),
        ([3, 1, 2], [0, 2]),
        ([1, 2, 3], [2]),
        ([2, 2, 1, 2], [0, 1, 3]),
        ([1, NAN, 2, 1], [0, 2]),
        ([NAN, NAN], []),
        ([5], [0]),
        ([], []),
    ],
)
def test_local_maxima_of_small_profiles(scores, expected):
    assert np.flatnonzero(local_maxima(np.array(scores, dtype=float))).tolist() == expected


def test_best_of_each_takes_the_first_of_equals_and_passes_over_nan():
    positions = np.array([[1, 2, 3], [7, 8, 9], [4, 5, 6]])
    scores = np.array([[0.5, 0.9, 0.9], [NAN, 0.1, NAN], [0.3, 0.2, 0.1]])
    best, values = best_of_each(positions, scores)
    assert best.tolist() == [2, 8, 4]
    assert values.tolist() == [0.9, 0.1, 0.3]


def quadratic(sites, scores, min_distance, length=None):
    """Greedy suppression from its definition: try sites from the best down, compare with all kept ones."""
    kept = []
    for i in sorted(range(len(sites)), key=lambda i: (-scores[i], sites[i], i)):
        gaps = [abs(sites[i] - sites[j]) for j in kept]
        if length is not None:
            gaps = [min(gap, length - gap) for gap in gaps]
        if all(gap >= min_distance for gap in gaps):
            kept.append(i)
    return sorted(kept, key=lambda i: sites[i])


def arrays(sites, scores):
    return np.array(sites, dtype=np.int64), np.array(scores, dtype=float)


peaks = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 4)), max_size=25)


@given(peaks, st.integers(1, 200), st.none() | st.integers(121, 180))
def test_suppress_on_a_line_or_a_circle_equals_the_quadratic_reference(found, distance, length):
    sites, scores = [site for site, _ in found], [float(score) for _, score in found]
    left = suppress_neighbors(*arrays(sites, scores), distance, length).tolist()
    assert left == quadratic(sites, scores, distance, length)


@given(peaks, st.integers(1, 60), st.integers(0, 5))
def test_cutting_before_or_after_suppression_is_the_same(found, distance, threshold):
    sites, scores = arrays([site for site, _ in found], [score for _, score in found])
    after = [i for i in suppress_neighbors(sites, scores, distance).tolist() if scores[i] >= threshold]
    reached = np.flatnonzero(scores >= threshold)
    before = reached[suppress_neighbors(sites[reached], scores[reached], distance)]
    assert before.tolist() == after
