"""The prefilter in a model file: tensors called ``prefilter.<name>``, of the shapes that the card implies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from seqray.core import ALPHABETS, Card, ModelFileError
from seqray.models import KERNEL, Prefilter, prefilter_shapes

PREFIX = "prefilter."


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
    letters = len(ALPHABETS[card.model.alphabet].letters)
    shapes = prefilter_shapes(card.window, letters, len(card.model.contexts))
    found = {name.removeprefix(PREFIX): value for name, value in arrays.items()}
    fits = {name: value.shape for name, value in found.items()} == shapes
    if not fits or any(value.dtype != np.float32 for value in found.values()):
        raise ModelFileError("has a prefilter that doesn't fit its card", where=where)
    return Prefilter(found, card.window)
