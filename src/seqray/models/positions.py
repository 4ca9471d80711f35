"""Positional encodings. Sinusoidal and rotary ones take any real-valued coordinate, so that sites at
irregular intervals (variants, CpGs, visits) can be classified as well as every letter of a sequence.

Sources: Vaswani et al. 2017, section 3.5 (sinusoidal); Su et al. 2021, "RoFormer" (rotary).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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

    With an added vector, a letter cannot have different effects at different positions; with a product it
    can, as in a position weight matrix. Uniform attention over such products is a linear model of letters at
    positions, which a plain transformer has to build from its feed-forward layers.
    """

    def __init__(self, contexts: int, letters: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 + contexts, letters, d_model))  # that of all, then their own

    def forward(self, context: Tensor, letters: int) -> Tensor:
        """Factors (B or 1, N, D) for N letters; contexts (B,) count from 1, and 0 means none."""
        if letters > self.table.shape[1]:
            raise ValueError(f"{letters} letters exceed the {self.table.shape[1]} with a gain")
        shared = 1 + self.table[:1, :letters]
        if len(self.table) == 1:
            return shared
        own = F.pad(self.table[1:, :letters].flatten(1), (0, 0, 1, 0))
        return shared + F.embedding(context, own).unflatten(1, (letters, -1))


class PositionMatrix(nn.Module):
    """A position weight matrix of many columns: the contribution of each letter at its position.

    With the factors of `PositionGain`, the rest of the network must find out which letter is there; a vector
    for each pair of position and letter needs nothing else. The vectors have ``rank`` dimensions, which
    limits their number: a classical matrix has one for each class.
    """

    def __init__(self, contexts: int, letters: int, width: int, rank: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 + contexts, letters, width, rank))
        self.up = nn.Linear(rank, d_model, bias=False)

    def forward(self, context: Tensor, letters: int) -> Tensor:
        """Matrices (B or 1, N, V, r) of N letters; the contexts (B,) of the sequences count from 1."""
        if letters > self.table.shape[1]:
            raise ValueError(f"{letters} letters exceed the {self.table.shape[1]} of the position matrix")
        shared = self.table[:1, :letters]
        if len(self.table) == 1:
            return shared
        own = F.pad(self.table[1:, :letters].flatten(1), (0, 0, 1, 0))
        return shared + F.embedding(context, own).unflatten(1, shared.shape[1:])


def sum_over_strides(x: Tensor, stride: int) -> Tensor:
    """Sums over the letters that a stem merges into one token: (B, N, C) to (B, ceil(N / stride), C)."""
    return F.pad(x, (0, 0, 0, -x.shape[1] % stride)).unflatten(1, (-1, stride)).sum(dim=2)


@dataclass(frozen=True, slots=True)
class PositionTerms:
    """Position-dependent terms of the letters in a batch.

    Attributes
    ----------
    gain
        (B or 1, N, D) factors, see `PositionGain`.
    matrix, up
        (B or 1, N, V, r) and (D, r), see `PositionMatrix`.
    """

    gain: Tensor | None = None
    matrix: Tensor | None = None
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
        if length > self.table.num_embeddings:
            raise ValueError(f"{length} tokens exceed the {self.table.num_embeddings} learned positions")
        return self.table.weight[:length]


class EndMatrix(nn.Module):
    """The contribution of each letter by its distance to the first and to the last letter.

    Positions count from the left, so they do not describe elements at the end of sequences of varying length,
    for example the boxes of an snoRNA. A product of letter and position is difficult to learn otherwise
    (`PositionGain`).
    """

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
