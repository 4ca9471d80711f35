"""Arrays of tokens to tensors: padding, masks, and buckets of similar length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

PAD = 0  # as in seqray.tokens, which a test compares


@dataclass(frozen=True, slots=True)
class SequenceBatch:
    """Tokens of several sequences.

    Attributes
    ----------
    tokens
        (B, L) int64, CLS first, padded at the end.
    mask
        (B, L) bool, True at real tokens; None where no sequence is padded, which is the fast case.
    """

    tokens: Tensor
    mask: Tensor | None

    def to(self, device: torch.device | str) -> SequenceBatch:
        """The same batch on another device."""
        return SequenceBatch(self.tokens.to(device), None if self.mask is None else self.mask.to(device))


def collate(tokens: Sequence[np.ndarray]) -> SequenceBatch:
    """Stack token arrays (L_i,) into one batch as wide as the longest.

    Raises
    ------
    ValueError
        For no arrays at all.
    """
    if not tokens:
        raise ValueError("a batch needs at least one sequence")
    lengths = np.array([len(t) for t in tokens])
    padded = np.full((len(tokens), lengths.max()), PAD, dtype=np.int64)
    for row, values in zip(padded, tokens, strict=True):
        row[: len(values)] = values
    mask = np.arange(lengths.max()) < lengths[:, None]
    return SequenceBatch(torch.from_numpy(padded), None if mask.all() else torch.from_numpy(mask))


def length_buckets(lengths: Sequence[int] | np.ndarray, batch_size: int, max_tokens: int) -> list[np.ndarray]:
    """Indices grouped so that each batch holds sequences of similar length.

    Parameters
    ----------
    lengths
        Tokens of each sequence.
    batch_size
        Most sequences in a batch.
    max_tokens
        Most tokens in a batch, padding counted; a single longer sequence stands alone.

    Returns
    -------
    list of int arrays
        Every index once, shortest first; ties keep their order, so that the result is deterministic.
    """
    lengths = np.asarray(lengths)
    buckets: list[list[int]] = []
    for index in np.argsort(lengths, kind="stable").tolist():
        size = len(buckets[-1]) + 1 if buckets else 0
        if not buckets or size > batch_size or size * lengths[index] > max_tokens:
            buckets.append([])
        buckets[-1].append(index)
    return [np.array(bucket) for bucket in buckets]
