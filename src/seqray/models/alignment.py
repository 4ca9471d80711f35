"""The transformer classifier of an alignment."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core import ModelConfig
from seqray.models.axial import ColumnAttention, RowAttention
from seqray.models.helices import HelixEmbedding
from seqray.models.kmers import KmerEmbedding
from seqray.models.layers import SPECIAL_TOKENS, ClassificationHead, ConvolutionalStem, FeedForward
from seqray.models.output import AttentionStep, ModelOutput
from seqray.models.positions import EndMatrix, LearnedPositions, rotary_angles, sinusoidal

GAP_TOKENS = 2  # gap and missing data come after the letters, see seqray.models.tokenizers.alignment


class AxialBlock(nn.Module):
    """Pre-norm residual block: x + Column(norm(x)), x + Row(norm(x)), x + FeedForward(norm(x))."""

    def __init__(
        self, d_model: int, heads: int, tied: bool, d_ff: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        self.column_norm = nn.LayerNorm(d_model)
        self.column = ColumnAttention(d_model, heads)
        self.row_norm = nn.LayerNorm(d_model)
        self.row = RowAttention(d_model, heads, tied)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        row_mask: Tensor | None = None,
        column_mask: Tensor | None = None,
        rotation: tuple[Tensor, Tensor] | None = None,
        *,
        cls_only: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, tuple[Tensor | None, Tensor | None]]:
        """(B, R, C, D) to the same, or (B, 1, 1, D) with ``cls_only``; and the weights of both axes.

        What CLS of the query reads is computed and no more: tied rows need the queries and keys of every row,
        untied ones the query row alone.
        """
        query_only = cls_only and not self.row.tied
        attended, by_column = self.column(
            self.column_norm(x), row_mask, query_only=query_only, need_weights=need_weights
        )
        x = (x[:, :1] if query_only else x) + self.dropout(attended)
        attended, by_row = self.row(
            self.row_norm(x),
            None if query_only else row_mask,
            column_mask,
            rotation,
            cls_only=cls_only,
            need_weights=need_weights,
        )
        x = (x[:, :1, :1] if cls_only else x) + self.dropout(attended)
        # (B, R, C, D) -> (B, R·C, D) and back: each token by itself
        changed = self.feed_forward(self.feed_forward_norm(x).flatten(1, 2)).unflatten(1, x.shape[1:3])
        return x + self.dropout(changed), (by_column, by_row)


class CellEmbedding(nn.Module):
    """A trained vector for each cell; with a stem also what stands around it in its row.

    The stem reads one row at a time, gaps as letters of their own, and keeps one vector a column.
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


class AxialTransformer(nn.Module):
    """Tokens (B, R, C), the query in row 0 and CLS in column 0, to logits (B, K).

    Embedding (where asked for with a convolutional stem along the rows, what letters are worth at the ends of
    a row, words of its letters, and which columns pair in helices), positions of the columns, a learned mark
    on row 0, pre-norm blocks of column attention, row attention and feed-forward layer, and a head on the
    final state of CLS of the query. The other rows have no order: nothing tells them apart but their letters,
    so to permute them changes nothing.

    The head reads CLS of the query, not the mean over rows: column attention carries there what the other
    rows have found, it may learn to pass over copies, and an explanation begins at one cell.

    Parameters
    ----------
    config
        The shape of the network.
    vocabulary
        Number of distinct tokens.
    """

    def __init__(self, config: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
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
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            AxialBlock(
                width,
                config.heads,
                config.tied,
                config.d_ff or 4 * width,
                config.activation,
                config.dropout,
            )
            for _ in range(config.layers)
        )
        self.head = ClassificationHead(width, config.classes)

    def forward(
        self,
        tokens: Tensor,
        row_mask: Tensor | None = None,
        column_mask: Tensor | None = None,
        *,
        return_attention: bool = False,
    ) -> ModelOutput:
        """Classify.

        Parameters
        ----------
        tokens
            (B, R, C) int64; column 0 is CLS, row 0 the query.
        row_mask, column_mask
            (B, R) and (B, C) bool, True at real rows and columns; None where nothing is padded. Row 0 and
            column 0 are real.
        return_attention
            Take the explicit path through all blocks and return their weights, a column step and a row step
            for each block.
        """
        x, rotation = self.embed(tokens, row_mask, column_mask)
        steps = []
        for number, block in enumerate(self.blocks, start=1):
            cls_only = number == len(self.blocks) and not return_attention
            x, (by_column, by_row) = block(
                x, row_mask, column_mask, rotation, cls_only=cls_only, need_weights=return_attention
            )
            if by_column is not None:
                steps.append(AttentionStep("column", by_column, row_mask))
            if by_row is not None:
                steps.append(AttentionStep("row", by_row, column_mask))
        return ModelOutput(self.head(x[:, 0, 0]), tuple(steps))

    def states(
        self, tokens: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
    ) -> Tensor:
        """Final state of every token: (B, R, C) to (B, R, C, D), for masked pre-training."""
        x, rotation = self.embed(tokens, row_mask, column_mask)
        for block in self.blocks:
            x, _ = block(x, row_mask, column_mask, rotation)
        return x

    def embed(
        self, tokens: Tensor, row_mask: Tensor | None = None, column_mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """Vectors (B, R, C, D), and the rotation of rotary positions."""
        x = self.embedding(tokens, column_mask)
        columns = torch.arange(tokens.shape[2], device=tokens.device, dtype=torch.float32)  # CLS at 0
        rotation = None
        if self.config.positions == "rotary":
            rotation = rotary_angles(columns, self.config.d_model // self.config.heads)
        elif self.positions is not None:
            x = x + self.positions(len(columns)).to(x.dtype)
        else:
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
            told = self.helices(letters - SPECIAL_TOKENS, row_mask, real)  # (B, C - 1, D)
            x = x + F.pad(told, (0, 0, 1, 0))[:, None].to(x.dtype)
        first = torch.arange(tokens.shape[1], device=tokens.device)[:, None, None] == 0  # (R, 1, 1)
        return self.dropout(x + first * self.query.to(x.dtype)), rotation
