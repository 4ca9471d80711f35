"""Recognize the context of sequences, such as their species, by the first of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from seqray.calibration import KmerCounter, signature_of
from seqray.core import SequenceRecord
from seqray.inference.labeled import known_context
from seqray.modelfile import TrainedModel

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
