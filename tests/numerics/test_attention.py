"""Attention against paper arithmetic, plain Python loops, `torch.nn.MultiheadAttention` and itself."""

import pytest
import torch
from torch import Tensor, nn

from seqray.models.attention import MultiHeadAttention, rotary_angles

B, L, D, H = 3, 11, 24, 6


def ragged_mask(batch: int = B, length: int = L) -> Tensor:
    """(B, L) bool: the first sequence is whole, the others are ever shorter."""
    return torch.arange(length) < length - 3 * torch.arange(batch)[:, None]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("heads", [1, 3, 6])
def test_against_torch_multi_head_attention(heads, masked):
    theirs = nn.MultiheadAttention(D, heads, batch_first=True).eval()
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHeadAttention(D, heads)
    ours.qkv.load_state_dict({"weight": theirs.in_proj_weight, "bias": theirs.in_proj_bias})
    ours.out.load_state_dict(theirs.out_proj.state_dict())
    x, mask = torch.randn(B, L, D), ragged_mask() if masked else None
    padding = None if mask is None else ~mask
    expected, expected_weights = theirs(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    output, weights = ours(x, mask, need_weights=True)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)
    torch.testing.assert_close(ours(x, mask)[0], expected)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("length", [L, 70])
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kv_heads", [6, 3, 2, 1])
def test_the_fused_path_equals_the_explicit_one(kv_heads, masked, rotary, length, gradients):
    attention = MultiHeadAttention(D, H, kv_heads)
    x, mask = torch.randn(B, length, D), ragged_mask(B, length) if masked else None
    rotation = rotary_angles(torch.rand(B, length) * 50, D // H) if rotary else None
    with torch.set_grad_enabled(gradients):
        fused, nothing = attention(x, mask, rotation)
        explicit, weights = attention(x, mask, rotation, need_weights=True)
        first, _ = attention(x, mask, rotation, first_query_only=True)
    assert nothing is None
    assert weights.shape == (B, H, length, length)
    torch.testing.assert_close(fused, explicit)
    torch.testing.assert_close(first, explicit[:, :1])


def test_rotary_positions_turn_queries_and_keys_but_no_values():
    """Tokens all alike attend by distance alone, and the output is their value as it is."""
    attention, L = MultiHeadAttention(D, 1), 9
    x = torch.randn(1, 1, D).expand(1, L, D)
    output, weights = attention(x, None, rotary_angles(torch.arange(L), D), need_weights=True)
    scores = weights[0, 0].log()
    scores = scores - scores.diagonal()[:, None]  # of each query against its own token
    for distance in range(-L + 1, L):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), rtol=1e-4, atol=1e-4)
    assert scores.std() > 0.01
    torch.testing.assert_close(output, attention.out(attention.qkv(x)[..., 2 * D :]))


def test_both_paths_have_the_same_gradients():
    attention, x = MultiHeadAttention(D, H, 2), torch.randn(B, L, D, requires_grad=True)
    gradients = []
    for need_weights in (False, True):
        output, _ = attention(x, ragged_mask(), need_weights=need_weights)
        gradients.append(torch.autograd.grad(output.pow(2).sum(), [x, *attention.parameters()]))
    for fused, explicit in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, explicit, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kv_heads", [1, 2, 3])
def test_shared_heads_equal_copied_ones(kv_heads):
    """Grouped-query attention is multi-head attention in which groups of heads have equal keys and values."""
    E, share = D // H, H // kv_heads
    grouped, full = MultiHeadAttention(D, H, kv_heads), MultiHeadAttention(D, H)
    with torch.no_grad():
        for copied, shared in ((full.qkv.weight, grouped.qkv.weight), (full.qkv.bias, grouped.qkv.bias)):
            copied[:D] = shared[:D]
            for kind in (0, 1):  # keys, values
                for head in range(H):
                    source = D + (kind * kv_heads + head // share) * E
                    target = D + (kind * H + head) * E
                    copied[target : target + E] = shared[source : source + E]
    full.out.load_state_dict(grouped.out.state_dict())
    x = torch.randn(B, L, D)
    torch.testing.assert_close(grouped(x, ragged_mask())[0], full(x, ragged_mask())[0])


def test_masked_keys_get_no_mass_and_what_they_hold_is_not_read():
    attention, mask = MultiHeadAttention(D, H), ragged_mask()
    x = torch.randn(B, L, D)
    output, weights = attention(x, mask, need_weights=True)
    assert (weights.masked_select(~mask[:, None, None, :]) == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, L))
    other = torch.where(mask[..., None], x, torch.randn(B, L, D) * 100)
    torch.testing.assert_close(attention(other, mask)[0][mask], output[mask])
