"""Arrays of tokens to tensors: padding, masks, and buckets of similar length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

PAD = 0  # as in seqray.models.tokenizers.sequence, which a test compares


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


@dataclass(frozen=True, slots=True)
class AlignmentBatch:
    """Tokens of several alignments.

    Attributes
    ----------
    tokens
        (B, R, C) int64, the query in row 0 and CLS in column 0, padded at the ends of both axes.
    row_mask, column_mask
        (B, R) and (B, C) bool, True at real rows and columns; None where no alignment is padded on that axis,
        which is the fast case.
    """

    tokens: Tensor
    row_mask: Tensor | None
    column_mask: Tensor | None

    def to(self, device: torch.device | str) -> AlignmentBatch:
        """The same batch on another device."""
        masks = (None if m is None else m.to(device) for m in (self.row_mask, self.column_mask))
        return AlignmentBatch(self.tokens.to(device), *masks)


def collate_alignments(tokens: Sequence[np.ndarray]) -> AlignmentBatch:
    """Stack token arrays (R_i, C_i) into one batch as deep as the deepest and as wide as the widest.

    Raises
    ------
    ValueError
        For no arrays at all.
    """
    if not tokens:
        raise ValueError("a batch needs at least one alignment")
    shapes = np.array([t.shape for t in tokens])  # (B, 2)
    rows, columns = shapes.max(axis=0).tolist()
    padded = np.full((len(tokens), rows, columns), PAD, dtype=np.int64)
    for block, values in zip(padded, tokens, strict=True):
        block[: values.shape[0], : values.shape[1]] = values
    masks = (np.arange(n) < shapes[:, axis, None] for axis, n in enumerate((rows, columns)))
    row_mask, column_mask = (None if m.all() else torch.from_numpy(m) for m in masks)
    return AlignmentBatch(torch.from_numpy(padded), row_mask, column_mask)


def alignment_buckets(
    shapes: Sequence[tuple[int, int]] | np.ndarray, batch_size: int, max_tokens: int
) -> list[np.ndarray]:
    """Indices grouped so that each batch holds alignments of similar width.

    Parameters
    ----------
    shapes
        Rows and columns of each alignment, as tokens.
    batch_size
        Most alignments in a batch.
    max_tokens
        Most tokens in a batch, padding counted; a single larger alignment stands alone.

    Returns
    -------
    list of int arrays
        Every index once, narrowest first, then shallowest; ties keep their order.
    """
    sizes = np.asarray(shapes).reshape(-1, 2)
    buckets: list[list[int]] = []
    rows = 0
    for index in np.lexsort((sizes[:, 0], sizes[:, 1])).tolist():
        depth, width = sizes[index].tolist()
        size = len(buckets[-1]) + 1 if buckets else 0
        rows = max(rows, depth)
        if not buckets or size > batch_size or size * rows * width > max_tokens:
            buckets.append([])
            rows = depth
        buckets[-1].append(index)
    return [np.array(bucket) for bucket in buckets]


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
