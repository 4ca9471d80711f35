"""A small network that says which windows of a strand are worth the model's time.

It predicts the log-odds that a model of windows would give. Windows that lie next to each other share its
convolution, so it reads a strand about a hundred times as fast as the model reads every window. It computes
with numpy, whatever the engine of the model.
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
# Windows computed at once, and letters read at once in multiples of: with products of matrices of one shape
# an answer has the same bits wherever its window lies. Their values stay in the processor's cache.
_CHUNK, _MULTIPLE = 1024, 64


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
    places, known = prefilter_places(window), contexts + 1
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


def prefilter_places(window: int) -> int:
    """How many places of the convolution a window has."""
    return (window - KERNEL) // STRIDE + 1


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
        answers = np.empty(-(-count // _CHUNK) * _CHUNK, np.float32)
        letters = _CHUNK + -(-(self.window - KERNEL) // _MULTIPLE) * _MULTIPLE + KERNEL - 1
        padded = np.zeros(len(answers) + letters - _CHUNK, np.uint8)
        padded[: len(codes)] = codes
        for start in range(0, count, _CHUNK):
            answers[start : start + _CHUNK] = layers.log_odds(padded[start : start + letters])
        return answers[:count]


@dataclass(frozen=True, eq=False)
class _Layers:
    """The weights as one context needs them."""

    weights: Mapping[str, Array]
    context: int
    letters: Array  # (256, A): a row for each code, zeros for ambiguous letters
    first: Array  # (J, C, H), with the gain of the context

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, prefilter: Prefilter, context: int) -> _Layers:
        weights = prefilter.weights
        letters = np.zeros((256, weights["convolution"].shape[1]), np.float32)
        np.fill_diagonal(letters, 1)
        return cls(weights, context, letters, weights["first"] * weights["gain"][context][:, :, None])

    def log_odds(self, codes: Codes) -> Array:
        weights, count = self.weights, _CHUNK
        width, letters, channels = weights["convolution"].shape
        view = np.lib.stride_tricks.sliding_window_view(self.letters[codes], width, axis=0)  # (L', A, K)
        flat = view.swapaxes(1, 2).reshape(len(view), width * letters)
        found = flat @ weights["convolution"].reshape(-1, channels) + weights["convolution_bias"]
        np.maximum(found, 0, out=found)
        hidden = np.tile(weights["first_bias"][self.context], (count, 1))
        for place, matrix in enumerate(self.first):
            hidden += found[STRIDE * place :][:count] @ matrix
        np.maximum(hidden, 0, out=hidden)
        hidden = np.maximum(hidden @ weights["second"] + weights["second_bias"], 0)
        return (hidden * weights["out"]).sum(axis=1) + weights["out_bias"][self.context]
