"""A small network that says which windows of a strand are worth the model's time.

It predicts the log-odds that a model of windows would give. Windows that lie next to each other share its
convolution, so it reads a strand far faster than the model reads every window. It computes with numpy,
whatever the engine of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from seqray.core import Codes

KERNEL, STRIDE, CHANNELS, HIDDEN = 15, 3, 32, (64, 32)
Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
_CHUNK = 512  # windows computed at once: their values stay in the processor's cache
# Values and weights are rounded to multiples of 2^-16 and 2^-21. Sums of their products are then exact in
# float64: an answer has the same bits wherever its window lies, on any number of threads and with any BLAS.
_VALUE_BITS, _WEIGHT_BITS = 16, 21


def prefilter_shapes(window: int, letters: int, contexts: int) -> dict[str, tuple[int, ...]]:
    """Shape of each array of weights.

    Parameters
    ----------
    window
        Letters of a window [W].
    letters
        Of the alphabet.
    contexts
        That the model knows; one more stands for none.
    """
    places, known = (window - KERNEL) // STRIDE + 1, contexts + 1  # places of the convolution in a window
    first, second = HIDDEN
    return {
        "convolution": (KERNEL, letters, CHANNELS),
        "convolution_bias": (CHANNELS,),
        "gain": (known, places, CHANNELS),
        "first": (places, CHANNELS, first),
        "first_bias": (known, first),
        "second": (first, second),
        "second_bias": (second,),
        "out": (second,),
        "out_bias": (known,),
    }


@dataclass(frozen=True, eq=False)
class Prefilter:
    """The network.

    Attributes
    ----------
    weights
        float32 arrays of `prefilter_shapes`.
    window
        Letters of a window [W].
    """

    weights: Mapping[str, Array]
    window: int

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
            answers[start : start + _CHUNK] = layers.log_odds(part)
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

    def log_odds(self, codes: Codes) -> Doubles:
        """Of the windows of a short strand."""
        count = len(codes) - self.window + 1
        to_channels, to_first, to_second, to_out = self.biases
        view = np.lib.stride_tricks.sliding_window_view(self.letters[codes], KERNEL, axis=0)  # (L', A, K)
        found = _activate(view.swapaxes(1, 2).reshape(len(view), -1) @ self.convolution + to_channels)
        hidden = np.tile(to_first, (count, 1))
        for place, matrix in enumerate(self.first):
            hidden += found[STRIDE * place :][:count] @ matrix
        hidden = _activate(_activate(hidden) @ self.second + to_second)
        return hidden @ self.out + to_out


def _activate(values: Doubles) -> Doubles:
    """ReLU."""
    return _round(np.maximum(values, 0, out=values), _VALUE_BITS)


def _round(values: npt.NDArray[np.floating], bits: int) -> Doubles:
    """To multiples of 2^-bits."""
    return np.rint(values.astype(np.float64) * 2.0**bits) * 2.0**-bits
