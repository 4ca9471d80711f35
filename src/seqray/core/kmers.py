"""k-mers of many sequences at once, as flat arrays, for all measures of composition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.alphabet import Alphabet


@dataclass(frozen=True, slots=True)
class CodeStack:
    """Many sequences laid end to end.

    Attributes
    ----------
    codes : uint8 (T,)
        Letter codes of all sequences, one after the other.
    lengths : int64 (N,)
        Letters of each sequence; they sum to T.
    """

    codes: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)


def stack_sequences(sequences: Sequence[str], alphabet: Alphabet) -> CodeStack:
    """Encode sequences and lay them end to end."""
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    return CodeStack(alphabet.encode("".join(sequences)), lengths)


def stack_codes(sequences: Sequence[np.ndarray] | np.ndarray) -> CodeStack:
    """Lay encoded sequences end to end: a list of (n,) arrays or one (N, W) matrix of uint8 codes."""
    if isinstance(sequences, np.ndarray):
        n, width = sequences.shape
        return CodeStack(np.ascontiguousarray(sequences).reshape(-1), np.full(n, width, dtype=np.int64))
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    codes = np.concatenate(sequences) if sequences else np.empty(0, dtype=np.uint8)
    return CodeStack(codes, lengths)


def kmer_starts(stack: CodeStack, k: int, letters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find all k-mers without ambiguous letters.

    Parameters
    ----------
    stack
        N sequences.
    k
        Length of a k-mer, in letters.
    letters
        Number of canonical letters.

    Returns
    -------
    start, owner, position : int64 (M,)
        Index of the first letter in the stack, index of the sequence, and position in the sequence.
    """
    total = len(stack.codes)
    owner = np.repeat(np.arange(len(stack), dtype=np.int64), stack.lengths)
    begin = np.cumsum(stack.lengths) - stack.lengths
    position = np.arange(total, dtype=np.int64) - begin[owner]
    unknown_before = np.concatenate(([0], np.cumsum(stack.codes >= letters)))
    end = np.minimum(np.arange(total) + k, total)
    whole = (position + k <= stack.lengths[owner]) & (unknown_before[end] == unknown_before[:-1])
    start = np.flatnonzero(whole)
    return start, owner[start], position[start]


def kmer_indices(stack: CodeStack, start: np.ndarray, k: int, letters: int) -> np.ndarray:
    """Number the k-mers from 0 to letters**k - 1, first letter most significant: int64 (M,).

    Parameters
    ----------
    stack
        Sequences with the k-mers.
    start
        (M,) index of the first letter of each k-mer in the stack.
    k
        Length of a k-mer, in letters.
    letters
        Number of canonical letters.
    """
    index = np.zeros(len(start), dtype=np.int64)
    for offset in range(k):
        index = index * letters + stack.codes[start + offset]
    return index


def kmer_counts(stack: CodeStack, k: int, letters: int) -> np.ndarray:
    """Count the k-mers of each sequence: int64 (N, letters**k).

    Parameters
    ----------
    stack, k, letters
        See `kmer_starts`.
    """
    start, owner, _ = kmer_starts(stack, k, letters)
    size = letters**k
    flat = owner * size + kmer_indices(stack, start, k, letters)
    return np.bincount(flat, minlength=len(stack) * size).reshape(len(stack), size)
