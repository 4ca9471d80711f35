"""Parts of an audit against brute force and closed forms: rules, runs, the length of k-mers, gaps."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import runs_test
from seqray.datasets.audit.findings import is_lower
from seqray.datasets.audit.run import Feature
from seqray.homology.kmers import chance_length, word_length
from seqray.metrics.classification import choose_form, learn_rule, threshold_of_best_mcc

PAIRS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=25)


def correlation(labels, calls):
    """MCC is Pearson's correlation of two columns of 0 and 1; 0 where one is constant."""
    if len(set(labels.tolist())) < 2 or len(set(calls.tolist())) < 2:
        return 0.0
    return np.corrcoef(labels, calls)[0, 1]


def learned(feature, labels, rows):
    """The rule in the form that its own rows choose."""
    values, edges = feature.values[rows], np.arange(1, int(feature.values.max()) + 1)
    if feature.categorical:
        return learn_rule(values, labels[rows], "shares", edges)
    return learn_rule(values, labels[rows], choose_form(values, labels[rows]))


@given(PAIRS)
def test_the_threshold_has_the_highest_mcc(pairs):
    labels, scores = (np.array(column) for column in zip(*pairs, strict=True))
    found = correlation(labels, scores >= threshold_of_best_mcc(labels, scores.astype(float)))
    best = max(correlation(labels, scores >= t) for t in range(6))
    assert found == pytest.approx(best)


def test_bins_see_what_a_threshold_misses():
    values = np.tile(np.arange(16.0), 20)
    labels = (values >= 6) & (values < 10)  # the middle
    rule = learned(Feature("length", values), labels, np.arange(len(values)))
    assert rule.edges is not None
    assert ((rule.scores(values) >= rule.threshold) == labels).all()


def test_a_category_scores_the_share_of_the_class_in_it():
    values = np.array([0, 0, 0, 1, 1, 2])
    labels = np.array([True, True, False, False, False, True])
    rule = learned(Feature("first", values, True), labels, np.arange(5))  # 2 is not learnt from
    overall = 2 / 5
    expected = [(2 + overall) / 4, (0 + overall) / 3, overall]
    assert rule.scores(np.array([0, 1, 2])) == pytest.approx(expected)
    assert rule.threshold == pytest.approx(expected[0])


def runs(labels):
    return len(list(itertools.groupby(labels)))


@pytest.mark.parametrize("labels", ["aaabb", "abab", "aabbcc", "aaaaab", "abcabc"])
def test_mean_and_variance_are_those_of_all_orders(labels):
    numbers = np.array([runs(order) for order in itertools.permutations(labels)])
    found, expected, z = runs_test(np.array(list(labels)))
    assert found == runs(labels)
    assert expected == pytest.approx(numbers.mean())
    assert z == pytest.approx((found - numbers.mean()) / numbers.std())


@pytest.mark.parametrize("labels", [[], [1], [1, 1, 1]])
def test_nothing_to_tell(labels):
    assert math.isnan(runs_test(np.array(labels))[2])


def test_word_length_by_arithmetic():
    # 1000 sequences of 81 letters, each letter as often as any other: letters meet with 1/4, so with both
    # strands 2 * 81 * 81000 * 4**-k < 0.001 first holds at k = ceil(log4(1.3122e10)).
    sequences = ["ACGT" * 20 + "ACGT"[i % 4] for i in range(1000)]
    by_hand = math.ceil(math.log(2 * 81 * 81_000 / 0.001) / math.log(4))
    assert by_hand == 17
    assert chance_length(sequences, DNA) == by_hand
    assert word_length(sequences, DNA) == 40
    assert word_length([s[:60] for s in sequences], DNA) == 30
    assert word_length([s[:20] for s in sequences], DNA) == 15  # by chance, not half of 20
    assert word_length(["ACGT" * 100] * 10, DNA) == 40


def test_word_length_of_protein():
    sequences = [PROTEIN.letters * 5] * 10
    assert chance_length(sequences, PROTEIN) == math.ceil(math.log(100 * 1000 / 0.001) / math.log(20))
    assert word_length(sequences, PROTEIN) == 10


@pytest.mark.parametrize("sequences", [["AAAA", "AAAA"], ["NNNN", "NN"]])
def test_word_length_without_information(sequences):
    assert word_length(sequences, DNA) >= 1


@pytest.mark.parametrize(("value", "lower"), [(0.61, False), (0.59, True)])
def test_other_folds_are_lower_by_three_standard_errors(value, lower):
    """Errors of .08 and .06 make one of .1: .9 is higher than what is below .6."""
    given, other = (
        AuditFigure("baselines", "x", "*", "mcc", center, center - 1.96 * error, center + 1.96 * error)
        for center, error in ((0.9, 0.08), (value, 0.06))
    )
    assert is_lower(given, other) is lower
