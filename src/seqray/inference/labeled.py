"""Labeled records, and the context that records are like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from seqray.calibration.signature import KmerCounter, signature_of
from seqray.core.arrays import Floats
from seqray.core.errors import ConfigError
from seqray.core.records import Alignment, Example, LabeledSequence, SequenceRecord
from seqray.core.results import Prediction
from seqray.inference.sequences import PredictOptions, predict_batches
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import context_index

FIRST_LETTERS = 100_000  # about 1,200 windows of 81 letters; ten times what `Signature.compare` needs


def model_probabilities(
    model: TrainedModel,
    examples: Sequence[Example],
    *,
    on_batch: Callable[[Sequence[Prediction]], None] = lambda _: None,
    **settings: Any,
) -> Floats:
    """Score examples, each sequence in the context that the data name for it.

    Gives shape (N, K): Calibrated probabilities in the order of the examples.
    """
    options, probabilities = PredictOptions(**settings), np.empty((len(examples), len(model.card.classes)))
    alignments = [example for example in examples if isinstance(example, Alignment)]
    contexts = [None if alignments else known_context(model, example.context) for example in examples]
    files = {one.file for one in examples if isinstance(one, LabeledSequence)}
    source = files.pop() if len(files) == 1 else ""
    for name in dict.fromkeys(contexts):
        rows = [i for i, context in enumerate(contexts) if context == name]
        if alignments:
            from seqray.inference.alignments import predict_alignment_batches

            batches = predict_alignment_batches(model, alignments, options)
        else:
            reader = model if name is None else model.with_context(name)
            records = (SequenceRecord(examples[i].id, examples[i].sequence) for i in rows)
            batches = predict_batches(reader, records, options, source)
        done = 0
        for _, predictions in batches:
            part = rows[done : done + len(predictions)]
            probabilities[part] = [prediction.probabilities for prediction in predictions]
            done += len(predictions)
            on_batch(predictions)
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


def recognize_context(
    model: TrainedModel, records: Iterable[SequenceRecord]
) -> tuple[TrainedModel, Iterable[SequenceRecord]]:
    """Set the context of a model to that which the first records are of, if it knows one like them.

    The first records are held in memory: as many as have `FIRST_LETTERS` together, or all. If their words of
    four letters are as near to a context of the training data as pieces of its genome are, and clearly
    nearer than to any other (`seqray.calibration.signature.Signature.nearest_context`), all records are taken
    to be of it. A model that knows no contexts, or whose context is set, is returned as it is.
    """
    unset = model.context is None and model.card.model.contexts
    signature = signature_of(model.card) if unset else None
    if signature is None:
        return model, records
    rest, first, words, letters = iter(records), list[SequenceRecord](), KmerCounter(model.alphabet), 0
    for record in rest:
        first.append(record)
        words.add(record.sequence)
        letters += len(record)
        if letters >= FIRST_LETTERS:
            break
    context = known_context(model, signature.nearest_context(words.counts))
    first.reverse()
    taken = (first.pop() for _ in range(len(first)))  # each leaves memory as it is used up
    return model.with_context(context), chain(taken, rest)
