"""Temperature, threshold and domain against searches by brute force and data made to measure."""

import json

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from sklearn.metrics import matthews_corrcoef

from seqray.alphabet import DNA, PROTEIN
from seqray.calibrate import Domain, choose_threshold, expected_calibration_error, fit_temperature
from seqray.errors import InputError, ModelFileError


def overconfident(temperature, n=20_000, seed=0):
    """Logits that are ``temperature`` times too large for their labels."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 2, n)
    labels = (rng.random(n) < expit(true)).astype(int)
    return np.stack((np.zeros(n), true), axis=1) * temperature, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_made_the_logits_is_found(temperature):
    logits, labels = overconfident(temperature)
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.05)


def test_the_temperature_is_that_of_a_fine_search():
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(200, 3)) * 4, rng.integers(0, 3, 200)
    logits[np.arange(200), labels] += 2

    def loss(t):
        return -log_softmax(logits / t, axis=1)[np.arange(200), labels].mean()

    grid = np.geomspace(0.5, 10, 20_001)
    best = grid[np.argmin([loss(t) for t in grid[::20]]) * 20]
    assert fit_temperature(logits, labels) == pytest.approx(best, rel=5e-3)


def test_a_better_temperature_calibrates():
    logits, labels = overconfident(3.0)
    raw, fitted = (expit(logits[:, 1] / t) for t in (1.0, fit_temperature(logits, labels)))
    assert expected_calibration_error(raw, labels) > 0.05
    assert expected_calibration_error(fitted, labels) < 0.015


def test_data_that_are_always_right_or_wrong_stop_at_the_bounds():
    logits, labels = np.array([[0.4, -0.4], [-0.4, 0.4]]), np.array([0, 1])
    assert fit_temperature(logits, labels) == pytest.approx(0.25, rel=1e-3)
    assert fit_temperature(logits, 1 - labels) == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_has_the_best_correlation_to_expect(seed):
    """Each example counts as positive by its probability and as negative by the rest."""
    rng = np.random.default_rng(seed)
    p = np.round(expit(rng.normal(-1, 2, 120)), 2)  # rounding makes ties
    labels, weights = np.repeat([1, 0], 120), np.concatenate([p, 1 - p])

    def expected(threshold):
        return matthews_corrcoef(labels, np.tile(p >= threshold, 2), sample_weight=weights)

    best = max(expected(t) for t in np.unique(p))
    assert expected(choose_threshold(p)) == pytest.approx(best)


def test_thresholds_known_beforehand():
    assert choose_threshold([0.1, 0.9]) == pytest.approx(0.5)
    assert choose_threshold([0, 0, 0.2, 1, 1]) == pytest.approx(0.6)
    assert choose_threshold([0.3, 0.3]) == 0.5
    assert choose_threshold([1.0, 1.0]) == 0.5


def test_it_moves_less_from_sample_to_sample_than_the_best_by_the_labels():
    rng = np.random.default_rng(3)
    by_labels, by_probabilities = [], []
    for _ in range(12):
        y = rng.random(120) < 0.3
        p = expit(rng.normal(0, 1.5, 120) + np.where(y, 1.5, -1.5))
        by_labels.append(max(np.unique(p), key=lambda t, p=p, y=y: matthews_corrcoef(y, p >= t)))
        by_probabilities.append(choose_threshold(p))
    assert np.std(by_probabilities) < 0.5 * np.std(by_labels)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fit_temperature(np.zeros((2, 2)), [0]),
        lambda: fit_temperature(np.zeros((0, 2)), []),
        lambda: choose_threshold([]),
        lambda: choose_threshold([[0.1, 0.2]]),
        lambda: Domain.fit([], DNA),
        lambda: Domain.fit([np.full(5, 4, np.uint8)], DNA),
    ],
)
def test_data_that_do_not_fit_are_refused(call):
    with pytest.raises(InputError):
        call()


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
    return Domain.fit(TRAINING, DNA)


def test_sequences_like_training_are_rarely_flagged(domain):
    assert domain.outlying(TRAINING).mean() <= 0.01
    assert domain.outlying(windows_like_a_genome(5000, 81, seed=1)).mean() <= 0.02


@pytest.mark.parametrize(
    "odd",
    ["A" * 81, "GC" * 40 + "G", "TA" * 40 + "T", "ACG" * 27, "N" * 81, "AAAAAAAAT" * 9],
)
def test_junk_is_flagged(domain, odd):
    assert domain.flags(DNA.encode(odd)) == ("out-of-domain",)


def test_gc_rich_sequence_is_flagged(domain):
    rng = np.random.default_rng(5)
    rich = rng.choice(4, p=[0.06, 0.44, 0.44, 0.06], size=(200, 81)).astype(np.uint8)
    assert domain.outlying(rich).mean() > 0.95


def test_a_rare_class_is_not_odd_for_being_rare():
    rng = np.random.default_rng(9)
    rare = rng.choice(4, p=[0.4, 0.1, 0.1, 0.4], size=(100, 81)).astype(np.uint8)
    both, labels = np.concatenate((TRAINING, rare)), [0] * len(TRAINING) + [1] * len(rare)
    assert Domain.fit(both, DNA, labels).outlying(rare).mean() <= 0.02
    assert Domain.fit(both, DNA).outlying(rare).mean() > 0.05


def test_more_sequences_than_are_judged_at_once(domain):
    many = np.tile(TRAINING[:700], (20, 1))
    assert (domain.outlying(many) == np.tile(domain.outlying(TRAINING[:700]), 20)).all()
    assert domain.outlying([]).shape == (0,)


def test_lengths_outside_training_are_named(domain):
    ordinary = windows_like_a_genome(1, 162, seed=3)[0]
    assert domain.flags(ordinary[:80]) == ("short",)
    assert domain.flags(ordinary[:81]) == ()
    assert domain.flags(ordinary) == ("long",)
    assert domain.flags(np.zeros(100, np.uint8)) == ("long", "out-of-domain")
    assert "out-of-domain" in domain.flags(np.zeros(0, np.uint8))


def test_a_short_sequence_is_not_odd_for_being_short(domain):
    assert domain.outlying(windows_like_a_genome(2000, 40, seed=4)).mean() < 0.05


def test_one_by_one_and_all_at_once_agree(domain):
    mixed = [*windows_like_a_genome(20, 81, seed=6), np.zeros(50, np.uint8), DNA.encode("ACGTN")]
    assert domain.flags_of(mixed) == [domain.flags(codes) for codes in mixed]


def test_the_card_carries_the_domain(domain):
    again = Domain.from_mapping(json.loads(json.dumps(domain.to_mapping())))
    fresh = windows_like_a_genome(2000, 81, seed=7)
    assert (again.outlying(fresh) == domain.outlying(fresh)).mean() > 0.999  # limits are rounded
    assert again.to_mapping() == domain.to_mapping()
    assert len(json.dumps(domain.to_mapping())) < 5000


def test_protein_is_judged_by_its_letters():
    rng = np.random.default_rng(8)
    peptides = [rng.choice(20, size=n).astype(np.uint8) for n in rng.integers(20, 100, 800)]
    domain = Domain.fit(peptides, PROTEIN)
    assert domain.outlying(peptides).mean() <= 0.01
    assert domain.flags(PROTEIN.encode("G" * 40)) == ("out-of-domain",)


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m.pop("length"),
        lambda m: m.update(alphabet="klingon"),
        lambda m: m["words"][0]["mean"].pop(),
        lambda m: m["words"][1].update(limit="far"),
    ],
)
def test_a_damaged_domain_is_refused(domain, damage):
    mapping = json.loads(json.dumps(domain.to_mapping()))
    damage(mapping)
    with pytest.raises(ModelFileError, match="'domain' can't be read"):
        Domain.from_mapping(mapping)
