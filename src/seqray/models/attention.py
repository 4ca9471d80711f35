"""Scaled dot-product attention: multi-head, windowed, and its kernels."""

from __future__ import annotations

import ctypes
import functools
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.errors import ConfigError, require

Rotation = tuple[Tensor, Tensor]
"""Cosine and sine of rotary angles, (1 or B, 1, L, E/2) each, see `rotary_angles`."""


def _angles(coordinates: Tensor, width: int) -> Tensor:
    """coordinate / 10000^(2i/width) for i in 0..width/2-1: (..., L) -> (..., L, width/2), in float32."""
    exponent = torch.arange(0, width, 2, device=coordinates.device, dtype=torch.float32) / width
    return coordinates.float()[..., None] * 10000.0**-exponent


def sinusoidal(coordinates: Tensor, d_model: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(same): (..., L) -> (..., L, D)."""
    angles = _angles(coordinates, d_model)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # sines and cosines interleaved


def rotary_angles(coordinates: Tensor, head_width: int) -> Rotation:
    """Cosine and sine by which `rotate` turns pairs of features, (1 or B, 1, L, E/2), of (L,) or (B, L)."""
    angles = _angles(torch.atleast_2d(coordinates), head_width)[:, None]
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate feature pairs (2i, 2i+1) of (B, H, L, E), so that q·k depends on distance only."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)


class PositionGain(nn.Module):
    """A trained factor for each letter position and channel, and another one for each context.

    By a product, not a sum, a letter has other effects at other positions, as in a weight matrix.
    """

    def __init__(self, contexts: int, letters: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 + contexts, letters, d_model))  # that of all, then their own

    def forward(self, context: Tensor, letters: int) -> Tensor:
        """Factors (B or 1, N, D) for N letters; contexts (B,) count from 1, and 0 means none."""
        return _add_own(1 + self.table[:1, :letters], self.table[1:, :letters], context)


class PositionMatrix(nn.Module):
    """A position weight matrix of many columns: the contribution of each letter at its position.

    A network with `PositionGain` alone has to find out the letter. ``rank`` is the number of columns.
    """

    def __init__(self, contexts: int, letters: int, width: int, rank: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 + contexts, letters, width, rank))
        self.up = nn.Linear(rank, d_model, bias=False)

    def forward(self, context: Tensor, letters: int) -> Tensor:
        """Matrices (B or 1, N, V, r) of N letters; the contexts (B,) of the sequences count from 1."""
        return _add_own(self.table[:1, :letters], self.table[1:, :letters], context)


def _add_own(shared: Tensor, own: Tensor, context: Tensor) -> Tensor:
    """Terms of all contexts (1, N, ...), with those (C, N, ...) of the contexts (B,), from 1: (B, N, ...)."""
    if not len(own):
        return shared
    added = F.embedding(context, F.pad(own.flatten(1), (0, 0, 1, 0)))  # nothing for context 0
    return shared + added.unflatten(1, shared.shape[1:])


def sum_over_strides(x: Tensor, stride: int) -> Tensor:
    """Sums over the letters that a stem merges into one token: (B, N, C) to (B, ceil(N / stride), C)."""
    return F.pad(x, (0, 0, 0, -x.shape[1] % stride)).unflatten(1, (-1, stride)).sum(dim=2)


@dataclass(frozen=True, slots=True)
class PositionTerms:
    """Position-dependent terms of the letters in a batch."""

    gain: Tensor | None = None  # (B or 1, N, D) factors, see `PositionGain`
    matrix: Tensor | None = None  # (B or 1, N, V, r) and (D, r), see `PositionMatrix`
    up: Tensor | None = None

    def scale(self, x: Tensor) -> Tensor:
        """Multiply the embedded letters (B, N, D) by the factors."""
        return x if self.gain is None else x * self.gain.to(x.dtype)

    def add(self, x: Tensor, vectors: Tensor, stride: int = 1) -> Tensor:
        """Add the position terms of embedded letters (B, N, V) to tokens (B, T, D) of so many each."""
        if self.matrix is None or self.up is None:
            return x
        if len(self.matrix) == 1:
            columns = torch.einsum("bnv,nvr->bnr", vectors, self.matrix[0].to(vectors.dtype))
        else:
            # As a product and a sum: a matrix product for each of B·N letters is several times slower.
            columns = (vectors[..., None] * self.matrix.to(vectors.dtype)).sum(dim=2)
        columns = sum_over_strides(columns, stride)
        return x + F.linear(columns, self.up.to(columns.dtype)).to(x.dtype)


class LearnedPositions(nn.Module):
    """A trained vector for each token index: L -> (L, D)."""

    def __init__(self, tokens: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, d_model)
        nn.init.normal_(self.table.weight, std=0.5)  # half of a token embedding's, as in GPT-2

    def forward(self, length: int) -> Tensor:
        known = self.table.num_embeddings
        require(length <= known, "length", f"is {length}, and positions were made for {known} tokens")
        return self.table.weight[:length]


class EndMatrix(nn.Module):
    """The contribution of each letter by its distance to the first and last letter, for varying lengths."""

    def __init__(self, reach: int, vocabulary: int, d_model: int) -> None:
        super().__init__()
        self.reach, self.vocabulary = reach, vocabulary
        places = 0.5 * torch.randn(2, reach, 1, d_model)  # as in `LearnedPositions`; all letters begin alike
        self.table = nn.Parameter(places.expand(-1, -1, vocabulary, -1).flatten(1, 2).contiguous())

    def forward(self, tokens: Tensor, filled: Tensor) -> Tensor:
        """Tokens (..., N) and their bool mask of letters to (..., N, D); zero outside ``reach``."""
        left = filled.cumsum(dim=-1)
        sides = []
        for table, distance in zip(self.table, (left, left[..., -1:] - left + 1), strict=True):
            index = 1 + (distance - 1) * self.vocabulary + tokens
            index = torch.where(filled & (distance <= self.reach), index, 0)
            sides.append(F.embedding(index, F.pad(table, (0, 0, 1, 0))))  # nothing at index 0
        return sides[0] + sides[1]


# --- Linear maps and attention by the fastest public operators of torch

MIN_CONVOLUTION_ROWS = 512  # fewer rows are done sooner than a convolution is set up
MIN_FUSED_KEYS = 56  # with so many or more, the fused kernel is faster in float32
SCORE_BYTES = 2 << 20  # of the scores held at a time: they stay in the cache
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
MAX_TRAINED_SCORES = 16 << 20  # 32 MB in bfloat16, a few times for each layer
SAFE_SUMS = (1e-20, 1e30)  # far from underflow and overflow of float32 and bfloat16, e^±87


def uses_cpu_shortcuts(x: Tensor) -> bool:
    """True on the CPU, without gradients, outside of compilation and export."""
    return x.device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


@functools.cache
def keep_freed_memory() -> None:
    """Let the C library keep freed activations: fresh pages cost a third of the time of small networks."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)  # the most that it takes
        libc.mallopt(M_TRIM_THRESHOLD, 128 << 20)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """X Wᵀ + b: (B, L, F), of x (B, L, D) or any leading axes, weight (F, D) and bias (F,)."""
    if (
        x.ndim == 3
        and x.dtype == torch.float32
        and x.shape[0] * x.shape[1] >= MIN_CONVOLUTION_ROWS
        and uses_cpu_shortcuts(x)
        and torch.backends.mkldnn.is_available()
        and not torch.is_autocast_enabled("cpu")
    ):
        pixels = x[:, :, None].permute(0, 3, 1, 2)  # (B, L, D) -> (B, D, L, 1), channels last, no copy
        return F.conv2d(pixels, weight[:, :, None, None], bias).squeeze(3).transpose(1, 2)
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """`torch.nn.Linear` by way of `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def check_axes(x: Tensor, axes: str) -> None:
    """Refuse a tensor of more or fewer axes, such as one without its batch."""
    if x.ndim != axes.count(",") + 1:
        raise ConfigError(f"a tensor of shape {tuple(x.shape)} is not {axes}", remedy="give x[None] for one")


def check_mask(mask: Tensor | None) -> None:
    """Refuse a mask that is not bool: the kernels would add its numbers to the scores."""
    if mask is not None and mask.dtype != torch.bool:
        what = f"the mask is of {mask.dtype}, not of torch.bool with True at real keys"
        raise ConfigError(what, remedy="give mask != 0, or of an additive mask mask == 0")


def head_width(d_model: int, heads: int, kv_heads: int) -> int:
    """Width of a head; refuses heads that do not divide the model's width, or the query heads."""
    require(heads > 0 and d_model % heads == 0, "heads", f"must divide 'd_model' {d_model}, and is {heads}")
    rule = f"must divide 'heads' {heads}, and is {kv_heads}"
    require(kv_heads > 0 and heads % kv_heads == 0, "kv_heads", rule)
    return d_model // heads


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √E + mask) V: (B, H, Lq, E), (B, H, L, E) and (B, H, L, F) to (B, H, Lq, F).

    The mask (B, L) bool is True where a key may be attended to.
    """
    check_mask(mask)
    narrow = q.dtype == torch.bfloat16 or (q.shape[2] > 1 and k.shape[2] < MIN_FUSED_KEYS)
    if narrow and uses_cpu_shortcuts(q):
        output = _unshifted_attention(q, k, v, mask)
        if output is not None:
            return output
    key_mask = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, L)
    if q.dtype == torch.bfloat16 and q.device.type == "cpu" and torch.is_grad_enabled():
        with torch.autocast("cpu", enabled=False):
            return _trained_attention(q, k, v, key_mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=key_mask)


def _trained_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention in bfloat16 with gradients on the CPU, by products of matrices, which are faster there."""
    if q.shape[:3].numel() * k.shape[2] > MAX_TRAINED_SCORES:
        wide = (t.float() for t in (q, k, v))
        return F.scaled_dot_product_attention(*wide, attn_mask=mask).to(q.dtype)
    scores = (q * q.shape[3] ** -0.5) @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ v


def _unshifted_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor | None:
    """V exp(K Qᵀ/√E), transposed, over its row sums; None where a sum is out of bounds.

    A column of ones beside V gives the sums, a zero in both takes out a masked key; some heads at a time.
    """
    B, H, Lq, E = q.shape
    width = v.shape[3]
    q = (q * E**-0.5).transpose(2, 3).reshape(B * H, E, Lq)
    k = k.reshape(B * H, -1, E)
    v = F.pad(v.transpose(2, 3), (0, 0, 0, 1), value=1.0)  # (B, H, F, L) -> (B, H, F + 1, L)
    v = (v if mask is None else v * mask[:, None, None, :]).reshape(B * H, width + 1, -1)
    step = min(B * H, max(1, SCORE_BYTES // (Lq * k.shape[1] * q.element_size())))
    scores = q.new_empty(step, k.shape[1], Lq)
    products = q.new_empty(B * H, width + 1, Lq)
    for start in range(0, B * H, step):
        heads = slice(start, start + step)
        part = scores[: B * H - start]
        torch.bmm(k[heads], q[heads], out=part)
        torch.bmm(v[heads], part.exp_(), out=products[heads])
    sums = products[:, width:]  # (B·H, 1, Lq)
    low, high = (float(value) for value in torch.aminmax(sums))
    if not (SAFE_SUMS[0] < low and high < SAFE_SUMS[1]):  # also where one is no number
        return None
    return products[:, :width].div_(sums).view(B, H, width, Lq).transpose(2, 3)


# --- Masked multi-head attention: a fused path for speed, an explicit one that shows its weights


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax of scores (..., Lq, Lk) over the keys, 0 for keys where the bool mask is False."""
    check_mask(mask)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


def scaled_dot_product(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(Q Kᵀ / √E + mask) V (..., Lq, E), with the weights (..., Lq, Lk), whose rows sum to 1.

    The mask is broadcastable to the weights, True where a key may be attended to. Each query needs one.
    """
    weights = attention_weights(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), mask)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_H) W_O with head_i = Attention(X W_Qi, X W_Ki, X W_Vi).

    D is the width of the model, a multiple of the number of query heads H; each is E = D/H wide. The key and
    value heads G are a divisor of H: H is multi-head, 1 is multi-query, between is grouped-query.
    """

    def __init__(self, d_model: int, heads: int, kv_heads: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.kv_heads = heads if kv_heads is None else kv_heads
        self.head_width = head_width(d_model, heads, self.kv_heads)
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
        """Attend: (B, L, D) to (B, Lq, D), and on request, by the explicit path, weights (B, H, Lq, L).

        The mask (B, L) is True at real keys. ``first_query_only`` computes the output of token 0 alone (Lq =
        1): exact, and all that the last layer of a CLS classifier needs.
        """
        q, k, v = self.project(x, rotation, first_query_only=first_query_only)
        weights = None
        if need_weights:
            key_mask = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, L)
            heads, weights = scaled_dot_product(q, k, v, key_mask)
        else:
            heads = fused_attention(q, k, v, mask)
        del q, k, v  # three times the width of what follows
        return self.out(heads.transpose(1, 2).flatten(2)), weights  # (B, H, Lq, E) -> (B, Lq, D)

    def project(
        self, x: Tensor, rotation: Rotation | None = None, *, first_query_only: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, Lq, E), keys and values (B, H, L, E); shared key/value heads are repeated."""
        check_axes(x, "(B, L, D)")
        if not first_query_only:
            return self.split_heads(self.qkv(x), rotation)
        width = self.heads * self.head_width
        q = linear(x[:, :1], self.qkv.weight[:width], self.qkv.bias[:width])
        kv = linear(x, self.qkv.weight[width:], self.qkv.bias[width:])
        return self.split_heads((q, kv), rotation)

    def split_heads(
        self, qkv: Tensor | tuple[Tensor, Tensor], rotation: Rotation | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, as of `project`, of the output of ``qkv``, or of its two parts."""
        width = self.heads * self.head_width
        q, kv = qkv if isinstance(qkv, tuple) else (qkv[..., :width], qkv[..., width:])
        q = q.unflatten(-1, (self.heads, self.head_width)).transpose(1, 2)  # (B, Lq, D) -> (B, H, Lq, E)
        k, v = kv.unflatten(-1, (2, self.kv_heads, self.head_width)).transpose(1, 3).unbind(2)  # (B, G, L, E)
        if rotation is not None:
            cos, sin = rotation
            q, k = rotate(q, cos[..., : q.shape[-2], :], sin[..., : q.shape[-2], :]), rotate(k, cos, sin)
        if self.kv_heads < self.heads:
            share = self.heads // self.kv_heads
            k, v = (torch.repeat_interleave(t, share, dim=1) for t in (k, v))
        return q, k, v


# --- Multi-head attention within a sliding window: each token attends to those at most W tokens away


class WindowedAttention(nn.Module):
    """Concat(head_1 .. head_H) W_O, where a head attends to tokens at most W away, its ``window``.

    Tokens are cut into blocks of W. The queries of a block need the keys of this block and its two neighbors
    alone: 3W keys, seen through overlapping views without a copy.
    """

    def __init__(self, d_model: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window, self.head_width = heads, window, head_width(d_model, heads, heads)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(
        self, x: Tensor, rotation: Rotation, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend: (B, L, D) to the same, and on request weights (B, H, L, L), by a path of cost L²."""
        if need_weights or torch.is_grad_enabled():
            q, k, v = self.project(x, rotation)
            weights = self.weights(q, k) if need_weights else None
            heads = self._within_blocks(q, k, v) if weights is None else weights @ v
            return self.out(heads.transpose(1, 2).flatten(2)), weights
        return self.out(for_each(lambda one: self._without_copies(one, rotation), x)), None

    def project(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (B, H, L, E) each; queries and keys are rotated."""
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
        """Heads (L, D) of one sequence (L, D), without gradients, by views of one matrix rotated in place."""
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
