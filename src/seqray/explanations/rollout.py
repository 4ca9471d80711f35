"""Rollout: attention multiplied through the layers, as a row that is pulled back from the output."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from seqray.core.errors import ConfigError, require_type
from seqray.core.host import as_guest
from seqray.explanations.options import RESIDUAL, Fusion, MethodSettings
from seqray.explanations.trace import AttentionLayer, StoredLayer, Trace, WeightBlock, first_token

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
        What `trace` gave. Or a list of the weights of each layer after softmax, of torch or numpy:
        (B, H, L, L), or (B, L, L) without heads. Along rows of an alignment (B, H, R, C, C), or (B, H, C, C)
        or (B, H, 1, C, C) where all rows share them; along columns (B, H, C, R, R).
    mask
        (B, L), or (B, R, C) of alignments, nonzero at real tokens: weights of padding are left out, and the
        others made to sum to 1. A trace needs none.
    query
        The token whose output is explained: its place, (row, column) in an alignment; or the shares of
        several, (L,) or (B, L), of alignments (R, C) or (B, R, C), such as the mask for their mean. Default
        is what the head of a network of seqray reads, else the first token; a warning follows where gradients
        of a trace show that its logits depend on others, or where the first token sees itself alone.
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
        steps = _weight_steps(weights.layers, heads)
        relevance = _roll(_start(query, weights.start), weights.layers, steps, residual)
        return _cautioned(relevance, query, weights.complete, weights.read)
    layers, first, real = _stored(weights, mask, along, values)
    if gradients is not None:
        slopes = _beside("gradients", gradients, [_tensor(layer).shape for layer in weights])
        slopes = [slope.to(first).reshape(of.weights.shape) for slope, of in zip(slopes, layers, strict=True)]
        steps = list(map(_positive_gradient, layers, slopes))
    elif values is not None:
        steps = [_normalized(layer.added_norm()) for layer in layers]
    else:
        steps = _weight_steps(layers, heads)
    relevance = _roll(_start(query, first, real), layers, steps, residual)
    relevance = _cautioned(relevance, query, None if gradients is None else True)
    return relevance if isinstance(weights[0], Tensor) else relevance.numpy()


def _weight_steps(layers: Sequence[AttentionLayer], heads: Fusion) -> list[Step]:
    """Of weights alone."""
    fuse = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}[heads]
    by_rows = _normalized(lambda block: fuse(block.weights, 1))
    return [_mean_step if heads == "mean" and layer.one_line else by_rows for layer in layers]


# --- Weights that the user gives


def _tensor(array: Any) -> Tensor:
    """Float32, or float64 where it is given."""
    tensor = array.detach() if isinstance(array, Tensor) else torch.as_tensor(np.asarray(array))
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _beside(name: str, arrays: Sequence[Any], shapes: list[torch.Size]) -> list[Tensor]:
    """What is given beside the weights of each layer, whose shapes begin with these."""
    tensors = [_tensor(array) for array in arrays]
    if [one.shape[: len(shape)] for one, shape in zip(tensors, shapes, strict=False)] != shapes:
        remedy = f"give an array for each that begins with the axes {tuple(shapes[0])}"
        raise ConfigError(f"'{name}' don't fit the layers", remedy=remedy)
    return tensors


def _stored(
    weights: Sequence[Any], mask: Any, along: Sequence[str] | None, values: Sequence[Any] | None
) -> tuple[list[StoredLayer], Tensor, Tensor | None]:
    """The layers of weights, the first token as shares of all, and which tokens are real."""
    if isinstance(weights, Tensor | np.ndarray) and (weights.ndim < 5 or along):
        remedy = "give [weights] if it is one layer, list(weights) if its first axis is the layers"
        raise ConfigError(f"the weights are one array {tuple(weights.shape)}, not a list", remedy=remedy)
    if weights is None or not len(weights) or any(layer is None for layer in weights):
        remedy = "give those of each layer; a model of transformers shows them if it is loaded as 'eager'"
        raise ConfigError("no attention weights were given", remedy=remedy)
    given = [layer[:, None] if layer.dim() == 3 else layer for layer in map(_tensor, weights)]
    tokens, shapes = given[0].shape[-1:], [given[0].shape[-1:] * 2] * len(given)
    if along is not None:
        given = [layer[:, :, None] if layer.dim() == 4 else layer for layer in given]
        tokens, shapes = _grid(given, along)
    for number, (layer, shape) in enumerate(zip(given, shapes, strict=True), start=1):
        if layer.shape != (len(given[0]), *layer.shape[1:2], *shape):
            what = f"the weights of layer {number} are {tuple(layer.shape)}, and its tokens {tuple(shape)}"
            raise ConfigError(what, remedy="give attention of the same tokens in all layers")
        if not ((layer >= 0).all() and (layer.sum(dim=-1) < 1.01).all()):  # rounded to bfloat16; not nan
            what = f"the weights of layer {number} are no shares: negative, nan, or with sums above 1"
            raise ConfigError(what, remedy="give them after softmax, of a network in evaluation mode")
    like = first_token(given[0], len(given[0]), *tokens)
    real = None if mask is None else _tensor(mask).to(like.device) != 0
    if real is not None and real.shape != like.shape:
        raise ConfigError(f"the mask is {tuple(real.shape)}", remedy=f"give it as {tuple(like.shape)}")
    columns = [axis == "column" for axis in along or ["row"] * len(given)]
    added: list[Tensor | None] = [None] * len(given)
    if values is not None:
        added = [value.to(like) for value in _beside("values", values, [w.shape[:-1] for w in given])]
    layers = [
        StoredLayer(layer.to(like.dtype), one, mask=real, columns=axis, checked=False)
        for layer, one, axis in zip(given, added, columns, strict=True)
    ]
    return layers, like, real


def _grid(given: Sequence[Tensor], along: Sequence[str]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Rows and columns of an alignment, and the last axes of the weights (B, H, N, L, L) of each layer."""
    if not set(along) <= {"row", "column"} or len(along) != len(given):
        raise ConfigError("'along' does not fit the layers", remedy="give 'row' or 'column' for each")
    pairs = zip(along, given, strict=True)
    grids = [layer.shape[2:4] if axis == "row" else layer.shape[2:4][::-1] for axis, layer in pairs]
    rows, columns = map(max, zip(*grids, strict=True))  # some layers share their lines, which are 1 then
    sizes = [(rows, columns) if axis == "row" else (columns, rows) for axis in along]
    lines = [1 if layer.shape[2] == 1 else size[0] for layer, size in zip(given, sizes, strict=True)]
    return (rows, columns), [(n, size[1], size[1]) for n, size in zip(lines, sizes, strict=True)]


def _start(query: Any, like: Tensor, real: Tensor | None = None) -> Tensor:
    """Shares of the tokens that are explained, which sum to 1; ``like`` are those without a query."""
    if query is None and real is None:
        return like
    sizes = like.shape[1:]
    if isinstance(query, Integral | tuple):
        place, start = query if isinstance(query, tuple) else (query,), torch.zeros_like(like)
        fits = len(place) == len(sizes) and all(-n <= int(at) < n for at, n in zip(place, sizes, strict=True))
        if fits:
            start[(slice(None), *place)] = 1.0
    else:
        start = like if query is None else _tensor(query).to(like)
        query = f"of shape {tuple(start.shape)}"
        fits = start.shape in (like.shape, sizes) and bool((start >= 0).all())
    if not fits:
        what = f"the query {query} doesn't fit the {' x '.join(map(str, sizes))} tokens of a record"
        remedy = "give a place, (row, column) in an alignment, or a share of 0 or more for each token"
        raise ConfigError(what, remedy=remedy)
    start = start.expand_as(like) if real is None else start * real
    total = start.flatten(1).sum(dim=1)
    if not bool((total > 0).all()):
        raise ConfigError("the query is padding in a record", remedy="give the place of a real token")
    return start / total.view(-1, *[1] * (like.dim() - 1))


# --- Steps through the layers


@as_guest
def value_rollout(traced: Trace, *, query: Any = None, residual: float = RESIDUAL) -> Tensor:
    """Relevance by the norm of what a key adds to the output, value and output matrix included: (B, T).

    ``query`` and the result are as in `rollout`.
    """
    require_type(traced, Trace, "trace the network by seqray.trace")
    steps = [_normalized(layer.added_norm()) for layer in traced.layers]
    relevance = _roll(_start(query, traced.start), traced.layers, steps, residual)
    return _cautioned(relevance, query, traced.complete, traced.read)


@as_guest
def grad_rollout(traced: Trace, target: Tensor, *, query: Any = None, residual: float = RESIDUAL) -> Tensor:
    """Relevance for one class: the weights whose growth would raise it, by gradient times weight.

    ``traced`` has gradients; ``target`` (B,) is computed from its logits. ``query`` and the result are as in
    `rollout`, but of a network that is not of seqray, the default is all tokens whose last attention has a
    gradient, in equal shares: the first of a CLS head, the real ones of a mean.
    """
    require_type(traced, Trace, "trace the network by seqray.trace")
    require_type(target, Tensor, "compute it from the logits of the trace, such as traced.logits[:, 1]")
    try:
        heads = [layer.heads for layer in traced.layers]
        slopes = torch.autograd.grad(target.sum(), heads, retain_graph=True)  # for other classes
    except RuntimeError as error:
        remedy = "compute it from the logits of this trace, outside of torch.no_grad and torch.inference_mode"
        if "second time" in str(error):
            remedy = "trace again, or use retain_graph=True where you compute gradients yourself"
        raise ConfigError("the target has no gradients by the weights", remedy=remedy) from None
    if query is None and not traced.complete:
        query = traced.layers[-1].read(slopes[-1]).to(traced.start)
        none = query.flatten(1).sum(dim=1) == 0  # such as other records than that of the target
        query[none] = traced.start[none]
    steps = list(map(_positive_gradient, traced.layers, slopes))
    return _roll(_start(query, traced.start), traced.layers, steps, residual)


def _cautioned(relevance: Tensor, query: Any, complete: bool | None, read: Tensor | None = None) -> Tensor:
    """The same, with a warning where the first token, explained for want of a query, is hardly meant."""
    if query is None and complete is not True:
        shares, what = relevance.flatten(1), "without a query the first token is explained, but "
        if complete is False:
            places = set() if read is None else {tuple(row.nonzero()[:, 0].tolist()) for row in read}
            if len(places) == 1 and len(one := next(iter(places))) == 1:
                query = -1 if one[0] == shares.shape[1] - 1 else one[0]
                what += f"the logits depend on token {one[0]} alone; give query={query}"
            else:
                what += "the logits depend on others too; the mask of the tokens is the query of their mean"
            warnings.warn(what, stacklevel=4)
        elif shares.shape[1] > 1 and (shares[:, 0] > 1 - 1e-6).all():
            what += "it attends to itself alone, as in causal networks; the last one is query=-1"
            warnings.warn(what, stacklevel=4)
    return relevance


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
    if not relevance.isfinite().all():
        what = "the relevance is nan, as attention weights, gradients or values of the network are"
        raise ConfigError(what, remedy="check the network and its tokens")
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
