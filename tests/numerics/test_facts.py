"""Three facts about attention that the design rests on: the scale, the parameter count, the second head."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from seqray.models.attention import MultiHeadAttention, scaled_dot_product
from seqray.models.build import count_parameters
from seqray.models.layers import FeedForward

# --- why scores are divided by √E ---------------------------------------------------------------------


def entropy(weights: Tensor) -> float:
    """Mean entropy of the rows, as a share of that of uniform attention."""
    return float(torch.special.entr(weights).sum(-1).mean() / math.log(weights.shape[-1]))


def test_softmax_saturates_without_the_scale():
    generator = torch.Generator().manual_seed(0)
    shares = {}
    for E in (4, 64, 1024):
        q, k = torch.randn(2, 256, E, generator=generator)
        _, scaled = scaled_dot_product(q, k, k)
        _, unscaled = scaled_dot_product(q * math.sqrt(E), k, k)
        shares[E] = entropy(scaled), entropy(unscaled)
    assert all(scaled > 0.85 for scaled, _ in shares.values())  # scores of variance 1, whatever the width
    assert shares[4][1] > 0.6 > 0.15 > shares[64][1] > shares[1024][1]
    assert shares[1024][1] < 0.05  # one key takes it all, and the gradient is gone


# --- the parameter count does not depend on the number of heads ---------------------------------------


@pytest.mark.parametrize("D", [64, 512])
def test_the_parameter_count_does_not_depend_on_the_heads(D):
    counts = {count_parameters(MultiHeadAttention(D, heads)) for heads in (1, 2, 4, 8, 16, 32, 64)}
    assert counts == {4 * D**2 + 4 * D}  # four D × D maps and their biases


@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_shared_keys_and_values_save_their_maps(kv_heads):
    D, heads = 512, 8
    shared = kv_heads * (D // heads)  # width of all keys together
    expected = 2 * (D**2 + D) + 2 * (D * shared + shared)
    assert count_parameters(MultiHeadAttention(D, heads, kv_heads)) == expected


def test_the_worked_example():
    """Three tokens 512 wide, eight heads of 64: 1,050,624 parameters, eight maps of 3 × 3."""
    attention, x = MultiHeadAttention(512, 8), torch.randn(1, 3, 512)
    assert count_parameters(attention) == 1_050_624
    q, k, v = attention.project(x)
    assert q.shape == k.shape == v.shape == (1, 8, 3, 64)
    output, weights = attention(x, need_weights=True)
    assert weights is not None
    assert weights.shape == (1, 8, 3, 3)
    assert output.shape == (1, 3, 512)


# --- what one head can't do ---------------------------------------------------------------------------

KEYS = torch.tensor([[10.0, 0], [0, 10], [5, 5], [0, 0]])  # the third is the balance of the first two


@given(seed=st.integers(0, 10_000))
def test_one_head_never_prefers_the_midpoint(seed):
    """Whatever the maps and biases: a score is affine in the key, so the midpoint is never above both."""
    generator = torch.Generator().manual_seed(seed)
    head = MultiHeadAttention(2, 1).requires_grad_(False)
    for parameter in head.parameters():
        parameter.normal_(generator=generator)
    _, weights = head(KEYS[None], need_weights=True)
    assert weights is not None
    for row in weights[0, 0]:
        assert float(row[2]) <= float(row[:2].max()) + 1e-6


def balance_detector() -> tuple[MultiHeadAttention, FeedForward]:
    """Two heads of width 1, one a coordinate, and one rectified unit that fires where both are high.

    Head i: query = key = value = coordinate i, so a token at 5 or 10 reads the largest value there is, 10,
    and a token at 0 the mean of all four, 15/4. The unit is relu(head 1 + head 2 - 15).
    """
    attention, feed_forward = MultiHeadAttention(2, 2), FeedForward(2, 1, "relu")
    with torch.no_grad():
        attention.qkv.weight.copy_(torch.eye(2).repeat(3, 1))
        attention.out.weight.copy_(torch.eye(2))
        feed_forward.up.weight.fill_(1)
        feed_forward.down.weight.copy_(torch.tensor([[1.0], [0]]))
        for bias, value in (
            (attention.qkv.bias, 0),
            (attention.out.bias, 0),
            (feed_forward.up.bias, -15),
            (feed_forward.down.bias, 0),
        ):
            bias.fill_(value)
    return attention, feed_forward


def test_two_heads_and_a_feed_forward_layer_do():
    attention, feed_forward = balance_detector()
    heads, _ = attention(KEYS[None])
    vertex, low = 10.0, 15 / 4
    expected = torch.tensor([[vertex, low], [low, vertex], [vertex, vertex], [low, low]])
    torch.testing.assert_close(heads[0], expected)
    scores = feed_forward(heads)[0, :, 0]
    torch.testing.assert_close(scores, torch.tensor([0.0, 0, 5, 0]))  # 10 + 10 - 15, the others below zero
