"""Windows scored by one member after the other."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from networks import random_network
from seqray.core.card import Card
from seqray.core.card_parts import RisingMap
from seqray.core.model_config import ModelConfig
from seqray.inference.engines import open_with_engine
from seqray.inference.prefilters import cascade_log_odds
from seqray.inference.sequences import score_codes
from seqray.modelfile.file import save_model
from seqray.modelfile.model import TrainedModel

WINDOW = 12
CODES = np.random.default_rng(2).integers(0, 4, (200, WINDOW)).astype(np.uint8)


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
    expected = log_odds(score_codes(model, CODES))
    np.testing.assert_allclose(cascade_log_odds(model, CODES)[:, -1], expected, atol=1e-5)


def test_the_others_are_means_of_the_first_members(model):
    """Log-odds of mean log-probabilities are mean log-odds, and the temperature divides them."""
    tokens = torch.from_numpy(model.tokenizer.encode_codes(CODES))
    with torch.inference_mode():
        logits = [network(tokens).logits.double().numpy() for network in model.networks]
    each = np.stack([(one[:, 0] - one[:, 1]) / 1.5 for one in logits], axis=1)
    expected = np.cumsum(each, axis=1) / [1, 2, 3]
    assert np.abs(np.diff(expected, axis=1)).max() > 0.3
    np.testing.assert_allclose(cascade_log_odds(model, CODES), expected, atol=1e-4)


def test_a_window_below_a_cutoff_keeps_its_answer_and_the_others_lose_nothing(model):
    whole = cascade_log_odds(model, CODES)
    first, second = (float(np.median(column)) for column in whole.T[:2])
    found = cascade_log_odds(model, CODES, (first, second))
    gone = whole[:, 0] < first
    late = ~gone & (whole[:, 1] < second)
    assert min(gone.sum(), late.sum(), (~gone & ~late).sum()) > 5
    np.testing.assert_array_equal(found[gone], whole[gone][:, [0, 0, 0]])
    np.testing.assert_allclose(found[late], whole[late][:, [0, 1, 1]], atol=1e-5)
    np.testing.assert_allclose(found[~gone & ~late], whole[~gone & ~late], atol=1e-5)


def test_answers_are_calibrated_as_the_model_is(model):
    knots = RisingMap(np.array([-3.0, 1.5]), np.array([-1.0, 1.0]))
    changed = replace(model, card=replace(model.card, format=2, isotonic=knots))
    expected = log_odds(score_codes(changed, CODES))
    np.testing.assert_allclose(cascade_log_odds(changed, CODES)[:, -1], expected, atol=1e-5)
    plain = cascade_log_odds(model, CODES)[:, 0]
    np.testing.assert_allclose(
        cascade_log_odds(changed, CODES)[:, 0],
        np.where(plain < -1, plain - 2, np.where(plain > 1, plain + 0.5, 2.25 * (plain + 1) - 3)),
        atol=1e-5,
    )


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_engines_answer_the_same(engine, model, tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, model.networks, model.card)
    changed = open_with_engine(path, engine, "fp32", 1)
    np.testing.assert_allclose(
        cascade_log_odds(changed, CODES, (0.0,)), cascade_log_odds(model, CODES, (0.0,)), atol=1e-4
    )
