"""Attention and positions against paper arithmetic, plain loops and `torch.nn.MultiheadAttention`."""

import cmath
import math

import pytest
import torch
from torch import Tensor, nn

from seqray.models.attention import (
    EndMatrix,
    LearnedPositions,
    MultiHeadAttention,
    PositionGain,
    PositionMatrix,
    PositionTerms,
    rotary_angles,
    rotate,
    sinusoidal,
)

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


def encoding_by_formula(position: float, width: int) -> list[float]:
    """Section 3.5 of the paper, in float64."""
    values = []
    for i in range(width // 2):
        angle = position / 10000 ** (2 * i / width)
        values += [math.sin(angle), math.cos(angle)]
    return values


def test_sinusoids_of_real_numbers_on_any_axes():
    coordinates = torch.tensor([[0.25, -3.5, 1e-3], [12.75, 100.125, 7.0]])
    expected = torch.tensor([[encoding_by_formula(p, 8) for p in row] for row in coordinates.tolist()])
    torch.testing.assert_close(sinusoidal(coordinates, 8), expected, rtol=0, atol=1e-5)


def rotate_by_complex_numbers(x: torch.Tensor, coordinates: list[float]) -> torch.Tensor:
    """RoFormer, equations 12 to 16: feature pair i of a token at p is multiplied by e^(i p θ_i)."""
    E = x.shape[-1]
    rows = []
    for row, position in zip(x.tolist(), coordinates, strict=True):
        turned = []
        for i in range(E // 2):
            z = complex(row[2 * i], row[2 * i + 1]) * cmath.exp(1j * position * 10000 ** (-2 * i / E))
            turned += [z.real, z.imag]
        rows.append(turned)
    return torch.tensor(rows)


@pytest.mark.parametrize("width", [2, 4, 10])
def test_rotation_against_complex_numbers(width):
    torch.manual_seed(0)
    x, coordinates = torch.randn(2, 3, 6, width), torch.rand(2, 6) * 40 - 10
    turned = rotate(x, *rotary_angles(coordinates, width))
    for b in range(2):
        for h in range(3):
            expected = rotate_by_complex_numbers(x[b, h], coordinates[b].tolist())
            torch.testing.assert_close(turned[b, h], expected, rtol=1e-5, atol=1e-5)


def test_rotation_keeps_the_number_format():
    x = torch.randn(1, 2, 5, 8).bfloat16()
    assert rotate(x, *rotary_angles(torch.arange(5), 8)).dtype == torch.bfloat16


def test_learned_positions_are_the_first_rows_of_their_table():
    positions = LearnedPositions(9, 4)
    assert torch.equal(positions(5), positions.table.weight[:5])
    assert positions(9).shape == (9, 4)


@torch.no_grad()
def test_the_gain_by_its_definition():
    """1 + what all share + what the context adds, for each letter and channel; context 0 adds nothing."""
    torch.manual_seed(0)
    gain = PositionGain(contexts=2, letters=5, d_model=3)
    gain.table.copy_(torch.randn(3, 5, 3))
    factors = gain(torch.tensor([0, 2, 1]), letters=4)
    assert factors.shape == (3, 4, 3)
    for sequence, context in enumerate([0, 2, 1]):
        for letter in range(4):
            own = gain.table[context, letter] if context else 0.0
            expected = 1 + gain.table[0, letter] + own
            torch.testing.assert_close(factors[sequence, letter], expected)
    assert PositionGain(contexts=0, letters=5, d_model=3)(torch.tensor([0, 0]), letters=4).shape == (1, 4, 3)


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("contexts", [0, 2])
def test_the_matrix_by_its_definition(contexts, stride):
    """Token t gains, of each letter i under its stride, U (shared + own of the context)[i] applied to it."""
    torch.manual_seed(0)
    N, V, r, D = 7, 5, 2, 4
    matrix = PositionMatrix(contexts, letters=9, width=V, rank=r, d_model=D)
    matrix.table.copy_(torch.randn_like(matrix.table))
    given = torch.tensor([0, 2, 1]) if contexts else torch.zeros(3, dtype=torch.long)
    terms = PositionTerms(matrix=matrix(given, N), up=matrix.up.weight)
    vectors, x = torch.randn(3, N, V), torch.randn(3, -(-N // stride), D)
    added = terms.add(x, vectors, stride) - x
    for b, context in enumerate(given.tolist()):
        for t in range(x.shape[1]):
            expected = torch.zeros(D)
            for i in range(t * stride, min((t + 1) * stride, N)):
                own = matrix.table[context, i] if context else 0.0
                expected += matrix.up.weight @ (vectors[b, i] @ (matrix.table[0, i] + own))
            torch.testing.assert_close(added[b, t], expected)


@torch.no_grad()
def test_the_matrix_at_the_ends_by_its_definition():
    """Each letter gains the vector of itself at its distance to the first letter, and to the last one."""
    reach, vocabulary, D = 3, 5, 4
    ends = EndMatrix(reach, vocabulary, D)
    ends.table.copy_(torch.randn_like(ends.table))
    table = ends.table.unflatten(1, (reach, vocabulary))
    for filled in ([1, 1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0], [0] * 8):
        real, tokens = torch.tensor([filled]).bool(), torch.randint(0, vocabulary, (1, 8))
        at = [i for i, there in enumerate(filled) if there]
        for i, vector in enumerate(ends(tokens, real)[0]):
            expected = torch.zeros(D)
            if i in at:
                for side, distance in enumerate((at.index(i), len(at) - 1 - at.index(i))):
                    if distance < reach:
                        expected += table[side, distance, tokens[0, i]]
            torch.testing.assert_close(vector, expected)
