"""The context that records are read in: as the command line says, or as the records look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from seqray.cli.common.arguments import name_options
from seqray.cli.common.model import AUTO, ModelOptions

if TYPE_CHECKING:
    from seqray.core import SequenceRecord
    from seqray.inference import Origin
    from seqray.modelfile import TrainedModel


def recognize(
    options: ModelOptions, model: TrainedModel, records: Iterable[SequenceRecord]
) -> tuple[TrainedModel, Iterable[SequenceRecord]]:
    """Set the context that the first records are of, unless the command line says what they are.

    Parameters
    ----------
    options, model
        What was asked for, and the model as `open_model` opened it.
    records
        Read once; the second result yields all of them.
    """
    if options.context != AUTO or not model.card.model.contexts:
        return model, records
    from seqray.inference import recognize_context

    return recognize_context(model, records)


def context_fact(options: ModelOptions, model: TrainedModel) -> dict[str, str]:
    """The context that records are read in, for the header; nothing for a model without contexts."""
    if not model.card.model.contexts:
        return {}
    how = "recognized by the first records" if options.context == AUTO else "as asked"
    return {"context": f"{model.context}, {how}" if model.context else "none"}


def recognized(options: ModelOptions, model: TrainedModel) -> list[str]:
    """What to tell the user of a context that was recognized; nothing if none was."""
    if options.context != AUTO or not model.context:
        return []
    from seqray.inference import read_as

    return [name_options(read_as(model))]


def origin_of(options: ModelOptions, model: TrainedModel) -> Origin:
    """Watches where the records are from."""
    from seqray.inference import Origin

    return Origin(model, recognized=options.context == AUTO)
