"""The weights of one network of a model as arrays, by the names of its state dict. No torch here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from seqray.core import ModelConfig, ModelFileError, composition_size
from seqray.models.tokenizers import FIRST_LETTER, make_tokenizer

Array = npt.NDArray[np.float32]


class Member:
    """Settings and weights of one network. Calling it gives a tensor."""

    def __init__(self, config: ModelConfig, arrays: Mapping[str, npt.NDArray[np.floating]]) -> None:
        self.config, self._arrays = config, arrays
        self._unread = set(arrays)
        tokenizer = make_tokenizer(config)
        self.vocabulary = tokenizer.vocab_size
        self.letters = self.vocabulary - FIRST_LETTER
        self.stride = config.stem.stride if config.stem else 1
        self.longest = 1 - -config.max_length // self.stride
        """Largest number of tokens, including CLS."""
        self.reach = -(-config.ends // self.stride)
        """Tokens of either end that are pooled as such."""
        self.pooled = config.d_model * sum(2 if part == "ends" else 1 for part in config.pooling)
        """Width of what the head reads."""
        self.composition = composition_size(self.letters, config.composition)
        """Number of its features."""

    def __call__(self, name: str, *shape: int) -> Array:
        """Return a float32 tensor. Raises ModelFileError where it is missing or has another shape or type."""
        array = self._arrays.get(name)
        if array is None:
            raise ModelFileError(f"lacks tensors, such as '{name}'")
        if array.shape != shape:
            raise ModelFileError(f"tensor '{name}' is {array.shape} where the card asks for {shape}")
        if array.dtype != np.float32:
            raise ModelFileError(f"tensor '{name}' is of {array.dtype}, not float32")
        self._unread.discard(name)
        return array

    def check_all_read(self) -> None:
        """Refuse tensors that the settings do not account for. Raises ModelFileError."""
        if self._unread:
            raise ModelFileError(f"has {len(self._unread)} unknown tensors, such as '{min(self._unread)}'")

    def angles(self, width: int) -> npt.NDArray[np.float64]:
        """Angles of sinusoidal and rotary positions, position / 10000^(2i/width): (T, width / 2)."""
        # The frequencies and the products are float32, as those of `seqray.models.positions` are.
        exponent = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        frequency = (10000.0 ** -exponent.astype(np.float64)).astype(np.float32)
        return (np.arange(self.longest, dtype=np.float32)[:, None] * frequency).astype(np.float64)
