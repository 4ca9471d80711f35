"""Predictions of records and alignments, and of networks that leave most windows to a prefilter."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from conftest import ALIGNED_COLUMNS
from networks import random_network
from seqray.core.alphabet import DNA, RNA
from seqray.core.card import Card
from seqray.core.card_parts import HeldOutRanks, RisingMap
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import Alignment
from seqray.inference.alignments import predict_alignments
from seqray.inference.engines import open_with_engine
from seqray.inference.sequences import (
    ACTIVATION_BYTES,
    cascade_log_odds,
    micro_batch,
    pad_batch,
    predict_records,
    reweight,
    score_codes,
)
from seqray.modelfile.file import build_network, save_model
from seqray.modelfile.model import TrainedModel
from tables import record

CODES = np.random.default_rng(3).integers(0, 4, (40, 20)).astype(np.uint8)


def make_model(seeds=(1,), **card):
    """A model of classes a (positive), b .. with windows of 20 letters."""
    classes = tuple("abc"[: card.pop("classes", 2)])
    config = ModelConfig(d_model=8, heads=2, layers=1, classes=len(classes), **card.pop("model", {}))
    networks = tuple(random_network(config, seed, noise=0.5) for seed in seeds)
    plain = Card(name="m", classes=classes, positive="a", window=20, model=config, members=len(networks))
    return TrainedModel(replace(plain, **card), networks)


# --- probabilities --------------------------------------------------------------------------------


def test_windows_score_as_the_same_records_do(tiny_model):
    by_record = [p.probabilities for p in predict_records(tiny_model, [record(DNA.decode(c)) for c in CODES])]
    np.testing.assert_allclose(score_codes(tiny_model, CODES), by_record, atol=1e-6)
    np.testing.assert_allclose(score_codes(tiny_model, CODES, batch_size=7), by_record, atol=1e-6)


# --- prior ----------------------------------------------------------------------------------------


def test_the_prior_moves_the_log_odds():
    # Odds 3 at prevalence 1/2; at prevalence 1/10 they are 9 times smaller: 1/3, that is 1/4.
    np.testing.assert_allclose(reweight(np.array([[0.75, 0.25]]), 0, 0.5, 0.1), [[0.25, 0.75]])
    # The rest keep their ratio: 3 of 4 parts split 2 to 1.
    moved = reweight(np.array([[0.5, 0.125, 0.375]]), 2, 0.375, 0.25)
    odds = (0.375 / 0.625) * (0.25 / 0.75) / (0.375 / 0.625)
    np.testing.assert_allclose(moved[0, 2], odds / (1 + odds))
    np.testing.assert_allclose(moved[0, 0] / moved[0, 1], 4)


@given(p=st.floats(0, 1), prevalence=st.floats(0.01, 0.99), prior=st.floats(0.01, 0.99))
def test_reweighting_there_and_back(p, prevalence, prior):
    there = reweight(np.array([[p, 1 - p]]), 0, prevalence, prior)
    np.testing.assert_allclose(there.sum(), 1)
    np.testing.assert_allclose(reweight(there, 0, prior, prevalence), [[p, 1 - p]], atol=1e-12)


# --- labels and flags -----------------------------------------------------------------------------


def test_the_threshold_itself_is_called():
    model = make_model()
    [p] = predict_records(model, [record("ACGT" * 5)])
    at = p.probabilities[0]
    for threshold, label in ((at, "a"), (np.nextafter(at, 1), "b"), (0.0, "a"), (1.0, "b")):
        assert next(predict_records(model, [record("ACGT" * 5)], threshold=threshold)).label == label
    by_card = TrainedModel(replace(model.card, threshold=at, positive="b"), model.networks)
    assert next(predict_records(by_card, [record("ACGT" * 5)])).label == ("b" if 1 - at >= at else "a")


def test_flags(tiny_model):
    letters = DNA.decode(CODES[0])
    records = [record(letters), record(f"NR{letters[2:]}"), record(letters[:19]), record("A" * 20)]
    flags = [p.flags for p in predict_records(tiny_model, records)]
    assert flags == [(), ("ambiguous=2",), ("short",), ("out-of-domain",)]
    assert [p.length for p in predict_records(tiny_model, records)] == [20, 20, 19, 20]


def test_flags_of_a_model_without_a_domain():
    predictions = predict_records(make_model(), [record("A" * 20), record("N" * 19)])
    assert [p.flags for p in predictions] == [(), ("ambiguous=19", "short")]


# --- longer records -------------------------------------------------------------------------------


def test_another_rule_can_be_asked_for_unless_windows_are_cut_around_a_site():
    model = make_model(truncate="ends")
    assert model.with_truncation(None) is model
    with pytest.raises(ConfigError, match="unknown rule 'middle'; known are ends, start, none"):
        make_model(site=3).with_truncation("middle")
    [one] = predict_records(model.with_truncation("start"), [record("A" * 20 + "C" * 30)])
    [same] = predict_records(model, [record("A" * 20)])
    assert one.probabilities == same.probabilities
    with pytest.raises(InputError, match="reads at most 20"):
        list(predict_records(model.with_truncation("none"), [record("A" * 21)]))
    with pytest.raises(ConfigError, match=r"reads windows around a site.*'seqray scan'"):
        make_model(site=3).with_truncation("ends")


@pytest.mark.parametrize(
    ("letters", "message"), [("", "has no letters"), ("AC", "2 letters are too few for 3-mers")]
)
def test_a_record_too_short_for_a_token_is_refused(letters, message):
    words = make_model(model={"tokenizer": "kmer", "k": 3})
    with pytest.raises(InputError, match=f"record 'r': {message}"):
        list(predict_records(words, [record(letters)]))


@pytest.mark.parametrize(
    ("card", "settings", "message"),
    [
        ({}, {"threshold": 1.5}, "the threshold is 1.5"),
        ({"classes": 3}, {"threshold": 0.5}, "has 3 classes and takes no threshold"),
        ({}, {"prior": 0.0}, "the prior is 0"),
        ({"prevalence": 0.0}, {"prior": 0.5}, "records no prevalence"),
        ({}, {"prior": "x"}, "'prior' is 'x'; give a number"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_read(card, settings, message):
    with pytest.raises(ConfigError, match=message):
        predict_records(make_model(**card), iter(()), **settings)


def test_an_unknown_letter_comes_with_its_record_and_its_file(tiny_model):
    with pytest.raises(InputError, match=r"x\.fa: record 'r': unknown letter '!' at position 3"):
        list(predict_records(tiny_model, [record("AC!T")], source="x.fa"))


# --- memory ---------------------------------------------------------------------------------------


def test_records_are_read_some_at_a_time(tiny_model, monkeypatch):
    monkeypatch.setattr("seqray.inference.sequences.CHUNK_RECORDS", 4)
    monkeypatch.setattr("seqray.inference.sequences.CHUNK_LETTERS", 45)
    read = []

    def endless():
        for i in itertools.count():
            read.append(i)
            yield record("ACGT" if i < 4 else "ACGT" * 5, f"r{i}")

    predictions = predict_records(tiny_model, endless())
    assert next(predictions).id == "r0"
    assert len(read) == 4  # by number
    assert [next(predictions).id for _ in range(4)] == ["r1", "r2", "r3", "r4"]
    assert len(read) == 7  # by letters: three times 20 reach 45


CONFIGS = {
    "plain": ModelConfig(layers=2),
    "wide": ModelConfig(layers=2, d_model=32, d_ff=1000),
    "narrow": ModelConfig(layers=2, d_model=32, heads=4, d_ff=16),
    "grouped": ModelConfig(layers=2, d_model=32, heads=8, kv_heads=2, d_ff=16),
    "stem": ModelConfig(layers=2, stem=StemConfig(kernels=(7, 11), stride=4, depth=1)),
    "words": ModelConfig(layers=2, tokenizer="kmer", k=3),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_largest_activation_stays_below_the_limit(name, monkeypatch):
    """Sizes are measured at the modules while they run."""
    monkeypatch.setitem(ACTIVATION_BYTES, "cpu", 1 << 20)
    config = CONFIGS[name]
    model = TrainedModel(
        Card(name="m", classes=("a", "b"), positive="a", window=101, model=config), (build_network(config),)
    )
    sizes = []

    def note(module, inputs, output):
        tensors = [t for t in (*inputs, output) if torch.is_tensor(t) and t.is_floating_point()]
        sizes.extend(t.nbytes for t in tensors)

    for module in model.networks[0].modules():
        module.register_forward_hook(note)
    score_codes(model, np.zeros((300, 101), dtype=np.uint8))
    size = micro_batch(config, 101)
    assert max(sizes) <= 1 << 20
    # One more would not fit. Words make fewer tokens than letters: there the estimate is a little high.
    assert max(sizes) * (size + 1) / size > (0.97 if name == "words" else 1) * (1 << 20)


def test_a_sequence_that_alone_exceeds_the_limit_is_scored_alone():
    assert micro_batch(CONFIGS["plain"], 10**9) == 1


def test_batches_come_in_few_sizes_so_that_few_kernels_are_compiled() -> None:
    size = 585
    filled = {n: pad_batch((np.arange(n) % 5).astype(np.uint8)[:, None], size) for n in range(1, size + 1)}
    sizes = {len(codes) for codes in filled.values()}
    assert len(sizes) <= 2 * size.bit_length()
    for n, codes in filled.items():
        assert n <= len(codes) <= min(size, max(8, 1.5 * n + 1))
        assert (codes[:n, 0] == np.arange(n) % 5).all()


# --- the isotonic map -----------------------------------------------------------------------------


def bent_model(**card):
    """Log-odds bent by a map that is a straight line: slope 1/2, then 1 up."""
    table = RisingMap(np.array([-499.0, 501.0]), np.array([-1000.0, 1000.0]))
    return make_model(seeds=(1, 2), format=2, isotonic=table, **card)


def test_the_map_bends_the_log_odds_of_every_path():
    plain, bent = make_model(seeds=(1, 2)), bent_model()
    was, now = score_codes(plain, CODES), score_codes(bent, CODES)
    odds = np.exp(np.log(was[:, 0] / was[:, 1]) / 2 + 1)
    np.testing.assert_allclose(now[:, 0], odds / (1 + odds), rtol=1e-6)
    np.testing.assert_allclose(now.sum(axis=1), 1)
    by_record = [p.probabilities for p in predict_records(bent, [record(DNA.decode(c)) for c in CODES])]
    np.testing.assert_allclose(by_record, now, atol=1e-6)


def test_the_prior_goes_on_top_of_the_map():
    """Odds times (prior odds / prevalence odds), after the map."""
    model = bent_model(prevalence=0.2)
    records = [record(DNA.decode(c)) for c in CODES]
    plain, moved = (
        np.array([p.probabilities for p in predict_records(model, records, prior=prior)])
        for prior in (None, 0.01)
    )
    odds = plain[:, 0] / plain[:, 1] * (0.01 / 0.99) / (0.2 / 0.8)
    np.testing.assert_allclose(moved[:, 0], odds / (1 + odds), rtol=1e-9)


def test_sets_of_three_classes():
    ranks = HeldOutRanks(99, np.array([0.1, 0.3]), np.array([1, 10]))
    model = make_model(classes=3, conformal=dict.fromkeys("abc", ranks))
    for p in predict_records(model, [record(DNA.decode(c)) for c in CODES], coverage=0.9):
        assert p.label_set == tuple(n for n, v in zip("abc", p.probabilities, strict=True) if v >= 0.3)


GAP = 5


def made(codes: np.ndarray, name: str = "a") -> Alignment:
    return Alignment(name, tuple(f"s{r}" for r in range(len(codes))), codes, RNA)


@pytest.fixture
def wide() -> np.ndarray:
    """Two columns more than the model reads, and a query with gaps."""
    codes = np.random.default_rng(0).integers(0, 4, (3, ALIGNED_COLUMNS + 2)).astype(np.uint8)
    codes[0, 2:] = GAP
    return codes


def test_columns_with_letters_that_are_not_read_are_flagged(alignment_model, wide):
    fitting = wide.copy()
    fitting[:, -2:] = GAP  # these are left out, too, but nothing is lost
    found = predict_alignments(alignment_model, [made(wide), made(fitting), made(wide[:, :-2])])
    assert [p.flags for p in found] == [("short", "truncated"), ("short",), ("short",)]


def test_columns_of_rows_that_are_not_read_are_not_missed(alignment_model, wide):
    [one] = predict_alignments(alignment_model, [made(wide)], rows=1)
    assert one.flags == ("short",)


WINDOW = 12
STRAND = np.random.default_rng(2).integers(0, 4, (200, WINDOW)).astype(np.uint8)


@pytest.fixture(scope="module")
def model():
    """Three members that disagree."""
    config = ModelConfig(d_model=8, heads=2, layers=1, dropout=0.0, max_length=WINDOW)
    networks = tuple(random_network(config, seed, noise=0.5) for seed in range(3))
    names = ("promoter", "background")
    card = Card(name="t", classes=names, positive="promoter", window=WINDOW, model=config, members=3)
    return TrainedModel(replace(card, temperature=1.5), networks)


def log_odds(probabilities):
    return np.log(probabilities[:, 0] / probabilities[:, 1])


def test_the_last_answer_is_that_of_the_model(model):
    expected = log_odds(score_codes(model, STRAND))
    np.testing.assert_allclose(cascade_log_odds(model, STRAND)[:, -1], expected, atol=1e-5)


def test_the_others_are_means_of_the_first_members(model):
    """Log-odds of mean log-probabilities are mean log-odds, and the temperature divides them."""
    tokens = torch.from_numpy(model.tokenizer.encode_codes(STRAND))
    with torch.inference_mode():
        logits = [network(tokens).logits.double().numpy() for network in model.networks]
    each = np.stack([(one[:, 0] - one[:, 1]) / 1.5 for one in logits], axis=1)
    expected = np.cumsum(each, axis=1) / [1, 2, 3]
    assert np.abs(np.diff(expected, axis=1)).max() > 0.3
    np.testing.assert_allclose(cascade_log_odds(model, STRAND), expected, atol=1e-4)


def test_a_window_below_a_cutoff_keeps_its_answer_and_the_others_lose_nothing(model):
    whole = cascade_log_odds(model, STRAND)
    first, second = (float(np.median(column)) for column in whole.T[:2])
    found = cascade_log_odds(model, STRAND, (first, second))
    gone = whole[:, 0] < first
    late = ~gone & (whole[:, 1] < second)
    assert min(gone.sum(), late.sum(), (~gone & ~late).sum()) > 5
    np.testing.assert_array_equal(found[gone], whole[gone][:, [0, 0, 0]])
    np.testing.assert_allclose(found[late], whole[late][:, [0, 1, 1]], atol=1e-5)
    np.testing.assert_allclose(found[~gone & ~late], whole[~gone & ~late], atol=1e-5)


def test_answers_are_calibrated_as_the_model_is(model):
    knots = RisingMap(np.array([-3.0, 1.5]), np.array([-1.0, 1.0]))
    changed = replace(model, card=replace(model.card, format=2, isotonic=knots))
    expected = log_odds(score_codes(changed, STRAND))
    np.testing.assert_allclose(cascade_log_odds(changed, STRAND)[:, -1], expected, atol=1e-5)
    plain = cascade_log_odds(model, STRAND)[:, 0]
    np.testing.assert_allclose(
        cascade_log_odds(changed, STRAND)[:, 0],
        np.where(plain < -1, plain - 2, np.where(plain > 1, plain + 0.5, 2.25 * (plain + 1) - 3)),
        atol=1e-5,
    )


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_engines_answer_the_same(engine, model, tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, model.networks, model.card)
    changed = open_with_engine(path, engine, "fp32", 1)
    np.testing.assert_allclose(
        cascade_log_odds(changed, STRAND, (0.0,)), cascade_log_odds(model, STRAND, (0.0,)), atol=1e-4
    )
