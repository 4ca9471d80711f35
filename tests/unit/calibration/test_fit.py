"""Calibration."""

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st
from scipy.special import expit, log_softmax, softmax
from sklearn import metrics as reference
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef

from seqray.calibration.fit import (
    MAX_KNOTS,
    TEMPERATURES,
    Calibration,
    calibrated_card,
    choose_method,
    choose_threshold,
    cross_fitted,
    fit_isotonic,
    fit_platt,
    fit_temperature,
    log_loss,
)
from seqray.core.card import Card, card_from_mapping, card_to_mapping
from seqray.core.card_parts import RisingMap
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from slow_metrics import calibration_error


def overconfident(temperature, n=20_000, seed=0):
    """Logits that are ``temperature`` times too large for their labels."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 2, n)
    labels = (rng.random(n) < expit(true)).astype(int)
    return np.stack((np.zeros(n), true), axis=1) * temperature, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_made_the_logits_is_found(temperature):
    logits, labels = overconfident(temperature)
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.05)


def test_the_temperature_is_that_of_a_fine_search():
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(200, 3)) * 4, rng.integers(0, 3, 200)
    logits[np.arange(200), labels] += 2

    def loss(t):
        log_p, total = log_softmax(logits / t, axis=1), 0.0
        for k in range(3):  # the examples of class k, and a quarter of one of each class
            counts = [0.25 + np.sum(labels == k) * (other == k) for other in range(3)]
            total -= (log_p[labels == k] @ counts).sum() / sum(counts)
        return total

    grid = np.geomspace(0.5, 10, 20_001)
    best = grid[np.argmin([loss(t) for t in grid[::20]]) * 20]
    assert fit_temperature(logits, labels) == pytest.approx(best, rel=5e-3)


def test_few_examples_that_are_always_right_give_no_certainty():
    """Each class has one example, and a quarter of one of either: 5/6, which are log-odds of ln 5."""
    logits, labels = np.array([[0.4, -0.4], [-0.4, 0.4]]), np.array([0, 1])
    assert fit_temperature(logits, labels) == pytest.approx(0.8 / np.log(5), rel=1e-3)
    temperature, shift = fit_platt(logits[:, 1] - logits[:, 0], labels)
    assert (temperature, shift) == (pytest.approx(0.8 / np.log(5), rel=1e-3), pytest.approx(0, abs=1e-3))
    assert fit_temperature(logits, 1 - labels) == pytest.approx(10, rel=1e-3)
    many = np.tile(logits, (100, 1)), np.tile(labels, 100)
    assert fit_temperature(*many) == pytest.approx(0.25, rel=1e-3)


def test_a_class_is_called_where_no_probability_is_high():
    """Above all others lies one example; a third of the 30 expected are ten."""
    p = np.concatenate([[0.6], np.linspace(0.299, 0.3, 98)])
    assert (p >= choose_threshold(p)).sum() >= 10


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_has_the_best_correlation_to_expect(seed):
    """Each example counts as positive by its probability and as negative by the rest."""
    rng = np.random.default_rng(seed)
    p = np.round(expit(rng.normal(-1, 2, 120)), 2)  # rounding makes ties
    labels, weights = np.repeat([1, 0], 120), np.concatenate([p, 1 - p])

    def expected(threshold):
        return matthews_corrcoef(labels, np.tile(p >= threshold, 2), sample_weight=weights)

    best = max(expected(t) for t in np.unique(p))
    assert expected(choose_threshold(p)) == pytest.approx(best)


def test_thresholds_known_beforehand():
    assert choose_threshold([0.1, 0.9]) == pytest.approx(0.5)
    assert choose_threshold([0, 0, 0.2, 1, 1]) == pytest.approx(0.6)
    assert choose_threshold([0.3, 0.3]) == 0.5
    assert choose_threshold([1.0, 1.0]) == 0.5


# --- calibrations ---------------------------------------------------------------------------------


def bent(n=6000, seed=0):
    """Log-probabilities whose log-odds are a bent version of the true ones: no temperature mends them."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 2, n)
    labels = (rng.random(n) < expit(true)).astype(int)
    shown = np.where(true > 0, 3 * true, true / 2) + 1
    return log_softmax(np.stack((np.zeros(n), shown), axis=1), axis=1), labels, true


def test_isotonic_mends_what_no_temperature_can():
    raw, labels, _ = bent(20_000)
    fresh, fresh_labels, true = bent(20_000, seed=1)
    error = {}
    for method in ("temperature", "isotonic"):
        p = Calibration.fit(raw, labels, 1, method).probabilities(fresh)
        error[method] = calibration_error(p[:, 1], fresh_labels)
        if method == "isotonic":
            assert np.abs(p[:, 1] - expit(true)).mean() < 0.025
    assert error["isotonic"] < 0.02 < error["temperature"]


def shifted(n=400, seed=0):
    """Log-probabilities that are too sure, and too low for the positive class."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 2, n)
    labels = (rng.random(n) < expit(true)).astype(int)
    return log_softmax(np.stack((np.zeros(n), 2 * true - 1.5), axis=1), axis=1), labels


def test_platt_is_a_logistic_regression_with_a_quarter_of_an_example_of_each_class():
    """Against scikit-learn, on the log-odds."""
    raw, labels = shifted()
    x, counts = raw[:, 1] - raw[:, 0], np.bincount(labels)
    share = (0.25 + counts * np.eye(2)) / (counts[:, None] + 0.5)  # of class k that counts as class j
    expected = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    expected.fit(np.tile(x, 2)[:, None], np.repeat([0, 1], len(x)), sample_weight=share[labels].T.ravel())
    temperature, shift = fit_platt(x, labels == 1)
    assert 1 / temperature == pytest.approx(expected.coef_[0, 0], rel=1e-5)
    assert shift == pytest.approx(expected.intercept_[0], rel=1e-4)
    found = Calibration.fit(raw, labels, 1, "platt").probabilities(raw)
    np.testing.assert_allclose(found, expected.predict_proba(x[:, None]), atol=1e-5)


@pytest.mark.parametrize(("shift", "count", "method"), [(0.0, 4000, "temperature"), (0.5, 4000, "platt")])
def test_a_shift_is_taken_where_it_lowers_the_information_criterion(shift, count, method):
    """Against the criterion of two logistic regressions by scikit-learn, without and with an intercept."""
    rng = np.random.default_rng(3)
    true = rng.normal(0, 2, count)
    labels = (rng.random(count) < expit(true)).astype(int)
    raw = log_softmax(np.stack((np.zeros(count), 1.5 * (true - shift)), axis=1), axis=1)
    x, criteria = (raw[:, 1] - raw[:, 0])[:, None], []
    for intercept in (False, True):
        fitted = LogisticRegression(C=np.inf, tol=1e-10, fit_intercept=intercept).fit(x, labels)
        likelihood = -reference.log_loss(labels, fitted.predict_proba(x)) * count
        criteria.append((1 + intercept) * np.log(count) - 2 * likelihood)
    assert (criteria[1] < criteria[0]) == (method == "platt")
    assert choose_method(raw, labels, 1) == Calibration.fit(raw, labels, 1, "auto").method == method


def test_three_classes_have_a_temperature_alone():
    raw = log_softmax(np.random.default_rng(0).normal(size=(300, 3)), axis=1)
    assert choose_method(raw, np.arange(300) % 3, 1) == "temperature"


def test_platt_stays_finite_where_the_classes_part_or_the_ranking_is_upside_down():
    x = np.repeat([-3.0, 3.0], 2000)
    temperature, shift = fit_platt(x, x > 0)
    assert temperature == pytest.approx(3 / np.log(8001), rel=1e-4)  # odds of 2000.25 to 0.25
    assert abs(shift) < 0.01
    assert fit_platt(x, x < 0)[0] == pytest.approx(10)
    assert fit_platt(x, x < 9)[1] == pytest.approx(np.log(16_001), abs=0.1)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
@pytest.mark.parametrize("positive", [0, 1])
def test_the_positive_class_may_be_any_column(positive, method):
    raw, labels, _ = bent(2000)
    expected = Calibration.fit(raw, labels, 1, method).probabilities(raw)[:, 1]
    order = [0, 1] if positive == 1 else [1, 0]
    y = labels if positive == 1 else 1 - labels
    turned = Calibration.fit(raw[:, order], y, positive, method).probabilities(raw[:, order])
    np.testing.assert_allclose(turned[:, positive], expected, rtol=1e-6)
    np.testing.assert_allclose(turned.sum(axis=1), 1)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_shifts_and_maps_are_for_two_classes(method):
    rng = np.random.default_rng(0)
    with pytest.raises(ConfigError, match=f"{method} .* two classes, the model has 3; use the method temper"):
        Calibration.fit(rng.normal(size=(60, 3)), rng.integers(0, 3, 60), 0, method)


@pytest.mark.parametrize("before", ["temperature", "platt", "isotonic"])
@pytest.mark.parametrize("after", ["temperature", "platt", "isotonic"])
def test_a_threshold_moves_to_where_the_same_scores_are_called(before, after):
    """By the table of both probabilities, not by the formula."""
    raw, labels, _ = bent(1500)
    old = Calibration.fit(raw[:700], labels[:700], 1, before)
    new = Calibration.fit(raw[700:], labels[700:], 1, after)
    was, now = old.probabilities(raw)[:, 1], new.probabilities(raw)[:, 1]
    for threshold in (0.03, 0.5, 0.97):
        assert ((was >= threshold) == (now >= new.convert(threshold, old))).all()
    assert [new.convert(end, old) for end in (0, 1)] == [0, 1]


# --- figures on held-out data ---------------------------------------------------------------------


def test_every_answer_comes_from_a_map_that_did_not_see_its_group():
    """Groups of which each has labels of its own: a map that saw them would answer better than chance."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(10), 80)
    x = groups + rng.random(800)  # a score that names the group
    labels = rng.permutation(10)[groups] % 2
    labels[::40] = 1 - labels[::40]
    raw = log_softmax(np.stack((np.zeros(800), x - 5), axis=1), axis=1)
    fair = cross_fitted(raw, labels, groups, 1, "isotonic")
    assert fair is not None
    seen = Calibration.fit(raw, labels, 1, "isotonic").probabilities(raw)
    assert reference.log_loss(labels, seen) < reference.log_loss(labels, fair)
    changed = labels.copy()
    changed[groups == 4] = 1 - changed[groups == 4]
    again = cross_fitted(raw, changed, groups, 1, "isotonic")
    assert again is not None
    np.testing.assert_array_equal(again[groups == 4], fair[groups == 4])  # its own labels don't count
    assert not np.array_equal(again[groups != 4], fair[groups != 4])


def test_there_is_no_fair_figure_of_one_group_or_of_a_class_in_one_group():
    raw, labels, _ = bent(100)
    assert cross_fitted(raw, labels, np.zeros(100), 1, "temperature") is None
    assert cross_fitted(raw, labels, labels, 1, "temperature") is None


def test_the_log_loss_is_that_of_scikit_learn_and_bounds_no_probability():
    p = softmax(np.random.default_rng(0).normal(size=(100, 3)), axis=1)
    y = np.random.default_rng(1).integers(0, 3, 100)
    assert log_loss(p, y) == pytest.approx(reference.log_loss(y, p))
    assert log_loss(np.array([[1.0, 1e-100]]), np.array([1])) == pytest.approx(100 * np.log(10))


def make_card(classes=2):
    names = tuple("abc"[:classes])
    config = ModelConfig(d_model=8, heads=2, layers=1, classes=classes)
    return Card(name="m", classes=names, positive="b", window=20, model=config)


@pytest.mark.parametrize(("method", "layout"), [("temperature", 1), ("platt", 2), ("isotonic", 2)])
def test_a_card_is_filled_and_survives_json(method, layout):
    raw, labels, _ = bent(3000)
    card, facts = calibrated_card(make_card(), raw, labels, np.arange(3000), method)
    p = Calibration.of(card).probabilities(raw)
    assert card.format == layout
    assert card.prevalence == pytest.approx(labels.mean())
    assert card.threshold == choose_threshold(p[:, 1])
    assert (facts["method"], facts["examples"], facts["groups"]) == (method, 3000, 3000)
    assert facts["figures"] == "cross-fitted, 5 folds of groups"
    assert facts["ece_before"] == pytest.approx(calibration_error(np.exp(raw[:, 1]), labels), rel=1e-5)
    assert facts["ece_after"] < facts["ece_before"]
    assert card.ece == pytest.approx(facts["ece_after"], rel=1e-5)
    again = card_from_mapping(card_to_mapping(card))
    assert again == card
    np.testing.assert_array_equal(Calibration.of(again).probabilities(raw), p)
    assert [ranks.n for ranks in again.conformal.values()] == np.bincount(labels).tolist()


def test_more_classes_are_calibrated_too():
    rng = np.random.default_rng(5)
    true = rng.normal(0, 1.5, (4000, 3))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)  # softmax(true), by the Gumbel trick
    card, facts = calibrated_card(make_card(3), log_softmax(3 * true, axis=1), labels, np.arange(4000))
    assert card.temperature == pytest.approx(3, rel=0.06)
    assert facts["ece_after"] < 0.03 < facts["ece_before"]
    assert list(card.conformal) == ["a", "b", "c"]


def test_figures_of_the_examples_fitted_to_are_called_so():
    raw, labels, _ = bent(200)
    assert (
        calibrated_card(make_card(), raw, labels, np.zeros(200))[1]["figures"] == "of the examples fitted to"
    )


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
    [([1, 2, 3], [1, 1, 0]), ([2, 2], [0, 1]), ([1, 2], [1, 1])],
    ids=["upside down", "one score", "one class"],
)
def test_what_has_no_rising_map_is_refused(x, y):
    with pytest.raises(InputError):
        fit_isotonic(x, y)


@pytest.mark.parametrize(("way", "limit"), [(1, 0), (-1, -1)])
def test_a_temperature_at_the_end_of_its_range_is_named(way, limit):
    """Log-odds of 1, always right, ask for the lowest temperature; always wrong, for the highest."""
    labels = np.arange(2000) % 2
    logits = np.stack((np.zeros(2000), way * (2.0 * labels - 1)), axis=1)
    fitted = Calibration.fit(log_softmax(logits, axis=1), labels, 1, "temperature")
    assert fitted.temperature == pytest.approx(TEMPERATURES[limit], rel=1e-3)
    assert fitted.at_bounds() == ["temperature"]
