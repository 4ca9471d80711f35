"""Labeled records, and the context that records are like."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from seqray.calibration.domain import signature_of
from seqray.calibration.signature import KmerCounter
from seqray.core.arrays import Floats
from seqray.core.errors import ConfigError
from seqray.core.records import Alignment, Example, LabeledSequence, SequenceRecord
from seqray.core.results import Prediction
from seqray.inference.sequences import predict_records
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import context_index

# --- Probabilities of labeled examples by a model, each sequence in the context that the data name for it

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
        from seqray.inference.alignments import predict_alignments

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


# --- Recognize the context of sequences, such as their species, by the first of them

FIRST_LETTERS = 100_000  # about 1,200 windows of 81 letters; ten times what `Signature.compare` needs


def recognize_context(
    model: TrainedModel, records: Iterable[SequenceRecord]
) -> tuple[TrainedModel, Iterable[SequenceRecord]]:
    """Set the context of a model to that which the first records are of, if it knows one like them.

    The first records are held in memory: as many as have `FIRST_LETTERS` together, or all. If their words of
    four letters are as near to a context of the training data as pieces of its genome are, and clearly
    nearer than to any other (`seqray.calibration.Signature.nearest_context`), all records are taken to be of
    it.

    Parameters
    ----------
    model
        Returned as it is if it knows no contexts, or if its context is set.
    records
        Read once.

    Returns
    -------
    TrainedModel
        The model, with the context if one was recognized.
    iterable of SequenceRecord
        All records, the first ones included.
    """
    known = model.context is None and model.card.model.contexts
    signature = signature_of(model.card) if known else None
    if signature is None:
        return model, records
    rest, first, words = iter(records), deque[SequenceRecord](), KmerCounter(model.alphabet)
    letters = 0
    for record in rest:
        first.append(record)
        words.add(record.sequence)
        letters += len(record)
        if letters >= FIRST_LETTERS:
            break
    context = known_context(model, signature.nearest_context(words.counts, clear=True))
    return model.with_context(context), chain(_taken(first), rest)


def _taken(first: deque[SequenceRecord]) -> Iterator[SequenceRecord]:
    """The records, each of which leaves memory as it is used up."""
    while first:
        yield first.popleft()
