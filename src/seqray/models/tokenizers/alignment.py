"""Aligned rows to tokens and back: one token per column, and CLS before each row.

The tokens of letters are those of `CharacterTokenizer`; gaps and missing data follow them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqray.core import Alphabet, Codes, Ints, gap_code, missing_code
from seqray.models.tokenizers.sequence import CLS, FIRST_LETTER, MASK, PAD, UNK

__all__ = ["CLS", "MASK", "PAD", "UNK", "AlignmentTokenizer"]


class AlignmentTokenizer:
    """Codes (R, C) to tokens (R, 1 + C), CLS first in each row.

    Attributes
    ----------
    vocab_size
        Number of token values, the four special ones included.
    gap, missing
        Ints of a gap and of missing data.
    """

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.gap = FIRST_LETTER + alphabet.unknown
        self.missing = self.gap + 1
        self.vocab_size = self.missing + 1
        letters = np.arange(FIRST_LETTER, self.gap)
        self._tokens = np.concatenate([letters, [UNK, self.gap, self.missing]])  # by code
        self._codes = np.full(self.vocab_size, missing_code(alphabet), dtype=np.uint8)  # by token
        self._codes[FIRST_LETTER : self.gap] = np.arange(alphabet.unknown)
        self._codes[UNK] = alphabet.unknown
        self._codes[self.gap] = gap_code(alphabet)

    def encode(self, codes: Codes) -> Ints:
        """Ints of codes: (..., R, C) becomes (..., R, 1 + C)."""
        tokens = np.empty((*codes.shape[:-1], codes.shape[-1] + 1), dtype=np.int64)
        tokens[..., 0] = CLS
        tokens[..., 1:] = self._tokens[codes]
        return tokens

    def decode(self, tokens: npt.ArrayLike) -> Codes:
        """Codes (..., R, C) of tokens (..., R, 1 + C); what is masked or padded becomes missing data.

        Raises ValueError if a row doesn't begin with CLS, or a token is outside the vocabulary.
        """
        array = np.asarray(tokens)
        if array.ndim < 2 or not (array[..., 0] == CLS).all():
            raise ValueError("each row of tokens begins with CLS")
        return self._codes[self._in_vocabulary(array[..., 1:])]

    def _in_vocabulary(self, tokens: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        if tokens.size and not (tokens.min() >= 0 and tokens.max() < self.vocab_size):
            raise ValueError(f"tokens lie between 0 and {self.vocab_size - 1}")
        return tokens
