"""Watch a forward pass over alignments: what goes into each attention step, and what its heads give.

As `forward_trace` for single sequences: the network runs on its fused kernels, no weight is
stored, and explanations recompute the weights that they need.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqray.explanations.attribution.forward_trace import evaluating
from seqray.models import (
    AxialTransformer,
    ColumnAttention,
    MultiHeadAttention,
    RowAttention,
    scaled_dot_product,
)

LINE_BYTES = 8 << 20  # of the weights recomputed at a time


@dataclass(frozen=True, slots=True, eq=False)
class AxialStep:
    """One attention step of a forward pass.

    Attributes
    ----------
    layer
        A `ColumnAttention` or `RowAttention`.
    x
        (B, R, C, D) what it read.
    row_mask, column_mask
        (B, R) and (B, C) bool; None where nothing is padded.
    rotation
        Of rotary positions of the columns, or None.
    heads
        What its heads gave, side by side, before the output matrix, in the order in which the layer took the
        cells, see `as_grid`; None without gradients.
    """

    layer: ColumnAttention | RowAttention
    x: Tensor
    row_mask: Tensor | None
    column_mask: Tensor | None
    rotation: tuple[Tensor, Tensor] | None
    heads: Tensor | None

    @property
    def tied(self) -> bool:
        """Whether all rows share one map."""
        return isinstance(self.layer, RowAttention) and self.layer.tied

    @property
    def attention(self) -> MultiHeadAttention:
        """The projections."""
        return self.layer.attention

    def as_grid(self, heads: Tensor) -> Tensor:
        """Bring what has the shape of `heads` into the order (B, R, C, D)."""
        B, R, C, _ = self.x.shape
        if isinstance(self.layer, ColumnAttention):
            return heads.reshape(B, C, R, -1).transpose(1, 2)
        return heads.reshape(B, R, C, -1)

    def lines(self, grid: Tensor) -> Tensor:
        """Turn (B, R, C, ...) so that attention runs along axis 2: columns first for a column step."""
        return grid.transpose(1, 2) if isinstance(self.layer, ColumnAttention) else grid

    @property
    def key_mask(self) -> Tensor | None:
        """(B, L) of the keys along a line."""
        return self.row_mask if isinstance(self.layer, ColumnAttention) else self.column_mask

    @torch.no_grad()
    def weights(self) -> Iterator[tuple[int, slice, Tensor, Tensor]]:
        """Yield the weights of some lines at a time.

        Yields
        ------
        b, lines, weights, values
            Number of the alignment, the slice of its lines, their weights (n, H, L, L), or (1, H, L, L) where
            tied, and their values (n, H, L, E).
        """
        for b in range(len(self.x)):
            x = self.lines(self.x.detach()[b : b + 1])[0]  # (N, L, D)
            mask = None if self.key_mask is None else self.key_mask[b]
            shared = self._map(b) if self.tied else None
            step = max(1, LINE_BYTES // (4 * self.attention.heads * x.shape[1] ** 2))
            for start in range(0, len(x), step):
                part = slice(start, min(start + step, len(x)))
                q, k, v = self.attention.project(x[part], self.rotation)
                weights = scaled_dot_product(q, k, v, mask)[1] if shared is None else shared
                yield b, part, weights, v

    @torch.no_grad()
    def _map(self, b: int) -> Tensor:
        """(1, H, C, C) weights that all rows of an alignment share."""
        assert isinstance(self.layer, RowAttention)
        x, row_mask, column_mask = (
            None if part is None else part[b : b + 1] for part in (self.x, self.row_mask, self.column_mask)
        )
        assert isinstance(x, Tensor)
        q, k, v = self.layer.fold(x, row_mask, self.rotation)
        return scaled_dot_product(q, k, v, None if column_mask is None else column_mask[:, None, None])[1]


@dataclass(frozen=True, slots=True, eq=False)
class AxialTrace:
    """A forward pass: logits (B, K), the shape (B, R, C) of its tokens and their masks, the embedded tokens
    (B, R, C, D), and the attention steps from first to last.
    """

    logits: Tensor
    shape: tuple[int, int, int]
    embedded: Tensor
    row_mask: Tensor | None
    column_mask: Tensor | None
    steps: tuple[AxialStep, ...]


def trace_alignment(
    network: AxialTransformer,
    tokens: Tensor,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    *,
    gradients: bool = False,
) -> AxialTrace:
    """Run a network and keep what its attention steps read.

    Parameters
    ----------
    network
        Left in the mode in which it was found.
    tokens, row_mask, column_mask
        As `AxialTransformer.forward` takes them.
    gradients
        Record the graph from the embedded tokens on, for `torch.autograd.grad`.
    """
    read: list[tuple[ColumnAttention | RowAttention, tuple[Any, ...]]] = []
    given: list[Tensor] = []
    vectors: list[Tensor] = []

    def see_input(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        assert isinstance(module, ColumnAttention | RowAttention)
        read.append((module, arguments))

    def see_heads(_: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        given.append(arguments[0])

    def see_embedding(_: torch.nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        vectors.append(output.detach().requires_grad_(gradients))
        return vectors[-1]

    layers = [m for m in network.modules() if isinstance(m, ColumnAttention | RowAttention)]
    with ExitStack() as stack:
        stack.enter_context(evaluating(network))
        stack.enter_context(torch.set_grad_enabled(gradients))
        stack.callback(network.embedding.register_forward_hook(see_embedding).remove)
        for layer in layers:
            stack.callback(layer.register_forward_pre_hook(see_input).remove)
            if gradients:
                stack.callback(layer.attention.out.register_forward_pre_hook(see_heads).remove)
        logits = network.head(network.states(tokens, row_mask, column_mask)[:, 0, 0])
    shape = (tokens.shape[0], tokens.shape[1], tokens.shape[2])
    steps = []
    for number, (layer, arguments) in enumerate(read):
        rotation = arguments[3] if isinstance(layer, RowAttention) else None
        heads = given[number] if gradients else None
        steps.append(AxialStep(layer, arguments[0], row_mask, column_mask, rotation, heads))
    return AxialTrace(logits, shape, vectors[0], row_mask, column_mask, tuple(steps))
