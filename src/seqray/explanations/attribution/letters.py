"""From tokens back to letters: CLS is taken out, and each token's score is spread over its letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqray.core import Floats
from seqray.models.tokenizers import OwnTokenizer


def to_letters(scores: npt.ArrayLike, tokenizer: OwnTokenizer, stride: int, letters: int) -> Floats:
    """Spread scores of a network's tokens evenly over the letters that they stand for.

    Parameters
    ----------
    scores
        (..., 1 + T) with CLS first, where T = ceil(tokens / stride); longer for padding, which is cut.
    tokenizer
        Says which letters a token stands for.
    stride
        Tokens that the network's stem merges into one; 1 without a stem.
    letters
        Length n of the sequence.

    Returns
    -------
    array of float64, shape (..., n)
        Its sum is that of the scores without CLS and padding.
    """
    count = tokenizer.token_length(letters) - 1
    merged = -(-count // stride)
    body = np.asarray(scores, dtype=np.float64)[..., 1 : 1 + merged]
    sizes = np.full(merged, stride)
    sizes[-1] = count - stride * (merged - 1)
    tokens = np.repeat(body / sizes, sizes, axis=-1)  # (..., count)
    starts, ends = tokenizer.spans(letters)[1:].T
    result = np.zeros((*tokens.shape[:-1], letters))
    width = int((ends - starts).max())  # of every token alike
    for offset in range(width):
        result[..., offset : offset + count] += tokens / width
    return result


def spread_over_spans(
    scores: npt.NDArray[np.floating], spans: Sequence[npt.NDArray[np.int64]], letters: int
) -> Floats:
    """Spread scores of tokens evenly over the letters that each stands for, sequence by sequence.

    Parameters
    ----------
    scores
        (N, ..., L) of N sequences, padded at the end.
    spans
        For each sequence the half-open letter interval of each token, (L_i, 2); empty for special tokens,
        whose scores are left out.
    letters
        Length n of every sequence.

    Returns
    -------
    array of float64, shape (N, ..., n)
    """
    result = np.zeros((*scores.shape[:-1], letters))
    for i, places in enumerate(spans):
        for token in np.flatnonzero(places[:, 1] > places[:, 0]):
            start, end = places[token]
            result[i, ..., start:end] += scores[i, ..., token, None] / (end - start)
    return result


def shares(scores: Floats) -> Floats:
    """Scale (..., n) non-negative scores to sum to 1; where all are 0, every letter gets the same."""
    total = scores.sum(axis=-1, keepdims=True)
    even = np.full_like(scores, 1 / max(1, scores.shape[-1]))
    return np.where(total > 0, scores / np.where(total > 0, total, 1), even)
