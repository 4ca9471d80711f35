"""The parts between attention layers: convolutional stem, feed-forward layer, pre-norm block, head."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core import StemConfig
from seqray.models.attention import MultiHeadAttention
from seqray.models.kernels import Linear
from seqray.models.positions import PositionTerms

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
RESIDUAL_KERNEL = 5
SPECIAL_TOKENS = (
    4  # PAD, CLS, MASK, UNK come before the letters or words, see seqray.models.tokenizers.sequence
)
TOKENS_AT_ONCE = 2048  # of the feed-forward layer, whose hidden vectors are the widest of all


class ChannelsLastConvolution(nn.Conv1d):
    """`torch.nn.Conv1d` on (B, N, C), which needs no transposed copy before or after: to (B, N, D)."""

    def __init__(self, channels: int, d_model: int, kernel: int) -> None:
        super().__init__(channels, d_model, kernel, padding=kernel // 2)

    def forward(self, input: Tensor) -> Tensor:
        pixels = input[:, :, None].permute(0, 3, 1, 2)  # (B, N, C) -> (B, C, N, 1), a view
        y = F.conv2d(pixels, self.weight[..., None], self.bias, padding=(self.kernel_size[0] // 2, 0))
        return y.squeeze(3).transpose(1, 2)  # (B, D, N, 1) -> (B, N, D), a view


class TokenEmbedding(nn.Module):
    """A trained vector for each token: (B, N) -> (B, N, D)."""

    stride = 1

    def __init__(self, vocabulary: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, d_model)

    def forward(
        self, tokens: Tensor, mask: Tensor | None, terms: PositionTerms | None = None
    ) -> tuple[Tensor, Tensor | None]:
        x = self.table(tokens)
        return x if terms is None else terms.add(terms.scale(x), x), mask


class ConvolutionalStem(nn.Module):
    """Local detectors before attention: letters (B, N) to tokens (B, T, D), T = ceil(N / stride).

    Parallel convolutions of several widths over a narrow letter embedding, concatenated to D channels;
    then residual convolutions; then a factor for each position, where there is one; then each ``stride``
    neighbours are merged into one token by a linear map, so that token i stands for letters
    [i·stride, (i+1)·stride); then what these letters add at their places, where there is a position matrix.
    Letters that are padding are set to zero before each convolution, as the convolution's own border is:
    padding changes nothing.
    """

    def __init__(self, vocabulary: int, d_model: int, config: StemConfig, activation: str) -> None:
        super().__init__()
        width = vocabulary  # of the embedding that the first convolutions read: no letter is lost in it
        self.stride = config.stride
        self.activation = ACTIVATIONS[activation]
        self.letters = nn.Embedding(vocabulary, width)
        branch = d_model // len(config.kernels)
        self.detectors = nn.ModuleList(
            ChannelsLastConvolution(width, branch, kernel) for kernel in config.kernels
        )
        self.residual = nn.ModuleList(
            ChannelsLastConvolution(d_model, d_model, RESIDUAL_KERNEL) for _ in range(config.depth)
        )
        self.merge = Linear(config.stride * d_model, d_model)
        reach = max(config.kernels) // 2 + config.depth * (RESIDUAL_KERNEL // 2)
        self.field = config.stride + 2 * reach  # letters that a token reads

    def forward(
        self, letters: Tensor, mask: Tensor | None, terms: PositionTerms | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Letter tokens (B, N), their mask (B, N) and terms to vectors (B, T, D), their mask (B, T)."""
        return self.read(self.letters(letters), mask, terms)

    def read(
        self, vectors: Tensor, mask: Tensor | None, terms: PositionTerms | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The same from embedded letters (B, N, width)."""
        count = vectors.shape[1]
        real = None if mask is None else mask[:, :, None].to(self.merge.weight.dtype)  # (B, N, 1)

        def hide_padding(x: Tensor) -> Tensor:
            return x if real is None else x * real.to(x.dtype)

        vectors = hide_padding(vectors)
        x = self.activation(
            torch.cat([detector(vectors) for detector in self.detectors], dim=-1)
        )  # (B, N, D)
        for convolution in self.residual:
            x = x + self.activation(convolution(hide_padding(x)))
        if terms is not None:
            x = terms.scale(x)
        x = F.pad(hide_padding(x), (0, 0, 0, -count % self.stride))
        x = x.unflatten(1, (-1, self.stride)).flatten(2)  # (B, T·s, D) -> (B, T, s·D)
        x = self.merge(x)
        if terms is not None:
            x = terms.add(x, vectors, self.stride)
        return x, None if mask is None else mask[:, :: self.stride]


class FeedForward(nn.Module):
    """act(x W1 + b1) W2 + b2, for each token by itself."""

    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.up = Linear(d_model, d_ff)
        self.down = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] <= TOKENS_AT_ONCE or torch.is_grad_enabled():
            return self._map(x)
        return torch.cat([self._map(part) for part in x.split(TOKENS_AT_ONCE, dim=1)], dim=1)

    def _map(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    """Pre-norm residual block: x + Attention(norm(x)), then x + FeedForward(norm(x)).

    Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
    """

    def __init__(
        self, d_model: int, heads: int, kv_heads: int | None, d_ff: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, heads, kv_heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: tuple[Tensor, Tensor] | None = None,
        *,
        cls_only: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(B, L, D) to (B, L, D), or (B, 1, D) with ``cls_only``; and the weights, where needed."""
        attended, weights = self.attention(
            self.attention_norm(x), mask, rotation, first_query_only=cls_only, need_weights=need_weights
        )
        x = (x[:, :1] if cls_only else x) + self.dropout(attended)
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x))), weights


class ClassificationHead(nn.Module):
    """Norm and linear map of the CLS state: (B, D) -> (B, K)."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.linear = nn.Linear(d_model, classes)

    def forward(self, cls: Tensor) -> Tensor:
        return self.linear(self.norm(cls.to(self.linear.weight.dtype)))
