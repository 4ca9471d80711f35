"""Figures of weighted records against scikit-learn and arithmetic on paper."""

import math

import numpy as np
import pytest
from sklearn import metrics as reference

from seqray.metrics.classification import (
    METRICS,
    auprc,
    auroc,
    calibration_error,
    call_metrics,
    class_metrics,
    macro_metrics,
    matthews,
    multiclass_metrics,
    probability_metrics,
    ranking_metrics,
    threshold_metrics,
)
from slow_metrics import calibration_error as slow_calibration_error

# At 0.5: two true and one false positive, four true negatives, one false negative.
LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 0])
SCORES = np.array([0.9, 0.8, 0.2, 0.7, 0.4, 0.3, 0.1, 0.0])


def only(figures):
    return {name: float(row[0]) for name, row in figures.items()}


def random_case(seed, n=120, classes=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    scores = np.round(rng.dirichlet(np.ones(classes), n), 1) + 0.01  # ties
    scores /= scores.sum(axis=1, keepdims=True)
    return labels, scores, rng.integers(0, 4, (5, n)).astype(float)


def test_a_table_worked_out_on_paper():
    calls, ones = (SCORES >= 0.5).astype(int), np.ones((1, 8))
    measured = only(class_metrics(LABELS, SCORES, calls, ones, probabilities=True))
    assert tuple(measured) == METRICS
    assert measured["mcc"] == pytest.approx((2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5))
    assert measured["f1"] == pytest.approx(2 / 3)
    assert measured["sensitivity"] == pytest.approx(2 / 3)
    assert measured["specificity"] == pytest.approx(4 / 5)
    assert measured["precision"] == pytest.approx(2 / 3)
    assert measured["balanced_accuracy"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert measured["accuracy"] == pytest.approx(6 / 8)
    assert measured["auroc"] == pytest.approx((5 + 5 + 2) / 15)  # negatives below each positive
    assert measured["auprc"] == pytest.approx((1 / 1 + 2 / 2 + 3 / 6) / 3)
    assert measured["brier"] == pytest.approx((0.01 + 0.04 + 0.64 + 0.49 + 0.16 + 0.09 + 0.01) / 8)


@pytest.mark.parametrize("seed", range(4))
def test_weighted_figures_agree_with_scikit_learn(seed):
    labels, scores, weights = random_case(seed, classes=2)
    score, calls = scores[:, 1], (scores[:, 1] >= 0.5).astype(int)
    measured = class_metrics(labels, score, calls, weights, probabilities=True)
    for row, w in enumerate(weights):
        expected = {
            "mcc": reference.matthews_corrcoef(labels, calls, sample_weight=w),
            "f1": reference.f1_score(labels, calls, sample_weight=w),
            "sensitivity": reference.recall_score(labels, calls, sample_weight=w),
            "specificity": reference.recall_score(labels, calls, pos_label=0, sample_weight=w),
            "precision": reference.precision_score(labels, calls, sample_weight=w),
            "balanced_accuracy": reference.balanced_accuracy_score(labels, calls, sample_weight=w),
            "accuracy": reference.accuracy_score(labels, calls, sample_weight=w),
            "auroc": reference.roc_auc_score(labels, score, sample_weight=w),
            "auprc": reference.average_precision_score(labels, score, sample_weight=w),
            "brier": reference.brier_score_loss(labels, score, sample_weight=w),
            "log_loss": reference.log_loss(labels, score, sample_weight=w),
        }
        for name, value in expected.items():
            assert measured[name][row] == pytest.approx(value), name


@pytest.mark.parametrize("seed", range(3))
def test_figures_of_a_whole_table_agree_with_scikit_learn(seed):
    labels, scores, weights = random_case(seed)
    calls = scores.argmax(axis=1)
    measured = multiclass_metrics(labels, scores, calls, weights, probabilities=True)
    for row, w in enumerate(weights):
        expected = {
            "mcc": reference.matthews_corrcoef(labels, calls, sample_weight=w),
            "accuracy": reference.accuracy_score(labels, calls, sample_weight=w),
            "balanced_accuracy": reference.balanced_accuracy_score(labels, calls, sample_weight=w),
            "log_loss": reference.log_loss(labels, scores, sample_weight=w),
            "brier": np.average(((np.eye(3)[labels] - scores) ** 2).sum(axis=1), weights=w),
        }
        assert {name: measured[name][row] for name in expected} == pytest.approx(expected)
    index = np.repeat(np.arange(len(labels)), weights[0].astype(int))
    top, hits = scores[index].max(axis=1), (calls == labels)[index]
    assert measured["ece"][0] == pytest.approx(slow_calibration_error(top, hits))


def test_figures_that_need_an_absent_class_are_undefined():
    positives, ones = np.ones(3, dtype=int), np.ones((1, 3))
    scores = np.array([0.2, 0.6, 0.9])
    measured = only(class_metrics(positives, scores, (scores > 0.5).astype(int), ones, probabilities=True))
    for name in ("specificity", "auroc", "auprc", "balanced_accuracy", "mcc"):
        assert math.isnan(measured[name])
    nothing = only(call_metrics(np.array([0, 0]), np.array([0, 0]), np.ones((1, 2))))
    assert all(math.isnan(nothing[name]) for name in ("sensitivity", "precision", "f1"))
    assert nothing["specificity"] == nothing["accuracy"] == 1
    assert math.isnan(only(ranking_metrics(np.zeros(2, dtype=int), scores[:2], np.ones((1, 2))))["auprc"])


def test_a_class_absent_from_a_draw_is_left_out_of_the_balanced_accuracy():
    labels, calls = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    weights = np.array([[1.0, 1.0, 1.0, 0.0]])
    measured = multiclass_metrics(labels, np.eye(3)[calls], calls, weights, probabilities=False)
    assert measured["balanced_accuracy"][0] == pytest.approx((1 / 2 + 1) / 2)
    assert set(measured) == {"mcc", "balanced_accuracy", "accuracy"}


def test_log_loss_of_a_confident_mistake_is_finite():
    found = only(probability_metrics(np.array([1]), np.array([0.0]), np.ones((1, 1))))
    assert found["log_loss"] == pytest.approx(-math.log(np.finfo(float).eps))


@pytest.mark.parametrize(
    ("scores", "labels", "error"),
    [
        ([0.9, 0.9, 0.1], [1, 0, 0], (2 * 0.4 + 1 * 0.1) / 3),  # .9 and .9 share a bin, and one is right
        ([0.25] * 4, [1, 0, 0, 0], 0),
        ([0.9] * 5, [0] * 5, 0.9),
        ([1.0, 0.0], [1, 0], 0),
    ],
)
def test_calibration_error_on_paper(scores, labels, error):
    p = np.stack((1 - np.array(scores), scores), axis=1)
    assert calibration_error(p, np.array(labels), positive=1) == pytest.approx(error)


def test_calibration_error_of_many_classes_is_that_of_the_top_class():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    assert calibration_error(p, np.array([0, 2]), positive=1) == pytest.approx((0.3 + 0.8) / 2)


@pytest.mark.parametrize("positive", [0, 1])
def test_figures_of_records_of_equal_weight(positive):
    labels, p, _ = random_case(5, classes=2)
    truth, scores = labels == positive, p[:, positive]
    assert calibration_error(p, labels, positive) == pytest.approx(slow_calibration_error(scores, truth))
    assert auroc(truth, scores) == pytest.approx(reference.roc_auc_score(truth, scores))
    assert auprc(truth, scores) == pytest.approx(reference.average_precision_score(truth, scores))
    expected = reference.matthews_corrcoef(truth, scores > 0.3)
    assert threshold_metrics(truth, scores > 0.3)["mcc"] == pytest.approx(expected)


def test_the_mean_over_classes_is_over_those_present():
    by_class = [{"f1": np.array([value])} for value in (0.2, 0.6, 1.0, np.nan)]
    ones = np.ones((1, 3))
    assert macro_metrics(np.array([0, 1, 3]), by_class, ones)["f1"].tolist() == pytest.approx([0.4])
    assert np.isnan(macro_metrics(np.array([3, 3, 3]), by_class, ones)["f1"]).all()


def test_mcc_is_0_where_all_are_called_alike_and_the_largest_genomes_do_not_overflow():
    assert matthews(*np.array([[0.0], [0.0], [5.0], [0.0]])).tolist() == [0]
    tables = np.array([[1e9, 1e9, 1e9, 1e9], [4e9, 0, 4e9, 0]])
    assert matthews(*tables.T).tolist() == pytest.approx([0, 1])
