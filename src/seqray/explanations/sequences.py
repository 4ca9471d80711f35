"""From records to explanations: `explain_records`, and `check` for their reliability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from seqray.core.errors import require_type
from seqray.core.explanation import Explanation, Faithfulness, HeadFigures, Place
from seqray.core.records import SequenceRecord
from seqray.core.text import kept_parts
from seqray.explanations.checks import Evidence, conclude
from seqray.explanations.groups import Group, Item, explain_group, measure_group, reference_method
from seqray.explanations.heads import head_figures
from seqray.explanations.methods import check_methods
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequence_scores import letter_attention
from seqray.explanations.targets import class_explained, randomized_network, sequence_targets, target_name
from seqray.inference.predictions import called_labels
from seqray.inference.sequences import checked_records, score_codes
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import SequenceNetwork

CHUNK_RECORDS = 128


def explain_records(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    options: ExplainOptions | None = None,
    *,
    places: Sequence[Place] | None = None,
    source: str = "",
) -> Iterator[Explanation]:
    """Explain each record, in order, reading some at a time.

    Parameters
    ----------
    model, records, source
        As for `seqray.inference.predict_records`.
    options
        What is explained, and how.
    places
        Where each record lies in a longer sequence.

    Returns
    -------
    iterator of Explanation
        For each record one per method, and after it one per member where ``options.members`` is ``each``.

    Raises
    ------
    ConfigError
        For a class that the model doesn't have, or a method that it doesn't support.
    InputError
        For a record too short for one token, or longer than the window if the card has no rule to cut it.
    """
    require_type(model, TrainedModel, "load it by seqray.load_model")
    chosen = options or ExplainOptions()
    class_explained(model, chosen.target, model.card.positive)
    check_methods(model, chosen.methods)
    return _explain_numbered(model, enumerate(checked_records(records, model, source)), chosen, places)


def _explain_numbered(
    model: TrainedModel,
    numbered: Iterator[tuple[int, SequenceRecord]],
    options: ExplainOptions,
    places: Sequence[Place] | None,
) -> Iterator[Explanation]:
    while chunk := list(islice(numbered, CHUNK_RECORDS)):
        items = _read(model, chunk, options, places)
        explained: dict[int, list[Explanation]] = {}
        for group in _groups(model, items, attention=options.attention):
            for explanation in explain_group(group, options):
                explained.setdefault(explanation.record, []).append(explanation)
        for item in items:
            yield from explained[item.number]


def check(
    model: TrainedModel, records: Iterable[SequenceRecord], options: ExplainOptions | None = None
) -> Faithfulness:
    """Measure how reliable the rankings of the methods are, for this model and these records.

    Parameters
    ----------
    model, options
        As for `explain_records`.
    records
        As for `explain_records`; all are used, and some hundred are plenty.
    """
    chosen = options or ExplainOptions()
    items = _read(model, list(enumerate(checked_records(records, model, ""))), chosen)
    reference = reference_method(max((len(item.codes) for item in items), default=0), model.alphabet)
    evidence, random_weights = Evidence(), randomized_network(model)
    assert isinstance(random_weights, SequenceNetwork)
    for group in _groups(model, items):
        [chance] = sequence_targets(model, group.items[0].target, [random_weights])
        measure_group(evidence, group, chance, reference, chosen)
    return conclude(evidence, reference, target_name(model, chosen.target), chosen.seed)


def heads(
    model: TrainedModel, records: Iterable[SequenceRecord], options: ExplainOptions | None = None
) -> tuple[HeadFigures, ...]:
    """Describe the attention heads of all members by their means over the records.

    Parameters
    ----------
    model
        A model of sequences.
    records
        Records to explain; each is read once.
    options
        Class explained; the defaults if None.
    """
    chosen = options or ExplainOptions()
    items = _read(model, list(enumerate(checked_records(records, model, ""))), chosen)
    return head_figures(model, [(group.codes, group.items[0].target) for group in _groups(model, items)])


def _read(
    model: TrainedModel,
    chunk: Sequence[tuple[int, SequenceRecord]],
    options: ExplainOptions,
    places: Sequence[Place] | None = None,
) -> list[Item]:
    """Encode and classify records."""
    items: dict[int, Item] = {}
    encoded = [model.read_codes(record.sequence, f"record '{record.id}'") for _, record in chunk]
    for length in sorted({len(codes) for codes in encoded}):
        rows = [i for i, codes in enumerate(encoded) if len(codes) == length]
        probabilities = score_codes(model, np.stack([encoded[i] for i in rows]))
        labels = called_labels(probabilities, model.card, model.card.threshold)
        for i, label, row in zip(rows, labels, probabilities, strict=True):
            target = class_explained(model, options.target, label)
            number, record = chunk[i]
            place = None if places is None else places[number]
            parts = kept_parts(len(record), model.card.window, model.card.truncate)
            kept = np.concatenate([np.arange(len(record))[part] for part in parts])
            items[i] = Item(number, record, encoded[i], kept, label, target, float(row[target]), place)
    return [items[i] for i in range(len(chunk))]


def _groups(model: TrainedModel, items: Sequence[Item], *, attention: bool = False) -> Iterator[Group]:
    """Group by length and class explained."""
    groups: dict[tuple[int, int], list[Item]] = {}
    for item in items:
        groups.setdefault((len(item.codes), item.target), []).append(item)
    for (_, target), group in groups.items():
        weights = letter_attention(model, np.stack([i.codes for i in group])) if attention else None
        yield Group(group, sequence_targets(model, target), weights)
