"""Layer norms of a network that trains in bfloat16."""

import pytest
import torch

from seqray.models.layers import LayerNorm

TOKENS, WIDTH = 1 << 15, 16


def gradients(norm, given, wanted):
    norm(given).float().backward(wanted.float())
    return norm.weight.grad, norm.bias.grad


@pytest.mark.parametrize("place", [0, 1], ids=["weight", "bias"])
def test_gradients_over_many_tokens_are_those_of_float64(place):
    """Sums in bfloat16 would stop growing: torch's own norm loses nearly all of that of the bias."""
    torch.manual_seed(0)
    given = torch.randn(TOKENS, WIDTH).bfloat16()
    weights = torch.rand(TOKENS, WIDTH).bfloat16()
    exact = gradients(torch.nn.LayerNorm(WIDTH).double(), given.double(), weights.double())[place]
    with torch.autocast("cpu", torch.bfloat16):
        found = gradients(LayerNorm(WIDTH), given, weights)[place]
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=1e-2 * float(exact.norm()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_one_precision_it_is_that_of_torch(dtype):
    torch.manual_seed(1)
    given, own, other = torch.randn(9, WIDTH, dtype=dtype), LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
    own, other = own.to(dtype), other.to(dtype)
    assert torch.equal(own(given), other(given))
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(own(given), other(given))
