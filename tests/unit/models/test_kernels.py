"""The short cuts of inference compute what the plain operators do."""

import platform
import resource
import statistics

import pytest
import torch
from torch import Tensor

from seqray.models import attention as kernels
from seqray.models.attention import Linear, fused_attention, keep_freed_memory


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def exact_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax attention in float64 by its formula."""
    scores = torch.einsum("bhqe,bhke->bhqk", q.double(), k.double()) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
    return torch.einsum("bhqk,bhke->bhqe", scores.softmax(-1), v.double())


@pytest.mark.parametrize("shape", [(16, 40, 24), (1, 600, 24), (3, 5, 24), (700, 24), (1, 24)])
def test_linear_maps_any_number_of_rows(shape):
    x, layer = torch.randn(shape), Linear(24, 36)
    expected = x.double() @ layer.weight.double().T + layer.bias.double()
    with torch.no_grad():
        torch.testing.assert_close(layer(x), expected.float())
    torch.testing.assert_close(layer(x), expected.float())


@pytest.mark.parametrize("piece", [1, 3000, 1 << 21])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("queries", "keys", "width"), [(20, 20, 8), (1, 20, 8), (7, 90, 5), (70, 70, 4)])
def test_attention_in_float32(queries, keys, width, masked, piece, monkeypatch):
    monkeypatch.setattr(kernels, "SCORE_BYTES", piece)
    q, (k, v) = torch.randn(5, 3, queries, width), torch.randn(2, 5, 3, keys, width)
    mask = torch.arange(keys) < torch.arange(keys - 5, keys)[:, None] + 1 if masked else None
    with torch.inference_mode():
        output = fused_attention(q, k, v, mask)
    torch.testing.assert_close(output, exact_attention(q, k, v, mask).float())


@pytest.mark.parametrize("length", [6, 28, 130])
def test_attention_in_bfloat16_is_as_near_as_its_digits(length):
    """Each score and weight is rounded to 8 bits: errors below 2⁻⁸ of a few units."""
    q, k, v = torch.randn(3, 2, 4, length, 16).bfloat16()
    with torch.inference_mode():
        output = fused_attention(q, k, v)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.double(), exact_attention(q, k, v), rtol=0, atol=0.03)


def test_values_may_be_narrower_than_keys():
    """As in tied rows of an alignment: all rows have a part in the keys, the query alone is wanted."""
    q, k, v = (torch.randn(2, 3, n, width).bfloat16() for n, width in ((1, 20), (30, 20), (30, 5)))
    with torch.inference_mode():
        output = fused_attention(q, k, v)
    torch.testing.assert_close(output.double(), exact_attention(q, k, v), rtol=0, atol=0.03)


@pytest.mark.parametrize(("most", "off"), [(0, 1e-6), (1 << 20, 0.06)], ids=["kernel", "products"])
@pytest.mark.parametrize("masked", [False, True])
def test_training_in_bfloat16_has_the_gradients_of_float32(masked, most, off, monkeypatch):
    """Given the same rounded queries, keys and values, the kernel rounds the answer and its gradient only.

    Products of matrices round the scores and the weights, too.
    """
    monkeypatch.setattr(kernels, "MAX_TRAINED_SCORES", most)
    given = torch.randn(3, 2, 4, 9, 16).bfloat16()
    weights = torch.randn(2, 4, 9, 16).bfloat16()
    mask = torch.arange(9) < torch.tensor([[9], [5]]) if masked else None
    narrow, wide = given.clone().requires_grad_(), given.float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        output = fused_attention(*narrow, mask)
    assert output.dtype == torch.bfloat16
    (output * weights).sum().backward()
    expected = fused_attention(*wide, mask)
    (expected * weights.float()).sum().backward()
    torch.testing.assert_close(output.float(), expected, rtol=2**-8, atol=off)
    torch.testing.assert_close(narrow.grad.float(), wide.grad, rtol=2**-8, atol=off)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("level", [-3000.0, -150.0, 150.0, 3000.0])
def test_scores_beyond_the_range_of_the_exponential(level, dtype):
    """Scores all far up or far down overflow or vanish without a shift; the fused kernel steps in."""
    q = torch.full((1, 1, 4, 4), 2.0)
    k = torch.full((1, 1, 4, 4), level / 4)  # q·k / √E = level
    v = torch.randn(1, 1, 4, 4).to(dtype)
    with torch.inference_mode():
        output = fused_attention(q.to(dtype), k.to(dtype), v)
    expected = v.float().mean(dim=2, keepdim=True).expand(1, 1, 4, 4)  # equal scores: the mean
    torch.testing.assert_close(output.float(), expected, rtol=0.01, atol=0.01)


def test_one_extreme_sequence_leaves_the_others_exact():
    q, k, v = torch.randn(3, 4, 2, 10, 8)
    q[2] *= 1000
    with torch.inference_mode():
        found, expected = fused_attention(q, k, v), exact_attention(q, k, v).float()
    others = [0, 1, 3]
    torch.testing.assert_close(found[others], expected[others])
    # Each of E products in a score s is rounded by up to 2⁻²⁴ s; a weight changes by that share.
    largest = float((q[2].abs() @ k[2].abs().transpose(-2, -1)).max()) / 8**0.5
    torch.testing.assert_close(
        found[2], expected[2], rtol=0, atol=2 * 8 * largest * 2**-24 * float(v[2].abs().max())
    )


def test_a_number_that_is_none_is_passed_on():
    q, k, v = torch.randn(3, 1, 1, 4, 4)
    k[0, 0, 2, 1] = float("nan")
    with torch.inference_mode():
        assert fused_attention(q, k, v).isnan().all()


def test_freed_memory_is_used_again():
    """With glibc a tensor of 24 MB, 6144 pages, comes without fresh ones once the thresholds are up."""
    keep_freed_memory()
    counts = []
    for _ in range(21):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        x = torch.ones(6 << 20)
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        del x
    assert statistics.median(counts) < 600 or platform.libc_ver()[0] != "glibc"
