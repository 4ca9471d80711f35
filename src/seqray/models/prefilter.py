"""Small networks that say which windows of a strand are worth the model's time.

They predict the log-odds that a model of windows would give. Windows that lie next to each other share the
convolution, so the first network reads a strand far faster than the model reads every window. A second, wider
one reads the windows that pass the first. They compute with numpy, whatever the engine of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqray.core import Codes

KERNEL, STRIDE = 15, 3
Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
# Windows computed at once: their values stay in the cache, and threads seldom wait for Python.
_CHUNK = 1024
# Values and weights are rounded to multiples of 2^-16 and 2^-21. Sums of their products are then exact in
# float64: an answer has the same bits wherever its window lies, on any number of threads and with any BLAS.
_VALUE_BITS, _WEIGHT_BITS = 16, 21


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
    """Shape of each array of weights.

    Parameters
    ----------
    window
        Letters of a window [W].
    letters
        Of the alphabet.
    contexts
        That the model knows; one more stands for none.
    size
        Of the layers.
    """
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
    """A network, with the one that reads what it lets pass.

    Attributes
    ----------
    weights
        float32 arrays of `prefilter_shapes`.
    window
        Letters of a window [W].
    second
        The next network, if there is one.
    """

    weights: Mapping[str, Array]
    window: int
    second: Prefilter | None = None

    @property
    def networks(self) -> tuple[Prefilter, ...]:
        """This one and those after it."""
        return (self, *(self.second.networks if self.second else ()))

    def log_odds(self, codes: Codes, context: int = 0) -> Array:
        """Predict the log-odds of the positive class for every window of a strand.

        Parameters
        ----------
        codes
            (L,) letter codes, L at least W; those above the last letter are ambiguous.
        context
            Number of the context, from 1; 0 for none.

        Returns
        -------
        ndarray
            (L - W + 1,) float32, from the window that begins at the first letter.
        """
        layers, count = _Layers.of(self, context), len(codes) - self.window + 1
        answers = np.empty(count, np.float32)
        for start in range(0, count, _CHUNK):
            part = codes[start : start + _CHUNK + self.window - 1]
            answers[start : start + _CHUNK] = layers.strand_log_odds(part)
        return answers

    def window_log_odds(self, windows: Codes, context: int = 0) -> Array:
        """Predict the log-odds of the positive class for windows from anywhere.

        Parameters
        ----------
        windows
            (N, W) letter codes.
        context
            As in `log_odds`.

        Returns
        -------
        ndarray
            (N,) float32.
        """
        layers, answers = _Layers.of(self, context), np.empty(len(windows), np.float32)
        for start in range(0, len(windows), _CHUNK):
            answers[start : start + _CHUNK] = layers.window_log_odds(windows[start : start + _CHUNK])
        return answers


@dataclass(frozen=True, eq=False)
class _Layers:
    """The weights as one context needs them."""

    window: int
    letters: Doubles  # (256, A): a row for each code, zeros for ambiguous letters
    convolution: Doubles  # (K·A, C)
    first: Doubles  # (J, C, H), with the gain of the context
    second: Doubles  # (H, H')
    out: Doubles  # (H',)
    biases: tuple[Doubles, Doubles, Doubles, float]  # of the four

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, prefilter: Prefilter, context: int) -> _Layers:
        weights = {name: _round(values, _WEIGHT_BITS) for name, values in prefilter.weights.items()}
        width, alphabet, channels = weights["convolution"].shape
        first = prefilter.weights["first"] * prefilter.weights["gain"][context][:, :, None]
        return cls(
            prefilter.window,
            np.eye(256, alphabet),
            weights["convolution"].reshape(width * alphabet, channels),
            _round(first, _WEIGHT_BITS),
            weights["second"],
            weights["out"],
            (
                weights["convolution_bias"],
                weights["first_bias"][context],
                weights["second_bias"],
                float(weights["out_bias"][context]),
            ),
        )

    def strand_log_odds(self, codes: Codes) -> Doubles:
        """Of the windows of a short strand, which share the convolution."""
        count = len(codes) - self.window + 1
        view = np.lib.stride_tricks.sliding_window_view(codes, KERNEL)
        found = self._convolve(view)
        return self._combine(found[STRIDE * place :][:count] for place in range(len(self.first)))

    def window_log_odds(self, windows: Codes) -> Doubles:
        """Of a few windows (N, W)."""
        starts = range(0, STRIDE * len(self.first), STRIDE)
        return self._combine(self._convolve(windows[:, start : start + KERNEL]) for start in starts)

    def _convolve(self, codes: Codes) -> Doubles:
        """Codes (N, K) to channels (N, C)."""
        return _activate(self.letters[codes].reshape(len(codes), -1) @ self.convolution + self.biases[0])

    def _combine(self, found: Iterable[Doubles]) -> Doubles:
        """The channels (N, C) at each place of the windows to log-odds (N,)."""
        _, to_first, to_second, to_out = self.biases
        products = (values @ matrix for values, matrix in zip(found, self.first, strict=True))
        hidden = next(products) + to_first
        for product in products:
            hidden += product
        return _activate(_activate(hidden) @ self.second + to_second) @ self.out + to_out


def _activate(values: Doubles) -> Doubles:
    """ReLU."""
    return _round(np.maximum(values, 0, out=values), _VALUE_BITS)


def _round(values: npt.NDArray[np.floating], bits: int) -> Doubles:
    """To multiples of 2^-bits."""
    return np.rint(values.astype(np.float64) * 2.0**bits) * 2.0**-bits
