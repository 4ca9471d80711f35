"""The linear part: its features against counts in plain Python, its fit, and its place in the model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.model_config import LinearConfig, ModelConfig
from seqray.core.records import Alignment, LabeledSequence, crop_alignment
from seqray.core.run_config import RunConfig
from seqray.explanations.methods import METHODS
from seqray.explanations.options import MethodSettings
from seqray.explanations.targets import SequenceTarget
from seqray.explanations.trace import trace
from seqray.inference.alignments import alignment_networks
from seqray.inference.sequences import score_ragged
from seqray.modelfile.file import build_network, load_model
from seqray.models.alignment import AlignmentLinearPart, helix_profile, letters_of
from seqray.models.layers import LinearPart
from seqray.models.tokenizers import AlignmentTokenizer, CharacterTokenizer, pad_arrays
from seqray.training import fit
from seqray.training.data import SequenceExamples
from seqray.training.linear_part import choose_linear, count_features, fit_linear, tables_of
from seqray.training.members import RunOptions

SHAPES = [
    LinearConfig(words=2, placed=(1, 3), reach=9),
    LinearConfig(words=3, placed=(1,), reach=4, sides=2),
    LinearConfig(words=1, placed=(2,), reach=12, sides=2),
    LinearConfig(words=1, reach=2, steps=4),
]


def examples_of(windows, labels):
    tokenizer = CharacterTokenizer("dna")
    return SequenceExamples([DNA.decode(one) for one in windows], labels, tokenizer, 0, None)


def plain_logits(letters, config, weights, sizes, alphabet):
    """Sum the weights of one sequence, k-mer by k-mer; weights come one feature after the other."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    total, length = np.zeros(weights.shape[1]), len(letters)
    tables = [(k, None) for k in range(1, config.words + 1)]
    tables += [(k, side) for k in config.placed for side in range(config.sides)]
    for (k, side), start in zip(tables, starts, strict=False):
        for i in range(length - k + 1):
            word = letters[i : i + k]
            if max(word) < alphabet:
                number = sum(int(x) * alphabet ** (k - 1 - j) for j, x in enumerate(word))
                place = {None: 0, 0: i, 1: length - 1 - i}[side]
                if side is None or place < config.reach:
                    total += weights[start + place * alphabet**k + number]
    for kind in range(alphabet + 1):  # the last is any letter
        number = sum(kind in (letter, alphabet) for letter in letters.tolist())
        for step in range(min(number, config.steps)):
            total += weights[sum(sizes[:-1]) + kind * config.steps + step]
    return total


@pytest.mark.parametrize("config", SHAPES)
def test_features_tables_and_contributions_are_those_of_plain_python(config):
    rng = np.random.default_rng(1)
    windows = [rng.integers(0, 5, n).astype(np.uint8) for n in (1, 2, 5, 9, 9, 12)]  # 4 is unknown
    features = count_features(windows, config, 4)
    sizes = [one.shape[1] for one in features]
    weights = rng.normal(size=(sum(sizes), 3))
    expected = np.array([plain_logits(one, config, weights, sizes, 4) for one in windows])
    part, bias = LinearPart(4, config, 3), rng.normal(size=3)
    tensors = tables_of(weights, sizes, config) | {"bias": bias, "scale": np.ones(1)}
    part.load_state_dict({name: torch.tensor(value) for name, value in tensors.items()})
    letters, real = torch.full((len(windows), 14), 3), torch.zeros(len(windows), 14, dtype=torch.bool)
    for row, one in enumerate(windows):  # the values in the padding are ignored
        letters[row, : len(one)] = torch.tensor(np.where(one < 4, one.astype(int), -1))
        real[row, : len(one)] = True
    with torch.no_grad():
        logits, by_letter = part(letters, real), part.contributions(letters, real)
    np.testing.assert_allclose(logits, expected + bias, atol=1e-5)
    np.testing.assert_allclose(by_letter.sum(dim=1), expected, atol=1e-5)
    assert not by_letter[~real].any()


def test_what_is_counted_follows_from_the_lengths():
    assert choose_linear(np.full(9, 81), DNA) == LinearConfig(words=5, placed=(1, 3), reach=81)
    assert choose_linear(np.array([100] * 18 + [20, 103]), PROTEIN) == LinearConfig(
        words=3, reach=100, sides=2, steps=60
    )
    assert choose_linear(np.arange(5, 200), PROTEIN) == LinearConfig(words=3, reach=60, sides=2, steps=60)
    assert choose_linear(np.arange(40, 600), PROTEIN) == LinearConfig(words=2, reach=60, sides=2)
    few_are_long, near_one_length = np.array([20, 30] * 15 + [600]), np.array([598, 600, 603] * 9)
    assert choose_linear(few_are_long, PROTEIN) == LinearConfig(words=3, reach=60, sides=2, steps=60)
    assert choose_linear(near_one_length, PROTEIN) == LinearConfig(words=3, reach=300, sides=2, steps=60)
    for lengths in (np.full(40, 5000), np.array([5000] * 39 + [90_000])):  # tables stay small
        assert choose_linear(lengths, DNA).reach == 300


def test_letters_near_the_ends_of_long_sequences_share_weights():
    """A weight changes only where an end of 1, 2, 4, 8, 15, 30 or 60 letters stops."""
    rng = np.random.default_rng(5)
    labels, held = np.arange(120) % 2, np.arange(80, 120)
    windows = [rng.integers(0, 4, rng.integers(100, 600)).astype(np.uint8) for _ in labels]
    for one, label in zip(windows, labels, strict=True):
        one[-15:] = rng.choice(4, 15, p=[0.4, 0.2, 0.2, 0.2] if label else [0.2, 0.2, 0.2, 0.4])
    raw = np.log(np.full((40, 2), 0.5))
    found = fit_linear(examples_of(windows, labels), held, np.arange(40), raw, RunConfig())
    places = found.tensors["places.0"]
    assert places.shape == (2, 60, 4, 2)
    jumps = 1 + np.flatnonzero(np.diff(places, axis=1).any(axis=(0, 2, 3)))
    assert jumps.tolist() == [1, 2, 4, 8, 15, 30]
    assert places[1, :15, 0, 1].min() > places[1, 15:, 0, 1].max()


@pytest.mark.parametrize("lengths", [(20, 30), (596, 600)])
def test_each_place_has_weights_of_its_own_where_places_mean_something(lengths):
    """The 18th letter is the class: in short sequences, and in long ones of nearly one length."""
    rng = np.random.default_rng(6)
    labels, held = np.arange(120) % 2, np.arange(80, 120)
    windows = [rng.integers(0, 4, rng.integers(*lengths, endpoint=True)).astype(np.uint8) for _ in labels]
    for one, label in zip(windows, labels, strict=True):
        one[17] = 2 * label
    raw = np.log(np.full((40, 2), 0.5))
    places = fit_linear(examples_of(windows, labels), held, np.arange(40), raw, RunConfig()).tensors[
        "places.0"
    ]
    told = places[0, :, 2, 1] - places[0, :, 0, 1]
    assert np.argmax(told) == 17
    assert told[17] > 2 * np.delete(told, 17).max()


@pytest.mark.parametrize("skill", [0.0, 60.0])
def test_the_sum_is_right_where_either_is(skill):
    """The last letter is the class, and the networks know nothing; or they know all, and letters nothing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    windows = [np.append(rng.integers(0, 4, rng.integers(5, 30)), 2 * k).astype(np.uint8) for k in labels]
    if skill:  # now letters say nothing
        windows = [rng.permutation(one)[:-1] for one in windows]
    held = np.arange(400, 600)
    raw = log_softmax(rng.normal(size=(200, 2)) + skill * np.eye(2)[labels[held]], axis=1)
    found = fit_linear(examples_of(windows, labels), held, np.arange(200), raw, RunConfig())
    assert found.share >= 0.5 if not skill else found.share <= 0.5
    assert (found.logits["together"].argmax(axis=1) == labels[held]).mean() > 0.97


def test_a_trained_model_holds_both_and_explains_the_linear_part(make_config, tmp_path):
    rng = np.random.default_rng(2)
    data = []
    for i in range(160):
        letters = "".join(rng.choice(list("ACGT"), rng.integers(12, 40)))
        data.append(LabeledSequence(letters + "AT"[i % 2], ("background", "promoter")[i % 2], f"s{i}"))
    config = replace(make_config(data={"window": 41, "truncate": "ends"}, members=2), floor=True)
    path = tmp_path / "m.safetensors"
    result = fit.train(config, data, path, RunOptions(tmp_path / "work"))
    floor, model = result.card.training["floor"], load_model(path)
    assert floor["linear"]["auroc"] > 0.99 > 0.8 > floor["networks"]["auroc"]
    assert floor["share"] >= 0.5
    assert model.card.model.linear == LinearConfig(
        words=5, reach=max(len(one.sequence) for one in data), sides=2
    )
    codes = [model.read_codes(one.sequence) for one in data]
    called = score_ragged(model, codes, "auto", "fp32")[:, 1] >= model.card.threshold
    assert (called == [one.label == "promoter" for one in data]).mean() > 0.97
    network = model.networks[0]
    assert network.linear is not None
    [scores] = METHODS["linear"].score(SequenceTarget(model, network, 1), codes[1][None], MethodSettings())
    tokens = torch.tensor(model.tokenizer.encode_codes(codes[1][None]))
    [logits] = network.linear(*network.letters_of(tokens)) - network.linear.bias
    assert scores.sum() == pytest.approx(float(logits[1] - logits[0]) / model.card.temperature, abs=1e-4)
    assert np.argmax(scores) == len(scores) - 1


def test_a_new_part_changes_nothing():
    config = ModelConfig(d_model=8, heads=2, layers=1, max_length=20)
    joined = build_network(replace(config, linear=SHAPES[0])).eval()
    plain = build_network(config).eval()
    plain.load_state_dict({k: v for k, v in joined.state_dict().items() if not k.startswith("linear.")})
    tokens = torch.randint(4, 8, (3, 12))
    torch.testing.assert_close(joined(tokens).logits, plain(tokens).logits)


def test_few_held_out_examples_have_as_many_folds_as_the_largest_class():
    rng = np.random.default_rng(0)
    windows = [rng.integers(0, 4, 20).astype(np.uint8) for _ in range(24)]
    labels, held = np.arange(24) % 3, np.arange(18, 24)
    raw, examples = np.log(np.full((6, 3), 1 / 3)), examples_of(windows, labels)
    logits = fit_linear(examples, held, np.arange(6), raw, RunConfig()).logits
    assert all(np.isfinite(one).all() and one.shape == (6, 3) for one in logits.values())


# --- Alignments


def plain_features(rows, config, profile):
    """Features of rows of text, gap -, letter by letter; ``profile`` (C, 4) is of the columns."""
    rows = [row.replace("-", "") for row in rows]
    query = rows[0]
    features = [len(query), np.log(len(query))]
    known = sum(query.count(letter) for letter in "ACGU")
    features += [query.count(letter) / max(known, 1) for letter in "ACGU"]
    for k in range(1, config.words + 1):
        shares = np.zeros((len(rows), 4**k))
        for row, text in enumerate(rows):
            words = [text[i : i + k] for i in range(len(text) - k + 1)]
            words = [word for word in words if "N" not in word]
            for word in words:
                shares[row, int("".join(str("ACGU".index(x)) for x in word), 4)] += 1 / len(words)
        features += np.sqrt(shares.mean(axis=0)).tolist()
    for read in (rows, [row[::-1] for row in rows]):
        places = np.zeros((config.reach, 5))
        for text in read:
            for place, letter in enumerate(text[: config.reach]):
                places[place, "ACGUN".index(letter)] += 1 / len(rows)
        features += places.ravel().tolist()
    twelfths = np.arange(len(profile)) * 12 // len(profile)
    for part in range(12):
        inside = profile[twelfths == part]
        features += (inside.mean(axis=0) if len(inside) else np.zeros(4)).tolist()
    return features


def drawn_alignment(rng, name, label="", group=None):
    """1 to 5 rows of 8 to 30 columns; those of class ``b`` have more G and C."""
    shares = np.array([0.15, 0.35, 0.35, 0.15] if label == "b" else [0.25] * 4) * 0.88
    shape = rng.integers(1, 6), rng.integers(8, 31)
    codes = rng.choice([0, 1, 2, 3, RNA.unknown, RNA.gap], shape, p=[*shares, 0.02, 0.1])
    codes[0, 0] = 2
    names = tuple(f"r{i}" for i in range(len(codes)))
    return Alignment(name, names, codes.astype(np.uint8), RNA, label=label, group=group)


def text_of(codes):
    return ["".join("ACGUN-"[5 if x == RNA.gap else x] for x in row) for row in codes]


def test_features_of_alignments_are_those_of_plain_python():
    rng, config = np.random.default_rng(3), LinearConfig(words=3, reach=5, sides=2)
    data = [drawn_alignment(rng, f"a{i}") for i in range(9)]
    part = AlignmentLinearPart(4, config, 3, helices=True)
    tokens, masks = pad_arrays([AlignmentTokenizer(RNA).encode(one.codes) for one in data])
    inputs = letters_of(torch.tensor(tokens), *(torch.tensor(mask) for mask in masks))
    profile = helix_profile(*inputs)
    expected = [
        plain_features(text_of(one.codes), config, profile[i, : one.columns].numpy())
        for i, one in enumerate(data)
    ]
    np.testing.assert_allclose(part.features(*inputs, profile), expected, atol=1e-5)


def test_a_model_of_alignments_holds_the_regression_of_sklearn(make_config, tmp_path):
    rng = np.random.default_rng(4)
    data = [drawn_alignment(rng, f"a{i}", "abb"[i % 3], f"g{i // 2}") for i in range(90)]
    shape = {"kind": "alignment", "alphabet": "rna", "max_rows": 5, "max_length": 30, "helices": True}
    config = make_config(model=shape, data={"window": 30, "positive": "b", "truncate": "none"}, members=1)
    config = replace(config, floor=True, optimizer=replace(config.optimizer, class_weights="root"))
    path = tmp_path / "m.safetensors"
    result = fit.train(config, data, path, RunOptions(tmp_path / "work"))
    assert result.card.training["floor"]["share"] > 0
    model = load_model(path)
    [network] = alignment_networks(model)
    assert model.card.model.linear == LinearConfig(words=4, reach=24, sides=2)
    assert network.linear
    features, added = [], []
    for one in (crop_alignment(each, 5, 30) for each in data):  # columns of gaps alone are not read
        tokens = torch.tensor(AlignmentTokenizer(RNA).encode(one.codes))[None]
        inputs = letters_of(tokens)
        profile = helix_profile(*inputs)
        features.append(plain_features(text_of(one.codes), model.card.model.linear, profile[0].numpy()))
        with torch.no_grad():
            added.append(network.linear(*inputs, profile)[0].numpy())
            torch.testing.assert_close(trace(network, tokens).logits, network(tokens).logits)
    regression = make_pipeline(
        StandardScaler(), LogisticRegression(C=0.01, class_weight="balanced", max_iter=1000)
    )
    log_odds = regression.fit(features, [one.label for one in data]).decision_function(features)
    of_model = np.diff(added)[:, 0]
    factor = of_model.std() / log_odds.std()  # share and temperature
    np.testing.assert_allclose(of_model, factor * log_odds, atol=2e-3)
