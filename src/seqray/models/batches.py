"""Arrays of tokens to tensors: padding, masks, and batches of similar size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqray.core import Ints

PAD = 0  # as in seqray.models.tokenizers.sequence; a test compares the two


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
    if not tokens:
        raise ValueError("a batch needs at least one sequence or alignment")
    shapes = np.array([array.shape for array in tokens])  # (B, number of axes)
    padded = np.full((len(tokens), *shapes.max(axis=0)), PAD, dtype=np.int64)
    for number, array in enumerate(tokens):
        padded[number, *(slice(n) for n in array.shape)] = array
    masks = (np.arange(sizes.max()) < sizes[:, None] for sizes in shapes.T)
    return TokenBatch(
        torch.from_numpy(padded), tuple(None if mask.all() else torch.from_numpy(mask) for mask in masks)
    )


def size_buckets(sizes: Sequence[object] | np.ndarray, batch_size: int, max_tokens: int) -> list[Ints]:
    """Group sequences or alignments of similar size into batches.

    Parameters
    ----------
    sizes
        (N,) tokens of each sequence, or (N, 2) rows and columns of each alignment.
    batch_size
        Maximum number in a batch.
    max_tokens
        Maximum tokens in a batch, padding included; a single larger one makes a batch of its own.

    Returns
    -------
    list of int arrays
        Every index once, the shortest (narrowest, then shallowest) first; ties keep their order, so the
        result is deterministic.
    """
    shapes = np.atleast_2d(np.asarray(sizes, dtype=np.int64).T)  # (columns,) or (rows, columns)
    columns, rows = shapes[-1], shapes[0] if len(shapes) == 2 else np.ones_like(shapes[0])
    buckets: list[list[int]] = []
    deepest = 0
    for index in np.lexsort((rows, columns)).tolist():
        depth, width = int(rows[index]), int(columns[index])
        deepest = max(deepest, depth)
        size = len(buckets[-1]) + 1 if buckets else 0
        if not buckets or size > batch_size or size * deepest * width > max_tokens:
            buckets.append([])
            deepest = depth
        buckets[-1].append(index)
    return [np.array(bucket) for bucket in buckets]
