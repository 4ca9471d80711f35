"""Attention rollout over an alignment: how much of each cell reaches CLS of the query, as a grid R by C.

A column step mixes the rows of each column, a row step the columns of each row. Taken as one matrix over all
cells, each is RC×RC and nearly all zeros; their product is never formed. The grid that says where CLS of the
query looks is pulled back through one step after the other, from the last to the first:

    G[r, c] <- w G[r, c] + (1 - w) Σ_s G[s, c] A_c[s, r]      (column step)
    G[r, c] <- w G[r, c] + (1 - w) Σ_d G[r, d] A_r[d, c]      (row step; A_r = A for tied rows)

with w the share of the residual connection. The class-gradient rollout puts the positive part of gradient
times weight in place of A. Where rows are tied, the gradient of a row's own use of the shared map is taken,
for values flow within rows only.

Sources: as `seqray.explanations.attribution.attention_rollout`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seqray.explanations.attribution.axial_trace import AxialStep, AxialTrace
from seqray.explanations.options import RESIDUAL

Mix = Callable[[AxialStep, int, slice, Tensor, Tensor], Tensor]
"""A step, the number of an alignment, a slice of its lines, their weights (n or 1, H, L, L) and values
(n, H, L, E), to non-negative shares (n or 1, L, L) of the keys."""


def axial_rollout(traced: AxialTrace, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance of each cell for CLS of the query by attention weights alone: (B, R, C), summing to 1.

    Parameters
    ----------
    traced
        See `seqray.explanations.attribution.trace_alignment`.
    residual
        Share w of the residual connection.

    Notes
    -----
    Padding gets 0. CLS is still in; see `without_cls`.
    """
    return _roll(traced, [_mean_of_heads] * len(traced.steps), residual)


def axial_grad_rollout(traced: AxialTrace, target: Tensor, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance for one class, by the positive part of gradient times weight: (B, R, C), summing to 1.

    Parameters
    ----------
    traced
        With gradients.
    target
        (B,) the quantity explained, computed from ``traced.logits``.

    Raises
    ------
    ValueError
        For a pass that was traced without gradients.
    """
    heads = [step.heads for step in traced.steps if step.heads is not None]
    if len(heads) < len(traced.steps):
        raise ValueError("the forward pass was traced without gradients")
    slopes = torch.autograd.grad(target.sum(), heads, retain_graph=True)
    mixes = [_positive(step, slope) for step, slope in zip(traced.steps, slopes, strict=True)]
    return _roll(traced, mixes, residual)


def without_cls(grid: Tensor) -> Tensor:
    """Take CLS out and scale the rest to sum to 1: (B, R, 1 + C) -> (B, R, C); even where nothing is left."""
    rest = grid[:, :, 1:]
    total = rest.sum(dim=(1, 2), keepdim=True)
    even = torch.full_like(rest, 1 / max(1, rest[0].numel()))
    return torch.where(total > 0, rest / torch.where(total > 0, total, 1.0), even)


@torch.no_grad()
def tied_maps(traced: AxialTrace) -> Tensor:
    """Maps of row attention without CLS, of all layers and heads: (B, layers, H, C - 1, C - 1).

    Tied rows have one map; of untied ones the mean over the real rows is taken. Padded columns are 0 as keys.
    For `seqray.core.msa.pairs_from_maps`.
    """
    B, _, C = traced.shape
    layers = []
    for step in (s for s in traced.steps if s.layer.axis == "row"):
        maps = step.x.new_zeros(B, step.attention.heads, C, C)
        for b, lines, weights, _ in step.weights():
            if step.tied:
                maps[b] = weights[0]
                continue
            real = None if step.row_mask is None else step.row_mask[b]
            share = torch.ones(len(weights)) if real is None else real[lines].float()
            count = step.x.shape[1] if real is None else int(real.sum())
            maps[b] += torch.einsum("r,rhij->hij", share.to(weights), weights) / count
        layers.append(maps[:, :, 1:, 1:])
    return torch.stack(layers, dim=1)


@torch.no_grad()
def _roll(traced: AxialTrace, mixes: list[Mix], residual: float) -> Tensor:
    grid = torch.zeros(traced.shape, device=traced.logits.device)
    grid[:, 0, 0] = 1.0
    for step, mix in zip(reversed(traced.steps), reversed(mixes), strict=True):
        grid = residual * grid + (1 - residual) * _pull_back(grid, step, mix)
    return grid


def _pull_back(grid: Tensor, step: AxialStep, mix: Mix) -> Tensor:
    """Carry relevance (B, R, C) of the outputs of a step to what it read."""
    arrived = torch.zeros_like(grid)
    asked, reached = step.lines(grid), step.lines(arrived)  # (B, N, L); the second is a view to write to
    for b, lines, weights, values in step.weights():
        if not asked[b, lines].any():
            continue
        shares = mix(step, b, lines, weights, values)  # (n or 1, L, L)
        sums = shares.sum(dim=-1)
        idle = sums <= 0
        wanted = asked[b, lines]  # (n, L)
        per_unit = torch.where(idle, 0.0, wanted / torch.where(idle, 1.0, sums))
        # What attends to nothing of the kind keeps all of its relevance.
        reached[b, lines] = (per_unit[:, None] @ shares)[:, 0] + wanted * idle
    return arrived


def _mean_of_heads(_: AxialStep, __: int, ___: slice, weights: Tensor, ____: Tensor) -> Tensor:
    return weights.mean(dim=1)


def _positive(step: AxialStep, slope: Tensor) -> Mix:
    """Mean over heads of (dy/dA ⊙ A)⁺, where dy/dA[h, q, k] = dy/dO[h, q] · v[h, k] as O = A V."""
    width = step.attention.head_width
    slope = step.as_grid(slope.detach()).unflatten(-1, (-1, width))  # (B, R, C, H, E)

    def mix(_: AxialStep, b: int, lines: slice, weights: Tensor, values: Tensor) -> Tensor:
        own = step.lines(slope[b : b + 1])[0, lines].transpose(1, 2)  # (n, L, H, E) -> (n, H, L, E)
        gradient = own @ values.transpose(-2, -1)
        return (gradient * weights).clamp(min=0).mean(dim=1)

    return mix
