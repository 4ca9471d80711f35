"""Baselines, and tests of paired results."""

import math
import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.metrics.baselines import (
    ForestBaseline,
    KmerPositionalBaseline,
    PositionWeightMatrix,
    default_baseline,
    mcnemar,
)
from seqray.metrics.classification import auroc


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


def test_scanning_scores_every_window():
    sequences, labels = planted(40)
    matrix = PositionWeightMatrix("promoter").fit(sequences, labels)
    genome = DNA.encode(random_sequences(1, 300, seed=9)[0] + "NNN")
    windows = np.lib.stride_tricks.sliding_window_view(genome, 40)
    assert matrix.scan_codes(genome) == pytest.approx(matrix.score_codes(windows))
    by_hand = sum(matrix.weights_[i, genome[5 + i]] for i in range(40))
    assert matrix.scan_codes(genome)[5] == pytest.approx(by_hand)
    assert matrix.scan_codes(genome[:39]).shape == (0,)


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
