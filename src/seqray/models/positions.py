"""Positional encodings. Sinusoidal and rotary ones take any real-valued coordinate, so that sites at
irregular intervals (variants, CpGs, visits) can be classified as well as every letter of a sequence.

Sources: Vaswani et al. 2017, section 3.5 (sinusoidal); Su et al. 2021, "RoFormer" (rotary).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _angles(coordinates: Tensor, width: int) -> Tensor:
    """coordinate / 10000^(2i/width) for i in 0..width/2-1: (..., L) -> (..., L, width/2), in float32."""
    exponent = torch.arange(0, width, 2, device=coordinates.device, dtype=torch.float32) / width
    return coordinates.float()[..., None] * 10000.0**-exponent


def sinusoidal(coordinates: Tensor, d_model: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(same): (..., L) -> (..., L, D)."""
    angles = _angles(coordinates, d_model)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # sines and cosines interleaved


def rotary_angles(coordinates: Tensor, head_width: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine by which `rotate` turns each pair of features.

    Parameters
    ----------
    coordinates
        (L,) or (B, L).

    Returns
    -------
    cos, sin
        (1 or B, 1, L, E/2), broadcastable over the heads.
    """
    angles = _angles(torch.atleast_2d(coordinates), head_width)[:, None]
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn feature pairs (2i, 2i+1) of x (B, H, L, E) by their angle: q·k then depends on distance only."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)


class PositionGain(nn.Module):
    """A trained factor for each letter position and channel, and one more for each context.

    An added vector can't make the same letter count for one thing here and for another there; a product can,
    as in a position weight matrix. Uniform attention over such products is a linear model of letters at
    positions, which a plain transformer has to build from its feed-forward layers.
    """

    def __init__(self, contexts: int, letters: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1 + contexts, letters, d_model))  # that of all, then their own

    def forward(self, context: Tensor, letters: int) -> Tensor:
        """Factors (B or 1, N, D) for N letters of sequences whose contexts (B,) count from 1; 0 is none."""
        if letters > self.table.shape[1]:
            raise ValueError(f"{letters} letters exceed the {self.table.shape[1]} with a gain")
        shared = 1 + self.table[:1, :letters]
        if len(self.table) == 1:
            return shared
        own = F.pad(self.table[1:, :letters].flatten(1), (0, 0, 1, 0))
        return shared + F.embedding(context, own).unflatten(1, (letters, -1))


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
