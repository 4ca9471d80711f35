"""Attention of each kind of layer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from seqray.models.attention import (
    SAFE_SUMS,
    MultiHeadAttention,
    WindowedAttention,
    attention_weights,
    scaled_dot_product,
)
from seqray.models.axial import ColumnAttention, RowAttention

# --- An attention layer of a forward pass, as rollout reads it: its weights, and their queries and keys

CHUNK_BYTES = 3 << 20  # of the weights at a time: they stay in the processor's cache
KEPT_BYTES = 8 << 20  # of what is kept of a layer; for longer sequences it is computed again
MIN_QUERIES = 8

Index = tuple[int | slice, slice]


class WeightBlock(NamedTuple):
    """Attention weights of some queries.

    Attributes
    ----------
    terms
        (n, H, q, k), the weights times the sums; (1, H, q, k) where all n lines share them.
    sums
        (n, H, q) of the rows of the terms; None where they are 1.
    queries, keys
        Where the n·q queries and the n·k keys are in `AttentionLayer.lines` of the tokens.
    values
        (n, H, k, E) of the keys; None where the network does not show them.
    """

    terms: Tensor
    sums: Tensor | None
    queries: Index
    keys: Index
    values: Tensor | None

    @property
    def weights(self) -> Tensor:
        """The weights, of the shape of the terms; each row sums to 1."""
        return self.terms if self.sums is None else self.terms / self.sums[..., None]


@dataclass(slots=True, eq=False)
class AttentionCall:
    """What was seen of a call of an attention module.

    ``projected`` holds queries, keys and values (B, T, 3D) of a `MultiHeadAttention`, if they are small
    enough to be kept; ``mean`` the means (B, Lq, T) over the heads of the weights, if they were computed.
    """

    arguments: dict[str, Any]
    projected: Tensor | None = None
    mean: Tensor | None = None
    heads: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AttentionLayer(ABC):
    """One attention layer of a forward pass.

    Attributes
    ----------
    heads
        Output of the heads, side by side, before the output matrix, with its graph: what gradients are taken
        of. None without gradients.
    """

    one_line: ClassVar[bool] = True
    """Whether the tokens of a record are one line (B, T), not a grid (B, R, C)."""

    heads: Tensor | None

    @abstractmethod
    def blocks(self) -> Iterator[WeightBlock]:
        """Yield the weights of some queries at a time, without gradients."""

    @abstractmethod
    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """Gradient by the weights of a block, (n, H, q, k), from the slope: that by `heads`."""

    def lines(self, tokens: Tensor) -> Tensor:
        """View (B, ..., D) so that attention runs along the axis before the last index of a block."""
        return tokens


L = TypeVar("L", bound=AttentionLayer, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Trace(Generic[L]):
    """A forward pass.

    Attributes
    ----------
    logits
        (B, K).
    layers
        Attention layers, first layer first.
    vectors
        See `embedded`; None if only the attention of a network with an embedding was traced.
    start
        Share of each token in what the head reads: (B, T), or (B, R, C) for alignments, sums to 1.
    """

    logits: Tensor
    layers: tuple[L, ...]
    vectors: Tensor | None
    start: Tensor

    @property
    def embedded(self) -> Tensor:
        """(B, N, width) of all tokens but CLS, before the stem or the positions.

        (B, R, C, D) of alignments and (B, L, E) of backbones, of all tokens.
        """
        if self.vectors is None:
            raise ValueError("the forward pass was traced for its attention alone")
        return self.vectors


@dataclass(frozen=True, slots=True, eq=False)
class LineLayer(AttentionLayer):
    """A layer in which the tokens of a record attend to each other along one line.

    The input ``x`` is (B, T, D); ``rotation`` is that of rotary positions, or None. ``heads`` are (B, Lq, D),
    where Lq is the number of queries.
    """

    attention: MultiHeadAttention | WindowedAttention
    x: Tensor
    rotation: tuple[Tensor, Tensor] | None

    @abstractmethod
    def states(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, Lq, E), keys and values (B, H, T, E), as the layer computes them."""

    @abstractmethod
    def attended(self, queries: Index) -> Tensor | None:
        """Which keys some queries of some records attend to, bool, to fit (n, H, q, T); None for all."""

    def project(self) -> tuple[Tensor, Tensor, Tensor]:
        """The states in float32, without gradients."""
        with torch.no_grad():
            q, k, v = self.states()
            return q.float(), k.float(), v.float()

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """Cut the records and their queries so that the weights of one block stay small."""
        q, k, v = self.project()
        most = max(MIN_QUERIES, CHUNK_BYTES // (4 * k.shape[1:3].numel()))
        for some in _cuts(len(q), max(1, most // q.shape[2])):
            for rows in _cuts(q.shape[2], most):
                # No name holds the block, so that the next one takes the same memory, which is in the cache.
                yield WeightBlock(
                    *_softmax_terms(q[some, :, rows], k[some], self.attended((some, rows))),
                    (some, rows),
                    (some, slice(None)),
                    v[some],
                )

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """By the slopes of the heads."""
        slope = slope.float().unflatten(-1, (self.attention.heads, -1))  # (B, Lq, H, E)
        return slopes_by_values(slope[block.queries], block)

    def added_norm(self) -> Callable[[WeightBlock], Tensor]:
        """Norm of what each key adds to the output of each query, output matrix included: (B, q, T).

        ‖Σ_h A_h[q, k] u_h[k]‖ with u_h[k] = v_h[k] W_O,h, by way of the products u_h[k] · u_g[k].
        """
        v = self.project()[2]
        columns = self.attention.out.weight.detach().float().unflatten(1, (-1, self.attention.head_width))
        u = torch.einsum("bhte,dhe->bhtd", v, columns)  # columns (D, H, E)
        gram = torch.einsum("bhtd,bgtd->bhgt", u, u)

        def norm(block: WeightBlock) -> Tensor:
            squared = torch.einsum("bhct,bgct,bhgt->bct", block.weights, block.weights, gram[block.keys[0]])
            return squared.clamp(min=0).sqrt()

        return norm


@dataclass(frozen=True, slots=True, eq=False)
class SequenceLayer(LineLayer):
    """A layer in which each token of a sequence attends to all of them.

    Attributes
    ----------
    mask
        (B, T) bool, True at real tokens; None where nothing is padded.
    cls_only
        Whether it computed the query of CLS alone: Lq is 1, else T.
    projected, mean
        See `AttentionCall`.
    """

    attention: MultiHeadAttention
    mask: Tensor | None
    cls_only: bool
    projected: Tensor | None
    mean: Tensor | None

    @classmethod
    def of_call(cls, attention: MultiHeadAttention, call: AttentionCall) -> SequenceLayer:
        """Build from a call of `MultiHeadAttention.forward`."""
        given = call.arguments
        cls_only = given.get("first_query_only", False)
        rotation, mask = given.get("rotation"), given.get("mask")
        return cls(call.heads, attention, given["x"], rotation, mask, cls_only, call.projected, call.mean)

    def states(self) -> tuple[Tensor, Tensor, Tensor]:
        if self.projected is not None:
            return self.attention.split_heads(self.projected, self.rotation)
        return self.attention.project(self.x.detach(), self.rotation, first_query_only=self.cls_only)

    def attended(self, queries: Index) -> Tensor | None:
        return None if self.mask is None else self.mask[queries[0], None, None, :]

    @torch.no_grad()
    def attention_from(self, start: Tensor) -> Tensor:
        """Mean weights of the queries by their shares (B, T), such as those of CLS alone: (B, H, T)."""
        found = torch.zeros(len(start), self.attention.heads, start.shape[1], device=start.device)
        for block in self.blocks():
            asked = start[block.queries]
            if asked.any():
                found[block.keys[0]] += torch.einsum("bq,bhqk->bhk", asked, block.weights)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class WindowedLayer(LineLayer):
    """A layer in which each token attends to those within a window around it."""

    attention: WindowedAttention
    rotation: tuple[Tensor, Tensor]

    @classmethod
    def of_call(cls, attention: WindowedAttention, call: AttentionCall) -> WindowedLayer:
        """Build from a call of `WindowedAttention.forward`."""
        return cls(call.heads, attention, call.arguments["x"], call.arguments["rotation"])

    def states(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.attention.project(self.x.detach(), self.rotation)

    def attended(self, queries: Index) -> Tensor:
        key = torch.arange(self.x.shape[1], device=self.x.device)
        return (key[queries[1], None] - key).abs() <= self.attention.window


def attend_and_average(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √E + mask) V, and the mean of the weights over the heads, in one pass.

    Parameters
    ----------
    q, k, v
        (B, H, Lq, E), (B, H, T, E) and (B, H, T, E).
    mask
        (B, T) bool, True where a key may be attended to; None for all.

    Returns
    -------
    heads, mean
        (B, H, Lq, E) and (B, Lq, T).
    """
    heads, mean = torch.empty_like(q), q.new_empty(len(q), q.shape[2], k.shape[2])
    for record in range(len(q)):  # whose weights stay in the processor's cache
        allowed = None if mask is None else mask[record]
        weights, sums = _softmax_terms(q[record], k[record], allowed)
        if sums is not None:
            weights *= sums.reciprocal_()[..., None]
        torch.matmul(weights, v[record], out=heads[record])
        torch.mean(weights, dim=0, out=mean[record])
        del weights  # before the next ones are made
    return heads, mean


def _cuts(length: int, most: int) -> Iterator[slice]:
    """As few cuts as may be, of the same size."""
    step = math.ceil(length / math.ceil(length / most))
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def _softmax_terms(q: Tensor, k: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Exponentials of the scores and their row sums; the weights where a sum nears the limits of float32."""
    q = q / math.sqrt(q.shape[-1])
    terms = q @ k.mT
    if mask is not None:
        terms.masked_fill_(~mask, float("-inf"))
    sums = terms.exp_().sum(dim=-1)
    low, high = (float(value) for value in torch.aminmax(sums))
    if SAFE_SUMS[0] < low and high < SAFE_SUMS[1]:
        return terms, sums
    return attention_weights(q @ k.mT, mask), None


def slopes_by_values(slope: Tensor, block: WeightBlock) -> Tensor:
    """dy/dA[h, q, k] = dy/dO[h, q] · v[h, k], as O = A V: slope (n, q, H, E) to (n, H, q, k)."""
    assert isinstance(block.values, Tensor)
    return slope.transpose(1, 2) @ block.values.mT


# --- Attention layers over alignments, see `seqray.explanations.attribution.attention_layers`

LINE_BYTES = 8 << 20  # of the weights recomputed at a time


@dataclass(frozen=True, slots=True, eq=False)
class AxialLayer(AttentionLayer):
    """A step of attention along the lines of a grid of cells.

    Attributes
    ----------
    attention, x
        The projections, and the input of the layer (B, R, C, D).
    row_mask, column_mask
        (B, R) and (B, C) bool; None where nothing is padded.
    rotation
        Of rotary positions of the columns, or None.
    heads
        In the order in which the layer took the cells, see `as_grid`.
    """

    one_line: ClassVar[bool] = False

    attention: MultiHeadAttention
    x: Tensor
    row_mask: Tensor | None
    column_mask: Tensor | None
    rotation: tuple[Tensor, Tensor] | None

    @property
    @abstractmethod
    def key_mask(self) -> Tensor | None:
        """(B, L) of the keys along a line."""

    @abstractmethod
    def as_grid(self, heads: Tensor) -> Tensor:
        """Bring what has the shape of `heads` into the order (B, R, C, D)."""

    def shared_weights(self, b: int) -> Tensor | None:
        """(1, H, L, L) weights that all lines of an alignment share, if they do."""
        return None

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """Take some lines of one alignment at a time."""
        for b, cells in enumerate(self.lines(self.x.detach())):  # (N, L, D)
            mask = None if self.key_mask is None else self.key_mask[b]
            shared = self.shared_weights(b)
            step = max(1, LINE_BYTES // (4 * self.attention.heads * cells.shape[1] ** 2))
            for start in range(0, len(cells), step):
                lines = slice(start, min(start + step, len(cells)))
                q, k, v = self.attention.project(cells[lines], self.rotation)
                weights = scaled_dot_product(q, k, v, mask)[1] if shared is None else shared
                yield WeightBlock(weights, None, (b, lines), (b, lines), v)

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """By the slopes of the heads."""
        slope = self.as_grid(slope).unflatten(-1, (-1, self.attention.head_width))  # (B, R, C, H, E)
        return slopes_by_values(self.lines(slope)[block.queries], block)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLayer(AxialLayer):
    """A step in which each cell attends to the rows of its column."""

    @classmethod
    def of_call(cls, layer: ColumnAttention, call: AttentionCall) -> ColumnLayer:
        """Build from a call of `ColumnAttention.forward`."""
        given = call.arguments
        return cls(call.heads, layer.attention, given["x"], given.get("row_mask"), None, None)

    @property
    def key_mask(self) -> Tensor | None:
        return self.row_mask

    def as_grid(self, heads: Tensor) -> Tensor:
        B, R, C, _ = self.x.shape
        return heads.reshape(B, C, R, -1).transpose(1, 2)

    def lines(self, tokens: Tensor) -> Tensor:
        return tokens.transpose(1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class RowLayer(AxialLayer):
    """A step in which each cell attends to the columns of its row."""

    layer: RowAttention

    @classmethod
    def of_call(cls, layer: RowAttention, call: AttentionCall) -> RowLayer:
        """Build from a call of `RowAttention.forward`."""
        given = call.arguments
        masks = given.get("row_mask"), given.get("column_mask")
        return cls(call.heads, layer.attention, given["x"], *masks, given.get("rotation"), layer)

    @property
    def key_mask(self) -> Tensor | None:
        return self.column_mask

    def as_grid(self, heads: Tensor) -> Tensor:
        return heads.reshape(*self.x.shape[:3], -1)

    def shared_weights(self, b: int) -> Tensor | None:
        if not self.layer.tied:
            return None
        rows = None if self.row_mask is None else self.row_mask[b : b + 1]
        columns = None if self.column_mask is None else self.column_mask[b]
        return scaled_dot_product(*self.layer.fold(self.x[b : b + 1], rows, self.rotation), columns)[1]


def without_cls(grid: Tensor) -> Tensor:
    """Take CLS out and scale the rest to sum to 1: (B, R, 1 + C) -> (B, R, C); even where nothing is left."""
    rest = grid[:, :, 1:]
    total = rest.sum(dim=(1, 2), keepdim=True)
    even = torch.full_like(rest, 1 / max(1, rest[0].numel()))
    return torch.where(total > 0, rest / torch.where(total > 0, total, 1.0), even)


# --- Attention layers whose weights are stored: those that transformers gives of a backbone, or means of


@dataclass(frozen=True, slots=True, eq=False)
class StoredLayer(AttentionLayer):
    """A layer that holds its weights (B, H, Lq, L), in place of the output of its heads."""

    heads: Tensor

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """All weights at once."""
        every = slice(None)
        queries = slice(self.heads.shape[2])  # CLS alone, or all tokens
        yield WeightBlock(self.heads.detach().float(), None, (every, queries), (every, every), None)

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """The slope itself."""
        return slope

    @torch.no_grad()
    def attention_from(self, start: Tensor) -> Tensor:
        """As `SequenceLayer.attention_from`."""
        return torch.einsum("bq,bhqk->bhk", start, self.heads.float())
