"""Conformal sets: what is kept of held-out answers, and that the promised share holds."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import softmax
from scipy.stats import betabinom

from seqray.calibration.conformal import MAX_RANKS, class_cutoffs, coverage_cutoffs, fit_ranks, label_sets
from seqray.core.card import Card
from seqray.core.card_parts import RisingMap
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.core.serialization import to_mapping

CLASSES = ("a", "b", "c")


def answers(counts, seed, sharpness=2.0):
    """Probabilities (N, K) that favor the true class, and the labels; not calibrated at all."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    logits = rng.normal(size=(len(labels), len(counts)))
    logits[np.arange(len(labels)), labels] += 1
    return softmax(sharpness * logits, axis=1), labels


def fit(own, k=0):
    """A table from the probabilities of the true class of one class, with as many of another."""
    own = np.asarray(own, dtype=float)
    p = np.concatenate([np.stack((own, 1 - own), axis=1), np.stack((1 - own, own), axis=1)])
    return fit_ranks(p, np.repeat([0, 1], len(own)), ("a", "b"))


# --- the rank -------------------------------------------------------------------------------------


@given(
    n=st.integers(1, 3000),
    percent=st.integers(1, 999),
    seed=st.integers(0, 3),
)
def test_rounding_never_lifts_a_cutoff(n, percent, seed):
    own = np.sort(np.random.default_rng(seed).beta(8, 1, n))
    rank = (n + 1) * (1000 - percent) // 1000  # whole numbers: no rounding error
    table = fit(own)
    if rank < 1:
        with pytest.raises(ConfigError):
            class_cutoffs(table, percent / 1000)
        return
    cutoff = class_cutoffs(table, percent / 1000)[0]
    assert cutoff <= own[rank - 1]
    if n <= MAX_RANKS or rank <= 100:
        assert cutoff == pytest.approx(own[rank - 1], rel=3e-6)
    else:
        assert cutoff >= own[math.floor(0.95 * rank) - 1]


def test_the_table_stays_small():
    table = fit(np.random.default_rng(0).random(200_000))
    assert all(len(part.rank) <= MAX_RANKS for part in table.values())
    assert len(json.dumps(to_mapping(table))) < 10_000


def test_a_model_of_alignments_is_not_sent_to_calibrate():
    classes = ("a", "b")
    card = Card(name="m", classes=classes, positive="a", window=9, model=ModelConfig(kind="alignment"))
    with pytest.raises(ConfigError, match="coverage; train a model on more labeled data"):
        coverage_cutoffs(card, 0.9)
    held = replace(card, conformal=fit(np.arange(1, 20) / 20))
    with pytest.raises(ConfigError, match=r"ask for 0\.95 or less, or train a model on more labeled data"):
        coverage_cutoffs(held, 0.99)
    of_sequences = replace(held, model=ModelConfig())
    with pytest.raises(ConfigError, match="calibrate on more labeled data"):
        coverage_cutoffs(of_sequences, 0.99)


def test_a_coverage_beyond_the_examples_is_refused_with_the_one_that_is_not():
    table = fit(np.arange(1, 20) / 20)
    with pytest.raises(
        ConfigError, match=r"0\.99 needs 99 held-out examples .* 'a' has 19; ask for 0\.95 or less"
    ):
        class_cutoffs(table, 0.99)
    assert class_cutoffs(table, 0.95).shape == (2,)
    for coverage in (0.0, 1.0, -1, 2):
        with pytest.raises(ConfigError, match="the coverage is"):
            class_cutoffs(table, coverage)


def test_the_class_of_fewest_examples_is_named_whatever_the_order():
    p, labels = answers((6, 2, 40), 0)
    table = fit_ranks(p, labels, CLASSES)
    with pytest.raises(ConfigError, match=r"needs 9 .*'b' has 2; ask for 0\.666 or less"):
        class_cutoffs(table, 0.9)


def test_a_class_without_examples_supports_nothing():
    p, labels = answers((10, 10, 0), 0)
    with pytest.raises(ConfigError, match="'c' has 0; calibrate on more"):
        class_cutoffs(fit_ranks(p, labels, CLASSES), 0.5)


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.7, 0.9, 0.97])
def test_each_class_is_covered_whatever_its_share(coverage):
    """One calibration set, many fresh sequences with other shares: beta-binomial counts (Vovk 2012)."""
    counts, fresh_counts = (2000, 500, 150), (300, 2000, 4000)
    table = fit_ranks(*answers(counts, seed=1), CLASSES)
    p, labels = answers(fresh_counts, seed=2)
    inside = p >= class_cutoffs(table, coverage)
    for k, (n, m) in enumerate(zip(counts, fresh_counts, strict=True)):
        covered = int(inside[labels == k, k].sum())
        rank = math.floor((n + 1) * (1 - coverage) + 1e-9)
        law = betabinom(m, n + 1 - rank, rank)
        assert covered >= law.ppf(1e-4)
        assert covered <= law.ppf(1 - 1e-4) + 0.01 * m


def test_a_rising_map_of_the_scores_changes_no_set():
    """So that the sets are the same whatever was fitted to the same held-out data: temperature, isotonic."""
    p, labels = answers((400, 400), seed=3)
    fresh, _ = answers((500, 500), seed=4)
    bend = RisingMap(np.array([-5.0, -0.5, 1.0]), np.array([-2.0, 0.5, 3.0]))
    plain = label_sets(fresh, class_cutoffs(fit_ranks(p, labels, ("a", "b")), 0.9), ("a", "b"))
    table = fit_ranks(bend.of_probabilities(p, 1), labels, ("a", "b"))
    bent = label_sets(bend.of_probabilities(fresh, 1), class_cutoffs(table, 0.9), ("a", "b"))
    assert bent == plain


def test_sets_are_named_in_the_order_of_the_classes():
    p = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.34, 0.33, 0.33]])
    assert label_sets(p, np.array([0.2, 0.5, 0.3]), CLASSES) == [("a", "b", "c"), ("c",), ("a", "c")]
    assert label_sets(p, np.array([0.9, 0.9, 0.9]), CLASSES) == [(), (), ()]


# --- the card -------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-12, 1.0), min_size=2, max_size=40))
def test_probabilities_are_rounded_down_and_rise(own):
    kept, true = fit(own)["a"].probability, np.sort(own)
    assert (kept <= true).all()
    np.testing.assert_allclose(kept, true, rtol=2e-5)
    assert (np.diff(kept) >= 0).all()
