"""Probabilities of labeled examples by a model, each sequence in the context that the data name for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqray.core import Alignment, ConfigError, Example, Floats, LabeledSequence, SequenceRecord
from seqray.core.results import Prediction
from seqray.inference.sequences import predict_records
from seqray.modelfile import TrainedModel
from seqray.models.tokenizers import context_index

Watch = Callable[[Iterable[Prediction]], Iterator[Prediction]]


def model_probabilities(
    model: TrainedModel,
    examples: Sequence[Example],
    *,
    watch: Watch = iter,
    **settings: Any,
) -> Floats:
    """Score examples: (N, K) calibrated probabilities in their order.

    Parameters
    ----------
    model
        Reads examples of this type.
    examples
        N sequences, or N alignments. Contexts that the model doesn't know are left out.
    watch
        Receives the predictions as they come, and yields them.
    **settings
        Fields of `seqray.inference.PredictOptions`.

    Raises
    ------
    InputError, ConfigError
        As `seqray.inference.predict_records`.
    """
    alignments = [example for example in examples if isinstance(example, Alignment)]
    if alignments:
        from seqray.inference.alignments import predict_alignments  # and torch

        answers = watch(predict_alignments(model, alignments, **settings))
        return np.array([prediction.probabilities for prediction in answers])
    probabilities = np.empty((len(examples), len(model.card.classes)))
    contexts = [known_context(model, example.context) for example in examples]
    files = {one.file for one in examples if isinstance(one, LabeledSequence)}
    source = files.pop() if len(files) == 1 else ""
    for name in dict.fromkeys(contexts):
        rows = [i for i, context in enumerate(contexts) if context == name]
        records = (SequenceRecord(examples[i].id, examples[i].sequence) for i in rows)
        reader = model if name is None else model.with_context(name)
        answers = watch(predict_records(reader, records, source=source, **settings))
        for i, prediction in zip(rows, answers, strict=True):
            probabilities[i] = prediction.probabilities
    return probabilities


def known_context(model: TrainedModel, context: str | None) -> str | None:
    """The model's name of a context; None if the model doesn't know it."""
    settings = model.card.model
    if context is None or not settings.contexts:
        return None
    try:
        return settings.contexts[context_index(settings, context)]
    except ConfigError:
        return None
