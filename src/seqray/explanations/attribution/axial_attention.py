"""Attention layers over alignments, see `seqray.explanations.attribution.attention_layers`.

A column step mixes the rows of each column, a row step the columns of each row. Taken as one matrix over all
cells, each is RC×RC and nearly all zeros; it is never formed. Where rows are tied, all share one map, and the
gradient is that of a row's own use of it, because values flow within rows only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from seqray.explanations.attribution.attention_layers import (
    AttentionCall,
    AttentionLayer,
    Trace,
    WeightBlock,
    slopes_by_values,
)
from seqray.models import ColumnAttention, MultiHeadAttention, RowAttention, scaled_dot_product

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


@torch.no_grad()
def row_maps(traced: Trace[AttentionLayer]) -> Tensor:
    """Maps of row attention without CLS, of all layers and heads: (B, layers, H, C - 1, C - 1).

    Tied rows have one map; of untied ones the mean over the real rows is taken. Padded columns are 0 as keys.
    For `seqray.core.msa.pairs_from_maps`.
    """
    return torch.stack([_row_map(layer) for layer in traced.layers if isinstance(layer, RowLayer)], dim=1)


def _row_map(layer: RowLayer) -> Tensor:
    B, R, C, _ = layer.x.shape
    maps = layer.x.new_zeros(B, layer.attention.heads, C, C)
    for block in layer.blocks():
        b, lines = block.queries
        if layer.layer.tied:
            maps[b] = block.weights[0]
            continue
        real = layer.x.new_ones(R) if layer.row_mask is None else layer.row_mask[b].to(layer.x)
        maps[b] += torch.einsum("r,rhij->hij", real[lines], block.weights) / real.sum()
    return maps[:, :, 1:, 1:]


def without_cls(grid: Tensor) -> Tensor:
    """Take CLS out and scale the rest to sum to 1: (B, R, 1 + C) -> (B, R, C); even where nothing is left."""
    rest = grid[:, :, 1:]
    total = rest.sum(dim=(1, 2), keepdim=True)
    even = torch.full_like(rest, 1 / max(1, rest[0].numel()))
    return torch.where(total > 0, rest / torch.where(total > 0, total, 1.0), even)
