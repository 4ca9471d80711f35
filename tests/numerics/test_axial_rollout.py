"""Rollout over an alignment against products of attention matrices over all cells, RC by RC."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from networks import random_network
from seqray.core.model_config import ModelConfig
from seqray.explanations import trace as axial_attention
from seqray.explanations.rollout import grad_rollout, rollout
from seqray.explanations.targets import without_cls
from seqray.explanations.trace import trace
from seqray.models.alignment import AxialTransformer
from seqray.models.attention import sinusoidal

R, C, D, H = 4, 5, 12, 3
E = D // H
W = 0.5


def make(tied: bool) -> AxialTransformer:
    config = ModelConfig(kind="alignment", alphabet="rna", d_model=D, layers=2, heads=H, tied=tied, classes=3)
    return random_network(config, seed=5, noise=0.3)


TOKENS = torch.randint(2, 10, (1, R, C), generator=torch.Generator().manual_seed(1))


def attend(layer, x: Tensor, axis: str, tied: bool) -> tuple[Tensor, Tensor]:
    """One step as attention between all cells (N = R·C), with -inf between those of other lines."""
    q, k, v = F.linear(x, layer.attention.qkv.weight, layer.attention.qkv.bias).view(-1, 3, H, E).unbind(1)
    row, column = torch.arange(R * C) // C, torch.arange(R * C) % C
    line = column if axis == "column" else row
    scores = torch.einsum("ihe,jhe->hij", q, k) / math.sqrt(E)
    if tied:
        cells = scores.view(H, R, C, R, C)
        total = sum(cells[:, r, :, r] for r in range(R)) / math.sqrt(R)  # (H, C, C)
        scores = total.repeat(1, R, R)  # the same map between the columns of every row
    weights = scores.masked_fill(line[:, None] != line, -math.inf).softmax(dim=-1)  # (H, N, N)
    weights.requires_grad_() if not weights.requires_grad else weights.retain_grad()
    heads = torch.einsum("hij,jhe->ihe", weights, v).flatten(1)
    return F.linear(heads, layer.attention.out.weight, layer.attention.out.bias), weights


def reference(network: AxialTransformer) -> tuple[Tensor, list[Tensor]]:
    """Logits (K,) and the full weights (H, RC, RC) of each step, the graph kept."""
    x = network.embedding(TOKENS[0]) + sinusoidal(torch.arange(C).float(), D)
    x = x + torch.cat([network.query[None], torch.zeros(R - 1, D)])[:, None]
    x, maps = x.flatten(0, 1), []
    for block in network.blocks:
        y, weights = attend(block.column, block.column_norm(x), "column", tied=False)
        x = x + y
        maps.append(weights)
        y, weights = attend(block.row, block.row_norm(x), "row", block.row.tied)
        x = x + y
        maps.append(weights)
        x = x + block.feed_forward.down(F.gelu(block.feed_forward.up(block.feed_forward_norm(x))))
    return network.head(x[:1])[0], maps


def product(maps: list[Tensor]) -> Tensor:
    """Row of cell 0 of the product of w I + (1 - w) A, the rows of A made to sum to 1."""
    total = torch.eye(R * C)
    for a in maps:
        a = a / a.sum(dim=-1, keepdim=True)
        total = (W * torch.eye(R * C) + (1 - W) * a) @ total
    return total[0].view(R, C)


@pytest.mark.parametrize("tied", [True, False])
def test_the_network_is_the_reference(tied):
    network = make(tied)
    torch.testing.assert_close(network(TOKENS).logits[0], reference(network)[0])
    torch.testing.assert_close(trace(network, TOKENS).logits[0], reference(network)[0])


@pytest.mark.parametrize("line_bytes", [1, 1 << 20])
@pytest.mark.parametrize("tied", [True, False])
def test_rollout_is_the_product_over_all_cells(tied, line_bytes, monkeypatch):
    monkeypatch.setattr(axial_attention, "LINE_BYTES", line_bytes)
    network = make(tied)
    expected = product([a.detach().mean(dim=0) for a in reference(network)[1]])
    grid = rollout(trace(network, TOKENS))
    torch.testing.assert_close(grid[0], expected)
    assert grid.sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("tied", [True, False])
def test_class_gradient_rollout_is_the_product_over_all_cells(tied, label):
    network = make(tied)
    logits, maps = reference(network)
    slopes = torch.autograd.grad(logits[label], maps)
    mixed = []
    for a, slope in zip(maps, slopes, strict=True):
        positive = (a * slope).clamp(min=0).mean(dim=0).detach()
        idle = positive.sum(dim=-1) <= 0
        mixed.append(torch.where(idle[:, None], torch.eye(R * C), positive))
    traced = trace(network, TOKENS, gradients=True)
    grid = grad_rollout(traced, traced.logits[:, label])
    torch.testing.assert_close(grid[0], product(mixed), rtol=1e-4, atol=1e-6)


def test_frozen_networks_have_gradients_too():
    network = make(True).requires_grad_(False)
    traced = trace(network, TOKENS, gradients=True)
    assert grad_rollout(traced, traced.logits[:, 0]).sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_padding_gets_nothing_and_changes_nothing(tied):
    network = make(tied)
    wide = torch.full((2, R + 2, C + 3), 7)
    wide[:, :R, :C] = TOKENS
    rows, columns = torch.ones(2, R + 2, dtype=torch.bool), torch.ones(2, C + 3, dtype=torch.bool)
    rows[0, R:], columns[0, C:] = False, False
    for gradients in (False, True):
        one, two = (
            trace(network, *given, gradients=gradients) for given in ((TOKENS,), (wide, rows, columns))
        )
        grids = [grad_rollout(t, t.logits[:, 1]) if gradients else rollout(t) for t in (one, two)]
        torch.testing.assert_close(grids[1][0, :R, :C], grids[0][0], rtol=1e-4, atol=1e-6)
        assert grids[1][0, R:].abs().max() == 0
        assert grids[1][0, :, C:].abs().max() == 0


def test_cls_is_taken_out():
    grid = torch.tensor([[[0.5, 0.1, 0.1], [0.2, 0.1, 0.0]]])
    expected = torch.tensor([[[1 / 3, 1 / 3], [1 / 3, 0.0]]])
    torch.testing.assert_close(without_cls(grid), expected)
    nothing = without_cls(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]))
    torch.testing.assert_close(nothing, torch.full((1, 2, 2), 0.25))
