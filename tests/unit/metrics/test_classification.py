"""Figures, weights and intervals against scikit-learn, theory and paper; baselines and paired tests."""

import math
import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn import metrics as reference
from sklearn.base import clone
from sklearn.metrics import matthews_corrcoef, roc_auc_score

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.metrics.baselines import (
    ForestBaseline,
    KmerPositionalBaseline,
    PositionWeightMatrix,
    default_baseline,
    mcnemar,
)
from seqray.metrics.classification import (
    METRICS,
    auprc,
    auroc,
    bootstrap_samples,
    calibration_error,
    call_metrics,
    class_metrics,
    macro_metrics,
    matthews,
    mcc_and_auroc,
    multiclass_metrics,
    percentile_interval,
    probability_metrics,
    ranking_metrics,
)
from slow_metrics import bootstrap_interval, calibration_error as slow_calibration_error

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
    assert call_metrics(truth, scores > 0.3, np.ones((1, len(truth))))["mcc"][0] == pytest.approx(expected)


def test_the_mean_over_classes_is_over_those_present():
    by_class = [{"f1": np.array([value])} for value in (0.2, 0.6, 1.0, np.nan)]
    ones = np.ones((1, 3))
    assert macro_metrics(np.array([0, 1, 3]), by_class, ones)["f1"].tolist() == pytest.approx([0.4])
    assert np.isnan(macro_metrics(np.array([3, 3, 3]), by_class, ones)["f1"]).all()


def test_mcc_is_0_where_all_are_called_alike_and_the_largest_genomes_do_not_overflow():
    assert matthews(*np.array([[0.0], [0.0], [5.0], [0.0]])).tolist() == [0]
    tables = np.array([[1e9, 1e9, 1e9, 1e9], [4e9, 0, 4e9, 0]])
    assert matthews(*tables.T).tolist() == pytest.approx([0, 1])


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


def random_sequences(n, length, seed):
    rng = np.random.default_rng(seed)
    return ["".join(row) for row in np.array(list("ACGT"))[rng.integers(0, 4, (n, length))]]


def planted(n=200, seed=0):
    """Half of the sequences hold TATAAT at 12; the others hold it somewhere else: only its place tells."""
    sequences, rng = random_sequences(n, 40, seed), np.random.default_rng(seed)
    labels = np.array(["promoter", "other"] * (n // 2))
    places = np.where(labels == "promoter", 12, rng.choice([2, 20, 30], n))
    return [s[:p] + "TATAAT" + s[p + 6 :] for s, p in zip(sequences, places, strict=True)], labels


def features_by_loop(sequence, kmers, positional, window):
    """Column by column: counts of every word, then the word at every place."""
    row = []
    for k in kmers:
        found = [sequence[i : i + k] for i in range(len(sequence) - k + 1)]
        row += [found.count("".join(word)) for word in product("ACGT", repeat=k)]
    for k in positional:
        for place in range(window - k + 1):
            row += [sequence[place : place + k] == "".join(word) for word in product("ACGT", repeat=k)]
    return row


def test_features_are_word_counts_and_words_at_places():
    sequences = ["ACGTACGTAA", "TTTNTTTTTT", "ACGT", "GGGGGGGGGG"]
    baseline = KmerPositionalBaseline(kmers=(1, 2), positional=(1, 3)).fit(sequences, ["a", "b", "a", "b"])
    expected = [features_by_loop(s, (1, 2), (1, 3), 10) for s in sequences]
    assert baseline._features(sequences).toarray().tolist() == expected


def test_ends_and_the_whole_are_told_by_the_shares_of_letters():
    sequences = ["AACCG", "TTG"]
    baseline = KmerPositionalBaseline(kmers=(1,), positional=(1,), ends=(2, 4)).fit(sequences, ["a", "b"])
    counts = [[2, 2, 1, 0], [0, 0, 1, 2]]
    whole = [[2 / 5, 2 / 5, 1 / 5, 0], [0, 0, 1 / 3, 2 / 3]]
    first_2, last_2 = [[1, 0, 0, 0], [0, 0, 0, 1]], [[0, 1 / 2, 1 / 2, 0], [0, 0, 1 / 2, 1 / 2]]
    first_4 = [[2 / 4, 2 / 4, 0, 0], [0, 0, 1 / 3, 2 / 3]]
    last_4 = [[1 / 4, 2 / 4, 1 / 4, 0], [0, 0, 1 / 3, 2 / 3]]
    expected = np.hstack([counts, whole, first_2, last_2, first_4, last_4])
    np.testing.assert_allclose(baseline._features(sequences).toarray(), expected)
    one_length = KmerPositionalBaseline(kmers=(), positional=(1,), ends=(1,)).fit(["AC", "TG"], ["a", "b"])
    assert one_length._features(["AC"]).shape == (1, 2 * 4 + 2 * 4)  # places, and both ends


def test_the_floor_of_proteins_knows_the_first_and_the_last_letter():
    rng = random.Random(0)
    inner = ["".join(rng.choices("ACDEFGHIKLNPQRSTVWY", k=rng.randint(20, 60))) for _ in range(300)]
    labels = np.array(["a", "b"] * 150)
    first = ["M" + x if label == "a" else x + "M" for x, label in zip(inner, labels, strict=True)]
    for sequences in (first, [x[::-1] for x in first]):
        fitted = default_baseline(PROTEIN).fit(sequences[:200], labels[:200])
        assert np.mean(fitted.predict(sequences[200:]) == labels[200:]) > 0.95


def test_letters_beyond_the_training_window_have_no_place():
    baseline = KmerPositionalBaseline(kmers=(1,), positional=(1,)).fit(["ACGT", "TGCA"], ["a", "b"])
    assert baseline._features(["ACGTAA"]).toarray()[0, 4:].tolist() == np.eye(4).ravel().tolist()


def test_the_place_of_a_motif_is_learned():
    sequences, labels = planted()
    baseline = KmerPositionalBaseline().fit(sequences[:120], labels[:120])
    probabilities = baseline.predict_proba(sequences[120:])
    assert baseline.classes_.tolist() == ["other", "promoter"]
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(80))
    assert auroc(labels[120:] == "promoter", probabilities[:, 1]) > 0.95
    assert np.mean(baseline.predict(sequences[120:]) == labels[120:]) > 0.85
    counts_only = KmerPositionalBaseline(positional=()).fit(sequences[:120], labels[:120])
    assert auroc(labels[120:] == "promoter", counts_only.predict_proba(sequences[120:])[:, 1]) < 0.75


@pytest.mark.parametrize("estimator", [KmerPositionalBaseline(penalty=2.0), PositionWeightMatrix("promoter")])
def test_estimators_clone_and_repeat(estimator):
    sequences, labels = planted(60)
    first = estimator.fit(sequences, labels).predict_proba(sequences)
    again: Any = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert (again.fit(sequences, labels).predict_proba(sequences) == first).all()


def test_weights_worked_out_on_paper():
    positives, negatives = ["AC", "AG", "AT"], ["CC", "GA", "GC", "TC"]
    labels = ["p"] * 3 + ["n"] * 4
    matrix = PositionWeightMatrix("p").fit(positives + negatives, labels)
    frequency_of_a, frequency_of_c = (1 / 8 + 2 / 8) / 2, (2 / 8 + 4 / 8) / 2
    assert matrix.weights_[0, :2] == pytest.approx(
        [math.log((4 / 7) / frequency_of_a), math.log((1 / 7) / frequency_of_c)]
    )
    assert matrix.weights_[1, 0] == pytest.approx(math.log((1 / 7) / frequency_of_a))
    assert (matrix.weights_[:, 4] == 0).all()


@pytest.mark.parametrize("positive", ["a", "z"])
def test_probabilities_follow_bayes_rule(positive):
    sequences = random_sequences(50, 6, seed=1)
    labels = np.array(["a"] * 15 + ["z"] * 35)
    matrix = PositionWeightMatrix(positive).fit(sequences, labels)
    likelihood = {}
    for name in ("a", "z"):
        members = [s for s, label in zip(sequences, labels, strict=True) if label == name]
        p = 1.0
        for place, letter in enumerate(sequences[0]):
            each = [(sum(s[i] == letter for s in members) + 1) / (len(members) + 4) for i in range(6)]
            p *= each[place] if name == positive else sum(each) / 6  # of the others their composition
        likelihood[name] = p * len(members) / 50
    expected = [likelihood["a"] / sum(likelihood.values()), likelihood["z"] / sum(likelihood.values())]
    assert matrix.predict_proba(sequences[:1])[0] == pytest.approx(expected)
    called = matrix.predict(sequences)
    assert (called == matrix.classes_[matrix.predict_proba(sequences).argmax(axis=1)]).all()


def test_a_weight_matrix_adds_the_weights_of_a_window():
    sequences, labels = planted(40)
    matrix = PositionWeightMatrix("promoter").fit(sequences, labels)
    genome = DNA.encode(random_sequences(1, 300, seed=9)[0] + "NNN")
    by_hand = sum(matrix.weights_[i, genome[5 + i]] for i in range(40))
    assert matrix.score_codes(genome[None, 5:45])[0] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PositionWeightMatrix().fit(["AC", "ACG"], ["a", "b"]), "sequences of 2 to 3 letters"),
        (lambda: PositionWeightMatrix("x").fit(["AC", "AG"], ["a", "b"]), "of 'x' needs it"),
        (lambda: PositionWeightMatrix().fit(["AC", "AG", "AT"], ["a", "b", "c"]), "one other class"),
    ],
)
def test_unfit_data_are_an_error_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()


def exact(b, c):
    """Twice the lower tail of a fair coin, at most 1."""
    tail = sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c)
    return min(1.0, 2 * tail)


@pytest.mark.parametrize(("b", "c"), [(0, 5), (1, 9), (4, 4), (10, 3), (30, 12)])
def test_p_is_that_of_a_fair_coin(b, c):
    labels = np.zeros(b + c + 20, dtype=int)
    first, second = labels.copy(), labels.copy()
    second[:b], first[b : b + c] = 1, 1
    first[-5:] = second[-5:] = 1  # both wrong: of no effect
    assert mcnemar(labels, first, second) == (b, c, pytest.approx(exact(b, c)))


def test_equal_calls_have_p_1():
    calls = np.array([0, 1, 2])
    assert mcnemar(np.array([0, 1, 1]), calls, calls) == (0, 0, 1)


def test_features_of_the_forest_are_length_and_shares():
    (row,) = ForestBaseline("dna").features(["AACGN"])
    letters = [2 / 4, 1 / 4, 1 / 4, 0]
    pairs = dict.fromkeys(["AA", "AC", "CG"], 1 / 3)
    expected = [5, *letters, *(pairs.get(a + b, 0) for a in "ACGT" for b in "ACGT"), *letters * 4]
    np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_a_sample_for_the_forest_has_every_class_and_blocks_change_nothing():
    rng = np.random.default_rng(1)
    sequences = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(60)]
    labels = ["rare"] + ["common"] * 59
    model = ForestBaseline(trees=5, most=20).fit(sequences, labels)
    assert list(model.classes_) == ["common", "rare"]
    assert model.model_.estimators_[0].tree_.weighted_n_node_samples[0] == 21  # a third of 59, and one
    whole = model.model_.predict_proba(model.features(sequences))
    np.testing.assert_array_equal(model.predict_proba(sequences), whole)
