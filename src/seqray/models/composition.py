"""The composition of a sequence, computed from its tokens and added to CLS.

A linear model of composition is a strong baseline for long sequences. Attention can compute the mean over all
letters, but on small data sets it learns to do so late or never.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core import (
    COMPOSITION_ENDS,
    COMPOSITION_GAPS,
    END_FACTORS,
    PAIR_FACTOR,
    WHOLE_FACTOR,
    composition_size,
)
from seqray.models.dropout import Dropout
from seqray.models.kernels import Linear
from seqray.models.layers import ACTIVATIONS


class Composition(nn.Module):
    """Shares of letters and of pairs of letters, through a feed-forward layer.

    A share p of one of m letters or pairs is read as c (√(m p) - 1): the root makes the variance of rare and
    common ones alike, and equal shares give 0.

    Parameters
    ----------
    letters
        Size of the alphabet [A].
    parts
        ``whole``: letters of the sequence; ``ends``: letters of its first and last 15, 30 and 60; ``pairs``:
        pairs of letters 1, 2 and 3 apart.
    d_model
        Width of the result [D]; the hidden vector is twice as wide.
    activation
        Of the hidden vector.
    dropout
        Of features and hidden vector, while training.
    """

    def __init__(
        self, letters: int, parts: tuple[str, ...], d_model: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        self.letters, self.parts = letters, parts
        self.activation, self.dropout = ACTIVATIONS[activation], Dropout(dropout)
        self.up = Linear(composition_size(letters, parts), 2 * d_model)
        self.down = Linear(2 * d_model, d_model)

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Letters (B, N) int64 and their bool mask to (B, D).

        Padding comes last. Padding and letters below 0 are not counted.
        """
        features = self.features(letters, real).to(self.up.weight.dtype)
        return self.down(self.dropout(self.activation(self.up(self.dropout(features)))))

    def features(self, letters: Tensor, real: Tensor) -> Tensor:
        """Scaled shares (B, F) of letters, in the order of ``parts``, float32."""
        with torch.autocast(letters.device.type, enabled=False):  # counts must be exact
            known = torch.where(real, 1 + letters.clamp(min=-1), 0)
            table = F.pad(torch.eye(self.letters, device=letters.device), (0, 0, 1, 0))
            shown = F.embedding(F.pad(known, (0, max(COMPOSITION_GAPS))), table)  # (B, N + 3, A)
            first = shown[:, : letters.shape[1]]
            return torch.cat([self._part(part, shown, first, real) for part in self.parts], dim=1)

    def _part(self, part: str, shown: Tensor, first: Tensor, real: Tensor) -> Tensor:
        if part == "whole":
            return WHOLE_FACTOR * scaled_shares(first.sum(dim=1))
        if part == "ends":
            left = real.cumsum(dim=1)
            right = left[:, -1:] - left + 1
            limits = torch.tensor(COMPOSITION_ENDS, device=real.device)[:, None]
            near = torch.cat((left[:, None] <= limits, right[:, None] <= limits), dim=1)  # (B, 6, N)
            factors = torch.tensor(2 * END_FACTORS, device=real.device)[:, None]
            return (factors * scaled_shares(near.float() @ first)).flatten(1)
        count = first.shape[1]
        pairs = [first.mT @ shown[:, gap : gap + count] for gap in COMPOSITION_GAPS]  # (B, A, A) each
        return PAIR_FACTOR * torch.cat([scaled_shares(one.flatten(1)) for one in pairs], dim=1)


def scaled_shares(counts: Tensor) -> Tensor:
    """√(m p) - 1 of counts (..., m) with shares p; 0 where nothing was counted."""
    total = counts.sum(dim=-1, keepdim=True)
    return (counts.shape[-1] * counts / total.clamp(min=1)).sqrt() - (total > 0).float()
