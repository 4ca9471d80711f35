"""Encode labeled sequences or alignments for training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from seqray.core import (
    Alignment,
    ConfigError,
    Example,
    InputError,
    LabeledSequence,
    ModelConfig,
    RunConfig,
    truncate,
)
from seqray.modelfile import build_tokenizer
from seqray.training.alignments import AlignmentExamples
from seqray.training.data import Examples, SequenceExamples


def encode(data: Sequence[Example], labels: np.ndarray, rows: np.ndarray, config: RunConfig) -> Examples:
    """Encode some rows of the data.

    Raises ConfigError for examples of a type that this kind of model does not read.
    """
    expected, encode_all = ENCODERS[config.model.kind]
    chosen = [data[i] for i in rows]
    for example in chosen:
        if not isinstance(example, expected):
            found = f"the examples are of type {type(example).__name__}"
            raise ConfigError(f"'model.kind' is {config.model.kind}, but {found}", where=example.where)
    return encode_all(chosen, labels[rows], config)


def context_numbers(data: Sequence[Example], config: ModelConfig) -> np.ndarray | None:
    """Number of each example's context, -1 without one: int64 (N,); None for a model without contexts.

    Raises InputError for an example of a context that the settings don't name.
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


def _encode_sequences(data: Sequence[LabeledSequence], labels: np.ndarray, config: RunConfig) -> Examples:
    contexts, tokenizer = context_numbers(data, config.model), build_tokenizer(config.model)
    settings = config.data
    longest = settings.window + 2 * settings.flank
    sequences = [truncate(one.sequence, longest, settings.truncate) for one in data]
    return SequenceExamples(sequences, labels, tokenizer, settings.flank, contexts)


ENCODERS: Mapping[str, tuple[type, Callable[..., Examples]]] = {
    "sequence": (LabeledSequence, _encode_sequences),
    "backbone": (LabeledSequence, _encode_sequences),
    "alignment": (Alignment, AlignmentExamples),
}
"""Kind of model to the type of its examples and what makes batches of them."""
