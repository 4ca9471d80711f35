"""Intervals cover what they should, differences are paired, and no baseline is judged by its own fit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn import metrics as reference
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.core.results import Answers
from seqray.evaluation.floor import answers_from_probabilities, floor_answers
from seqray.evaluation.run import Records, measure
from seqray.homology.split import grouped_folds
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.metrics.classification import (
    CELLS,
    auroc,
    bootstrap_weights,
    difference_p_value,
    percentile_interval,
)
from slow_metrics import bootstrap_interval, calibration_error

CLASSES = ("background", "promoter")


def answers_of(source, scores, threshold=0.5):
    table = np.stack((1 - scores, scores), axis=1)
    return Answers(source, source, table, (scores >= threshold).astype(int), threshold=threshold)


def simulated(seed, n=200):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    return labels, np.clip(0.3 * labels + rng.random(n) * 0.7, 0, 1), rng.integers(0, n // 4, n)


def by_metric(figures, source="model"):
    return {figure.metric: figure for figure in figures if figure.source == source}


def test_values_are_those_of_the_metrics_and_intervals_those_of_the_bootstrap():
    labels, scores, groups = simulated(0)
    records = Records(CLASSES, "promoter", labels, groups)
    found = by_metric(measure(records, [answers_of("model", scores)], draws=400))
    expected = {
        "mcc": reference.matthews_corrcoef(labels, scores >= 0.5),
        "sensitivity": reference.recall_score(labels, scores >= 0.5),
        "auroc": reference.roc_auc_score(labels, scores),
        "auprc": reference.average_precision_score(labels, scores),
        "brier": reference.brier_score_loss(labels, scores),
        "ece": calibration_error(scores, labels),
    }
    assert {name: found[name].value for name in expected} == pytest.approx(expected)
    low, high = bootstrap_interval(reference.roc_auc_score, labels, scores, groups, draws=400)
    assert found["auroc"].low == pytest.approx(low, abs=0.015)  # other draws of the same bootstrap
    assert found["auroc"].high == pytest.approx(high, abs=0.015)
    figure = found["mcc"]
    assert (figure.n, figure.positives, figure.groups) == (200, labels.sum(), len(set(groups)))
    assert (figure.subset, figure.label) == ("all", "promoter")
    assert math.isnan(figure.p)


def test_draws_take_whole_groups_as_many_as_there_are():
    groups = np.array([0, 0, 1, 2, 2, 2])
    [weights] = bootstrap_weights(groups, 300, seed=1)
    assert weights.shape == (300, 6)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert weights[:, 2].mean() == pytest.approx(1, abs=0.2)


def test_draws_are_the_same_whatever_is_held_at_once(monkeypatch):
    groups = np.arange(50)
    [whole] = bootstrap_weights(groups, 40, seed=3)
    monkeypatch.setattr("seqray.metrics.classification.CELLS", 50 * 7)
    parts = list(bootstrap_weights(groups, 40, seed=3))
    assert len(parts) == 6
    assert CELLS > 50 * 7
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_intervals_and_p_on_paper():
    samples = np.arange(1001) / 1000
    assert percentile_interval(samples) == pytest.approx((0.025, 0.975))
    assert percentile_interval(np.array([np.nan, 2.0])) == (2.0, 2.0)
    assert all(math.isnan(bound) for bound in percentile_interval(np.array([np.nan])))
    assert difference_p_value(np.array([1.0] * 97 + [-1.0] * 2)) == pytest.approx(2 * 3 / 100)
    assert difference_p_value(np.array([0.0, 1.0])) == 1
    assert math.isnan(difference_p_value(np.array([np.nan])))


def coverage(grouped: bool, rounds):
    """How often the interval of a paired difference holds 0, its true value.

    Five records of a group are called alike by each of two classifiers, both right in 70 % of the groups.
    """
    held = 0
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, 200)
        wrong = np.repeat(rng.random((2, 40)) < 0.3, 5, axis=1)
        calls = np.where(wrong, 1 - labels, labels)
        answers = [answers_of("model", calls[0] * 0.8), answers_of("floor", calls[1] * 0.8)]
        groups = np.repeat(np.arange(40), 5) if grouped else None
        records = Records(CLASSES, "promoter", labels, groups)
        figures = measure(records, answers, versus=["floor"], draws=100, seed=seed)
        difference = by_metric(figures, "model-floor")["accuracy"]
        held += difference.low <= 0 <= difference.high
    return held / rounds


def test_a_paired_interval_over_groups_covers_and_one_over_records_does_not():
    assert 0.88 <= coverage(grouped=True, rounds=200) <= 0.98
    assert coverage(grouped=False, rounds=60) < 0.8


def test_a_difference_is_that_of_the_figures_and_0_against_itself():
    labels, scores, groups = simulated(2)
    other = np.clip(scores + np.random.default_rng(5).normal(0, 0.3, 200), 0, 1)
    records = Records(CLASSES, "promoter", labels, groups)
    figures = measure(
        records, [answers_of("model", scores), answers_of("against", other)], versus=["against"], draws=300
    )
    one, two, both = (by_metric(figures, source) for source in ("model", "against", "model-against"))
    for metric, figure in both.items():
        assert figure.value == pytest.approx(one[metric].value - two[metric].value)
        assert 0 < figure.p <= 1
    assert both["auroc"].low > 0
    assert both["auroc"].p < 0.05
    same = measure(
        records, [answers_of("model", scores), answers_of("floor", scores)], versus=["floor"], draws=50
    )
    for figure in by_metric(same, "model-floor").values():
        assert (figure.value, figure.low, figure.high, figure.p) == (0, 0, 0, 1)


def test_several_classes_one_against_the_rest_and_their_mean():
    rng = np.random.default_rng(4)
    classes, labels = ("a", "b", "c"), rng.integers(0, 3, 150)
    scores = rng.dirichlet(np.ones(3), 150) + 0.4 * np.eye(3)[labels]
    scores /= scores.sum(axis=1, keepdims=True)
    answers = Answers("model", "", scores, scores.argmax(axis=1))
    found = {(f.label, f.metric): f for f in measure(Records(classes, "a", labels), [answers], draws=0)}
    calls = scores.argmax(axis=1)
    assert found["all", "mcc"].value == pytest.approx(reference.matthews_corrcoef(labels, calls))
    assert found["macro", "f1"].value == pytest.approx(reference.f1_score(labels, calls, average="macro"))
    expected = reference.roc_auc_score(labels, scores, multi_class="ovr", average="macro")
    assert found["macro", "auroc"].value == pytest.approx(expected)
    assert found["b", "auroc"].value == pytest.approx(reference.roc_auc_score(labels == 1, scores[:, 1]))
    assert found["b", "mcc"].positives == (labels == 1).sum()
    assert found["all", "mcc"].positives == 0
    assert math.isnan(found["all", "mcc"].low)


def test_scores_that_are_no_probabilities_have_no_calibration():
    labels, scores, _ = simulated(7)
    raw = Answers("model", "", np.stack((-9 * scores, 9 * scores), axis=1), (scores > 0.5).astype(int), False)
    found = by_metric(measure(Records(CLASSES, "promoter", labels), [raw], draws=0))
    assert not {"brier", "ece", "log_loss"} & set(found)
    assert found["auroc"].value == pytest.approx(reference.roc_auc_score(labels, scores))


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_the_order_of_records_decides_no_value(seed):
    labels, scores, groups = simulated(seed, n=60)
    order = np.random.default_rng(seed).permutation(60)
    one = measure(Records(CLASSES, "promoter", labels, groups), [answers_of("model", scores)], draws=0)
    other = measure(
        Records(CLASSES, "promoter", labels[order], groups[order]),
        [answers_of("model", scores[order])],
        draws=0,
    )
    for a, b in zip(one, other, strict=True):
        assert (a.metric, a.groups) == (b.metric, b.groups)
        assert a.value == pytest.approx(b.value, nan_ok=True)


def examples(n, seed, length=30, planted="TATAAT"):
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        letters = "".join(rng.choice(list("ACGT"), length))
        label = CLASSES[i % 2]
        if label == "promoter" and planted:
            letters = letters[:10] + planted + letters[10 + len(planted) :]
        found.append(LabeledSequence(letters, label, f"r{i}"))
    return found


def run(test, train=(), alphabet=DNA, classes=CLASSES, groups=None):
    keys = range(len(test)) if groups is None else groups
    return {a.source: a for a in floor_answers(test, train, classes, classes[-1], alphabet, list(keys))}


def test_the_floor_is_the_baseline_fitted_on_training_data():
    train, test = examples(80, 1), examples(30, 2)
    found = run(test, train)
    model = KmerPositionalBaseline().fit([e.sequence for e in train], [e.label for e in train])
    expected = model.predict_proba([e.sequence for e in test])
    np.testing.assert_allclose(found["floor"].scores, expected, atol=1e-8)
    assert "fitted on 80 training records" in found["floor"].note
    assert (found["floor"].calls == [i % 2 for i in range(30)]).mean() > 0.9


def test_the_composition_rule_is_a_logistic_regression_on_gc():
    train, test = examples(80, 1), examples(30, 2)
    share = [[sum(letter in "GC" for letter in e.sequence) / 30] for e in [*train, *test]]
    scaler = StandardScaler().fit(share[:80])
    model = LogisticRegression().fit(scaler.transform(share[:80]), [CLASSES.index(e.label) for e in train])
    expected = model.predict_proba(scaler.transform(share[80:]))
    found = run(test, train)
    np.testing.assert_allclose(found["gc"].scores, expected, atol=1e-6)
    assert set(found) == {"floor", "forest", "majority", "gc"}  # one length says nothing


@pytest.mark.parametrize("alphabet", [DNA, PROTEIN], ids=lambda alphabet: alphabet.name)
def test_a_rule_and_the_forest_know_a_range_of_lengths(alphabet):
    """Promoters are of middle length: no line separates them, and two thresholds do so in all records."""
    rng = np.random.default_rng(3)
    records = []
    for i in range(400):
        n = rng.integers(40, 60) if i % 2 else rng.choice([*range(15, 30), *range(70, 85)])
        letters = "".join(rng.choice(list(alphabet.letters), n))
        records.append(LabeledSequence(letters, CLASSES[i % 2], f"r{i}"))
    found = run(records[200:], records[:200], alphabet)
    assert set(found) == {"floor", "forest", "majority", "length"} | {"gc"} & {*found}
    truth = np.tile([0, 1], 100)
    assert auroc(truth, found["length"].scores[:, 1]) > 0.97
    assert auroc(truth, found["forest"].scores[:, 1]) > 0.97
    np.testing.assert_allclose(found["length"].scores.sum(axis=1), 1)


def test_majority_is_the_shares_of_training_and_does_not_rank():
    train = examples(60, 1)[:50] + [LabeledSequence("ACGT" * 8, "background", f"x{i}") for i in range(50)]
    found = run(examples(10, 2), train)["majority"]
    np.testing.assert_allclose(found.scores, np.tile([0.75, 0.25], (10, 1)))
    assert not found.calls.any()
    assert len(np.unique(run(examples(11, 2))["majority"].scores[:, 1])) == 1


def test_folds_hold_whole_groups_out():
    """Labels are drawn at random but shared by copies: only a fit that saw a copy can know them."""
    rng = np.random.default_rng(4)
    letters = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(60)]
    labels = rng.permutation([0, 1] * 30)
    originals = [LabeledSequence(s, CLASSES[k], s) for s, k in zip(letters, labels, strict=True)]
    test = [*originals, *originals]
    truth = np.concatenate((labels, labels))
    apart = run(test, groups=[*range(60)] * 2)["floor"]
    leaking = run(test, groups=[*range(120)])["floor"]
    assert "cross-validated by groups in 5 folds" in apart.note
    assert (apart.scores.argmax(axis=1) == truth).mean() < 0.7
    assert (leaking.scores.argmax(axis=1) == truth).mean() > 0.75


def test_a_class_without_training_data_gets_0_and_unknown_labels_are_refused():
    train = examples(40, 1)
    with pytest.raises(InputError, match="record 'o': has the label 'other', which is none of background, "):
        run(examples(6, 2), [*train, LabeledSequence("ACGT" * 7, "other", "o")])
    found = run(examples(6, 2), train, classes=("background", "rare", "promoter"))
    assert found["floor"].scores[:, 1].tolist() == [0] * 6
    np.testing.assert_allclose(found["floor"].scores.sum(axis=1), 1)
    assert found["floor"].threshold is None
    one = run(examples(6, 2), [e for e in train if e.label == "promoter"])
    assert one["floor"].scores.tolist() == [[0, 1]] * 6


def test_few_records_get_fewer_folds():
    found = run(examples(6, 2))  # three of each class
    assert "cross-validated by groups in 3 folds" in found["floor"].note
    assert found["floor"].scores.shape == (6, 2)
    with pytest.raises(InputError, match="2 folds from 1 examples in the largest class"):
        grouped_folds(["a", "b"], [0, 1], 2)


def test_too_few_groups():
    with pytest.raises(InputError, match="folds from 1 groups"):
        run(examples(6, 2), groups=["x"] * 6)


@pytest.mark.parametrize(
    ("positive", "given", "threshold", "calls"),
    [
        ("promoter", 0.8, 0.8, [0, 0, 1, 0]),
        ("background", 0.8, 0.8, [0, 1, 1, 0]),
        ("promoter", None, 0.45, [0, 1, 1, 0]),  # halfway between .2 and .7, the widest gap
    ],
)
def test_calls_follow_a_threshold_or_the_highest_expected_correlation(positive, given, threshold, calls):
    scores = np.array([[0.8, 0.2], [0.3, 0.7], [0.1, 0.9], [0.9, 0.1]])
    found = answers_from_probabilities("model", "", scores, CLASSES, positive, given)
    assert found.threshold == pytest.approx(threshold)
    assert found.calls.tolist() == calls
