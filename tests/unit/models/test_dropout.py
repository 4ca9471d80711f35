"""Dropout zeroes the share that is asked for and keeps the mean."""

from __future__ import annotations

import math

import pytest
import torch

from seqray.models.batches import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_a_share_of_the_values_is_dropped_and_the_rest_scaled(p, dtype):
    torch.manual_seed(0)
    count, dropped = 200_003, round(256 * p) / 256  # no multiple of the 8 values of a random number
    found = Dropout(p)(torch.ones(count, dtype=dtype))
    zeros = int((found == 0).sum())
    assert abs(zeros - dropped * count) < 5 * math.sqrt(count * dropped * (1 - dropped))
    [scale] = set(found[found != 0].tolist())
    assert scale == pytest.approx(1 / (1 - dropped), rel=1e-6 if dtype == torch.float32 else 4e-3)


def test_neighbors_are_dropped_independently():
    torch.manual_seed(0)
    kept = (Dropout(0.5)(torch.ones(80_000)) != 0).view(-1, 8).float()
    correlations = torch.corrcoef(kept.T).fill_diagonal_(0)  # of the 8 values of a random number
    assert correlations.abs().max() < 5 / math.sqrt(len(kept))


def test_gradients_flow_through_what_is_kept():
    torch.manual_seed(0)
    x = torch.randn(7, 5, 3, requires_grad=True)
    found = Dropout(0.25)(x)
    found.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), found.detach())


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_nothing_is_dropped_in_evaluation(p):
    x = torch.randn(100)
    assert torch.equal(Dropout(p).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert not Dropout(1.0)(x).any()
