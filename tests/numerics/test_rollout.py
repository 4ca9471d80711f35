"""Rollout against the full matrix product, closed forms, and autograd on explicit weights."""

from unittest import mock

import pytest
import torch
from hypothesis import given, settings, strategies as st

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.explanations import trace as forward_trace
from seqray.explanations.rollout import attention_from_start, grad_rollout, rollout, value_rollout
from seqray.explanations.trace import trace
from seqray.modelfile.networks import build_model

SHAPES = [
    {},
    {"positions": "learned"},
    {"positions": "rotary", "kv_heads": 1},
    {"heads": 4, "kv_heads": 2, "layers": 1},
    {"stem": StemConfig(kernels=(3, 5), stride=3), "layers": 4},
]


def network(seed: int = 0, **shape):
    torch.manual_seed(seed)
    config = ModelConfig(
        **({"d_model": 32, "layers": 3, "heads": 4, "max_length": 90, "dropout": 0.3} | shape)
    )
    net = build_model(config).eval()
    with torch.no_grad():  # sharp heads: nearly even ones would hide a wrong order of the layers
        for parameter in net.parameters():
            parameter.mul_(2.0)
    return net


def batch(lengths=(60, 31, 7), seed: int = 1):
    """Tokens and mask of sequences padded to the longest."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, 8, (len(lengths), max(lengths)), generator=generator)
    tokens[:, 0] = 1
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return tokens.masked_fill(~mask, 0), mask


def explicit(net, tokens, mask):
    """Attention weights of every layer by the explicit path: (B, H, T, T) each."""
    return [step.weights for step in net(tokens, mask, return_attention=True).attention]


def product(fused, residual=0.5):
    """CLS row of the product of all layers' matrices, by whole matrices, first layer rightmost."""
    joint = None
    for matrix in fused:
        matrix = matrix / matrix.sum(-1, keepdim=True).clamp(min=1e-30)
        step = residual * torch.eye(matrix.shape[-1]) + (1 - residual) * matrix
        joint = step if joint is None else step @ joint
    return joint[:, 0]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("residual", [0.5, 0.0, 0.9])
@torch.no_grad()
def test_rollout_is_the_row_of_the_full_product(shape, residual):
    net, (tokens, mask) = network(**shape), batch()
    expected = product([w.mean(1) for w in explicit(net, tokens, mask)], residual)
    torch.testing.assert_close(
        rollout(trace(net, tokens, mask), residual=residual), expected, atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.no_grad()
def test_long_sequences_whose_weights_are_computed_again_have_the_same_rollout(shape):
    net, (tokens, mask) = network(**shape), batch()
    expected = product([w.mean(1) for w in explicit(net, tokens, mask)])
    with mock.patch.object(forward_trace, "KEPT_BYTES", 0):
        traced = trace(net, tokens, mask)
    assert all(layer.projected is None for layer in traced.layers)
    torch.testing.assert_close(rollout(traced), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("heads", ["max", "min"])
@torch.no_grad()
def test_other_ways_to_make_heads_one(heads):
    net, (tokens, mask) = network(), batch()
    fuse = torch.amax if heads == "max" else torch.amin
    expected = product([fuse(w, 1) for w in explicit(net, tokens, mask)])
    torch.testing.assert_close(rollout(trace(net, tokens, mask), heads=heads), expected, atol=1e-6, rtol=0)


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4), chunk=st.sampled_from([1, 3000, 1 << 21])
)
def test_mass_is_one_padding_gets_none_and_neighbours_change_nothing(lengths, chunk):
    net, (tokens, mask) = network(), batch([1 + n for n in lengths])
    with mock.patch.object(forward_trace, "CHUNK_BYTES", chunk):
        relevance = rollout(trace(net, tokens, mask))
    assert (relevance >= 0).all()
    torch.testing.assert_close(relevance.sum(1), torch.ones(len(lengths)))
    assert (relevance[~mask] == 0).all()
    for row, length in enumerate(lengths):
        alone = rollout(trace(net, tokens[row : row + 1, : length + 1]))
        torch.testing.assert_close(relevance[row, : length + 1], alone[0], atol=1e-6, rtol=0)


def shares_by_hand(net, tokens, mask):
    """What the head reads of each token, vector by vector: the mean, both ends, and where channels peak."""
    states = net.states(tokens, mask)
    result = torch.zeros(states.shape[:2])
    for row, real in enumerate(mask.sum(1).tolist()):
        reach = min(5, real - 1)
        for places in (range(1, real), range(1, 1 + reach), range(real - reach, real)):
            for place in places:
                result[row, place] += 1 / len(places) / 4
        for channel in range(32):
            result[row, 1 + int(states[row, 1:real, channel].argmax())] += 1 / 32 / 4
    return result


@torch.no_grad()
def test_rollout_of_a_pooled_model_starts_from_all_that_the_head_reads():
    net, (tokens, mask) = network(ends=5, pooling=("mean", "max", "ends")), batch((60, 31, 4))
    traced, expected = trace(net, tokens, mask), shares_by_hand(net, tokens, mask)
    torch.testing.assert_close(traced.start, expected, atol=1e-6, rtol=0)
    weights = explicit(net, tokens, mask)
    for one in reversed(weights):
        expected = 0.5 * expected + 0.5 * (expected[:, None] @ one.mean(1))[:, 0]
    torch.testing.assert_close(rollout(traced), expected, atol=1e-6, rtol=0)
    of_queries = torch.stack([torch.einsum("bq,bhqk->bhk", traced.start, one) for one in weights], 1)
    torch.testing.assert_close(attention_from_start(traced), of_queries, atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_grad_rollout_is_autograd_on_the_explicit_weights(shape):
    net, (tokens, mask) = network(**shape), batch()
    net.requires_grad_(False)
    net.cls.requires_grad_(True)
    output = net(tokens, mask, return_attention=True)
    weights = [step.weights for step in output.attention]
    slopes = torch.autograd.grad((output.logits[:, 1] - output.logits[:, 0]).sum(), weights)
    relevance = torch.zeros(weights[0].shape[0], weights[0].shape[-1])
    relevance[:, 0] = 1
    for a, slope in zip(reversed(weights), reversed(slopes), strict=True):
        mixed = (a * slope).clamp(min=0).mean(1).detach()
        sums = mixed.sum(-1, keepdim=True)
        step = torch.where(sums > 1e-30, mixed / sums.clamp(min=1e-30), torch.eye(a.shape[-1]))
        relevance = 0.5 * relevance + 0.5 * torch.einsum("bq,bqk->bk", relevance, step)
    net.requires_grad_(False)
    traced = trace(net, tokens, mask, gradients=True)
    found = grad_rollout(traced, traced.logits[:, 1] - traced.logits[:, 0])
    torch.testing.assert_close(found, relevance, atol=2e-5, rtol=0)


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
@torch.no_grad()
def test_value_rollout_weighs_by_the_length_of_what_is_added(shape):
    """Each key's vector Σ_h A[h, q, k] v_h[k] W_O,h is built outright, and its norm taken."""
    net, (tokens, mask) = network(**shape), batch()
    traced = trace(net, tokens, mask)
    fused = []
    for layer, weights in zip(traced.layers, explicit(net, tokens, mask), strict=True):
        _, _, v = layer.attention.project(layer.x, layer.rotation)
        heads = torch.einsum("bhqk,bhke->bqkhe", weights, v).flatten(-2)
        fused.append((heads @ layer.attention.out.weight.T).norm(dim=-1))
    torch.testing.assert_close(value_rollout(traced), product(fused), atol=1e-5, rtol=0)


@torch.no_grad()
def test_attention_of_cls_is_the_first_row_of_the_weights():
    net, (tokens, mask) = network(), batch()
    expected = torch.stack([w[:, :, 0] for w in explicit(net, tokens, mask)], 1)
    torch.testing.assert_close(attention_from_start(trace(net, tokens, mask)), expected, atol=1e-5, rtol=0)


def test_the_network_is_left_as_it_was_found_and_dropout_is_off():
    net, (tokens, mask) = network(), batch()
    net.train()
    net.blocks[1].eval()
    modes = [module.training for module in net.modules()]
    first, second = (rollout(trace(net, tokens, mask)) for _ in range(2))
    assert torch.equal(first, second)
    assert [module.training for module in net.modules()] == modes
    assert_unwatched(net)
    assert torch.equal(first, rollout(trace(net.eval(), tokens, mask)))


def assert_unwatched(net):
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_the_traced_logits_are_those_of_the_plain_pass():
    net, (tokens, mask) = network(), batch()
    with torch.no_grad():
        expected = net(tokens, mask).logits
    torch.testing.assert_close(trace(net, tokens, mask).logits, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        trace(net, tokens, mask, gradients=True).logits, expected, atol=1e-5, rtol=1e-5
    )


def test_hooks_are_gone_after_an_error():
    net = network()
    with pytest.raises(IndexError):
        trace(net, torch.full((1, 5), 99))
    assert_unwatched(net)


@pytest.mark.parametrize(("scale", "off"), [(1.0, 1e-5), (300.0, 1e-3)])
def test_weights_of_any_size_are_those_of_softmax(scale, off):
    net, (tokens, mask) = network(), batch([40, 25])
    with torch.no_grad():
        for block in net.blocks:
            block.attention.qkv.weight.mul_(scale)  # scores beyond what an exponential holds
    traced = trace(net, tokens, mask)
    for layer, expected in zip(traced.layers, explicit(net, tokens, mask), strict=True):
        found = torch.cat([block.weights for block in layer.blocks()], dim=2)
        torch.testing.assert_close(found, expected[:, :, : found.shape[2]], atol=off, rtol=0)
