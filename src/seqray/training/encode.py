"""Labelled sequences or alignments to the sets that batches are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Alignment, ConfigError, Example, InputError, ModelConfig, RunConfig
from seqray.modelfile import tokenizer_for
from seqray.training.alignments import AlignmentSet
from seqray.training.data import EncodedSet, Examples


def encode(data: Sequence[Example], labels: np.ndarray, rows: np.ndarray, config: RunConfig) -> Examples:
    """Encode those rows of the data; ``labels`` (N,) are the class indices of all."""
    if config.model.kind == "alignment":
        return AlignmentSet([_alignment(data[i]) for i in rows], labels[rows], config)
    sequences = [data[i].sequence for i in rows]
    contexts = context_numbers([data[i] for i in rows], config.model)
    return EncodedSet(sequences, labels[rows], tokenizer_for(config.model), config.data.flank, contexts)


def context_numbers(data: Sequence[Example], config: ModelConfig) -> np.ndarray | None:
    """Number of each example's context, -1 without one: int64 (N,); None for a model without contexts.

    Raises
    ------
    InputError
        For an example of a context that the settings don't name.
    """
    if not config.contexts:
        return None
    numbers = {name: i for i, name in enumerate(config.contexts)}
    for example in data:
        if example.context is not None and example.context not in numbers:
            raise InputError(
                f"has the context '{example.context}'",
                where=example.where,
                remedy="name it in 'model.contexts'",
            )
    return np.array([-1 if e.context is None else numbers[e.context] for e in data], dtype=np.int64)


def _alignment(example: Example) -> Alignment:
    if not isinstance(example, Alignment):
        raise ConfigError("'model.kind' is alignment, but the examples are sequences")
    return example
