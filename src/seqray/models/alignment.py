"""The transformer classifier of an alignment."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core import ModelConfig
from seqray.models.axial import ColumnAttention, RowAttention
from seqray.models.helices import HelixEmbedding
from seqray.models.kmers import KmerEmbedding
from seqray.models.layers import (
    SPECIAL_TOKENS,
    ConvolutionalStem,
    LayerNorm,
    ResidualBlock,
    Transformer,
)
from seqray.models.output import AttentionStep
from seqray.models.positions import EndMatrix, LearnedPositions, Rotation, sinusoidal

GAP_TOKENS = 2  # gap and missing data come after the letters, see seqray.models.tokenizers.alignment


class AxialContext(NamedTuple):
    """What each block reads beside its input: masks (B, R) and (B, C), and the rotation of the columns."""

    row_mask: Tensor | None = None
    column_mask: Tensor | None = None
    rotation: Rotation | None = None


class AxialBlock(ResidualBlock):
    """Pre-norm residual block: x + Column(norm(x)), x + Row(norm(x)), x + FeedForward(norm(x))."""

    def add_attention(self, config: ModelConfig) -> None:
        self.column_norm = LayerNorm(config.d_model)
        self.column = ColumnAttention(config.d_model, config.heads)
        self.row_norm = LayerNorm(config.d_model)
        self.row = RowAttention(config.d_model, config.heads, config.tied)

    def forward(
        self, x: Tensor, context: AxialContext, *, cls_only: bool = False, need_weights: bool = False
    ) -> tuple[Tensor, tuple[AttentionStep, ...]]:
        """Attend over columns, then rows: (B, R, C, D), and the two attention steps.

        Without gradients ``x`` (B, R, C, D) is changed in place. With ``cls_only`` only CLS of the query,
        (B, 1, 1, D), is computed: tied rows still need queries and keys of every row, untied rows only the
        query row. ``need_weights`` also returns the attention weights.
        """
        row_mask, column_mask, rotation = context
        query_only = cls_only and not self.row.tied
        attended, by_column = self.column(
            self.column_norm(x), row_mask, query_only=query_only, need_weights=need_weights
        )
        x = self.add(x[:, :1] if query_only else x, attended)
        attended, by_row = self.row(
            self.row_norm(x),
            None if query_only else row_mask,
            column_mask,
            rotation,
            cls_only=cls_only,
            need_weights=need_weights,
        )
        x = self.add(x[:, :1, :1] if cls_only else x, attended)
        found = (("column", by_column, row_mask), ("row", by_row, column_mask))
        steps = tuple(AttentionStep(axis, w, mask) for axis, w, mask in found if w is not None)
        return self.add_feed_forward(x), steps


class CellEmbedding(nn.Module):
    """A trained vector for each cell, and with a stem a vector of its neighbors in the row.

    The stem reads one row at a time, treats gaps as letters, and keeps one vector for each column.
    """

    stride = 1

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, config.d_model)
        self.stem = (
            ConvolutionalStem(vocabulary, config.d_model, config.stem, config.activation)
            if config.stem
            else None
        )

    def forward(self, tokens: Tensor, column_mask: Tensor | None = None) -> Tensor:
        """(B, R, C) with CLS in column 0, and the mask (B, C), to (B, R, C, D)."""
        x = self.table(tokens)
        if self.stem is None:
            return x
        B, R, C = tokens.shape
        real = None if column_mask is None else column_mask[:, None, 1:].expand(B, R, C - 1).flatten(0, 1)
        around, _ = self.stem(tokens[:, :, 1:].flatten(0, 1), real)  # (B·R, C - 1, D)
        return x + F.pad(around.unflatten(0, (B, R)), (0, 0, 1, 0))


class AxialTransformer(Transformer):
    """Tokens (B, R, C), the query in row 0 and CLS in column 0, to logits (B, K).

    Embedding (optionally with a convolutional stem along the rows, a matrix for the ends of a row, k-mers of
    its letters, and the columns that pair in helices), positions of the columns, a learned mark on row 0,
    pre-norm blocks of column attention, row attention and feed-forward layer, and a head on the final state
    of CLS of the query. The other rows have no order, so permuting them changes nothing.

    The head reads CLS of the query, not the mean over rows: column attention carries the information of the
    other rows there, it can learn to ignore copies, and an explanation starts at one cell.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        width = config.d_model
        self.embedding = CellEmbedding(config, vocabulary)
        self.query = nn.Parameter(torch.randn(width) * 0.02)
        self.positions = (
            LearnedPositions(1 + config.max_length, width) if config.positions == "learned" else None
        )
        self.ends = EndMatrix(config.ends, vocabulary, width) if config.ends else None
        self.words = (
            KmerEmbedding(vocabulary - SPECIAL_TOKENS - GAP_TOKENS, config.words, width)
            if config.words
            else None
        )
        self.helices = HelixEmbedding(width, config.activation) if config.helices else None
        self.add_blocks(AxialBlock)

    def embed(
        self, tokens: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
    ) -> tuple[Tensor, AxialContext]:
        """Vectors (B, R, C, D), and what the blocks read beside them.

        Parameters
        ----------
        tokens
            (B, R, C) int64; column 0 is CLS, row 0 the query.
        row_mask, column_mask
            (B, R) and (B, C) bool, True at real rows and columns; None if nothing is padded. Row 0 and
            column 0 are real.
        """
        x = self.embedding(tokens, column_mask)
        columns = torch.arange(tokens.shape[2], device=tokens.device, dtype=torch.float32)  # CLS at 0
        if self.positions is not None:
            x = x + self.positions(len(columns)).to(x.dtype)
        elif self.config.positions == "sinusoidal":
            x = x + sinusoidal(columns, self.config.d_model).to(x.dtype)
        letters, real = tokens[:, :, 1:], None if column_mask is None else column_mask[:, 1:]
        filled = letters < self.vocabulary - GAP_TOKENS
        filled = filled if real is None else filled & real[:, None]
        if self.ends is not None:
            x = x + F.pad(self.ends(letters, filled), (0, 0, 1, 0)).to(x.dtype)  # CLS has none
        if self.words is not None:
            order = filled.byte().argsort(dim=2, descending=True, stable=True)  # words pass over gaps
            added = self.words(letters.gather(2, order) - SPECIAL_TOKENS, filled.gather(2, order))
            back = order.argsort(dim=2)[..., None].expand_as(added)
            x = x + F.pad(added.gather(2, back), (0, 0, 1, 0)).to(x.dtype)
        if self.helices is not None:
            added = self.helices(letters - SPECIAL_TOKENS, row_mask, real)  # (B, C - 1, D)
            x = x + F.pad(added, (0, 0, 1, 0))[:, None].to(x.dtype)
        first = torch.arange(tokens.shape[1], device=tokens.device)[:, None, None] == 0  # (R, 1, 1)
        x = self.dropout(x + first * self.query.to(x.dtype))
        return x, AxialContext(row_mask, column_mask, self.rotation(columns))
