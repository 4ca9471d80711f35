"""Letters to tokens: characters, k-mers, alignments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import ALPHABETS, Alphabet, alphabet_of
from seqray.core.arrays import Bools, Codes, Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from seqray.core.text import did_you_mean

# --- Letters to tokens and back: one token a letter, or one per overlapping k-mer

PAD, CLS, MASK, UNK = 0, 1, 2, 3
FIRST_LETTER = 4


# Above this an embedding table outgrows any data set that could train it.
_MAX_VOCABULARY = 1 << 20


class Tokenizer(ABC):
    """Letters to tokens; PAD fills rows up."""

    alphabet: Alphabet  # letters that are read

    def encode(self, sequence: str) -> Ints:
        """Tokens of one sequence of n letters, shape (L,)."""
        return self.encode_codes(self.alphabet.encode(sequence))

    @abstractmethod
    def encode_codes(
        self, codes: npt.NDArray[np.uint8], lengths: npt.NDArray[np.integer] | None = None
    ) -> Ints:
        """Tokens of letter codes: shape (..., n) becomes (..., L).

        Each row has as many letters as ``lengths`` (...,) says, by default n; what follows them may be
        encoded too, and `mask` excludes it.
        """

    @abstractmethod
    def check(self, sequence: str) -> None:
        """Refuse a sequence that makes fewer or more tokens than can be read. Raises InputError."""

    @abstractmethod
    def mask(self, tokens: Ints, lengths: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Tell which of the tokens (B, L) of sequences with so many letters (B,) are real."""


class OwnTokenizer(Tokenizer):
    """Letters (n) to tokens (1 + T), CLS first; the number of letters alone decides the number of tokens."""

    vocab_size: int  # number of token values, the four special ones included, contexts not
    first: int = CLS  # the token in front: CLS, or that of a context

    @abstractmethod
    def decode(self, tokens: npt.ArrayLike) -> str:
        """Letters of tokens (L,); CLS and padding are left out, what isn't known is ``N`` or ``X``."""

    @abstractmethod
    def spans(self, length: int) -> Ints:
        """Half-open letter interval (1 + T, 2) of each token of so many letters; CLS covers none: (0, 0)."""

    @abstractmethod
    def token_length(self, n_letters: int) -> int:
        """Number of tokens of a sequence of that many letters, CLS included: 1 + T."""

    def check(self, sequence: str) -> None:
        self.token_length(len(sequence))

    def mask(self, tokens: Ints, lengths: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        sizes, inverse = np.unique(lengths, return_inverse=True)
        real = np.array([self.token_length(int(n)) for n in sizes])[inverse]
        return np.arange(tokens.shape[1]) < real[:, None]

    def _with_first(self, body: npt.NDArray[np.integer]) -> Ints:
        tokens = np.empty((*body.shape[:-1], body.shape[-1] + 1), dtype=np.int64)
        tokens[..., 0] = self.first
        tokens[..., 1:] = body
        return tokens

    def _without_specials(self, tokens: npt.ArrayLike) -> Ints:
        array = np.asarray(tokens, dtype=np.int64)
        return array[(array != CLS) & (array != PAD) & (array < self.vocab_size)]


class CharacterTokenizer(OwnTokenizer):
    """One token a letter: token 4 + c for letter code c, UNK for an ambiguous letter."""

    def __init__(self, alphabet: Alphabet | str) -> None:
        self.alphabet = alphabet = alphabet_of(alphabet)
        self.vocab_size = FIRST_LETTER + alphabet.unknown
        self._tokens = np.append(np.arange(FIRST_LETTER, self.vocab_size), UNK)  # by letter code
        self._codes = np.full(self.vocab_size, alphabet.unknown, dtype=np.uint8)  # by token
        self._codes[FIRST_LETTER:] = np.arange(alphabet.unknown)

    def encode_codes(
        self, codes: npt.NDArray[np.uint8], lengths: npt.NDArray[np.integer] | None = None
    ) -> Ints:
        return self._with_first(self._tokens[codes])

    def decode(self, tokens: npt.ArrayLike) -> str:
        return self.alphabet.decode(self._codes[self._without_specials(tokens)])

    def spans(self, length: int) -> Ints:
        starts = np.arange(length)
        return np.concatenate([[[0, 0]], np.stack([starts, starts + 1], axis=1)])  # (1 + n, 2)

    def token_length(self, n_letters: int) -> int:
        return 1 + n_letters


class KmerTokenizer(OwnTokenizer):
    """One token per overlapping k-mer, stride 1; a k-mer with an ambiguous letter is UNK.

    The k-mer of codes c_1 ... c_k is token 4 + sum c_j n^(k-j), with n canonical letters.
    """

    def __init__(self, alphabet: Alphabet | str, k: int) -> None:
        alphabet = alphabet_of(alphabet)
        words = alphabet.unknown**k
        if k < 1 or words > _MAX_VOCABULARY:
            raise ConfigError(
                f"'model.k' is {k}, that is {words} k-mers of {alphabet.name}", remedy="choose a smaller k"
            )
        self.alphabet = alphabet
        self.k = k
        self.vocab_size = FIRST_LETTER + words

    def encode_codes(
        self, codes: npt.NDArray[np.uint8], lengths: npt.NDArray[np.integer] | None = None
    ) -> Ints:
        count = self.token_length(codes.shape[-1]) - 1
        index = np.zeros((*codes.shape[:-1], count), dtype=np.int64)
        unknown = np.zeros(index.shape, dtype=bool)
        for j in range(self.k):
            letters = codes[..., j : j + count]
            index = index * self.alphabet.unknown + letters  # Horner's rule, base n
            unknown |= letters == self.alphabet.unknown
        return self._with_first(np.where(unknown, UNK, FIRST_LETTER + index))

    def decode(self, tokens: npt.ArrayLike) -> str:
        # A letter lies in up to k words; any known one of them gives it.
        body = self._without_specials(tokens)
        if body.size == 0:
            return ""
        known, index = body >= FIRST_LETTER, body - FIRST_LETTER
        codes = np.full(body.size + self.k - 1, self.alphabet.unknown, dtype=np.uint8)
        for j in range(self.k):
            digit = index // self.alphabet.unknown ** (self.k - 1 - j) % self.alphabet.unknown
            np.copyto(codes[j : j + body.size], digit, where=known, casting="unsafe")
        return self.alphabet.decode(codes)

    def spans(self, length: int) -> Ints:
        starts = np.arange(self.token_length(length) - 1)
        return np.concatenate([[[0, 0]], np.stack([starts, starts + self.k], axis=1)])  # (1 + T, 2)

    def token_length(self, n_letters: int) -> int:
        if n_letters < self.k:
            raise InputError(f"{n_letters} letters are too few for {self.k}-mers")
        return 1 + n_letters - self.k + 1


def make_tokenizer(config: ModelConfig, context: str | None = None) -> OwnTokenizer:
    """The tokenizer of a model but a backbone, for sequences of one context or of none."""
    alphabet = ALPHABETS[config.alphabet]
    tokenizer = (
        CharacterTokenizer(alphabet) if config.tokenizer == "character" else KmerTokenizer(alphabet, config.k)
    )
    if context is not None:
        tokenizer.first = tokenizer.vocab_size + context_index(config, context)
    return tokenizer


def context_index(config: ModelConfig, context: str) -> int:
    """Find a context by its name, or by the beginning of it that no other has; case doesn't count."""
    if context in config.contexts:
        return config.contexts.index(context)
    fold = context.casefold()
    found = [i for i, name in enumerate(config.contexts) if fold and name.casefold().startswith(fold)]
    if len(found) == 1:
        return found[0]
    if not config.contexts:
        raise ConfigError(f"the context '{context}' is given, but the model has no contexts")
    if found:
        names = ", ".join(config.contexts[i] for i in found)
        raise ConfigError(f"the context '{context}' may be {names}", remedy="give more of its name")
    raise ConfigError(
        f"unknown context '{context}'", remedy=did_you_mean(context, config.contexts, cutoff=0.4)
    )


# --- Aligned rows to tokens and back: one token per column, and CLS before each row


class AlignmentTokenizer:
    """Codes (R, C) to tokens (R, 1 + C), CLS first in each row; gaps and missing data have their own."""

    def __init__(self, alphabet: Alphabet | str) -> None:
        self.alphabet = alphabet = alphabet_of(alphabet)
        self.gap = FIRST_LETTER + alphabet.unknown
        self.missing = self.gap + 1
        self.vocab_size = self.missing + 1
        letters = np.arange(FIRST_LETTER, self.gap)
        self._tokens = np.concatenate([letters, [UNK, self.gap, self.missing]])  # by code
        self._codes = np.full(self.vocab_size, alphabet.missing, dtype=np.uint8)  # by token
        self._codes[FIRST_LETTER : self.gap] = np.arange(alphabet.unknown)
        self._codes[UNK] = alphabet.unknown
        self._codes[self.gap] = alphabet.gap

    def encode(self, codes: Codes) -> Ints:
        """Tokens of codes: (..., R, C) becomes (..., R, 1 + C)."""
        tokens = np.empty((*codes.shape[:-1], codes.shape[-1] + 1), dtype=np.int64)
        tokens[..., 0] = CLS
        tokens[..., 1:] = self._tokens[codes]
        return tokens

    def decode(self, tokens: npt.ArrayLike) -> Codes:
        """Codes (..., R, C) of tokens (..., R, 1 + C); what is masked or padded becomes missing data."""
        return self._codes[np.asarray(tokens)[..., 1:]]


# --- Arrays of tokens of different lengths: padding, masks, and batches of similar size


def pad_arrays(tokens: Sequence[np.ndarray]) -> tuple[Ints, tuple[Bools | None, ...]]:
    """Stack token arrays, (L_i,) or (R_i, C_i), into one int64 array, padded at the end of each axis.

    The masks, one for each axis after the first, are True at real tokens; None for an axis without padding.
    """
    shapes = np.array([array.shape for array in tokens])  # (B, number of axes)
    padded = np.full((len(tokens), *shapes.max(axis=0)), PAD, dtype=np.int64)
    for number, array in enumerate(tokens):
        padded[number, *(slice(n) for n in array.shape)] = array
    masks = (np.arange(sizes.max()) < sizes[:, None] for sizes in shapes.T)
    return padded, tuple(None if mask.all() else mask for mask in masks)


def size_buckets(sizes: Sequence[object] | np.ndarray, batch_size: int, max_tokens: int) -> list[Ints]:
    """Batches of indices of sequences (N,) or alignments (N, 2) of similar size, the shortest first.

    A batch has at most ``batch_size`` of them and ``max_tokens`` with padding, or a single larger one.
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
