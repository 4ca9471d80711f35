"""From records to explanations: `explain_records`, and `check` for their reliability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from seqray.core import Codes, Floats, SequenceRecord
from seqray.core.results import Explanation, Faithfulness, HeadFigures, Place
from seqray.explanations.attribution import (
    METHODS,
    check_methods,
    class_explained,
    cls_attention,
    ensemble_score,
    head_figures,
    member_effects,
    member_scores,
)
from seqray.explanations.checks import Evidence, conclude, curves, p_values, q_values
from seqray.explanations.options import ExplainOptions
from seqray.explanations.targets import randomized_network, target_name
from seqray.inference import called_labels, checked_records, score_codes
from seqray.modelfile import SequenceNetwork, TrainedModel

CHUNK_RECORDS = 128
MAX_MUTATED = 500  # letters; every substitution of a longer record would cost too much to be a reference


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """A record to explain: its number, codes, call and the class explained."""

    number: int
    record: SequenceRecord
    codes: Codes
    label: str
    target: int
    probability: float


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
        For a record longer than the window or too short for one token.
    """
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
        items = _read(model, chunk, options)
        explained: dict[int, list[Explanation]] = {}
        for group in _of_one_kind(items):
            for explanation in _explain_group(model, group, options, places):
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
    reference = reference_method(max((len(item.codes) for item in items), default=0))
    evidence = Evidence()
    random_weights = randomized_network(model)
    assert isinstance(random_weights, SequenceNetwork)
    for group in _of_one_kind(items):
        codes, target = np.stack([item.codes for item in group]), group[0].target
        methods = dict.fromkeys([*chosen.methods, reference])
        by_member = {m: member_scores(model, codes, target, m, chosen.settings) for m in methods}
        by_chance = {
            m: member_scores(model, codes, target, m, chosen.settings, [random_weights])[0] for m in methods
        }

        def score(changed: Codes, target: int = target) -> Floats:
            return ensemble_score(model, changed, target)

        evidence.add(codes, by_member, by_chance, lambda ranks, c=codes, s=score: curves(c, ranks, s))
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
    groups = [(np.stack([i.codes for i in group]), group[0].target) for group in _of_one_kind(items)]
    return head_figures(model, groups)


def reference_method(letters: int) -> str:
    """The method that others are compared with: mutagenesis up to 500 letters, else occlusion."""
    return "ism" if letters <= MAX_MUTATED else "occlusion"


def _read(
    model: TrainedModel, chunk: Sequence[tuple[int, SequenceRecord]], options: ExplainOptions
) -> list[_Item]:
    """Encode and classify records."""
    items: dict[int, _Item] = {}
    encoded = [model.alphabet.encode(record.sequence) for _, record in chunk]
    for length in sorted({len(codes) for codes in encoded}):
        rows = [i for i, codes in enumerate(encoded) if len(codes) == length]
        probabilities = score_codes(model, np.stack([encoded[i] for i in rows]))
        labels = called_labels(probabilities, model.card, model.card.threshold)
        for i, label, row in zip(rows, labels, probabilities, strict=True):
            target = class_explained(model, options.target, label)
            number, record = chunk[i]
            items[i] = _Item(number, record, encoded[i], label, target, float(row[target]))
    return [items[i] for i in range(len(chunk))]


def _of_one_kind(items: Sequence[_Item]) -> list[list[_Item]]:
    """Group by length and class explained."""
    groups: dict[tuple[int, int], list[_Item]] = {}
    for item in items:
        groups.setdefault((len(item.codes), item.target), []).append(item)
    return list(groups.values())


def _explain_group(
    model: TrainedModel, group: Sequence[_Item], options: ExplainOptions, places: Sequence[Place] | None
) -> Iterator[Explanation]:
    """Explain records of one length and class."""
    codes, target = np.stack([item.codes for item in group]), group[0].target
    wanted = "ism" in options.methods or (options.effects and codes.shape[1] <= MAX_MUTATED)
    known = member_effects(model, codes, target) if wanted else None
    scores = {
        m: member_scores(model, codes, target, m, options.settings, known_effects=known)
        for m in options.methods
    }
    tests = {m: _tests(model, codes, target, m, scores[m].mean(axis=0), options) for m in options.methods}
    attention = cls_attention(model, codes) if options.attention else None
    means = {m: scores[m].mean(axis=0) for m in options.methods}
    mean_effects = None if known is None else known.mean(axis=0)
    for row, item in enumerate(group):
        for method in options.methods:
            p, q = tests[method]
            common = Explanation(
                record=item.number,
                id=item.record.id,
                sequence=item.record.sequence,
                label=item.label,
                target=model.card.classes[target],
                probability=item.probability,
                method=method,
                member="mean",
                signed=METHODS[method].signed,
                scores=means[method][row].copy(),  # a view would keep the whole group in memory
                effects=None if mean_effects is None else mean_effects[row].copy(),
                p=None if p is None else p[row],
                q=None if q is None else q[row],
                attention=None if attention is None else attention[row].copy(),
                place=None if places is None else places[item.number],
            )
            yield common
            if options.members == "each":
                yield from _by_member(
                    common, scores[method][:, row], None if known is None else known[:, row]
                )


def _by_member(common: Explanation, scores: Floats, effects: Floats | None) -> Iterator[Explanation]:
    for number, one in enumerate(scores, start=1):
        own = None if effects is None else effects[number - 1]
        yield replace(common, member=str(number), scores=one, effects=own, p=None, q=None)


def _tests(
    model: TrainedModel, codes: Codes, target: int, method: str, scores: Floats, options: ExplainOptions
) -> tuple[Floats | None, Floats | None]:
    """p- and q-values (N, n), if requested."""
    if options.shuffles == 0:
        return None, None
    p = p_values(
        codes,
        scores,
        lambda shuffled: member_scores(model, shuffled, target, method, options.settings).mean(axis=0),
        options.shuffles,
        options.seed,
    )
    return p, q_values(p)
