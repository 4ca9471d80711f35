"""Masked multi-head attention: a fused path for speed, an explicit one that shows its weights.

Source: Vaswani et al. 2017, "Attention Is All You Need", equations 1 and section 3.2.2; grouped-query
attention: Ainslie et al. 2023; multi-query attention: Shazeer 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from seqray.models.kernels import Linear, fused_attention, linear
from seqray.models.positions import rotate

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Queries, keys, values and mask to the output of the heads, as `fused_attention`."""


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax of scores (..., Lq, Lk) over the keys, 0 for keys where the bool mask is False."""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


def scaled_dot_product(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √E + mask) V, with the weights.

    Without 1/√E the variance of a score grows as E and softmax saturates.

    Parameters
    ----------
    q, k, v
        (..., Lq, E), (..., Lk, E) and (..., Lk, E).
    mask
        Bool, broadcastable to (..., Lq, Lk); True where a key may be attended to. Each query needs one.

    Returns
    -------
    output, weights
        (..., Lq, E) and (..., Lq, Lk); each row of the weights sums to 1.
    """
    weights = attention_weights(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), mask)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_H) W_O with head_i = Attention(X W_Qi, X W_Ki, X W_Vi).

    Parameters
    ----------
    d_model
        Model width D, a multiple of ``heads``.
    heads
        Query heads H; each is E = D/H wide.
    kv_heads
        Key and value heads G, a divisor of H: H is multi-head, 1 is multi-query, between is grouped-query.
    """

    attend: Attend = staticmethod(fused_attention)  # explanations exchange it, to keep mean weights

    def __init__(self, d_model: int, heads: int, kv_heads: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.kv_heads = kv_heads or heads
        self.head_width = d_model // heads
        if self.head_width * heads != d_model or heads % self.kv_heads:
            raise ValueError(
                f"{heads} heads and {self.kv_heads} key/value heads do not divide width {d_model}"
            )
        # One matrix for queries, keys and values: one large product instead of three small ones.
        self.qkv = Linear(d_model, (heads + 2 * self.kv_heads) * self.head_width)
        self.out = Linear(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: tuple[Tensor, Tensor] | None = None,
        *,
        first_query_only: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Parameters
        ----------
        x
            (B, L, D).
        mask
            (B, L) bool, True at real keys.
        rotation
            Cosine and sine of the rotary angles, see `seqray.models.rotary_angles`.
        first_query_only
            Compute the output of token 0 alone; exact, and all that the last layer of a CLS classifier needs.
        need_weights
            Take the explicit path and return the weights.

        Returns
        -------
        output, weights
            (B, Lq, D), and (B, H, Lq, L) or None; Lq is L, or 1 with ``first_query_only``.
        """
        q, k, v = self.project(x, rotation, first_query_only=first_query_only)
        weights = None
        if need_weights:
            key_mask = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, L)
            heads, weights = scaled_dot_product(q, k, v, key_mask)
        else:
            heads = self.attend(q, k, v, mask)
        del q, k, v  # three times the width of what follows
        return self.out(heads.transpose(1, 2).flatten(2)), weights  # (B, H, Lq, E) -> (B, Lq, D)

    def project(
        self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None, *, first_query_only: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, Lq, E), keys and values (B, H, L, E); shared key/value heads are repeated.

        Parameters
        ----------
        x
            (B, L, D).
        rotation
            Cosine and sine of the rotary angles.
        first_query_only
            Compute the query of the first token alone, Lq = 1.
        """
        if not first_query_only:
            return self.split_heads(self.qkv(x), rotation)
        width = self.heads * self.head_width
        q = linear(x[:, :1], self.qkv.weight[:width], self.qkv.bias[:width])
        return self._heads(q, linear(x, self.qkv.weight[width:], self.qkv.bias[width:]), rotation)

    def split_heads(
        self, qkv: Tensor, rotation: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, as of `project`.

        Parameters
        ----------
        qkv
            Output of the layer of this name.
        rotation
            Cosine and sine of the rotary angles.
        """
        width = self.heads * self.head_width
        return self._heads(qkv[..., :width], qkv[..., width:], rotation)

    def _heads(
        self, q: Tensor, kv: Tensor, rotation: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        q = q.unflatten(-1, (self.heads, self.head_width)).transpose(1, 2)  # (B, Lq, D) -> (B, H, Lq, E)
        k, v = kv.unflatten(-1, (2, self.kv_heads, self.head_width)).transpose(1, 3).unbind(2)  # (B, G, L, E)
        if rotation is not None:
            cos, sin = rotation
            q, k = rotate(q, cos[..., : q.shape[-2], :], sin[..., : q.shape[-2], :]), rotate(k, cos, sin)
        if self.kv_heads < self.heads:
            share = self.heads // self.kv_heads
            k, v = (torch.repeat_interleave(t, share, dim=1) for t in (k, v))
        return q, k, v
