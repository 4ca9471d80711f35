"""Batches with masked letters, for pre-training.

References
----------
Devlin et al. 2019, "BERT", section 3.1: of the chosen tokens 80 % become MASK, 10 % another letter, and 10 %
stay, so the network can trust no token and ignore none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqray.core import AugmentConfig
from seqray.models.tokenizers import FIRST_LETTER, MASK
from seqray.training.data import BatchKey, BatchSource, Examples

IGNORED = -100  # the index that `torch.nn.functional.cross_entropy` leaves out
_MASKED, _CHANGED = 0.8, 0.1


class MaskedBatch(NamedTuple):
    """Tokens (B, 1 + N) with masked letters, the masks of the network, and the original letters (B, N).

    For alignments (B, R, 1 + C) and (B, R, C). ``hidden`` holds letter codes, -100 at letters that are not
    predicted; ``rows`` (B,) are rows of the data.
    """

    tokens: Tensor
    masks: tuple[Tensor | None, ...]
    hidden: Tensor
    rows: Tensor


def mask_letters(
    tokens: np.ndarray, share: float, letters: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Mask randomly chosen known letters, at least one in each sequence with known letters.

    Parameters
    ----------
    tokens
        (B, N) int64; only letters are chosen, no special tokens, unknown letters or gaps.
    share
        Probability of each letter to be chosen.

    Returns
    -------
    changed, hidden
        (B, N) tokens to read, and letter codes to guess, -100 elsewhere.
    """
    known = (tokens >= FIRST_LETTER) & (tokens < FIRST_LETTER + letters)
    draw = np.where(known, rng.random(tokens.shape), 2.0)
    chosen = draw < share
    first = draw.argmin(axis=1)  # a sequence of which chance chose nothing gives its lowest draw
    rows = np.flatnonzero(~chosen.any(axis=1) & known.any(axis=1))
    chosen[rows, first[rows]] = True
    hidden = np.where(chosen, tokens - FIRST_LETTER, IGNORED)
    fate = rng.random(tokens.shape)
    other = FIRST_LETTER + rng.integers(letters, size=tokens.shape)
    changed = np.where(chosen & (fate < _MASKED), MASK, tokens)
    changed = np.where(chosen & (fate >= _MASKED) & (fate < _MASKED + _CHANGED), other, changed)
    return changed, hidden


class MaskedSource(BatchSource):
    """Batches with masked letters; the mask depends only on (seed, epoch, batch, rank)."""

    def __init__(
        self,
        data: Examples,
        share: float,
        augment: AugmentConfig | None = None,
        seed: int = 0,
        rank: int = 0,
    ) -> None:
        super().__init__(data, augment, seed, rank)
        self.share, self.letters = share, len(data.letter_counts())

    def __getitem__(self, key: BatchKey) -> MaskedBatch:
        batch, rng = self.draw(key)
        tokens = batch.tokens.numpy()
        body = tokens[..., 1:]
        lines = body.reshape(-1, body.shape[-1])  # of an alignment (B, R, C) -> (B·R, C)
        masked = mask_letters(lines, self.share, self.letters, rng)
        changed, hidden = (part.reshape(body.shape) for part in masked)
        tokens = np.concatenate((tokens[..., :1], changed), axis=-1)
        return MaskedBatch(torch.from_numpy(tokens), batch.masks, torch.from_numpy(hidden), batch.rows)
