"""The context in which a model reads each record: of the data, of the command line, or recognized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seqray.cli.common import AUTO, NO_CONTEXT
from seqray.core import LabeledSequence, SequenceRecord

if TYPE_CHECKING:
    from seqray.cli.evaluate.arguments import MeasureOptions
    from seqray.modelfile import TrainedModel


def set_contexts(
    how: MeasureOptions, model: TrainedModel, examples: Sequence[LabeledSequence]
) -> tuple[list[LabeledSequence], list[str]]:
    """Give each record the context in which the model reads it.

    A model without contexts takes the records as they are. The second value holds notes for the reader.
    ConfigError is raised for a context that the model doesn't know.
    """
    if how.context not in (AUTO, NO_CONTEXT):
        name = model.with_context(how.context).context
        return _all_in(name, examples), [f"all records are read as {name} (--context)"]
    if not model.card.model.contexts:
        return list(examples), []
    if how.context == NO_CONTEXT:
        return _all_in(None, examples), ["the model knows contexts, but gets none (--context none)"]
    from seqray.inference import known_context, recognize_context

    unknown = sum(known_context(model, example.context) is None for example in examples)
    if unknown < len(examples):
        note = f"{unknown} records are of no context that the model knows"
        return list(examples), [note] if unknown else []
    name = recognize_context(model, (SequenceRecord(one.id, one.sequence) for one in examples))[0].context
    if name is None:
        return list(examples), ["the records are of no context that the model knows"]
    return _all_in(name, examples), [f"all records are read as {name}, which they are like (--context auto)"]


def _all_in(name: str | None, examples: Sequence[LabeledSequence]) -> list[LabeledSequence]:
    return [replace(example, context=name) for example in examples]
