"""Figures of merit against arithmetic on paper, scikit-learn and theory."""

import math

import numpy as np
import pytest
from sklearn import metrics as reference

from seqray.core.errors import InputError
from seqray.metrics.bootstrap import bootstrap_interval
from seqray.metrics.classification import (
    auroc,
    binary_metrics,
    expected_calibration_error,
    matthews,
)

# At 0.5: two true and one false positive, four true negatives, one false negative.
LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 0])
SCORES = np.array([0.9, 0.8, 0.2, 0.7, 0.4, 0.3, 0.1, 0.0])


def noisy(n=400, seed=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    return labels, np.clip(0.3 * labels + rng.random(n) * 0.7, 0, 1)


def test_a_table_worked_out_on_paper():
    measured = binary_metrics(LABELS, SCORES, 0.5)
    assert measured["mcc"] == pytest.approx((2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5))
    assert measured["sensitivity"] == pytest.approx(2 / 3)
    assert measured["specificity"] == pytest.approx(4 / 5)
    assert measured["precision"] == pytest.approx(2 / 3)
    assert measured["f1"] == pytest.approx(2 / 3)
    assert measured["accuracy"] == pytest.approx(6 / 8)
    assert measured["auroc"] == pytest.approx((5 + 5 + 2) / 15)  # negatives below each positive
    assert measured["auprc"] == pytest.approx((1 / 1 + 2 / 2 + 3 / 6) / 3)
    squares = 0.01 + 0.04 + 0.64 + 0.49 + 0.16 + 0.09 + 0.01 + 0.0
    assert measured["brier"] == pytest.approx(squares / 8)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_metrics_agree_with_scikit_learn(threshold):
    labels, scores = noisy()
    measured, calls = binary_metrics(labels, scores, threshold), scores >= threshold
    assert measured["mcc"] == pytest.approx(reference.matthews_corrcoef(labels, calls))
    assert measured["f1"] == pytest.approx(reference.f1_score(labels, calls))
    assert measured["accuracy"] == pytest.approx(reference.accuracy_score(labels, calls))
    assert measured["auroc"] == pytest.approx(reference.roc_auc_score(labels, scores))
    assert measured["auprc"] == pytest.approx(reference.average_precision_score(labels, scores))
    assert measured["brier"] == pytest.approx(reference.brier_score_loss(labels, scores))


def test_a_score_at_the_threshold_is_a_call():
    assert binary_metrics([1, 0], [0.5, 0.4], 0.5)["accuracy"] == 1


def test_undefined_metrics_are_nan_and_not_a_number_that_looks_real():
    measured = binary_metrics([0, 0], [0.1, 0.9], 0.5)
    assert {k for k, v in measured.items() if math.isnan(v)} == {"mcc", "auroc", "auprc", "sensitivity"}
    assert matthews(*np.array([[0.0], [0.0], [5.0], [0.0]])).tolist() == [0]


def test_the_largest_genomes_do_not_overflow_mcc():
    tables = np.array([[1e9, 1e9, 1e9, 1e9], [4e9, 0, 4e9, 0]])
    assert matthews(*tables.T).tolist() == pytest.approx([0, 1])


@pytest.mark.parametrize(
    ("labels", "scores", "words"),
    [
        ([1, 0], [0.5], "not two lists of the same length"),
        ([], [], "no example"),
        ([0, 2], [0.1, 0.2], "not 0 and 1"),
    ],
)
def test_input_that_is_no_pair_of_labels_and_scores(labels, scores, words):
    with pytest.raises(InputError, match=words):
        binary_metrics(labels, scores)


def ece_by_loop(probabilities, labels, bins):
    total = 0.0
    for b in range(bins):
        inside = [
            (p, y)
            for p, y in zip(probabilities, labels, strict=True)
            if b / bins <= p < (b + 1) / bins or (b == bins - 1 and p == 1)
        ]
        if inside:
            confidence = sum(p for p, _ in inside) / len(inside)
            frequency = sum(y for _, y in inside) / len(inside)
            total += len(inside) / len(labels) * abs(confidence - frequency)
    return total


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_calibration_error_agrees_with_its_definition(bins):
    labels, scores = noisy()
    assert expected_calibration_error(scores, labels, bins) == pytest.approx(
        ece_by_loop(scores, labels, bins)
    )


def test_calibration_error_of_cases_known_beforehand():
    assert expected_calibration_error([0.25] * 4, [1, 0, 0, 0]) == pytest.approx(0)
    assert expected_calibration_error([0.9] * 5, [0] * 5) == pytest.approx(0.9)
    assert expected_calibration_error([1.0, 0.0], [1, 0]) == 0


def test_calibration_error_of_many_classes_is_that_of_the_top_class():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    assert expected_calibration_error(p, [0, 2]) == pytest.approx((0.3 + 0.8) / 2)


def mean_score(_, scores):
    return float(np.mean(scores))


def test_the_bootstrap_of_a_mean_has_the_width_of_theory():
    scores = np.random.default_rng(0).normal(size=1000)
    low, high = bootstrap_interval(mean_score, np.ones(1000), scores, n=2000)
    half = 1.96 * scores.std() / math.sqrt(1000)
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert (high + low) / 2 == pytest.approx(scores.mean(), abs=0.2 * half)


def test_groups_of_copies_count_once():
    scores = np.random.default_rng(1).normal(size=100)
    copies, groups = np.repeat(scores, 16), np.repeat(np.arange(100), 16)
    low, high = bootstrap_interval(mean_score, np.ones(1600), copies, n=1500)
    grouped_low, grouped_high = bootstrap_interval(mean_score, np.ones(1600), copies, groups, n=1500)
    assert (grouped_high - grouped_low) / (high - low) == pytest.approx(4, rel=0.15)  # sqrt of 16


def test_the_seed_decides_the_interval():
    labels, scores = noisy()
    same = [bootstrap_interval(auroc, labels, scores, n=50, seed=5) for _ in range(2)]
    assert same[0] == same[1]
    assert same[0] != bootstrap_interval(auroc, labels, scores, n=50, seed=6)


def test_resamples_without_a_class_are_left_out():
    labels, scores = np.array([1] + [0] * 9), np.linspace(1, 0, 10)
    assert bootstrap_interval(auroc, labels, scores, n=200) == (1, 1)
    assert all(math.isnan(x) for x in bootstrap_interval(auroc, np.zeros(4), np.arange(4.0), n=20))
