"""From calls of a locator to explanations: `explain_calls`, and `check_calls` for their reliability.

A call is explained by the stretch around its site, one call at a time: letters change, its genes do not. What
letters and genes add in comparison is measured by `input_shares`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from seqray.core import SequenceRecord, logistic
from seqray.core.results import Explanation, Faithfulness, InputShares
from seqray.explanations.attribution import (
    LocatorTarget,
    class_explained,
    ensemble_score,
    input_effects,
    shuffled_copies,
)
from seqray.explanations.checks import Evidence, conclude
from seqray.explanations.groups import Group, Item, explain_group, measure_group, reference_method
from seqray.explanations.options import SHUFFLES, ExplainOptions
from seqray.explanations.random_control import randomized_network, target_name
from seqray.explanations.stretches import Stretch
from seqray.modelfile import TrainedModel
from seqray.models import LocatorTransformer

_SHUFFLE_KEY = 103  # of the shuffled copies, apart from those of the other checks


def explain_calls(
    model: TrainedModel, stretches: Iterable[Stretch], options: ExplainOptions | None = None
) -> Iterator[Explanation]:
    """Explain the score of each call, in order.

    Parameters
    ----------
    model
        A locator.
    stretches
        Of `cut_stretches`.
    options
        What is explained, and how.

    Returns
    -------
    iterator of Explanation
        As in `explain_records`; scores are those of the letters of the stretch.

    Raises
    ------
    ConfigError
        For a model that is no locator, or a class that it doesn't have.
    """
    chosen = options or ExplainOptions()
    class_explained(model, chosen.target, model.card.positive)
    groups = (_group(model, number, one, chosen) for number, one in enumerate(stretches))
    return (explanation for group in groups for explanation in explain_group(group, chosen))


def check_calls(
    model: TrainedModel, stretches: Iterable[Stretch], options: ExplainOptions | None = None
) -> Faithfulness:
    """Measure how reliable the rankings of the methods are, for this model and these calls.

    Parameters
    ----------
    model, options
        As for `explain_calls`.
    stretches
        All are used; each takes some hundred answers of the model for each method.
    """
    chosen = options or ExplainOptions()
    evidence, random_weights = Evidence(), randomized_network(model)
    assert isinstance(random_weights, LocatorTransformer)
    reference = reference_method(2 * model.locators[0].radius + 1, model.alphabet)
    for number, one in enumerate(stretches):
        group = _group(model, number, one, chosen)
        chance = LocatorTarget(model, random_weights, group.items[0].target, one.tracks, one.phase)
        measure_group(evidence, group, chance, reference, chosen)
    return conclude(evidence, reference, target_name(model, chosen.target), chosen.seed)


def input_shares(
    model: TrainedModel, number: int, stretch: Stretch, options: ExplainOptions | None = None
) -> InputShares:
    """What the letters and the genes around a call add to its score.

    Parameters
    ----------
    model, options
        As for `explain_calls`.
    number
        Of the record.
    stretch
        The stretch around the call.
    """
    chosen = options or ExplainOptions()
    group = _group(model, number, stretch, chosen)
    targets, [item] = _targets(model, stretch, group.items[0].target), group.items
    effects = [input_effects(target, stretch.codes) for target in targets]
    by_letter, by_track = (np.mean(found, axis=0) for found in zip(*effects, strict=True))
    letters, tracks = np.abs(by_letter).sum(), np.abs(by_track).sum()
    [score] = ensemble_score(targets, stretch.codes[None])
    hidden = [LocatorTarget(model, one.network, one.target, None, stretch.phase) for one in targets]
    copies = shuffled_copies(stretch.codes, chosen.shuffles or SHUFFLES, _SHUFFLE_KEY, chosen.seed)
    return InputShares(
        record=number,
        id=stretch.id,
        place=stretch.place,
        target=targets[0].class_name,
        probability=item.probability,
        score=float(score),
        letters=float(letters / (letters + tracks)) if letters + tracks > 0 else 1.0,
        without_genes=float(ensemble_score(hidden, stretch.codes[None])[0] - score),
        shuffled=float(ensemble_score(targets, copies).mean() - score),
        tracks=dict(zip(model.card.model.tracks, by_track.sum(axis=1).tolist(), strict=True)),
    )


def _group(model: TrainedModel, number: int, stretch: Stretch, options: ExplainOptions) -> Group:
    """A group of one: no two calls have the same genes."""
    target = class_explained(model, options.target, stretch.label)
    targets = _targets(model, stretch, target)
    probability = float(logistic(ensemble_score(targets, stretch.codes[None]))[0])
    record = SequenceRecord(stretch.id, model.alphabet.decode(stretch.codes))
    every = np.arange(len(record))
    item = Item(number, record, stretch.codes, every, stretch.label, target, probability, stretch.place)
    return Group([item], targets)


def _targets(model: TrainedModel, stretch: Stretch, target: int) -> list[LocatorTarget]:
    return [LocatorTarget(model, net, target, stretch.tracks, stretch.phase) for net in model.locators]
