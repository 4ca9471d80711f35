"""Rules against brute force and closed forms."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.datasets.audit.rules import Feature, best_threshold, choose_form, learn_rule

PAIRS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=25)


def correlation(labels, calls):
    """MCC is Pearson's correlation of two columns of 0 and 1; 0 where one is constant."""
    if len(set(labels.tolist())) < 2 or len(set(calls.tolist())) < 2:
        return 0.0
    return np.corrcoef(labels, calls)[0, 1]


def learned(feature, labels, rows):
    """The rule in the form that its own rows choose."""
    return learn_rule(feature, labels, rows, choose_form(feature, labels, rows))


@given(PAIRS)
def test_the_threshold_has_the_highest_mcc(pairs):
    labels, scores = (np.array(column) for column in zip(*pairs, strict=True))
    found = correlation(labels, scores >= best_threshold(labels, scores.astype(float)))
    best = max(correlation(labels, scores >= t) for t in range(6))
    assert found == pytest.approx(best)


def test_a_threshold_turns_round_where_low_values_tell_the_class():
    values = np.array([1.0, 2, 3, 4, 5, 6])
    labels = np.array([True, True, True, False, False, False])
    rule = learned(Feature("x", values), labels, np.arange(6))
    assert rule.edges is None
    assert (rule.scores(Feature("x", np.array([2.5, 4.5])), np.arange(2)) >= rule.threshold).tolist() == [
        True,
        False,
    ]


def test_bins_see_what_a_threshold_misses():
    values = np.tile(np.arange(16.0), 20)
    labels = (values >= 6) & (values < 10)  # the middle
    rule = learned(Feature("length", values), labels, np.arange(len(values)))
    assert rule.edges is not None
    assert (
        (rule.scores(Feature("length", values), np.arange(len(values))) >= rule.threshold) == labels
    ).all()


def test_a_category_scores_the_share_of_the_class_in_it():
    values = np.array([0, 0, 0, 1, 1, 2])
    labels = np.array([True, True, False, False, False, True])
    rule = learned(Feature("first", values, True), labels, np.arange(5))  # 2 is not learnt from
    overall = 2 / 5
    expected = [(2 + overall) / 4, (0 + overall) / 3, overall]
    assert rule.scores(Feature("first", np.array([0, 1, 2]), True), np.arange(3)) == pytest.approx(expected)
    assert rule.threshold == pytest.approx(expected[0])


def test_measured_rows_teach_nothing():
    rng = np.random.default_rng(0)
    values, labels = rng.normal(size=40), rng.random(40) < 0.5
    changed = np.concatenate((values[:20], rng.normal(size=20)))
    one, other = (learned(Feature("x", v), labels, np.arange(20)) for v in (values, changed))
    assert one.threshold == other.threshold
