"""Conformal sets keep their promise, and what a card leads to expect, worked out by hand."""

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import softmax
from scipy.stats import betabinom

from seqray.calibration.conformal import MAX_RANKS, class_cutoffs, coverage_cutoffs, fit_ranks, label_sets
from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.core.card import Card
from seqray.core.card_parts import LocatorFacts, RisingMap
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.core.serialization import from_mapping, to_mapping
from seqray.modelfile.header import locate_model, read_card

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


@given(n=st.integers(1, 3000), percent=st.integers(1, 999), seed=st.integers(0, 3))
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


def species(name, held_out, genes, rows):
    return {"species": name, "held_out": held_out, "genes": genes, "rows": rows}


# threshold, calls per kb, recall, precision, its interval
KNOWN = species("a", "region", True, [[0.8, 1, 0.4, 0.6, 0.5, 0.7], [0.4, 3, 0.8, 0.2, 0.1, 0.3]])
LOW = species("b", "species", True, [[0.6, 1, 0.5, 0.3, 0.2, 0.4], [0.2, 2, 0.7, 0.1, 0.0, 0.2]])
MIDDLE = species("c", "species", True, [[0.6, 1, 0.5, 0.5, 0.4, 0.6], [0.2, 2, 0.7, 0.3, 0.2, 0.4]])
HIGH = species("d", "species", True, [[0.5, 1, 0.5, 0.9, 0.8, 1.0]])
LETTERS = species("a", "region", False, [[0.5, 2, 0.3, 0.25, 0.2, 0.3]])
CARD = {
    "extent": [0, 0],
    "tolerance": 25,
    "threshold_without_genes": 0.1,
    "probability": {"genes": {"scores": [0.2, 0.6], "values": [0.1, 0.5]}},  # of older cards
    "expected": [KNOWN, LOW, MIDDLE, HIGH, LETTERS],
}


@pytest.fixture
def expected():
    return ExpectedPrecision(from_mapping(LocatorFacts, CARD))


def only(*entries):
    return ExpectedPrecision(from_mapping(LocatorFacts, CARD | {"expected": list(entries)}))


def test_figures_between_two_rows_are_linear(expected):
    # .5 lies a quarter of the way from .4 to .8
    row = expected.at(0.5, genes=True).of("a")
    assert row[:2] == ("a", "region")
    assert row[2:] == pytest.approx((2.5, 0.7, 0.3, 0.2, 0.4))


def test_the_share_of_sites_found_at_a_depth(expected):
    # 1.5 calls per kb lie a quarter of the way from 1 to 3, and in the middle of 1 and 2
    assert expected.recall_at(1.5, genes=True, species="a") == pytest.approx(0.5)
    assert expected.recall_at(1.5, genes=True) == pytest.approx(1.7 / 3)  # of .6, .6 and .5
    assert expected.recall_at(1.5, genes=False) == pytest.approx(0.3)
    assert only(KNOWN).recall_at(1, genes=False) is None


@pytest.mark.parametrize(("threshold", "figures"), [(0.1, KNOWN["rows"][1]), (0.99, KNOWN["rows"][0])])
def test_outside_the_table_the_nearest_row_counts(expected, threshold, figures):
    assert expected.at(threshold, genes=True).of("a")[2:] == pytest.approx(figures[1:])


def test_the_spread_is_over_species_left_out(expected):
    found = expected.at(0.4, genes=True)  # b: .2, c: .4, d: .9 everywhere; a is known
    assert found.left_out
    assert (found.low, found.median, found.high) == pytest.approx((0.2, 0.4, 0.9))
    assert [row.species for row in found.spread] == ["b", "c", "d"]
    assert [row.species for row in found.rows] == ["a", "b", "c", "d"]


def test_without_species_left_out_the_spread_is_over_all(expected):
    found = expected.at(0.3, genes=False)
    assert not found.left_out
    assert found.low == found.median == found.high == 0.25
    assert found.spread == found.rows


def test_the_median_of_two_species_is_their_mean():
    assert only(LOW, MIDDLE).at(0.6, genes=True).median == pytest.approx(0.4)


def test_a_species_with_two_rows_gives_that_of_its_region():
    both = only(LOW | {"species": "a"}, KNOWN)
    assert both.at(0.6, genes=True).of("a").held_out == "region"
    assert both.at(0.6, genes=True).of("z") is None
    assert both.at(0.6, genes=True).of(None) is None


def test_nothing_is_expected_of_what_was_not_measured():
    none = only(KNOWN)
    assert none.at(0.5, genes=False) is None
    assert none.precisions(np.array([0.5]), genes=False) is None
    assert none.threshold_for(0.1, genes=False) is None
    assert none.of_calls(np.array([0.5]), genes=False) is None
    assert none.basis_of_calls(genes=False) == ""


def test_the_precision_of_a_known_species_is_its_own(expected):
    assert expected.precisions(np.array([0.4]), genes=True, species="a") == pytest.approx(0.2)
    assert expected.precisions(np.array([0.4]), genes=True) == pytest.approx(0.4)
    assert expected.precisions(np.array([0.4]), genes=True, species="unheard of") == pytest.approx(0.4)


def test_the_precision_of_many_scores(expected):
    # The median is the precision of c: .3 at threshold .2, .4 at .4, and .5 at .6 and above.
    assert expected.precisions(np.array([0.2, 0.4, 0.9]), genes=True) == pytest.approx([0.3, 0.4, 0.5])


@pytest.mark.parametrize(("species", "lowest"), [("a", 0.4), (None, 0.2)])  # b and c begin at .2, d at .5
def test_below_the_lowest_threshold_precision_is_not_known(expected, species, lowest):
    assert expected.lowest_measured(genes=True, species=species) == lowest
    known = np.isfinite(expected.precisions(np.array([0, lowest - 1e-6, lowest, 1]), True, species))
    assert known.tolist() == [False, False, True, True]
    assert only(KNOWN).lowest_measured(genes=False) is None


def test_the_threshold_for_a_precision():
    one = only(KNOWN)  # precision rises from .2 at .4 to .6 at .8
    assert one.threshold_for(0.5, genes=True) == pytest.approx(0.7)
    assert one.threshold_for(0.6, genes=True) == pytest.approx(0.8)
    assert one.threshold_for(0.1, genes=True) == 0.4
    assert one.threshold_for(0.61, genes=True) is None


def test_the_threshold_is_of_the_species_or_of_the_median(expected):
    assert expected.threshold_for(0.4, genes=True, species="a") == pytest.approx(0.6)
    # The median is the precision of c: it rises from .3 at threshold .2 to .5 at .6.
    assert expected.threshold_for(0.45, genes=True) == pytest.approx(0.5)


@given(st.floats(0, 1))
def test_the_threshold_gives_the_precision_asked_for(precision):
    some = ExpectedPrecision(from_mapping(LocatorFacts, CARD))
    threshold = some.threshold_for(precision, genes=True)
    if threshold is None:
        assert precision > 0.5  # the highest that c, the median, reaches
    else:
        assert some.at(threshold, genes=True).median >= precision


def test_the_share_right_of_calls_of_about_a_score(expected):
    # a: .6 of 1 call per kb is right at .8; of the two more down to .4, around .6, none is
    found = expected.of_calls(np.array([0.3, 0.4, 0.6, 0.7, 0.8, 1]), genes=True, species="a")
    assert found == pytest.approx([np.nan, 0, 0, 0.3, 0.6, 0.6], nan_ok=True)
    # c is the median: .5 of 1 at .6, and .6 - .5 of one more around .4
    assert expected.of_calls(np.array([0.4, 0.5, 0.6]), genes=True) == pytest.approx([0.1, 0.3, 0.5])
    # d itself is better than the median
    assert expected.of_calls(np.array([0.6]), genes=True, species="d") == pytest.approx([0.9])
    assert expected.basis_of_calls(True, "a") == "the share in a"
    assert expected.basis_of_calls(True) == "the median of 3 species that training did not see"
    assert expected.basis_of_calls(True, "d").startswith("the share in d, or the median of 3 species")


def test_a_share_that_does_not_rise_is_pooled():
    # .2 of 1 call is right at .8, and 1.0 of the two more: 1.2 of 3 in all
    table = species("a", "region", True, [[0.8, 1, 0.2, 0.2, 0, 1], [0.6, 3, 0.4, 0.4, 0, 1]])
    assert only(table).of_calls(np.array([0.6, 0.75, 0.9]), genes=True) == pytest.approx([0.4] * 3)


@pytest.mark.parametrize("model", ["bacteria-genome", "ecoli-genome", "archaea-genome", "fungi-genome"])
def test_precision_of_calls_rises_with_their_score(model):
    facts = read_card(locate_model(model)).locator
    shipped, scores = ExpectedPrecision(facts), np.linspace(0, 1, 500)
    for name in (None, *(table.species for table in facts.expected)):
        for genes in (True, False):
            found = shipped.of_calls(scores, genes, name)
            assert (np.diff(found[~np.isnan(found)]) >= 0).all(), name


def test_a_card_may_have_no_figures():
    none = ExpectedPrecision(LocatorFacts(extent=(0, 0)))
    assert none.at(0.5, genes=True) is none.of_calls(np.array([0.5]), genes=True) is None


def broken(*path, value):
    card = copy.deepcopy(CARD)
    inner = card
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return card


@pytest.mark.parametrize(
    "card",
    [
        broken("tolerance", value=-1),
        broken("expected", value=[1]),
        broken("expected", 0, "held_out", value="year"),
        broken("expected", 0, "rows", value=[]),
        broken("expected", 0, "rows", value=[[0.4, 1, 0.5, 0.5, 0.4, 0.6], [0.8, 1, 0.5, 0.5, 0.4, 0.6]]),
        broken("expected", 0, "rows", value=[[0.4, 1, 0.5, 0.5, 0.6, 0.4]]),
        broken("expected", 0, "rows", value=[[0.4, 1, 1.5, 0.5, 0.4, 0.6]]),
        broken("expected", 0, "rows", value=[[0.4, 1, 0.5, float("nan"), 0.4, 0.6]]),
    ],
)
def test_a_damaged_card_is_one_error(card):
    with pytest.raises(ConfigError, match=r"^'locator.* (is|has) ") as caught:
        from_mapping(LocatorFacts, card, "locator")
    assert "\n" not in str(caught.value)
