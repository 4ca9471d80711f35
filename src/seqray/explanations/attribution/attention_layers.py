"""An attention layer of a forward pass, as rollout reads it: its weights, and their queries and keys.

A layer recomputes its weights from queries and keys, some queries at a time. Of short sequences the means
over the heads are kept instead, since rollout needs no more. Another kind of attention adds a subclass of
`AttentionLayer` and a row in the table ``LAYERS`` of `seqray.explanations.attribution.forward_trace`; the
softmax is that of the models, `attention_weights`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from seqray.models import SAFE_SUMS, MultiHeadAttention, WindowedAttention, attention_weights

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
