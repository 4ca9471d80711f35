"""What a network's answer may depend on, over shapes, lengths and coordinates drawn at random."""

import functools

import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from networks import random_network
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.models.sequence import SequenceTransformer

TOLERANCE = 1e-5
LONGEST = 70  # letters: on both sides of the length at which the operators of inference change

stems = st.sampled_from(
    [None, StemConfig(kernels=(3, 5), stride=2, depth=1), StemConfig(kernels=(9,), stride=5, depth=0)]
)
positions = st.sampled_from(["sinusoidal", "learned", "rotary"])
configs = st.builds(
    lambda stem, ends, **rest: ModelConfig(stem=stem, ends=0 if stem else ends, **rest),
    ends=st.sampled_from([0, 3]),
    d_model=st.sampled_from([8, 24]),
    heads=st.sampled_from([2, 4]),
    kv_heads=st.sampled_from([None, 1, 2]),
    layers=st.integers(1, 3),
    positions=positions,
    position_gain=st.sampled_from(["none", "shared"]),
    position_matrix=st.sampled_from(["none", "shared"]),
    composition=st.sampled_from([(), ("whole", "ends", "pairs")]),
    activation=st.sampled_from(["relu", "gelu"]),
    max_length=st.just(LONGEST),
    stem=stems,
)
lengths = st.lists(st.integers(1, LONGEST), min_size=1, max_size=6)
seeds = st.integers(0, 1000)


@functools.cache
def network(config: ModelConfig) -> SequenceTransformer:
    return random_network(config, seed=5).requires_grad_(False)


def draw(batch: int, letters: int, seed: int) -> Tensor:
    """Tokens (batch, 1 + letters), CLS first."""
    tokens = torch.randint(2, 8, (batch, 1 + letters), generator=torch.Generator().manual_seed(seed))
    tokens[:, 0] = 1
    return tokens


def assert_near(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@settings(max_examples=60)
@given(config=configs, lengths=lengths, seed=seeds, extra=st.integers(0, 9))
@torch.inference_mode()
def test_padding_and_neighbours_change_nothing(config, lengths, seed, extra):
    model = network(config)
    width = min(LONGEST, max(lengths) + extra)
    tokens = draw(len(lengths), width, seed)
    mask = torch.arange(1 + width) <= torch.tensor(lengths)[:, None]
    together = model(tokens, mask).logits
    for i, n in enumerate(lengths):
        assert_near(together[i : i + 1], model(tokens[i : i + 1, : 1 + n]).logits)


@settings(max_examples=40)
@given(config=configs, letters=st.integers(1, LONGEST), seed=seeds, data=st.data())
@torch.inference_mode()
def test_order_and_size_of_the_batch_change_nothing(config, letters, seed, data):
    model, tokens = network(config), draw(9, letters, seed)
    expected = model(tokens).logits
    order = data.draw(st.permutations(range(9)))
    assert_near(model(tokens[order]).logits, expected[order])
    size = data.draw(st.integers(1, 8))
    assert_near(torch.cat([model(part).logits for part in tokens.split(size)]), expected)


@settings(max_examples=60)
@given(config=configs, lengths=lengths, seed=seeds)
def test_inference_training_and_explicit_paths_agree(config, lengths, seed):
    """The operators of inference, those that record gradients, and attention by its formula."""
    model, tokens = network(config), draw(len(lengths), max(lengths), seed)
    mask = torch.arange(1 + max(lengths)) <= torch.tensor(lengths)[:, None]
    recorded = model(tokens, mask).logits
    with torch.inference_mode():
        assert_near(model(tokens, mask).logits, recorded)
    assert_near(model(tokens, mask, return_attention=True).logits, recorded)


unstemmed = st.builds(
    ModelConfig,
    d_model=st.just(24),
    heads=st.just(4),
    layers=st.integers(1, 2),
    positions=st.sampled_from(["sinusoidal", "rotary"]),
)


@settings(max_examples=40)
@given(config=unstemmed, letters=st.integers(1, 20), seed=seeds, data=st.data())
@torch.inference_mode()
def test_order_is_told_by_the_coordinates_alone(config, letters, seed, data):
    """Sites in any order, each with its coordinate, are the same set of sites."""
    model, tokens = network(config), draw(2, letters, seed)
    coordinates = torch.rand(2, 1 + letters, generator=torch.Generator().manual_seed(seed)) * 30
    order = [0, *(1 + i for i in data.draw(st.permutations(range(letters))))]  # CLS stays first
    expected = model(tokens, None, coordinates).logits
    assert_near(model(tokens[:, order], None, coordinates[:, order]).logits, expected)


@settings(max_examples=40)
@given(letters=st.integers(1, 20), seed=seeds, shift=st.floats(-100, 100, width=32))
@torch.inference_mode()
def test_rotary_answers_depend_on_distances_only(letters, seed, shift):
    model, tokens = network(ModelConfig(d_model=24, heads=4, positions="rotary")), draw(2, letters, seed)
    coordinates = torch.rand(2, 1 + letters, generator=torch.Generator().manual_seed(seed)) * 30
    expected = model(tokens, None, coordinates).logits
    torch.testing.assert_close(model(tokens, None, coordinates + shift).logits, expected, rtol=0, atol=2e-4)
