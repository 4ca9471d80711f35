"""What is unlike the training data: compositions, lengths, and scores that no mixture explains."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from seqray.calibration.conformal import HeldOutScores, class_cutoffs, fit_ranks
from seqray.calibration.domain import (
    BACK_OFF,
    _fit_log_p,
    chain_distances,
    describe_calibration,
    fit_chain,
    fit_domain,
    flag_sequences,
    out_of_domain,
)
from seqray.core.alphabet import DNA, PROTEIN, reverse_complement_codes, stack_codes
from seqray.core.card import Card
from seqray.core.card_parts import Domain
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from seqray.core.serialization import from_mapping, to_mapping


@pytest.mark.parametrize(
    "sequences", [[], [np.full(5, 4, np.uint8)]], ids=["nothing", "no unambiguous letter"]
)
def test_data_without_letters_are_refused(sequences):
    with pytest.raises(InputError):
        fit_domain(sequences, DNA)


def test_sequences_shorter_than_a_word_are_described_by_their_letters():
    domain = fit_domain([DNA.encode(letters) for letters in ("A", "AC", "C", "CA")], DNA)
    assert [table.k for table in domain.words] == [1]
    assert flags(domain, DNA.encode("GG")) == ("out-of-domain",)


def flags(domain, codes):
    return flag_sequences(domain, [codes])[0]


def windows_like_a_genome(n, length, seed):
    """Codes of windows whose GC content varies between windows, as in a genome."""
    rng = np.random.default_rng(seed)
    gc = rng.normal(0.45, 0.06, (n, 1))
    strong = rng.random((n, length)) < gc
    other = rng.random((n, length)) < 0.5
    return np.where(strong, np.where(other, 1, 2), np.where(other, 0, 3)).astype(np.uint8)


TRAINING = windows_like_a_genome(3000, 81, seed=0)


@pytest.fixture(scope="module")
def domain():
    return fit_domain(TRAINING, DNA)


def test_sequences_like_training_are_rarely_flagged(domain):
    assert out_of_domain(domain, TRAINING).mean() <= 0.01
    assert out_of_domain(domain, windows_like_a_genome(5000, 81, seed=1)).mean() <= 0.02


@pytest.mark.parametrize(
    "odd", ["A" * 81, "GC" * 40 + "G", "TA" * 40 + "T", "ACG" * 27, "N" * 81, "AAAAAAAAT" * 9]
)
def test_junk_is_flagged(domain, odd):
    assert flags(domain, DNA.encode(odd)) == ("out-of-domain",)


def test_gc_rich_sequence_is_flagged(domain):
    rng = np.random.default_rng(5)
    rich = rng.choice(4, p=[0.06, 0.44, 0.44, 0.06], size=(200, 81)).astype(np.uint8)
    assert out_of_domain(domain, rich).mean() > 0.95


def test_a_rare_class_is_not_odd_for_being_rare():
    rng = np.random.default_rng(9)
    rare = rng.choice(4, p=[0.4, 0.1, 0.1, 0.4], size=(100, 81)).astype(np.uint8)
    both, labels = np.concatenate((TRAINING, rare)), [0] * len(TRAINING) + [1] * len(rare)
    assert out_of_domain(fit_domain(both, DNA, labels), rare).mean() <= 0.02
    assert out_of_domain(fit_domain(both, DNA), rare).mean() > 0.05


def test_lengths_outside_training_are_named(domain):
    ordinary = windows_like_a_genome(1, 162, seed=3)[0]
    assert flags(domain, ordinary[:80]) == ("short",)
    assert flags(domain, ordinary[:81]) == ()
    assert flags(domain, ordinary) == ("long",)
    assert flags(domain, np.zeros(100, np.uint8)) == ("long", "out-of-domain")
    assert "out-of-domain" in flags(domain, np.zeros(0, np.uint8))


def test_a_short_sequence_is_not_odd_for_being_short(domain):
    assert out_of_domain(domain, windows_like_a_genome(2000, 40, seed=4)).mean() < 0.05


def test_one_by_one_and_all_at_once_agree(domain):
    mixed = [*windows_like_a_genome(20, 81, seed=6), np.zeros(50, np.uint8), DNA.encode("ACGTN")]
    assert flag_sequences(domain, mixed) == [flags(domain, codes) for codes in mixed]


def test_the_card_carries_the_domain(domain):
    text = json.dumps(to_mapping(domain))
    assert from_mapping(Domain, json.loads(text)) == domain
    assert len(text) < 40_000


def test_the_data_of_a_later_calibration_are_described_beside_those_of_training(domain):
    odd = DNA.encode("G" * 81)
    codes = [*windows_like_a_genome(300, 81, seed=7), *[odd] * 100]
    codes[0] = codes[0][:40]
    later = describe_calibration(domain, codes, np.zeros(400), ["x"] * 200 + [None] * 200)
    assert later.flags["out-of-domain"] >= 0.25
    assert later.flags["short"] == 1 / 400
    assert [entry.context for entry in later.signature or ()] == ["x"]
    assert describe_calibration(domain, codes[:9], np.zeros(9), [None] * 9).signature is None


def test_protein_is_judged_by_its_letters():
    rng = np.random.default_rng(8)
    peptides = [rng.choice(20, size=n).astype(np.uint8) for n in rng.integers(20, 100, 800)]
    domain = fit_domain(peptides, PROTEIN)
    assert out_of_domain(domain, peptides).mean() <= 0.01
    assert flags(domain, PROTEIN.encode("G" * 40)) == ("out-of-domain",)


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m.pop("length"),
        lambda m: m["words"][1].update(k=10**12),
        lambda m: m["chain"].update(order=10**12),
        lambda m: m["chain"]["log_p"].pop(),
        lambda m: m["chain"].update(order=0, log_p=[-1, -1, -1, -1]),
        lambda m: m["chain"].update(within=1e308),
        lambda m: m["words"][1]["mean"].__setitem__(0, 1.5),
        lambda m: m["words"][0]["spread"].__setitem__(0, math.nan),
        lambda m: m.update(calibration={"flags": {"short": math.nan}}),
    ],
)
def test_a_damaged_domain_is_refused(domain, damage):
    mapping = json.loads(json.dumps(to_mapping(domain)))
    damage(mapping)
    with pytest.raises(ConfigError):
        from_mapping(Domain, mapping)


# --- the Markov chain -----------------------------------------------------------------------------


def chain_windows(n, length, seed, sharpness=1.0, chain_seed=0):
    """Windows of a chain of order 4, which short words hardly show."""
    table = np.random.default_rng(chain_seed).dirichlet([sharpness] * 4, 256).cumsum(axis=1)
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, length)).astype(np.uint8)
    for i in range(4, length):
        context = codes[:, i - 4 : i] @ np.array([64, 16, 4, 1])
        codes[:, i] = (rng.random((n, 1)) > table[context]).sum(axis=1).clip(max=3)
    return codes


def test_the_chain_is_that_of_counting_by_hand():
    """Order 1 over AAC AAG, written out."""
    log_p = _fit_log_p(stack_codes([DNA.encode("AAC"), DNA.encode("AAG")]), 1, 4)
    counts = {"A": 4, "C": 1, "G": 1, "T": 0}
    single = {x: (counts[x] + BACK_OFF / 4) / (6 + BACK_OFF) for x in "ACGT"}
    pairs = {"AA": 2, "AC": 1, "AG": 1}
    expected = [
        np.log((pairs.get(a + b, 0) + BACK_OFF * single[b]) / ((4 if a == "A" else 0) + BACK_OFF))
        for a, b in product("ACGT", repeat=2)
    ]
    np.testing.assert_allclose(log_p / 100, expected, atol=0.005)


def test_the_chain_finds_what_composition_cannot():
    domain = fit_domain(chain_windows(4000, 81, seed=1), DNA)
    composition = replace(domain, chain=None)
    assert out_of_domain(domain, chain_windows(4000, 81, seed=4)).mean() < 0.02
    strange = chain_windows(1000, 81, seed=2, chain_seed=9)
    shuffled = np.random.default_rng(0).permuted(chain_windows(1000, 81, seed=3), axis=1)
    for odd in (strange, shuffled):
        assert out_of_domain(domain, odd).mean() > 0.9
        assert out_of_domain(composition, odd).mean() < 0.3


def test_copies_in_training_do_not_make_strangers_of_the_rest():
    """Each sequence three times: a limit from copies that the chain knows would flag all that is new."""
    once = chain_windows(700, 81, seed=5, sharpness=2.0)
    domain = fit_domain(np.concatenate([once, once, reverse_complement_codes(once[:, ::-1])[:, ::-1]]), DNA)
    assert out_of_domain(domain, chain_windows(3000, 81, seed=6, sharpness=2.0)).mean() < 0.03


@pytest.mark.parametrize("length", [20, 40, 200, 500])
def test_a_sequence_is_not_improbable_for_its_length(length):
    profile = fit_chain(stack_codes(chain_windows(2000, 81, seed=1)), np.zeros(2000), DNA, 0.995)
    assert profile is not None
    distances = chain_distances(profile, stack_codes(chain_windows(1500, length, seed=2)), 4)
    assert (distances > profile.limit).mean() < 0.02


def test_without_a_whole_word_the_chain_has_no_opinion():
    domain = fit_domain(chain_windows(2000, 81, seed=1), DNA)
    assert domain.chain is not None
    np.testing.assert_array_equal(
        chain_distances(
            domain.chain, stack_codes([DNA.encode("ACG"), DNA.encode("ACGNN" * 5), DNA.encode("")]), 4
        ),
        0,
    )


def test_few_data_give_a_lower_order_or_no_chain():
    assert fit_domain(TRAINING[:49], DNA).chain is None
    few = fit_domain(TRAINING[:60], DNA).chain  # 4,860 letters, 4 for each of 4^5 parameters would be 4,096
    assert few is not None
    assert few.order == 4
    assert len(few.log_p) == 4 ** (few.order + 1)


def test_a_card_without_a_chain_is_read(domain):
    old = {key: value for key, value in to_mapping(domain).items() if key != "chain"}
    assert from_mapping(Domain, old) == replace(domain, chain=None)
    assert to_mapping(from_mapping(Domain, old)) == old


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
