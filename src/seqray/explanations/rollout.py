"""Rollout: attention multiplied through the layers, as a row that is pulled back from the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seqray.explanations.options import RESIDUAL, Fusion
from seqray.explanations.trace import AttentionLayer, SequenceLayer, StoredLayer, Trace, WeightBlock

Step = Callable[[WeightBlock, Tensor], tuple[Tensor, Tensor | None]]
"""A block of weights and the relevance (n, q) of its queries, to the relevance that reaches its keys (n, k),
and which queries attend to nothing of the kind (n, q), if any may."""


def rollout(traced: Trace, *, residual: float = RESIDUAL, heads: Fusion = "mean") -> Tensor:
    """Relevance of each token for CLS, or for the site of a locator, by attention weights alone.

    Parameters
    ----------
    traced
        Of `seqray.explanations.trace.trace`.
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
    if heads == "mean":
        means = [_averaged(layer) for layer in traced.layers]
        by_rows = _normalized(lambda block: block.weights.mean(dim=1))
        return _roll(traced.start, means, [_mean_step if m.one_line else by_rows for m in means], residual)
    fuse = torch.amax if heads == "max" else torch.amin
    step = _normalized(lambda block: fuse(block.weights, 1))
    return _roll(traced.start, traced.layers, [step] * len(traced.layers), residual)


def _averaged(layer: AttentionLayer) -> AttentionLayer:
    """The layer with one head, the mean of all, if that is known."""
    if isinstance(layer, SequenceLayer) and layer.mean is not None:
        return StoredLayer(layer.mean[:, None])
    return layer


def value_rollout(traced: Trace, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance by the norm of what a key adds to the output, value and output matrix included: (B, T)."""
    steps = [_normalized(layer.added_norm()) for layer in traced.layers]
    return _roll(traced.start, traced.layers, steps, residual)


def grad_rollout(traced: Trace, target: Tensor, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance for one class: the weights whose growth would raise it, by gradient times weight.

    ``traced`` has gradients; ``target`` (B,) is computed from its logits. The result is as in `rollout`.
    """
    slopes = torch.autograd.grad(target.sum(), [layer.heads for layer in traced.layers])
    steps = [_positive_gradient(*pair) for pair in zip(traced.layers, slopes, strict=True)]
    return _roll(traced.start, traced.layers, steps, residual)


def _positive_gradient(layer: AttentionLayer, slope: Tensor) -> Step:
    """Mean over heads of (dy/dA ⊙ A)⁺."""
    return _normalized(
        lambda block: (layer.weight_gradient(slope, block) * block.weights).clamp(min=0).mean(dim=1)
    )


def attention_from_start(traced: Trace) -> Tensor:
    """Attention weights of CLS, or the mean over the tokens that the head reads: (B, layers, H, T)."""
    return torch.stack([layer.attention_from(traced.start) for layer in traced.layers], dim=1)


@torch.no_grad()
def _roll(
    relevance: Tensor, layers: Sequence[AttentionLayer], steps: Sequence[Step], residual: float
) -> Tensor:
    """Carry relevance (B, ...) of the last outputs to the first inputs, layer by layer."""
    for layer, step in zip(reversed(layers), reversed(steps), strict=True):
        kept, arrived = residual * relevance, torch.zeros_like(relevance)
        of_queries, kept_lines, of_keys = (layer.lines(grid) for grid in (relevance, kept, arrived))  # views
        for block in layer.blocks():
            asked = of_queries[block.queries]
            reached, idle = step(block, asked)
            of_keys[block.keys] += reached
            if idle is not None:  # what attends to nothing keeps all of its relevance
                kept_lines[block.queries] += (1 - residual) * asked * idle
            del block  # before the next one is made
        relevance = kept + (1 - residual) * arrived
    return relevance


def _mean_step(block: WeightBlock, asked: Tensor) -> tuple[Tensor, None]:
    """The mean over heads: one product of a row (n, 1, H q) with the terms as they lie in memory."""
    n, H, q, k = block.terms.shape
    row = (asked / H)[:, None].expand(n, H, q)
    if block.sums is not None:
        row = row / block.sums
    return torch.bmm(row.reshape(n, 1, H * q), block.terms.reshape(n, H * q, k))[:, 0], None


def _normalized(combine: Callable[[WeightBlock], Tensor]) -> Step:
    """A step by a combination of the heads, (n or 1, q, k), whose rows are made to sum to 1."""

    def step(block: WeightBlock, asked: Tensor) -> tuple[Tensor, Tensor]:
        combined = combine(block)
        sums = combined.sum(dim=-1)
        idle = sums <= 0
        per_unit = torch.where(idle, 0.0, asked / torch.where(idle, 1.0, sums))
        return (per_unit[:, None] @ combined)[:, 0], idle

    return step
