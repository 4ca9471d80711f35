"""What is flagged: odd composition, improbable sequences, odd lengths; and what the card keeps of it."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

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
from seqray.core.card_parts import Domain
from seqray.core.errors import ConfigError, InputError
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
    "odd",
    ["A" * 81, "GC" * 40 + "G", "TA" * 40 + "T", "ACG" * 27, "N" * 81, "AAAAAAAAT" * 9],
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
