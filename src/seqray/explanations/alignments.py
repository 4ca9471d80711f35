"""From alignments to explanations: `explain_alignments`, and `check_alignments` for their reliability.

What the model doesn't read (rows beyond its depth, columns without letters or beyond its width) has no score;
scores stand in the coordinates of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import Floats, Ints
from seqray.core.explanation import AlignmentExplanation, Faithfulness
from seqray.core.records import Alignment
from seqray.explanations.checks import SHARES, Evidence, conclude
from seqray.explanations.methods import score_alignment
from seqray.explanations.options import COLUMN_BLOCK, AlignmentOptions
from seqray.explanations.targets import (
    AlignmentTarget,
    class_explained,
    occlude_columns,
    randomized_network,
    target_name,
)
from seqray.inference.alignments import alignment_networks, cells_read, depth_read, score_alignments
from seqray.inference.predictions import called_labels
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.models.tokenizers import AlignmentTokenizer

REFERENCE = "occlusion"


def explain_alignments(
    model: TrainedModel, alignments: Iterable[Alignment], options: AlignmentOptions | None = None
) -> Iterator[AlignmentExplanation]:
    """Explain each alignment by itself, in order.

    Parameters
    ----------
    model, alignments
        As for `seqray.inference.predict_alignments`.
    options
        What is explained, and how.

    Returns
    -------
    iterator of AlignmentExplanation
        One for each alignment; the mean over the members of the model.

    Raises
    ------
    ConfigError
        For a model of sequences, a class that the model doesn't have, or more rows than it reads.
    InputError
        For an alignment whose rows that are read have no letters.
    """
    chosen = options or AlignmentOptions()
    alignment_networks(model)
    class_explained(model, chosen.target, model.card.positive)
    depth_read(model, chosen.rows)
    return (_explain(model, number, one, chosen) for number, one in enumerate(alignments))


def _explain(
    model: TrainedModel, number: int, alignment: Alignment, options: AlignmentOptions
) -> AlignmentExplanation:
    item = _read(model, alignment, options)
    targets = item.targets(model, alignment_networks(model))
    return AlignmentExplanation(
        record=number,
        alignment=alignment,
        label=item.label,
        target=model.card.classes[item.target],
        probabilities=tuple(item.probabilities.tolist()),
        probability=float(item.probabilities[item.target]),
        rows=item.rows,
        columns=item.columns,
        scores=tuple(score_alignment(targets, method, options.settings) for method in options.methods),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """An alignment to explain: what is read of it, its call and the class explained."""

    alignment: Alignment
    rows: Ints
    columns: Ints
    label: str
    target: int
    probabilities: Floats

    def targets(self, model: TrainedModel, networks: Iterable[AxialTransformer]) -> list[AlignmentTarget]:
        codes = self.alignment.codes[np.ix_(self.rows, self.columns)]
        tokens = AlignmentTokenizer(model.alphabet).encode(codes)
        return [AlignmentTarget(model, network, self.target, tokens) for network in networks]


def _read(model: TrainedModel, alignment: Alignment, options: AlignmentOptions) -> _Item:
    """Choose what is read, and classify it."""
    rows, columns = cells_read(model, alignment, options.rows)
    probabilities = score_alignments(model, [alignment], options.rows)
    [label] = called_labels(probabilities, model.card, model.card.threshold)
    target = class_explained(model, options.target, label)
    return _Item(alignment, rows, columns, label, target, probabilities[0])


def check_alignments(
    model: TrainedModel, alignments: Iterable[Alignment], options: AlignmentOptions | None = None
) -> Faithfulness:
    """Measure how reliable the rankings of columns are, for this model and these alignments.

    Columns are hidden in the order of their ranks (deletion), and shown again in that order from an alignment
    with all of them hidden (insertion), beside random orders and beside that of occlusion.

    Parameters
    ----------
    model, options
        As for `explain_alignments`.
    alignments
        All are used; each takes an answer of the model for each column, and some dozen for each method.
    """
    chosen = options or AlignmentOptions()
    alignment_networks(model)
    evidence = Evidence()
    random_weights = randomized_network(model)
    assert isinstance(random_weights, AxialTransformer)
    for alignment in alignments:
        item = _read(model, alignment, chosen)
        _measure(evidence, model, item, random_weights, chosen)
    name = target_name(model, chosen.target)
    return conclude(evidence, REFERENCE, name, chosen.seed, deed="hiding the columns")


def _measure(
    evidence: Evidence,
    model: TrainedModel,
    item: _Item,
    random_weights: AxialTransformer,
    options: AlignmentOptions,
) -> None:
    targets, [chance] = (
        item.targets(model, alignment_networks(model)),
        item.targets(model, [random_weights]),
    )
    methods = dict.fromkeys([*options.methods, REFERENCE])

    def scores(target: AlignmentTarget, method: str) -> Floats:
        if method == REFERENCE:  # without its rows, which cost as much and aren't checked
            return occlude_columns(target, options.settings.block or COLUMN_BLOCK)
        return score_alignment([target], method, options.settings).columns

    codes = item.alignment.codes[np.ix_(item.rows, item.columns)]
    evidence.add(
        codes[None],
        {method: np.stack([scores(target, method)[None] for target in targets]) for method in methods},
        {method: scores(chance, method)[None] for method in options.methods},
        lambda ranks: hiding_curves(targets, ranks[0]),
    )


def hiding_curves(targets: list[AlignmentTarget], ranks: Ints) -> dict[str, Floats]:
    """Log-odds while columns are hidden, and while they are shown, in the order of their ranks (C,).

    ``deletion`` and ``insertion`` are (1, S), at `seqray.explanations.checks.SHARES`; the mean over the
    targets.
    """
    first = ranks < np.round(SHARES * len(ranks))[:, None]  # (S, C)
    changed = {"deletion": first, "insertion": ~first}
    return {
        kind: np.mean([target.of_hidden(hidden) for target in targets], axis=0)[None]
        for kind, hidden in changed.items()
    }
