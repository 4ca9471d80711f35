"""What the head of a classifier of sequences reads: CLS, or means and largest values over all tokens.

CLS must learn where to look, which is difficult in long sequences. A mean over the final states reads the
composition of a sequence without any training, since blocks only add to the embedded letters.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqray.core import ModelConfig

SIZES = {"cls": 1, "mean": 1, "max": 1, "ends": 2}  # vectors that each part gives
CLS_ONLY = ("cls",)


class Pooling(nn.Module):
    """Final states (B, T, D), CLS first, to what the head reads, (B, P D) of P vectors side by side.

    Padded tokens have no part in it. It has no weights.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.parts = config.pooling
        self.size = sum(SIZES[part] for part in self.parts)
        stride = config.stem.stride if config.stem else 1
        self.reach = -(-config.ends // stride)  # tokens of either end

    @property
    def cls_only(self) -> bool:
        """Whether the other tokens of the last block are not needed."""
        return self.parts == CLS_ONLY

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Pool.

        Parameters
        ----------
        states
            (B, T, D).
        mask
            (B, T) bool, True at real tokens; None if nothing is padded.
        """
        if self.cls_only:
            return states[:, 0]
        return torch.cat([self._pool(part, states, mask) for part in self.parts], dim=-1)

    def shares(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Share of each token in what the head reads, the mean over the P vectors: float32 (B, T).

        In a largest value it is the share of the channels that take theirs from this token. Rows sum to 1.

        Parameters
        ----------
        states, mask
            See `forward`.
        """
        found = []
        for part in self.parts:
            if part == "max":
                largest = self._letters(states, mask).argmax(dim=1)  # (B, D)
                counts = torch.zeros(states.shape[:2], device=states.device)
                ones = torch.ones(largest.shape, device=states.device)
                found.append(counts.scatter_add_(1, largest, ones)[:, None] / states.shape[2])
            else:
                found.append(self._weights(part, states, mask))
        return torch.cat(found, dim=1).mean(dim=1)

    def _pool(self, part: str, states: Tensor, mask: Tensor | None) -> Tensor:
        if part == "cls":
            return states[:, 0]
        if part == "max":
            return self._letters(states, mask).amax(dim=1)
        # Padding may hold anything: a weight of 0 would not hide an infinite value.
        hidden = states if mask is None else states * mask[..., None].to(states.dtype)
        return (self._weights(part, states, mask).to(states.dtype) @ hidden).flatten(1)

    def _weights(self, part: str, states: Tensor, mask: Tensor | None) -> Tensor:
        """Weights of the tokens in the one or two vectors of a part: (B, V, T), each row sums to 1."""
        B, T, _ = states.shape
        place = torch.arange(T, device=states.device).expand(B, T)
        if part == "cls":
            return (place == 0)[:, None].float()
        real = place > 0 if mask is None else mask & (place > 0)
        chosen = real[:, None]
        if part == "ends":
            count = real.sum(dim=1, keepdim=True)
            near = torch.stack((place <= self.reach, place > count - self.reach), dim=1)
            chosen = chosen & near
        return chosen / chosen.sum(dim=-1, keepdim=True)

    @staticmethod
    def _letters(states: Tensor, mask: Tensor | None) -> Tensor:
        """States with CLS and padding at minus infinity."""
        hidden = torch.zeros(states.shape[:2], dtype=torch.bool, device=states.device)
        hidden[:, 0] = True
        if mask is not None:
            hidden = hidden | ~mask
        return states.masked_fill(hidden[..., None], float("-inf"))
