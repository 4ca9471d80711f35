"""Rollout: attention multiplied through the layers, as a row that is pulled back from the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from seqray.core.errors import ConfigError
from seqray.core.host import as_guest
from seqray.explanations.options import RESIDUAL, Fusion, MethodSettings
from seqray.explanations.trace import AttentionLayer, StoredLayer, Trace, WeightBlock

Step = Callable[[WeightBlock, Tensor], tuple[Tensor, Tensor | None]]
"""A block of weights and the relevance (n, q) of its queries, to the relevance that reaches its keys (n, k),
and which queries attend to nothing of the kind (n, q), if any may."""


@as_guest
def rollout(
    weights: Trace | Sequence[Any],
    mask: Any = None,
    *,
    query: Any = None,
    along: Sequence[Literal["row", "column"]] | None = None,
    gradients: Sequence[Any] | None = None,
    values: Sequence[Any] | None = None,
    residual: float = RESIDUAL,
    heads: Fusion = "mean",
) -> Any:
    """Relevance of each token for CLS, or for the site of a locator, by attention weights.

    Parameters
    ----------
    weights
        What `trace` gave. Or the weights of each layer, first layer first, of torch or numpy: (B, H, L, L),
        or (B, L, L) without heads. Along rows of an alignment (B, H, R, C, C), or (B, H, C, C) where all rows
        share them; along columns (B, H, C, R, R).
    mask
        (B, L), or (B, R, C) of alignments, nonzero at real tokens: weights of padding are left out, and the
        others made to sum to 1. A trace needs none.
    query
        The token whose output is explained: its place, (row, column) in an alignment; or the shares of
        several, such as the mask for their mean. Default is the first, or what the head of a trace reads.
    along
        Of alignments: ``row`` or ``column`` for each layer.
    gradients
        Of a score by the weights: those whose growth would raise it count, by gradient times weight. For a
        trace call `grad_rollout`.
    values
        (B, H, L, D) of each layer, what a head adds of a key, its values times its part of the output matrix:
        keys count by the norm of what they add. For a trace call `value_rollout`.
    residual
        Share w of the residual connection, at least 0 and below 1.
    heads
        How heads are combined.

    Returns
    -------
    Tensor or ndarray, as the weights
        (B, T), or (B, R, C) for alignments. The relevance of a record sums to 1, and padding has 0. CLS and
        other special tokens are still in.

    Examples
    --------
    >>> import numpy as np
    >>> from seqray import rollout
    >>> layer = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]])
    >>> rollout([layer, layer], residual=0).tolist()
    [[0.25, 0.5, 0.25]]
    """
    MethodSettings(residual=residual, heads=heads)  # checks both
    if isinstance(weights, Trace):
        if not (mask is along is gradients is values is None):
            remedy = "leave them out: a trace knows its padding, and grad_rollout and value_rollout the rest"
            raise ConfigError("a trace takes no mask, along, gradients or values", remedy=remedy)
        start = weights.start if query is None else _start(query, weights.start, None)
        return _rolled(start, weights.layers, residual, heads)
    layers, like, real = _stored([_tensor(layer) for layer in weights], mask, along, values)
    start = _start((0,) * (like.dim() - 1) if query is None else query, like, real)
    if gradients is not None:
        slopes = [
            _tensor(slope).to(like).reshape(layer.weights.shape)
            for slope, layer in zip(gradients, layers, strict=True)
        ]
        relevance = _roll(start, layers, list(map(_positive_gradient, layers, slopes)), residual)
    elif values is not None:
        relevance = _roll(start, layers, [_normalized(layer.added_norm()) for layer in layers], residual)
    else:
        relevance = _rolled(start, layers, residual, heads)
    return relevance if isinstance(weights[0], Tensor) else relevance.numpy()


def _rolled(start: Tensor, layers: Sequence[AttentionLayer], residual: float, heads: Fusion) -> Tensor:
    """Rollout of weights alone."""
    fuse = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}[heads]
    by_rows = _normalized(lambda block: fuse(block.weights, 1))
    means = [heads == "mean" and layer.one_line for layer in layers]
    return _roll(start, layers, [_mean_step if mean else by_rows for mean in means], residual)


# --- Weights that the user gives


def _tensor(array: Any) -> Tensor:
    """Float32, or float64 where it is given."""
    tensor = array.detach() if isinstance(array, Tensor) else torch.as_tensor(np.asarray(array))
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _stored(
    given: list[Tensor], mask: Any, along: Sequence[str] | None, values: Sequence[Any] | None
) -> tuple[list[StoredLayer], Tensor, Tensor | None]:
    """The layers of weights, zeros of the shape of the tokens, and which tokens are real."""
    if not given:
        raise ConfigError("no attention weights were given", remedy="give those of one layer or more")
    given = [layer[:, None] if layer.dim() == 3 else layer for layer in given]
    tokens, shapes = given[0].shape[-1:], [given[0].shape[-1:] * 2] * len(given)
    if along is not None:
        given = [layer[:, :, None] if layer.dim() == 4 else layer for layer in given]
        tokens, shapes = _grid(given, along)
    for number, (layer, shape) in enumerate(zip(given, shapes, strict=True), start=1):
        if layer.shape != (len(given[0]), *layer.shape[1:2], *shape):
            what = f"the weights of layer {number} are {tuple(layer.shape)}, and its tokens {tuple(shape)}"
            raise ConfigError(what, remedy="give attention of the same tokens in all layers")
    like = given[0].new_zeros(len(given[0]), *tokens)
    real = None if mask is None else _tensor(mask).to(like.device) != 0
    if real is not None and real.shape != like.shape:
        raise ConfigError(f"the mask is {tuple(real.shape)}", remedy=f"give it as {tuple(like.shape)}")
    columns = [axis == "column" for axis in along or ["row"] * len(given)]
    added = [None] * len(given) if values is None else [_tensor(value).to(like) for value in values]
    layers = [
        StoredLayer(layer.to(like.dtype), one, mask=real, columns=axis, checked=False)
        for layer, one, axis in zip(given, added, columns, strict=True)
    ]
    return layers, like, real


def _grid(given: Sequence[Tensor], along: Sequence[str]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Rows and columns of an alignment, and the last axes of the weights (B, H, N, L, L) of each layer."""
    if not set(along) <= {"row", "column"} or len(along) != len(given):
        raise ConfigError("'along' does not fit the layers", remedy="give 'row' or 'column' for each")
    last = dict(zip(along, given, strict=True))
    rows = last["column"].shape[-1] if "column" in last else last["row"].shape[2]
    columns = last["row"].shape[-1] if "row" in last else last["column"].shape[2]
    sizes = {"row": (rows, columns), "column": (columns, rows)}
    shapes = [
        (1 if layer.shape[2] == 1 else sizes[axis][0], *[sizes[axis][1]] * 2)
        for axis, layer in zip(along, given, strict=True)
    ]
    return (rows, columns), shapes


def _start(query: Any, like: Tensor, real: Tensor | None) -> Tensor:
    """Shares of the tokens that are explained, of the shape of ``like``; they sum to 1."""
    if isinstance(query, Integral | tuple):
        place, start = query if isinstance(query, tuple) else (query,), torch.zeros_like(like)
        if any(not -size <= int(at) < size for at, size in zip(place, like.shape[1:], strict=False)):
            tokens = " x ".join(map(str, like.shape[1:]))
            raise ConfigError(f"the query {query} lies beyond the {tokens} tokens of a record")
        start[(slice(None), *place)] = 1.0
    else:
        start = _tensor(query).to(like).expand_as(like)
    start = start if real is None else start * real
    total = start.flatten(1).sum(dim=1)
    if not bool((total > 0).all()):
        raise ConfigError("the query is padding in a record", remedy="give the place of a real token")
    return start / total.view(-1, *[1] * (like.dim() - 1))


# --- Steps through the layers


@as_guest
def value_rollout(traced: Trace, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance by the norm of what a key adds to the output, value and output matrix included: (B, T)."""
    steps = [_normalized(layer.added_norm()) for layer in traced.layers]
    return _roll(traced.start, traced.layers, steps, residual)


@as_guest
def grad_rollout(traced: Trace, target: Tensor, *, residual: float = RESIDUAL) -> Tensor:
    """Relevance for one class: the weights whose growth would raise it, by gradient times weight.

    ``traced`` has gradients; ``target`` (B,) is computed from its logits. The result is as in `rollout`.
    """
    try:
        slopes = torch.autograd.grad(target.sum(), [layer.heads for layer in traced.layers])
    except RuntimeError:
        remedy = "compute it from the logits of this trace, outside of torch.no_grad and torch.inference_mode"
        raise ConfigError("the target has no gradients by the weights", remedy=remedy) from None
    steps = list(map(_positive_gradient, traced.layers, slopes))
    return _roll(traced.start, traced.layers, steps, residual)


def _positive_gradient(layer: AttentionLayer, slope: Tensor) -> Step:
    """Mean over heads of (dy/dA ⊙ A)⁺."""
    return _normalized(
        lambda block: (layer.weight_gradient(slope, block) * block.weights).clamp(min=0).mean(dim=1)
    )


@torch.no_grad()
def attention_from_start(traced: Trace) -> Tensor:
    """Attention weights of CLS, or the mean over the tokens that the head reads: (B, layers, H, T)."""
    start, totals = traced.start, []
    for layer in traced.layers:
        total = None
        for block in layer.blocks():
            if total is None:
                total = start.new_zeros(len(start), block.terms.shape[1], start.shape[1])
                totals.append(total)
            if (asked := start[block.queries]).any():
                total[block.keys[0]] += torch.einsum("bq,bhqk->bhk", asked, block.weights)
    return torch.stack(totals, dim=1)


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
