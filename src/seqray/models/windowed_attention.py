"""Multi-head attention within a sliding window: each token attends to those at most W tokens away.

The cost is linear in the length, and one layer carries information over W tokens and no further. Sources:
Vaswani et al. 2017 (attention), Beltagy et al. 2020, "Longformer", section 3.1 (sliding windows), Su et al.
2021, "RoFormer" (rotary positions, which depend on distance alone).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.models.positions import Rotation


class WindowedAttention(nn.Module):
    """Concat(head_1 .. head_H) W_O, where a head attends to tokens at most W away.

    Tokens are cut into blocks of W. The queries of a block need the keys of this block and its two neighbors
    alone: 3W keys, seen through overlapping views without a copy.

    Parameters
    ----------
    d_model
        Model width D, a multiple of ``heads``.
    heads
        Heads H; each is E = D/H wide.
    window
        Tokens on either side that a token attends to [W].
    """

    def __init__(self, d_model: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window, self.head_width = heads, window, d_model // heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(
        self, x: Tensor, rotation: Rotation, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Parameters
        ----------
        x
            (B, L, D).
        rotation
            Cosine and sine of the rotary angles, see `seqray.models.rotary_angles`.
        need_weights
            Take the explicit path, of cost L², and return the weights.

        Returns
        -------
        output, weights
            (B, L, D), and (B, H, L, L) or None; weights of tokens more than W apart are 0.
        """
        if need_weights or torch.is_grad_enabled():
            q, k, v = self.project(x, rotation)
            weights = self.weights(q, k) if need_weights else None
            heads = self._within_blocks(q, k, v) if weights is None else weights @ v
            return self.out(heads.transpose(1, 2).flatten(2)), weights
        return self.out(for_each(lambda one: self._without_copies(one, rotation), x)), None

    def project(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (B, H, L, E) each; queries and keys are rotated.

        Parameters
        ----------
        x
            (B, L, D).
        rotation
            Cosine and sine of the rotary angles.
        """
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, self.head_width)).permute(2, 0, 3, 1, 4)
        turned = torch.complex(*rotation)
        pairs = torch.view_as_complex(qkv[:2].float().unflatten(-1, (-1, 2)))
        q, k = torch.view_as_real(pairs * turned).flatten(-2).to(x.dtype).unbind(0)
        return q, k, qkv[2]

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        """Attention weights (B, H, L, L) of queries and keys (B, H, L, E)."""
        place = torch.arange(q.shape[2], device=q.device)
        apart = (place[:, None] - place).abs() > self.window
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_width)
        return scores.masked_fill(apart, float("-inf")).softmax(dim=-1)

    def _within_blocks(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch, length = q.shape[0], q.shape[2]
        window = self.window
        if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            # In bfloat16 it trains a fifth as fast.
            q, k, v = q.float(), k.float(), v.float()
        blocks = -(-length // window)
        spare = blocks * window - length
        q = F.pad(q, (0, 0, 0, spare)).unflatten(2, (blocks, window))
        keys, values = (F.pad(t, (0, 0, window, window + spare)) for t in (k, v))  # (B, H, (n + 2)W, E)
        parts = (t.unflatten(2, (blocks + 2, window)) for t in (keys, values))
        keys, values = (torch.cat((t[:, :, :-2], t[:, :, 1:-1], t[:, :, 2:]), dim=3) for t in parts)
        bias = _block_bias(length, window, q.dtype, q.device)
        with torch.autocast("cpu", enabled=False):  # it would make them bfloat16 again
            out = F.scaled_dot_product_attention(
                *(t.transpose(1, 2).flatten(0, 1) for t in (q, keys, values)),
                attn_mask=bias.repeat(batch, 1, 1, 1),
            )  # (B·n, H, W, E)
        return out.unflatten(0, (batch, blocks)).transpose(1, 2).flatten(2, 3)[:, :, :length]

    def _without_copies(self, x: Tensor, rotation: Rotation) -> Tensor:
        """Heads (L, D) of one sequence (L, D), without gradients.

        Queries, keys and values lie side by side in the rows of one matrix, with a block of rows before the
        first token and after the last. They are rotated in place and read through views.
        """
        length, window, width = x.shape[0], self.window, self.head_width
        blocks = -(-length // window)
        spare = blocks * window - length
        rows = self._padded_rows(x, window, window + spare)  # ((n + 2)W, 3D)
        own = rows[window : window + length, : 2 * self.heads * width]  # queries and keys of the tokens
        pairs = torch.view_as_complex(own.float().unflatten(1, (2 * self.heads, -1, 2)))
        pairs *= torch.complex(*rotation)[0, 0, :, None]
        if rows.dtype != torch.float32:
            own.copy_(torch.view_as_real(pairs).flatten(1))
        step, shape = rows.stride(0), (blocks, self.heads, 3 * window, width)
        steps, start = (window * step, width, step, 1), rows.storage_offset()
        queries, keys, values = (
            rows.as_strided(shape, steps, start + part * self.heads * width) for part in range(3)
        )
        heads = F.scaled_dot_product_attention(
            queries[:, :, window : 2 * window],
            keys,
            values,
            attn_mask=_block_bias(length, window, rows.dtype, rows.device),
        )  # (n, H, W, E)
        return heads.transpose(1, 2).reshape(blocks * window, -1)[:length]

    def _padded_rows(self, x: Tensor, before: int, after: int) -> Tensor:
        """Queries, keys and values (L, 3D) of tokens (L, D), between rows of zeros."""
        if torch.is_autocast_enabled(x.device.type):  # which leaves products into a given matrix alone
            return self.qkv(F.pad(x, (0, 0, before, after)))
        rows = x.new_empty(before + len(x) + after, 3 * x.shape[1])
        rows[:before] = 0
        rows[before + len(x) :] = 0
        torch.addmm(self.qkv.bias, x, self.qkv.weight.t(), out=rows[before : before + len(x)])
        return rows


def for_each(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a function to each sequence of a batch; of a single one no copy is made."""
    return function(x[0])[None] if len(x) == 1 else torch.stack([function(one) for one in x])


@functools.lru_cache(maxsize=4)
def _block_bias(length: int, window: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0 where a query of a block attends to a key, else minus infinity: (n, 1, W, 3W) for n blocks."""
    blocks = -(-length // window)
    query = window + torch.arange(window, device=device)[:, None]
    key = torch.arange(3 * window, device=device)
    near = (query - key).abs() <= window
    place = key + window * (torch.arange(blocks, device=device)[:, None] - 1)
    real = (place >= 0) & (place < length)
    bias = torch.zeros(blocks, 1, window, 3 * window, dtype=dtype, device=device)
    return bias.masked_fill(~(near & real[:, None, None, :]), float("-inf"))
