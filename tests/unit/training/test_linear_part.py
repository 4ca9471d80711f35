"""The linear part: its features against counts in plain Python, its fit, and its place in the model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.model_config import LinearConfig, ModelConfig
from seqray.core.records import LabeledSequence
from seqray.explanations.methods import METHODS
from seqray.explanations.options import MethodSettings
from seqray.explanations.targets import SequenceTarget
from seqray.inference.sequences import score_ragged
from seqray.modelfile.file import build_model, load_model
from seqray.models.layers import LinearPart
from seqray.training import fit
from seqray.training.linear_part import choose_linear, count_features, fit_linear, tables_of
from seqray.training.members import RunOptions

SHAPES = [
    LinearConfig(words=2, placed=(1, 3), reach=9),
    LinearConfig(words=3, placed=(1,), reach=4, sides=2),
    LinearConfig(words=1, placed=(2,), reach=12, sides=2),
    LinearConfig(words=1, reach=2, steps=4),
]


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
    for lengths in (np.full(40, 5000), np.array([5000] * 39 + [90_000])):  # tables stay small
        assert choose_linear(lengths, DNA).reach == 300


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
    found = fit_linear(windows, labels, held, np.arange(200), raw, DNA)
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
    joined = build_model(replace(config, linear=SHAPES[0])).eval()
    plain = build_model(config).eval()
    plain.load_state_dict({k: v for k, v in joined.state_dict().items() if not k.startswith("linear.")})
    tokens = torch.randint(4, 8, (3, 12))
    torch.testing.assert_close(joined(tokens).logits, plain(tokens).logits)


def test_few_held_out_examples_have_as_many_folds_as_the_largest_class():
    rng = np.random.default_rng(0)
    windows = [rng.integers(0, 4, 20).astype(np.uint8) for _ in range(24)]
    labels, held = np.arange(24) % 3, np.arange(18, 24)
    logits = fit_linear(windows, labels, held, np.arange(6), np.log(np.full((6, 3), 1 / 3)), DNA).logits
    assert all(np.isfinite(one).all() and one.shape == (6, 3) for one in logits.values())
