"""Parts of the network in forms that torch's exporter handles well. They compute the same functions.

`rewritten` replaces those of `seqray.models` by these. Without them the exporter refuses a branch that
depends on the data, computes a wrong padding for a stem that merges letters, and describes attention,
stem and positions by slower operators. `benchmarks/engines_export.py` measures both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from seqray.core.model_config import ModelConfig
from seqray.models.attention import MultiHeadAttention, PositionTerms, rotate, sinusoidal
from seqray.models.layers import ConvolutionalStem
from seqray.models.sequence import SequenceTransformer


def _strided_sums(x: Tensor, stride: int) -> Tensor:
    padded = F.pad(x.transpose(1, 2), (0, stride - 1))
    return (stride * F.avg_pool1d(padded, stride, stride)).transpose(1, 2)


def _position_terms(self: SequenceTransformer, tokens: Tensor) -> PositionTerms | None:
    if self.gain is None and self.matrix is None:
        return None
    context, letters = self._context(tokens), tokens.shape[1] - 1
    return PositionTerms(
        None if self.gain is None else self.gain(context, letters),
        None if self.matrix is None else self.matrix(context, letters),
        None if self.matrix is None else self.matrix.up.weight,
    )


def _read(
    self: ConvolutionalStem, vectors: Tensor, mask: Tensor | None, terms: PositionTerms | None = None
) -> tuple[Tensor, Tensor | None]:
    """Channels before letters throughout, and the merge as a convolution."""
    real = 1.0 if mask is None else mask[:, None].float()  # (B, 1, N)
    x = vectors.transpose(1, 2) * real
    vectors = x.transpose(1, 2)

    def convolution(x: Tensor, layer: torch.nn.Conv1d) -> Tensor:
        return F.conv1d(x, layer.weight, layer.bias, padding=layer.kernel_size[0] // 2)

    x = self.activation(torch.cat([convolution(x, layer) for layer in self.detectors], dim=1))  # pyright: ignore[reportArgumentType]
    for layer in self.residual:
        x = x + self.activation(convolution(x * real, layer))  # pyright: ignore[reportArgumentType]
    if terms is not None and terms.gain is not None:
        x = x * terms.gain.transpose(1, 2)
    weight = self.merge.weight.unflatten(1, (self.stride, -1)).transpose(1, 2)
    merged = F.conv1d(F.pad(x * real, (0, self.stride - 1)), weight, self.merge.bias, stride=self.stride)
    x = merged.transpose(1, 2)
    if terms is not None:
        x = terms.add(x, vectors, self.stride)
    return x, None if mask is None else mask[:, :: self.stride]


def _project(
    self: MultiHeadAttention,
    x: Tensor,
    rotation: tuple[Tensor, Tensor] | None = None,
    *,
    first_query_only: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Three products, which need no split."""
    width, narrow = self.heads * self.head_width, self.kv_heads * self.head_width
    ends = (0, width, width + narrow, width + 2 * narrow)
    sources = (x[:, :1] if first_query_only else x, x, x)
    q, k, v = (
        F.linear(one, self.qkv.weight[start:end], self.qkv.bias[start:end])
        .unflatten(-1, (-1, self.head_width))
        .transpose(1, 2)
        for one, start, end in zip(sources, ends[:-1], ends[1:], strict=True)
    )
    if rotation is not None:
        cos, sin = rotation
        q, k = rotate(q, cos[..., : q.shape[-2], :], sin[..., : q.shape[-2], :]), rotate(k, cos, sin)
    if self.kv_heads < self.heads:
        k, v = (torch.repeat_interleave(t, self.heads // self.kv_heads, dim=1) for t in (k, v))
    return q, k, v


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + torch.where(mask, 0.0, -1e9)[:, None, None]
    return scores.softmax(dim=-1) @ v


@contextmanager
def rewritten(config: ModelConfig) -> Iterator[None]:
    """Replace the parts as long as the context lasts, for networks of this shape."""
    positions = sinusoidal(torch.arange(config.max_length + 1), config.d_model)

    def sinusoidal_positions(coordinates: Tensor, d_model: int) -> Tensor:
        return positions[: coordinates.shape[0]]  # `len` would fix the length, without an error

    with ExitStack() as stack:
        replace = stack.enter_context
        replace(patch.object(SequenceTransformer, "position_terms", _position_terms))
        replace(patch.object(ConvolutionalStem, "read", _read))
        replace(patch.object(MultiHeadAttention, "project", _project))
        replace(patch.object(MultiHeadAttention, "attend", staticmethod(_attention)))
        replace(patch("seqray.models.attention.sum_over_strides", _strided_sums))
        replace(patch("seqray.models.attention.sinusoidal", sinusoidal_positions))
        yield
