"""Scores of a file against those of held-out examples: what no mixture of the classes explains."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from seqray.calibration.conformal import HeldOutScores, class_cutoffs, fit_ranks
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig

CLASSES = ("background", "promoter")


def drawn(positives, others, seed, sharpness=2.0):
    """(N, 2) probabilities of a classifier whose log-odds are normal around plus or minus ``sharpness``."""
    rng = np.random.default_rng(seed)
    centers = np.repeat([sharpness, -sharpness], [positives, others])
    p = 1 / (1 + np.exp(-rng.normal(centers, 1.5)))
    return np.stack((1 - p, p), axis=1)


def reference(prevalence=0.5, sharpness=2.0, classes=CLASSES):
    p, labels = drawn(1000, 1000, 0, sharpness), np.repeat([1, 0], 1000)
    return Card(
        name="m",
        classes=classes,
        positive="promoter",
        window=20,
        model=ModelConfig(classes=2, max_length=20),
        prevalence=prevalence,
        conformal=fit_ranks(p, labels, classes),
    )


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.98])
@pytest.mark.parametrize("n", [100, 1000])
def test_any_mixture_of_the_classes_passes(share, n):
    held_out = HeldOutScores(reference(share))
    for seed in range(1, 20):
        p = drawn(round(share * n), n - round(share * n), seed)
        assert held_out.empty_sets(p) is None
        assert held_out.unclear_scores(p) is None


def test_scores_between_the_classes_are_told():
    """Of 400 records 120 lie at even odds: a mixture may take half of them from either side, .15."""
    held_out = HeldOutScores(reference(sharpness=6.0))
    clear = drawn(140, 140, 1, 6.0)
    p = np.concatenate((clear, np.full((120, 2), 0.5)))
    found = held_out.unclear_scores(p)
    assert found is None  # .15 is within .05 + sqrt(ln(2000) / 2 (1/400 + 1/1000)) = .165
    more = np.concatenate((clear, np.full((220, 2), 0.5)))
    found = held_out.unclear_scores(more)
    assert found is not None
    assert found == pytest.approx(110 / 500, abs=0.02)


def test_classes_that_are_easier_to_separate_are_no_reason_for_caution():
    held_out = HeldOutScores(reference())
    p = drawn(500, 500, 3, sharpness=5.0)
    assert held_out.unclear_scores(p) is None
    assert held_out.empty_sets(p) is None


def test_empty_sets_beyond_those_of_held_out_examples_are_told():
    """Even odds are below the cutoffs of two clear classes: 100 sets of 500 hold nothing, where 50 may.

    All misses of classes as clear as these are empty sets: a tenth of the held-out examples.
    """
    held_out = HeldOutScores(reference(sharpness=6.0))
    p = np.concatenate((drawn(200, 200, 2, 9.0), np.full((100, 2), 0.5)))
    found = held_out.empty_sets(p)
    assert found is not None
    assert (found.coverage, found.share) == (0.9, 0.2)
    assert found.expected == pytest.approx(0.1, abs=0.005)
    assert held_out.empty_sets(p, 0.8) is None  # a fifth may miss
    assert held_out.empty_sets(p, 0.9999) is None  # 2,000 examples can't promise it
    assert held_out.empty_sets(p[-40:]) is None  # too few records


def test_few_calls():
    held_out = HeldOutScores(reference(0.5))
    assert held_out.has_few_calls(drawn(120, 280, 6))
    assert not held_out.has_few_calls(drawn(280, 120, 6))
    assert not held_out.has_few_calls(drawn(0, 40, 6))


def test_coverage_that_is_lost_is_given_by_class():
    held_out = HeldOutScores(reference())
    labels = np.repeat([1, 0], 300)
    assert held_out.lost_coverage(drawn(300, 300, 7), labels) == {}
    wrong = drawn(300, 300, 7)[:, ::-1]
    held = held_out.lost_coverage(wrong, labels)
    inside = wrong >= class_cutoffs(held_out._ranks, 0.9)
    assert held == {"background": inside[300:, 0].mean(), "promoter": inside[:300, 1].mean()}


def test_fewer_empty_sets_are_expected_where_misses_are_sets_of_the_other_class():
    """Normal log-odds around 2 and -2: between the cutoffs lies what normal distributions say."""
    held_out = HeldOutScores(reference())
    cutoff = norm.ppf(0.1, 2, 1.5)  # about that of either class, at a log-odds of 0.08
    empty = norm.cdf(cutoff, 2, 1.5) - norm.cdf(-cutoff, 2, 1.5)
    assert empty < 0.03
    p = np.concatenate((drawn(200, 200, 8, 9.0), np.full((50, 2), 0.5)))  # a ninth; misses may be a tenth
    found = held_out.empty_sets(p)
    assert found is not None
    assert found.expected == pytest.approx(empty, abs=0.02)


def test_of_three_classes_only_misses_are_known():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 300)
    p = np.full((900, 3), 0.02)
    p[np.arange(900), labels] = rng.uniform(0.8, 1, 900)
    classes = ("a", "b", "promoter")
    ranks = fit_ranks(p, labels, classes)
    card = replace(reference(), classes=classes, model=ModelConfig(classes=3, max_length=20), conformal=ranks)
    odd = np.concatenate((p[:400], np.full((100, 3), 1 / 3)))
    found = HeldOutScores(card).empty_sets(odd)
    assert found is not None
    assert found.expected == pytest.approx(0.1, abs=0.01)
    assert HeldOutScores(card).empty_sets(p) is None
