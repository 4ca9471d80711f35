"""Attention rollout: how much of each token reaches CLS, followed back from the last layer to the first.

Each layer passes tokens on by A' = w I + (1 - w) F, where F is its attention, the heads made one, and w the
share of the residual connection. The relevance of the tokens for CLS is the row e_cls A'_L .. A'_1 (Abnar
and Zuidema 2020, section 3). It is computed as a row vector, from the last layer to the first: layers times
L² steps instead of L³, and the weights of some queries at a time, recomputed from queries and keys.

What F is tells the methods apart:

- rollout: the mean (or largest, or smallest) weight over the heads;
- value-rollout: the norm of what the key adds to the query's output, all heads together (Kobayashi et al.
  2020, equation 5);
- grad-rollout: the positive part of gradient times weight, for one class (Chefer et al. 2021, equation 5).

Rows of F are made to sum to 1, so that relevance is never made or lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from seqray.explanations.attribution.forward_trace import AttentionTrace, Trace
from seqray.explanations.options import RESIDUAL, Fusion

Step = Callable[[Tensor, slice, Tensor], tuple[Tensor, Tensor | None]]
"""Weights (B, H, c, T) of the queries in a slice, the slice, and the relevance (B, c) of the queries, to the
relevance that reaches the keys (B, T), and which queries attend to nothing of the kind (B, c), if any may."""

CHUNK_BYTES = 2 << 20  # of the weights at a time: they stay in the processor's cache
MIN_QUERIES = 8


def rollout(traced: Trace, *, residual: float = RESIDUAL, heads: Fusion = "mean") -> Tensor:
    """Relevance of each token for CLS by attention weights alone: (B, T), rows sum to 1.

    Parameters
    ----------
    traced
        See `seqray.explanations.attribution.forward_trace`.
    residual
        Share w of the residual connection.
    heads
        How heads are made one.

    Notes
    -----
    Padding gets 0. CLS and other special tokens are still in; see `seqray.explanations.attribution.letters`.
    """
    return _roll(traced, [fuse(heads)] * len(traced.layers), residual)


def value_rollout(traced: Trace, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance by the length of what a key adds to the output, value and output matrix counted: (B, T)."""
    return _roll(traced, [fused(_norms(layer)) for layer in traced.layers], residual)


def grad_rollout(traced: Trace, target: Tensor, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance for one class: the weights whose growth would raise it, by gradient times weight: (B, T).

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
    heads = [layer.heads for layer in traced.layers if layer.heads is not None]
    if len(heads) < len(traced.layers):
        raise ValueError("the forward pass was traced without gradients")
    slopes = torch.autograd.grad(target.sum(), heads)
    steps = [fused(_positive(layer, slope)) for layer, slope in zip(traced.layers, slopes, strict=True)]
    return _roll(traced, steps, residual)


def attention_of_cls(traced: Trace) -> Tensor:
    """Attention weights of the CLS query: (B, layers, H, T)."""
    rows = []
    for layer in traced.layers:
        q, k, _ = layer.project()
        rows.append(_weights(_scaled(q[:, :, :1]), _turned(k), layer.mask)[:, :, 0])
    return torch.stack(rows, dim=1)


@torch.no_grad()
def _roll(traced: Trace, steps: Sequence[Step], residual: float) -> Tensor:
    first = traced.layers[0]
    relevance = first.x.new_zeros(first.x.shape[:2], dtype=torch.float32)  # (B, T)
    relevance[:, 0] = 1.0
    for layer, step in zip(reversed(traced.layers), reversed(steps), strict=True):
        relevance = pull_back(relevance, weight_slices(layer), step, residual)
    return relevance


def pull_back(
    relevance: Tensor, slices: Iterable[tuple[Tensor, slice]], step: Step, residual: float
) -> Tensor:
    """Carry relevance (B, T) of the outputs of a layer to its inputs: (B, T); see `weight_slices`."""
    arrived = torch.zeros_like(relevance)
    kept = residual * relevance
    for weights, rows in slices:
        asked = relevance[:, rows]
        reached, idle = step(weights, rows, asked)
        arrived += reached
        if idle is not None:  # what attends to nothing keeps all of its relevance
            kept[:, rows] += (1 - residual) * asked * idle
    return kept + (1 - residual) * arrived


def weight_slices(layer: AttentionTrace) -> Iterator[tuple[Tensor, slice]]:
    """Yield the weights (B, H, c, T) of some queries at a time, recomputed, with the slice of the queries."""
    q, k, _ = layer.project()
    q, k = _scaled(q), _turned(k)
    for rows in _slices(q, k):
        yield _weights(q[:, :, rows], k, layer.mask), rows


def _scaled(q: Tensor) -> Tensor:
    return (q.float() / math.sqrt(q.shape[-1])).contiguous()


def _turned(k: Tensor) -> Tensor:
    return k.float().transpose(-2, -1).contiguous()  # (B, H, T, E) -> (B, H, E, T), copied once


def _slices(q: Tensor, k: Tensor) -> list[slice]:
    """Cut the queries so that the weights of one slice stay small."""
    queries = q.shape[2]
    row_bytes = q.shape[0] * q.shape[1] * k.shape[3] * 4
    step = max(MIN_QUERIES, CHUNK_BYTES // row_bytes)
    return [slice(start, min(start + step, queries)) for start in range(0, queries, step)]


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q Kᵀ / √E): scaled (B, H, c, E) and turned (B, H, E, T) to (B, H, c, T), 0 at padded keys."""
    scores = q @ k
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
    return scores.softmax(dim=-1)


def _mean_step(weights: Tensor, _: slice, asked: Tensor) -> tuple[Tensor, None]:
    """The mean over heads: one product of the row (B, 1, H c) with the weights as they lie in memory."""
    B, H, c, T = weights.shape
    row = asked[:, None].expand(B, H, c).reshape(B, 1, H * c) / H
    return torch.bmm(row, weights.reshape(B, H * c, T))[:, 0], None


def fuse(heads: Fusion) -> Step:
    """The step of a layer whose heads are made one by their mean, largest or smallest weight."""
    steps: dict[Fusion, Step] = {
        "mean": _mean_step,
        "max": fused(lambda weights, _: weights.amax(dim=1)),
        "min": fused(lambda weights, _: weights.amin(dim=1)),
    }
    return steps[heads]


def fused(mix: Callable[[Tensor, slice], Tensor]) -> Step:
    """A step by a non-negative mix of the heads (B, c, T), its rows made to sum to 1."""

    def step(weights: Tensor, rows: slice, asked: Tensor) -> tuple[Tensor, Tensor]:
        mixed = mix(weights, rows)
        sums = mixed.sum(dim=-1)  # (B, c)
        idle = sums <= 0
        per_unit = torch.where(idle, 0.0, asked / torch.where(idle, 1.0, sums))
        return torch.bmm(per_unit[:, None], mixed)[:, 0], idle

    return step


def _norms(layer: AttentionTrace) -> Callable[[Tensor, slice], Tensor]:
    """‖Σ_h A_h[q, k] u_h[k]‖ with u_h[k] = v_h[k] W_O,h, by way of the products u_h[k] · u_g[k]."""
    _, _, v = layer.project()
    width = layer.attention.head_width
    columns = layer.attention.out.weight.detach().float().unflatten(1, (-1, width))  # (D, H, E)
    u = torch.einsum("bhte,dhe->bhtd", v.float(), columns)
    gram = torch.einsum("bhtd,bgtd->bhgt", u, u)

    def mix(weights: Tensor, _: slice) -> Tensor:
        squared = torch.einsum("bhct,bgct,bhgt->bct", weights, weights, gram)
        return squared.clamp(min=0).sqrt()

    return mix


def _positive(layer: AttentionTrace, slope: Tensor) -> Callable[[Tensor, slice], Tensor]:
    """Mean over heads of (dy/dA ⊙ A)⁺, where dy/dA[h, q, k] = dy/dO[h, q] · v[h, k] as O = A V."""
    _, _, v = layer.project()
    slope = slope.detach().float().unflatten(-1, (layer.attention.heads, -1)).transpose(1, 2)  # (B, H, Lq, E)

    def mix(weights: Tensor, rows: slice) -> Tensor:
        gradient = slope[:, :, rows] @ v.float().transpose(-2, -1)  # (B, H, c, T)
        return (gradient * weights).clamp(min=0).mean(dim=1)

    return mix
