"""Small networks, in numpy, that say which windows of a strand are worth the model's time.

The first shares its convolution between windows; the second, wider one reads what passes the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import ALPHABETS
from seqray.core.arrays import Codes, Ints
from seqray.core.card import Card
from seqray.core.errors import ModelFileError

KERNEL, STRIDE = 15, 3
_KMER_LENGTH = 5  # letters whose part of the convolution is looked up at once; divides the kernel
Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
# Windows computed at once: their values stay in the cache, and threads seldom wait for Python.
_CHUNK = 1024
# Values and weights are rounded to multiples of 2^-16 and 2^-21. Sums of their products are then exact in
# float64: an answer has the same bits wherever its window lies, on any number of threads and with any BLAS.
_UNIT, _WEIGHT_BITS = 2.0**-16, 21


class PrefilterSize(NamedTuple):
    """Channels of the convolution, and the sizes of the two hidden layers."""

    channels: int
    first: int
    second: int


NARROW, WIDE = PrefilterSize(16, 32, 32), PrefilterSize(64, 128, 32)
"""Of the network that reads every window, and of the one that reads those that pass."""


def prefilter_shapes(
    window: int, letters: int, contexts: int, size: PrefilterSize = NARROW
) -> dict[str, tuple[int, ...]]:
    """Shape of each array of weights, for letters of a window and of the alphabet, and known contexts."""
    places, known = (window - KERNEL) // STRIDE + 1, contexts + 1  # places of the convolution in a window
    channels, first, second = size
    return {
        "convolution": (KERNEL, letters, channels),
        "convolution_bias": (channels,),
        "gain": (known, places, channels),
        "first": (places, channels, first),
        "first_bias": (known, first),
        "second": (first, second),
        "second_bias": (second,),
        "out": (second,),
        "out_bias": (known,),
    }


@dataclass(frozen=True, eq=False)
class Prefilter:
    """A network of float32 weights of `prefilter_shapes`, for windows of W letters; and the next one."""

    weights: Mapping[str, Array]
    window: int
    second: Prefilter | None = None

    @property
    def networks(self) -> tuple[Prefilter, ...]:
        """This one and those after it."""
        return (self, *(self.second.networks if self.second else ()))

    def log_odds(self, codes: Codes, context: int = 0) -> Array:
        """Log-odds of the positive class for every window of a strand: (L,) letter codes to (L - W + 1,).

        Codes above the last letter are ambiguous. The contexts count from 1; 0 is none.
        """
        layers, count = _Layers.of(self, context), len(codes) - self.window + 1
        answers = np.empty(count, np.float32)
        for start in range(0, count, _CHUNK):
            part = codes[start : start + _CHUNK + self.window - 1]
            answers[start : start + _CHUNK] = layers.strand_log_odds(part)
        return answers

    def window_log_odds(self, windows: Codes, context: int = 0) -> Array:
        """Log-odds of the positive class for windows (N, W) from anywhere: (N,)."""
        layers, answers = _Layers.of(self, context), np.empty(len(windows), np.float32)
        for start in range(0, len(windows), _CHUNK):
            answers[start : start + _CHUNK] = layers.window_log_odds(windows[start : start + _CHUNK])
        return answers


# --- The prefilter in a model file: tensors ``prefilter.<name>``, and ``prefilter.second.<name>``

PREFIX = "prefilter."
_SECOND = "second."


def read_prefilter(card: Card, arrays: Mapping[str, np.ndarray], where: str) -> Prefilter | None:
    """Make the prefilter of a model file of the arrays named by `PREFIX`; None where the card names none."""
    if card.prefilter is None:
        if arrays:
            raise ModelFileError("has a prefilter that its description does not name", where=where)
        return None
    if card.window < KERNEL:
        raise ModelFileError(f"has a prefilter of windows of {card.window} letters", where=where)
    names = {name.removeprefix(PREFIX): value for name, value in arrays.items()}
    first = {name: value for name, value in names.items() if not name.startswith(_SECOND)}
    second = {name.removeprefix(_SECOND): value for name, value in names.items() if name not in first}
    letters, contexts = len(ALPHABETS[card.model.alphabet].letters), len(card.model.contexts)
    fits = bool(second) == (card.prefilter.second is not None)
    for weights in filter(None, (first, second)):
        own = {name: value.shape for name, value in weights.items()}
        # The biases give the size; a missing one, or a single number, makes it 0.
        biases = ("convolution_bias", "first_bias", "second_bias")
        size = PrefilterSize(*((0, *own.get(name, ()))[-1] for name in biases))
        fits &= own == prefilter_shapes(card.window, letters, contexts, size)
        fits &= all(value.dtype == np.float32 for value in weights.values())
    if not fits or not first:
        raise ModelFileError("has a prefilter that doesn't fit its description", where=where)
    return Prefilter(first, card.window, Prefilter(second, card.window) if second else None)


def prefilter_arrays(prefilter: Prefilter) -> dict[str, np.ndarray]:
    """The tensors of a prefilter in a model file."""
    prefixes = (PREFIX, PREFIX + _SECOND)
    return {
        prefix + name: value
        for prefix, network in zip(prefixes, prefilter.networks, strict=False)
        for name, value in network.weights.items()
    }


# --- What a network computes


@dataclass(frozen=True, eq=False)
class _Layers:
    """The weights as one context needs them. Values of layers are whole numbers of `_UNIT`."""

    window: int
    letters: int  # of the alphabet [A]
    kmers: tuple[Doubles, ...]  # for each part of the kernel ((A + 1)^5, C): what every k-mer adds
    first: Doubles  # (J, C, H), with the gain of the context
    second: Doubles  # (H, H')
    out: Doubles  # (H',)
    biases: tuple[Doubles, Doubles, float]  # of the last three

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, prefilter: Prefilter, context: int) -> _Layers:
        weights = {name: _round(values) for name, values in prefilter.weights.items()}
        first = prefilter.weights["first"] * prefilter.weights["gain"][context][:, :, None]
        return cls(
            prefilter.window,
            weights["convolution"].shape[1],
            _kmer_tables(weights["convolution"] / _UNIT, weights["convolution_bias"] / _UNIT),
            _round(first),
            weights["second"],
            weights["out"] * _UNIT,
            (
                weights["first_bias"][context] / _UNIT,
                weights["second_bias"] / _UNIT,
                float(weights["out_bias"][context]),
            ),
        )

    def strand_log_odds(self, codes: Codes) -> Doubles:
        """Of the windows of a short strand, which share the convolution."""
        count, places = len(codes) - self.window + 1, len(codes) - KERNEL + 1
        numbers = self._kmer_numbers(codes)
        found = self._convolve(numbers[part : part + places] for part in range(0, KERNEL, _KMER_LENGTH))
        return self._combine(found[STRIDE * place :][:count] for place in range(len(self.first)))

    def window_log_odds(self, windows: Codes) -> Doubles:
        """Of a few windows (N, W)."""
        starts, numbers = range(0, STRIDE * len(self.first), STRIDE), self._kmer_numbers(windows.T)
        parts = range(0, KERNEL, _KMER_LENGTH)
        return self._combine(self._convolve(numbers[start + part] for part in parts) for start in starts)

    def _kmer_numbers(self, codes: Codes) -> Ints:
        """Number of the k-mer that begins at each letter: codes (L, ...) to (L - 4, ...)."""
        known = np.minimum(codes, self.letters)  # all ambiguous letters are one more letter
        places = (self.letters + 1) ** np.arange(_KMER_LENGTH)[::-1]
        return np.lib.stride_tricks.sliding_window_view(known, _KMER_LENGTH, axis=0) @ places

    def _convolve(self, numbers: Iterable[Ints]) -> Doubles:
        """Numbers of the k-mers (N,) at each part of the kernel to channels (N, C)."""
        pairs = zip(self.kmers, numbers, strict=True)
        table, first = next(pairs)
        found = table[first]
        for table, others in pairs:
            found += table[others]
        return _activate(found)

    def _combine(self, found: Iterable[Doubles]) -> Doubles:
        """The channels (N, C) at each place of the windows to log-odds (N,)."""
        to_first, to_second, to_out = self.biases
        pairs = zip(found, self.first, strict=True)
        values, matrix = next(pairs)
        hidden = values @ matrix + to_first
        product = np.empty_like(hidden)
        for values, matrix in pairs:
            hidden += np.matmul(values, matrix, out=product)
        return _activate(_activate(hidden) @ self.second + to_second) @ self.out + to_out


def _kmer_tables(convolution: Doubles, bias: Doubles) -> tuple[Doubles, ...]:
    """What each k-mer adds to the channels (C,) at each part of the kernel; ambiguous letters add nothing."""
    padded = np.pad(convolution, ((0, 0), (0, 1), (0, 0)))  # (K, A + 1, C)
    kmers = np.indices((padded.shape[1],) * _KMER_LENGTH).reshape(_KMER_LENGTH, -1)  # letters of each
    places = np.arange(_KMER_LENGTH)[:, None]
    parts = range(0, KERNEL, _KMER_LENGTH)
    first, *others = (padded[start + places, kmers].sum(axis=0) for start in parts)
    return first + bias, *others


def _activate(values: Doubles) -> Doubles:
    """ReLU, in place."""
    return np.rint(np.maximum(values, 0, out=values), out=values)


def _round(weights: Array) -> Doubles:
    """To multiples of 2^-21."""
    return np.rint(weights.astype(np.float64) * 2.0**_WEIGHT_BITS) * 2.0**-_WEIGHT_BITS
