"""The prefilter in a model file: tensors ``prefilter.<name>``, and ``prefilter.second.<name>``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from seqray.core import ALPHABETS, Card, ModelFileError
from seqray.models import KERNEL, Prefilter, PrefilterSize, prefilter_shapes

PREFIX = "prefilter."
_SECOND = "second."


def read_prefilter(card: Card, arrays: Mapping[str, np.ndarray], where: str) -> Prefilter | None:
    """Make the prefilter of a model file; None where the card names none.

    ``arrays`` are all of the file whose names begin with `PREFIX`. ModelFileError is raised for arrays that
    are missing, unknown or of another shape or type than the card implies.
    """
    if not card.prefilter:
        if arrays:
            raise ModelFileError("has a prefilter that its card does not name", where=where)
        return None
    if card.window < KERNEL:
        raise ModelFileError(f"has a prefilter of windows of {card.window} letters", where=where)
    names = {name.removeprefix(PREFIX): value for name, value in arrays.items()}
    first = {name: value for name, value in names.items() if not name.startswith(_SECOND)}
    second = {name.removeprefix(_SECOND): value for name, value in names.items() if name not in first}
    if bool(second) != ("second" in card.prefilter):
        raise ModelFileError("has a prefilter that doesn't fit its card", where=where)
    last = _network(card, second, where) if second else None
    return replace(_network(card, first, where), second=last)


def _network(card: Card, weights: Mapping[str, np.ndarray], where: str) -> Prefilter:
    letters = len(ALPHABETS[card.model.alphabet].letters)
    shapes = prefilter_shapes(card.window, letters, len(card.model.contexts), _size_of(weights))
    fits = {name: value.shape for name, value in weights.items()} == shapes
    if not fits or any(value.dtype != np.float32 for value in weights.values()):
        raise ModelFileError("has a prefilter that doesn't fit its card", where=where)
    return Prefilter(weights, card.window)


def _size_of(weights: Mapping[str, np.ndarray]) -> PrefilterSize:
    """By the biases, whatever the other arrays are; zeros where one is missing or a single number."""
    shapes = {name: value.shape for name, value in weights.items()}
    names = ("convolution_bias", "first_bias", "second_bias")
    return PrefilterSize(*((0, *shapes.get(name, ()))[-1] for name in names))


def prefilter_arrays(prefilter: Prefilter) -> dict[str, np.ndarray]:
    """The tensors of a prefilter in a model file."""
    prefixes = (PREFIX, PREFIX + _SECOND)
    return {
        prefix + name: value
        for prefix, network in zip(prefixes, prefilter.networks, strict=False)
        for name, value in network.weights.items()
    }
