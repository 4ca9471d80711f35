"""Attention along one axis of an alignment at a time: (B, R, C, D), so R·C·(R + C) scores instead of (R·C)².

Tied weights of rows are softmax(Σ_r Q_r K_rᵀ / √(R' E)), where the sum runs over the R' rows that are really
there. The sum over rows and features is one inner product of width R·E, so rows are folded into the width of
a head and any kernel of attention does the rest.

Each class takes one of three paths with the same result, to rounding: the fused kernel of torch; on the CPU
without gradients, some lines at a time, so that nothing but the output is as large as the input; and the
explicit one, which returns its weights.

Source: Ho et al. 2019, "Axial Attention in Multidimensional Transformers"; tied rows: Rao et al. 2021, "MSA
Transformer", section 3.1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.models.attention import (
    MultiHeadAttention,
    Rotation,
    attention_weights,
    check_axes,
    fused_attention,
    scaled_dot_product,
    uses_cpu_shortcuts,
)

Mask = Tensor | None  # bool, True at real rows or columns; None where all are
CELLS_AT_ONCE = 4096  # projected at a time: their queries, keys and values stay in the cache


class AxisAttention(nn.Module):
    """Attention along one axis of ``x`` (B, R, C, D), with width D and H heads; masks are True at real lines.

    With ``need_weights`` the explicit path returns weights after the output, else None.
    """

    axis: str

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)


class ColumnAttention(AxisAttention):
    """In each column, every row attends to all rows."""

    axis = "column"

    def forward(
        self, x: Tensor, row_mask: Mask = None, *, query_only: bool = False, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend over the rows of each column: (B, Rq, C, D), and weights (B, H, C, Rq, R) or None.

        Rq is R, or 1 with ``query_only``, which computes the output of row 0 alone.
        """
        check_axes(x, "(B, R, C, D)")
        lines = x.transpose(1, 2)  # (B, R, C, D) -> (B, C, R, D)
        output, weights = _attend_along(self.attention, lines, row_mask, None, query_only, need_weights)
        return output.transpose(1, 2), weights


class RowAttention(AxisAttention):
    """In each row, every column attends to all columns; where ``tied``, all rows share their weights."""

    axis = "row"

    def __init__(self, d_model: int, heads: int, tied: bool) -> None:
        super().__init__(d_model, heads)
        self.tied = tied

    def forward(
        self,
        x: Tensor,
        row_mask: Mask = None,
        column_mask: Mask = None,
        rotation: Rotation | None = None,
        *,
        cls_only: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend over the columns of each row. Untied rows need no row mask, for a row reads itself alone.

        The output is (B, R, C, D); with ``cls_only`` that of column 0 alone, (B, R, 1, D), and of row 0 where
        rows are tied, (B, 1, 1, D). Weights are (B, H, R, Cq, C), or (B, H, 1, Cq, C) where tied, or None.
        """
        check_axes(x, "(B, R, C, D)")
        if not self.tied:
            return _attend_along(self.attention, x, column_mask, rotation, cls_only, need_weights)
        R, C, D = x.shape[1:]
        # C×C weights of all heads no larger than the projections: so memory grows as R·C.
        map_is_small = self.attention.heads * C * (1 if cls_only else C) <= 4 * R * C * D
        if not need_weights and map_is_small and _computes_in_chunks(x):
            parts = [
                self._tied_in_chunks(
                    alignment, _unless_full(row_mask, b), _unless_full(column_mask, b), rotation, cls_only
                )
                for b, alignment in enumerate(x)
            ]
            return torch.stack(parts), None
        return self._tied(x, row_mask, column_mask, rotation, cls_only, need_weights)

    def fold(
        self, x: Tensor, row_mask: Mask, rotation: Rotation | None, cls_only: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of tied rows: (B, H, Cq, R·E), (B, H, C, R·E) and (B, H, C, R·E).

        Scaled so that 1/√(R E), by which kernels multiply, becomes 1/√(R' E) for R' real rows.
        """
        rows, flat = x.shape[1], x.flatten(0, 1).contiguous()
        q, k, v = (
            part.unflatten(0, (-1, rows))  # (B·R, H, C, E) -> (B, R, H, C, E)
            for part in self.attention.project(flat, rotation, first_query_only=cls_only)
        )
        if row_mask is not None:
            share = row_mask * (rows / row_mask.sum(dim=1, keepdim=True)).sqrt()  # (B, R)
            q = q * share[:, :, None, None, None].to(q.dtype)
        return _fold_rows(q), _fold_rows(k), _fold_rows(v)

    def _tied(
        self,
        x: Tensor,
        row_mask: Mask,
        column_mask: Mask,
        rotation: Rotation | None,
        cls_only: bool,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        q, k, v = self.fold(x, row_mask, rotation, cls_only)
        if cls_only:
            v = v[..., : self.attention.head_width]  # of row 0
        weights = None
        if need_weights:
            mask = None if column_mask is None else column_mask[:, None, None, :]  # (B, 1, 1, C)
            heads, weights = scaled_dot_product(q, k, v, mask)
            weights = weights[:, :, None]  # (B, H, 1, Cq, C)
        else:
            heads = fused_attention(q, k, v, column_mask)
        heads = heads.unflatten(-1, (-1, self.attention.head_width))  # (B, H, C, R·E) -> (B, H, C, R, E)
        return self._join(heads.permute(0, 3, 2, 1, 4)), weights  # (B, R, C, H, E)

    def _join(self, heads: Tensor) -> Tensor:
        """Output matrix on heads side by side: (B, R, C, H, E) -> (B, R, C, D)."""
        B, R, C = heads.shape[:3]
        return self.attention.out(heads.reshape(B * R, C, -1)).unflatten(0, (B, R))

    def _tied_in_chunks(
        self, x: Tensor, row_mask: Mask, column_mask: Mask, rotation: Rotation | None, cls_only: bool
    ) -> Tensor:
        """One alignment (R, C, D), real rows only, some at a time: their scores are summed up.

        Padded rows of the output are zero.
        """
        real = x.contiguous() if row_mask is None else x[row_mask]  # row 0 is always real
        scores: Tensor | None = None
        values = []
        step = max(1, CELLS_AT_ONCE // x.shape[1])
        for rows in real.split(step):
            q, k, v = self.attention.project(rows, rotation, first_query_only=cls_only)  # (r, H, C, E)
            q, k, v = (part.permute(1, 2, 0, 3).flatten(2) for part in (q, k, v))  # (H, C, r·E)
            q = q * (len(real) * self.attention.head_width) ** -0.5
            k = k.transpose(1, 2)
            scores = torch.bmm(q, k) if scores is None else scores.baddbmm_(q, k)
            values.append(v)
        assert isinstance(scores, Tensor)
        weights = attention_weights(scores, column_mask)  # (H, Cq, C)
        values = [values[0][..., : self.attention.head_width]] if cls_only else values  # of row 0
        heads = [(weights @ part).unflatten(-1, (-1, self.attention.head_width)) for part in values]
        output = torch.cat([self._join(part.permute(2, 1, 0, 3)[None])[0] for part in heads])  # (r, C, H, E)
        if cls_only or row_mask is None:
            return output
        padded = torch.zeros_like(x)
        padded[row_mask] = output
        return padded


def _computes_in_chunks(x: Tensor) -> bool:
    """On the CPU, without gradients; not in half precision, where sums lose accuracy."""
    return uses_cpu_shortcuts(x) and x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def _unless_full(mask: Mask, b: int) -> Mask:
    """Mask of one alignment, None if it is all True."""
    return None if mask is None or bool(mask[b].all()) else mask[b]


def _fold_rows(part: Tensor) -> Tensor:
    return part.permute(0, 2, 3, 1, 4).flatten(3)  # (B, R, H, C, E) -> (B, H, C, R·E)


def _attend_along(
    attention: MultiHeadAttention,
    lines: Tensor,
    mask: Mask,
    rotation: Rotation | None,
    first_only: bool,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """Attention within each line of (B, N, L, D), keys masked by (B, L): (B, N, Lq, D), (B, H, N, Lq, L)."""
    B, N, L, D = lines.shape
    if need_weights or not _computes_in_chunks(lines):
        key_mask = None if mask is None else mask.repeat_interleave(N, dim=0)  # (B·N, L)
        flat = lines.reshape(B * N, L, -1).contiguous()
        output, weights = attention(
            flat, key_mask, rotation, first_query_only=first_only, need_weights=need_weights
        )
        weights = None if weights is None else weights.unflatten(0, (B, N)).transpose(1, 2)
        return output.unflatten(0, (B, N)), weights
    # Each alignment by itself, so many lines at a time that their projections stay in the cache.
    step = max(1, CELLS_AT_ONCE // L)
    output = lines.new_empty(B, N, 1 if first_only else L, D)
    for b in range(B):
        real = _unless_full(mask, b)
        real = None if real is None else real.expand(1, 1, 1, L)
        for start in range(0, N, step):
            part = lines[b, start : start + step].contiguous()  # strided queries keep the fused kernel away
            q, k, v = attention.project(part, rotation, first_query_only=first_only)
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=real)
            output[b, start : start + step] = attention.out(heads.transpose(1, 2).flatten(2))
    return output, None
