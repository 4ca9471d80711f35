"""Rollout: attention multiplied through the layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from seqray.explanations.layers import (
    AttentionLayer,
    LineLayer,
    SequenceLayer,
    StoredLayer,
    Trace,
    WeightBlock,
)
from seqray.explanations.options import RESIDUAL, Fusion

Step = Callable[[WeightBlock, Tensor], tuple[Tensor, Tensor | None]]
"""A block of weights and the relevance (n, q) of its queries, to the relevance that reaches its keys (n, k),
and which queries attend to nothing of the kind (n, q), if any may."""
Combine = Callable[[WeightBlock], Tensor]
"""A block of weights to a non-negative combination of its heads (n or 1, q, k)."""


def rollout(traced: Trace[AttentionLayer], *, residual: float = RESIDUAL, heads: Fusion = "mean") -> Tensor:
    """Relevance of each token for CLS, or for the site of a locator, by attention weights alone.

    Parameters
    ----------
    traced
        Of `seqray.explanations.attribution.trace`.
    residual
        Share w of the residual connection, at least 0 and below 1.
    heads
        How heads are combined.

    Returns
    -------
    Tensor
        (B, T), or (B, R, C) for alignments. The relevance of a record sums to 1, and padding has 0. CLS and
        other special tokens are still in.

    Examples
    --------
    >>> import torch
    >>> from seqray.core.model_config import ModelConfig
    >>> from seqray.explanations.rollout import rollout
    >>> from seqray.explanations.trace import trace
    >>> from seqray.models.build import build_model
    >>> network = build_model(ModelConfig(d_model=8, layers=2, heads=2, max_length=5))
    >>> relevance = rollout(trace(network, torch.tensor([[1, 4, 5, 6, 7, 4]])))
    >>> relevance.shape, round(relevance.sum().item(), 4)
    (torch.Size([1, 6]), 1.0)
    """
    combine: dict[Fusion, Combine] = {
        "mean": lambda block: block.weights.mean(dim=1),
        "max": lambda block: block.weights.amax(dim=1),
        "min": lambda block: block.weights.amin(dim=1),
    }
    if heads == "mean":
        traced = replace(traced, layers=tuple(map(_averaged, traced.layers)))
    steps = [
        _mean_step if heads == "mean" and layer.one_line else _normalized(combine[heads])
        for layer in traced.layers
    ]
    return _roll(traced, steps, residual)


def _averaged(layer: AttentionLayer) -> AttentionLayer:
    """The layer with one head, the mean of all, if that is known."""
    if isinstance(layer, SequenceLayer) and layer.mean is not None:
        return StoredLayer(layer.mean[:, None])
    return layer


def value_rollout(traced: Trace[LineLayer], *, residual: float = RESIDUAL) -> Tensor:
    """Relevance by the norm of what a key adds to the output, value and output matrix included: (B, T)."""
    return _roll(traced, [_normalized(layer.added_norm()) for layer in traced.layers], residual)


def grad_rollout(traced: Trace[AttentionLayer], target: Tensor, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance for one class: the weights whose growth would raise it, by gradient times weight.

    Parameters
    ----------
    traced
        With gradients.
    target
        (B,) the quantity explained, computed from ``traced.logits``.
    residual
        Share w of the residual connection, at least 0 and below 1.

    Returns
    -------
    Tensor
        As in `rollout`.

    Raises
    ------
    ValueError
        For a pass that was traced without gradients.
    """
    heads = [layer.heads for layer in traced.layers if layer.heads is not None and layer.heads.requires_grad]
    if len(heads) < len(traced.layers):
        raise ValueError("the forward pass was traced without gradients")
    slopes = torch.autograd.grad(target.sum(), heads)
    steps = [
        _normalized(_positive_gradient(layer, slope))
        for layer, slope in zip(traced.layers, slopes, strict=True)
    ]
    return _roll(traced, steps, residual)


def attention_from_start(traced: Trace[SequenceLayer | StoredLayer]) -> Tensor:
    """Attention weights of CLS, or the mean over the tokens that the head reads: (B, layers, H, T)."""
    return torch.stack([layer.attention_from(traced.start) for layer in traced.layers], dim=1)


@torch.no_grad()
def _roll(traced: Trace[AttentionLayer], steps: Sequence[Step], residual: float) -> Tensor:
    relevance = traced.start
    for layer, step in zip(reversed(traced.layers), reversed(steps), strict=True):
        relevance = _pull_back(relevance, layer, step, residual)
    return relevance


def _pull_back(relevance: Tensor, layer: AttentionLayer, step: Step, residual: float) -> Tensor:
    """Carry relevance (B, ...) of the outputs of a layer to its inputs."""
    kept, arrived = residual * relevance, torch.zeros_like(relevance)
    of_queries, kept_lines, of_keys = (layer.lines(grid) for grid in (relevance, kept, arrived))  # views
    for block in layer.blocks():
        asked = of_queries[block.queries]
        reached, idle = step(block, asked)
        of_keys[block.keys] += reached
        if idle is not None:  # what attends to nothing keeps all of its relevance
            kept_lines[block.queries] += (1 - residual) * asked * idle
        del block  # before the next one is made
    return kept + (1 - residual) * arrived


def _mean_step(block: WeightBlock, asked: Tensor) -> tuple[Tensor, None]:
    """The mean over heads: one product of a row (n, 1, H q) with the terms as they lie in memory."""
    n, H, q, k = block.terms.shape
    row = (asked / H)[:, None].expand(n, H, q)
    if block.sums is not None:
        row = row / block.sums
    return torch.bmm(row.reshape(n, 1, H * q), block.terms.reshape(n, H * q, k))[:, 0], None


def _normalized(combine: Combine) -> Step:
    """A step by a combination of the heads, its rows made to sum to 1."""

    def step(block: WeightBlock, asked: Tensor) -> tuple[Tensor, Tensor]:
        combined = combine(block)
        sums = combined.sum(dim=-1)
        idle = sums <= 0
        per_unit = torch.where(idle, 0.0, asked / torch.where(idle, 1.0, sums))
        return (per_unit[:, None] @ combined)[:, 0], idle

    return step


def _positive_gradient(layer: AttentionLayer, slope: Tensor) -> Combine:
    """Mean over heads of (dy/dA ⊙ A)⁺."""
    return lambda block: (layer.weight_gradient(slope, block) * block.weights).clamp(min=0).mean(dim=1)
