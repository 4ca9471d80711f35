"""The score of a record is a function of the record alone, to 1e-5 in float32."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from seqray.core.card import Card
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import SequenceRecord
from seqray.inference.sequences import predict_records, score_codes
from seqray.modelfile import TrainedModel
from seqray.models.build import build_model

TOLERANCE = 1e-5
SHORTEST, WINDOW = 3, 40  # no fewer than a word of the k-mer model

SHAPES = {
    "sinusoidal": ModelConfig(d_model=16, heads=4, layers=2),
    "learned": ModelConfig(d_model=16, heads=4, layers=2, positions="learned"),
    "rotary, grouped": ModelConfig(d_model=16, heads=4, kv_heads=2, layers=2, positions="rotary"),
    "stem": ModelConfig(d_model=16, heads=4, layers=2, stem=StemConfig(kernels=(3, 9), stride=3, depth=2)),
    "words": ModelConfig(d_model=16, heads=4, layers=2, tokenizer="kmer", k=3),
}


def build(config: ModelConfig) -> TrainedModel:
    """A random model whose probabilities spread over the whole range."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        network = build_model(config)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    card = Card(name="m", classes=("a", "b"), positive="a", window=WINDOW, model=config)
    return TrainedModel(card, (network,))


MODELS = {name: build(config) for name, config in SHAPES.items()}


def score(model: TrainedModel, sequences: list[str], **settings: object) -> np.ndarray:
    records = [SequenceRecord(f"r{i}", letters) for i, letters in enumerate(sequences)]
    predictions = list(predict_records(model, records, **settings))  # pyright: ignore[reportArgumentType]
    assert [p.id for p in predictions] == [r.id for r in records]
    return np.array([p.probabilities for p in predictions]).reshape(len(records), 2)


def alone(model: TrainedModel, sequences: list[str]) -> np.ndarray:
    """Each sequence by itself: the score that all others are held against."""
    return np.concatenate([score(model, [letters]) for letters in sequences])


sequences = st.lists(st.text("ACGTN", min_size=SHORTEST, max_size=WINDOW), min_size=1, max_size=30)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=25)
@given(batch=sequences, size=st.one_of(st.just("auto"), st.integers(1, 40)), data=st.data())
def test_neighbours_padding_order_and_batch_size_change_nothing(name, batch, size, data):
    model = MODELS[name]
    expected = alone(model, batch)
    np.testing.assert_allclose(score(model, batch, batch_size=size), expected, rtol=0, atol=TOLERANCE)
    order = data.draw(st.permutations(range(len(batch))))
    shuffled = score(model, [batch[i] for i in order], batch_size=size)
    np.testing.assert_allclose(shuffled, expected[list(order)], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=10)
@given(length=st.integers(SHORTEST, WINDOW), seed=st.integers(0, 99))
def test_lengths_shared_by_many_or_few_make_no_difference(name, length, seed):
    """Sixteen of one length go without a mask, others are padded together."""
    rng = np.random.default_rng(seed)
    lengths = [length] * 20 + rng.integers(SHORTEST, WINDOW + 1, 8).tolist()
    batch = ["".join(rng.choice(list("ACGTN"), n)) for n in lengths]
    np.testing.assert_allclose(score(MODELS[name], batch), alone(MODELS[name], batch), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", SHAPES)
def test_threads_change_nothing(name):
    codes = np.random.default_rng(5).integers(0, 5, (60, WINDOW)).astype(np.uint8)
    threads = torch.get_num_threads()
    results = []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            results.append(score_codes(MODELS[name], codes))
    finally:
        torch.set_num_threads(threads)
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", SHAPES)
def test_the_models_of_these_tests_have_something_to_say(name):
    """Invariance of a constant would prove nothing."""
    codes = np.random.default_rng(5).integers(0, 5, (60, WINDOW)).astype(np.uint8)
    assert score_codes(MODELS[name], codes)[:, 0].std() > 0.01
