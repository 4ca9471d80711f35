"""A second look at proposed pairs: the short words of a sequence as a row of bits, compared many at once.

Among a hundred thousand windows many pairs share two long words by chance; they don't share many short
ones. Counting these costs a fiftieth of an alignment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Alphabet, CodeStack, word_indices, word_starts
from seqray.homology.kmers import chunks, other_strand

_ONES = (
    np.unpackbits(np.arange(2**16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1).astype(np.uint8)
)
_NO = np.empty((0, 1), dtype=np.uint16)
_PAIRS_AT_ONCE = 20_000
_ROWS_AT_ONCE = 10_000


class ShortWords:
    """Which words of ``weight`` letters N sequences hold, on either strand.

    Parameters
    ----------
    sequences
        N of them.
    weight
        Letters of a word.
    alphabet
        Of the sequences.
    both_strands
        Whether pairs on opposite strands will be asked for.
    """

    def __init__(
        self, sequences: Sequence[str], weight: int, alphabet: Alphabet, *, both_strands: bool
    ) -> None:
        letters = len(alphabet.letters)
        parts: list[list[np.ndarray]] = [[], []]
        for _, stack in chunks(sequences, alphabet):
            parts[0] += _rows_of_bits(stack, weight, letters)
            parts[1] += _rows_of_bits(other_strand(stack), weight, letters) if both_strands else []
        self._bits = [np.concatenate(part) if part else _NO for part in parts]
        self._counts = np.concatenate([_ONES[part].sum(axis=1, dtype=np.int64) for part in parts[0] or [_NO]])

    def likeness(self, one: np.ndarray, two: np.ndarray, turned: bool) -> np.ndarray:
        """Share of the words of the sequence with fewer that both hold, for pairs of rows: float64 (P,).

        Parameters
        ----------
        one, two : int64 (P,)
            Rows of the pairs.
        turned
            Whether ``two`` is read on its other strand.
        """
        shared = np.empty(len(one), dtype=np.int64)
        for begin in range(0, len(one), _PAIRS_AT_ONCE):
            block = slice(begin, begin + _PAIRS_AT_ONCE)
            both = self._bits[0][one[block]] & self._bits[int(turned)][two[block]]
            shared[block] = _ONES[both].sum(axis=1, dtype=np.int64)
        return shared / np.maximum(np.minimum(self._counts[one], self._counts[two]), 1)


def _rows_of_bits(stack: CodeStack, weight: int, letters: int) -> list[np.ndarray]:
    """Bits of the words that each sequence holds: blocks of uint16 (rows, letters**weight / 16)."""
    start, owner, _ = word_starts(stack, weight, letters)
    word = word_indices(stack, start, weight, letters)
    blocks = []
    for begin in range(0, len(stack), _ROWS_AT_ONCE):
        rows = min(_ROWS_AT_ONCE, len(stack) - begin)
        first, last = np.searchsorted(owner, (begin, begin + rows))
        held = np.zeros((rows, letters**weight), dtype=bool)
        held[owner[first:last] - begin, word[first:last]] = True
        blocks.append(np.packbits(held, axis=1).view(np.uint16))
    return blocks
