"""Arrays of tokens of different lengths: padding, masks, and batches of similar size. No torch here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Bools, Ints

PAD = 0  # as in seqray.models.tokenizers.sequence; a test compares the two


def pad_arrays(tokens: Sequence[np.ndarray]) -> tuple[Ints, tuple[Bools | None, ...]]:
    """Stack token arrays, (L_i,) or (R_i, C_i), into one as large as the largest on each axis.

    Returns
    -------
    tokens
        Int64, padded at the end of each axis.
    masks
        One for each axis after the first, True at real tokens; None for an axis without padding.

    Examples
    --------
    >>> tokens, [mask] = pad_arrays([np.array([1, 5, 6]), np.array([1, 7])])
    >>> tokens.tolist(), mask.tolist()
    ([[1, 5, 6], [1, 7, 0]], [[True, True, True], [True, True, False]])
    """
    if not tokens:
        raise ValueError("a batch needs at least one sequence or alignment")
    shapes = np.array([array.shape for array in tokens])  # (B, number of axes)
    padded = np.full((len(tokens), *shapes.max(axis=0)), PAD, dtype=np.int64)
    for number, array in enumerate(tokens):
        padded[number, *(slice(n) for n in array.shape)] = array
    masks = (np.arange(sizes.max()) < sizes[:, None] for sizes in shapes.T)
    return padded, tuple(None if mask.all() else mask for mask in masks)


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
