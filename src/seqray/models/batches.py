"""Arrays of tokens to tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqray.models.padding import pad_arrays


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Tokens of several sequences or alignments, padded at the end of each axis.

    Attributes
    ----------
    tokens
        Int64. Sequences: (B, L), CLS first. Alignments: (B, R, C), the query in row 0 and CLS in column 0.
    masks
        One bool array for each axis after the first, True at real tokens: (B, L) of sequences, (B, R) and
        (B, C) of alignments. None for an axis without padding, which is faster.
    """

    tokens: Tensor
    masks: tuple[Tensor | None, ...]

    def to(self, device: torch.device | str) -> TokenBatch:
        """Return the same batch on another device."""
        masks = tuple(None if mask is None else mask.to(device) for mask in self.masks)
        return TokenBatch(self.tokens.to(device), masks)


def collate(tokens: Sequence[np.ndarray]) -> TokenBatch:
    """Stack token arrays, (L_i,) or (R_i, C_i), into one batch as large as the largest on each axis.

    Examples
    --------
    >>> batch = collate([np.array([1, 5, 6]), np.array([1, 7])])
    >>> batch.tokens.tolist(), batch.masks[0].tolist()
    ([[1, 5, 6], [1, 7, 0]], [[True, True, True], [True, True, False]])
    """
    padded, masks = pad_arrays(tokens)
    return TokenBatch(
        torch.from_numpy(padded), tuple(None if mask is None else torch.from_numpy(mask) for mask in masks)
    )
