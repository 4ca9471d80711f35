"""The isotonic map against scikit-learn, and that it keeps order and never says 0 or 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from seqray.calibration.fit import MAX_KNOTS, fit_isotonic
from seqray.core.card_parts import RisingMap
from seqray.core.errors import InputError


def examples(n, seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, scale, n)
    return x, rng.random(n) < expit(x / 2 + 0.5)


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_knots_are_the_blocks_of_scikit_learn(n):
    """One knot a block, at the mean of its scores, with its value; the ends are drawn in from 0 and 1."""
    x, y = examples(n, seed=n)
    fitted = IsotonicRegression().fit(x, y.astype(float)).predict(x)
    values = np.unique(fitted)
    found = fit_isotonic(x, y)
    centers = [x[fitted == value].mean() for value in values]
    np.testing.assert_allclose(found.before, centers, atol=1e-6)
    inner = (values > 0) & (values < 1)
    np.testing.assert_allclose(expit(found.after[inner]), values[inner], atol=1e-6)
    for value, after in zip(values[~inner], found.after[~inner], strict=True):
        n_block = (fitted == value).sum()
        nearest = 0.5 / (n_block + 1)
        gap = expit(after) if value == 0 else 1 - expit(after)
        assert 0 < gap <= nearest + 1e-6


def test_between_knots_it_is_a_straight_line_and_beyond_them_slope_1():
    bend = RisingMap(np.array([-3.0, 0.0, 0.5]), np.array([-1.0, 1.0, 2.0]))
    np.testing.assert_allclose(bend(np.array([-1, 0, 1, 1.5, 2])), [-3, -1.5, 0, 0.25, 0.5])
    np.testing.assert_allclose(bend(np.array([-5, 4])), [-7, 2.5])


@given(
    st.lists(st.tuples(st.floats(-20, 20, width=32), st.booleans()), min_size=2, max_size=60),
    st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=10, unique=True),
)
@example([(0.0, True), (1e-45, False), (1e-16, False), (1e-8, True), (20.0, True)], [-1.0, 1.0])
@example([(-1.0, True), (1e-38, False), (5e-20, True), (1e-8, True), (1.0, True)], [-1.0, 1.0])
def test_order_is_kept_and_the_inverse_leads_back(points, probes):
    x, y = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    try:
        found = fit_isotonic(x, y)
    except InputError:
        assume(False)
        return
    probes = np.sort(np.array(probes, dtype=np.float64))
    assume((np.diff(probes) > 1e-3).all())
    assert (np.diff(found(probes)) > 0).all()
    np.testing.assert_allclose(found.inverse(found(probes)), probes, atol=1e-4)
    p = found.of_probabilities(np.stack((expit(-probes), expit(probes)), axis=1), 1)
    assert ((p > 0) & (p < 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_a_large_sample_keeps_at_most_a_hundred_knots_and_the_truth():
    rng = np.random.default_rng(0)
    x = rng.uniform(-4, 4, 400_000)
    y = rng.random(len(x)) < expit(x**3 / 10)
    found = fit_isotonic(x, y, max_knots=40)
    assert len(found.before) <= 40
    probes = np.linspace(-3, 3, 61)
    np.testing.assert_allclose(expit(found(probes)), expit(probes**3 / 10), atol=0.02)
    assert len(fit_isotonic(x, y).before) <= MAX_KNOTS


@pytest.mark.parametrize(
    ("x", "y"),
    [([1, 2, 3], [1, 1, 0]), ([2, 2], [0, 1]), ([1, 2], [1, 1]), ([], []), ([1, 2], [1])],
    ids=["upside down", "one score", "one class", "nothing", "two lengths"],
)
def test_what_has_no_rising_map_is_refused(x, y):
    with pytest.raises(InputError):
        fit_isotonic(x, y)
