"""Weights against repeated records, intervals against a slow bootstrap and theory."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import matthews_corrcoef, roc_auc_score

from seqray.metrics.bootstrap import bootstrap_samples, mcc_and_auroc, percentile_interval
from seqray.metrics.classification import call_metrics, ranking_metrics
from slow_metrics import bootstrap_interval

ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=30
)


@given(ROWS)
def test_weights_are_repeats(rows):
    labels, scores, calls, weights = (np.array(column) for column in zip(*rows, strict=True))
    y, s, c = (np.repeat(column, weights) for column in (labels, scores, calls))
    both = len(set(y.tolist())) == 2
    weights = weights[None].astype(float)
    [area] = ranking_metrics(labels, scores.astype(float), weights)["auroc"]
    [mcc] = call_metrics(labels, calls, weights)["mcc"]
    if not both:
        assert math.isnan(area)
        assert math.isnan(mcc)
        return
    assert area == pytest.approx(roc_auc_score(y, s))
    assert mcc == pytest.approx(matthews_corrcoef(y, c))


def example(n=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.4
    scores = rng.normal(size=n) + labels
    return labels, scores, scores > 0.5, rng.integers(0, 80, n)


def test_intervals_agree_with_those_of_the_slow_bootstrap():
    labels, scores, calls, groups = example()
    found = mcc_and_auroc(labels, scores, calls, groups, draws=1000, seed=3)["auroc"]
    low, high = bootstrap_interval(roc_auc_score, labels, scores, groups, draws=400)
    assert found.value == pytest.approx(roc_auc_score(labels, scores))
    assert found.low == pytest.approx(low, abs=0.015)
    assert found.high == pytest.approx(high, abs=0.015)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_the_bootstrap_of_a_mean_has_the_width_of_theory(one_by_one):
    scores = np.random.default_rng(0).normal(size=1000)
    found = bootstrap_samples(
        lambda weights: {"mean": weights @ scores / 1000}, np.arange(1000), 2000, 0, one_by_one=one_by_one
    )
    value, samples = found["mean"]
    low, high = percentile_interval(samples)
    half = 1.96 * scores.std() / math.sqrt(1000)
    assert value == pytest.approx(scores.mean())
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert (high + low) / 2 == pytest.approx(scores.mean(), abs=0.2 * half)


def test_draws_without_a_class_are_left_out():
    labels, scores = np.arange(10) == 0, np.linspace(1, 0, 10)
    found = mcc_and_auroc(labels, scores, labels, np.arange(10), draws=200)
    assert all((one.low, one.high) == (1, 1) for one in found.values())
    none = mcc_and_auroc(labels[1:], scores[1:], labels[1:], np.arange(9), draws=20)
    assert all(math.isnan(one.low) and math.isnan(one.high) for one in none.values())


def test_copies_widen_the_interval_only_when_their_groups_are_known():
    labels, scores, calls, _ = example(100)
    copied = [np.tile(column, 9) for column in (labels, scores, calls)]
    rows = np.arange(100)
    known = mcc_and_auroc(*copied, np.tile(rows, 9), draws=400, seed=1)["mcc"]
    alone = mcc_and_auroc(labels, scores, calls, rows, draws=400, seed=1)["mcc"]
    naive = mcc_and_auroc(*copied, np.arange(900), draws=400, seed=1)["mcc"]
    assert (known.low, known.high) == pytest.approx((alone.low, alone.high))
    assert naive.high - naive.low < 0.5 * (known.high - known.low)


def test_one_group_has_no_interval():
    labels, scores, calls, groups = example()
    found = mcc_and_auroc(labels, scores, calls, np.zeros_like(groups))
    assert all(math.isnan(m.low) and math.isnan(m.high) and m.value > 0 for m in found.values())


def test_the_seed_decides_the_interval():
    assert mcc_and_auroc(*example(), seed=5) == mcc_and_auroc(*example(), seed=5)
    assert mcc_and_auroc(*example(), seed=5) != mcc_and_auroc(*example(), seed=6)
