"""From alignments to explanations, in coordinates of the file; what the model does not read has no score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.explanation import AlignmentExplanation, Faithfulness
from seqray.core.records import Alignment
from seqray.explanations.checks import MIN_RECORDS, SHARES, Evidence, conclude
from seqray.explanations.methods import method_cautions, occlude_columns, score_alignment
from seqray.explanations.options import COLUMN_BLOCK, AlignmentOptions
from seqray.explanations.targets import AlignmentTarget, class_explained, randomized_network, wanted_class
from seqray.inference.alignments import alignment_networks, cells_read, depth_read, score_alignments
from seqray.inference.sequences import called_labels
from seqray.io.alignments import from_biopython
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.models.tokenizers import AlignmentTokenizer

REFERENCE = "occlusion"


def explain_alignments(
    model: TrainedModel, alignments: Iterable[Any], options: AlignmentOptions | None = None
) -> Iterator[AlignmentExplanation]:
    """Explain each alignment, of seqray or Biopython, by itself, in order: the mean over the members."""
    chosen = options or AlignmentOptions()
    alignment_networks(model)
    class_explained(model, chosen.target, model.card.positive)
    depth_read(model, chosen.rows)
    return (_explain(model, number, one, chosen) for number, one in enumerate(alignments))


def _explain(
    model: TrainedModel, number: int, alignment: Any, options: AlignmentOptions
) -> AlignmentExplanation:
    read = _read(model, number, alignment, options)
    targets = read.targets(model, alignment_networks(model))
    return AlignmentExplanation(
        record=number,
        alignment=read.alignment,
        label=read.label,
        target=model.card.classes[read.target],
        probabilities=tuple(read.probabilities.tolist()),
        probability=float(read.probabilities[read.target]),
        rows=read.rows,
        columns=read.columns,
        scores=tuple(score_alignment(targets, method, options.settings) for method in options.methods),
    )


class _Read(NamedTuple):
    """What is read of an alignment, its call, and the class explained."""

    alignment: Alignment
    rows: Ints
    columns: Ints
    codes: Codes
    label: str
    target: int
    probabilities: Floats

    def targets(self, model: TrainedModel, networks: Iterable[AxialTransformer]) -> list[AlignmentTarget]:
        tokens = AlignmentTokenizer(model.alphabet).encode(self.codes)
        return [AlignmentTarget(model, network, self.target, tokens) for network in networks]


def _read(model: TrainedModel, number: int, alignment: Any, options: AlignmentOptions) -> _Read:
    """Choose what is read, and classify it; alignments of Biopython have an accession or a number."""
    if not isinstance(alignment, Alignment):
        alignment = from_biopython(alignment, f"alignment_{number + 1}", model.alphabet)
    rows, columns = cells_read(model, alignment, options.rows)
    [probabilities] = score_alignments(model, [alignment], [(rows, columns)])
    [label] = called_labels(probabilities[None], model.card, model.card.threshold)
    target = class_explained(model, options.target, label)
    codes = alignment.codes[np.ix_(rows, columns)]
    return _Read(alignment, rows, columns, codes, label, target, probabilities)


def check_alignments(
    model: TrainedModel,
    alignments: Iterable[Any],
    options: AlignmentOptions | None = None,
    *,
    note: Callable[[str], None] = warnings.warn,
) -> Faithfulness:
    """Measure how reliable rankings of columns are: hidden in order of their ranks, and shown again.

    ``note`` gets what of the model the methods can't show.
    """
    chosen = options or AlignmentOptions()
    for caution in method_cautions(model, chosen.methods):
        note(caution)
    methods, networks = dict.fromkeys([*chosen.methods, REFERENCE]), alignment_networks(model)
    rest, random_weights = iter(alignments), randomized_network(model)
    first = list(islice(rest, MIN_RECORDS))
    evidence = Evidence(len(first))
    assert isinstance(random_weights, AxialTransformer)

    def scores(target: AlignmentTarget, method: str) -> Floats:
        if method == REFERENCE:  # without its rows, which cost as much and aren't checked
            return occlude_columns(target, chosen.settings.block or COLUMN_BLOCK)[None]
        return score_alignment([target], method, chosen.settings).columns[None]

    for number, alignment in enumerate(chain(first, rest)):
        read = _read(model, number, alignment, chosen)
        targets, [chance] = (read.targets(model, n) for n in (networks, [random_weights]))
        evidence.add(
            read.codes[None],
            {method: np.stack([scores(target, method) for target in targets]) for method in methods},
            {method: scores(chance, method) for method in chosen.methods},
            partial(hiding_curves, targets),
        )
    name = wanted_class(model.card, chosen.target)
    return conclude(evidence, REFERENCE, name, chosen.seed, deed="hiding the columns")


def hiding_curves(targets: list[AlignmentTarget], ranks: Ints) -> dict[str, Floats]:
    """Log-odds (1, S) while columns are hidden, and while they are shown, in order of their ranks (1, C)."""
    first = ranks < np.round(SHARES * ranks.shape[1])[:, None]  # (S, C)
    changed = (("deletion", first), ("insertion", ~first))
    return {kind: np.mean([t.of_hidden(cells) for t in targets], axis=0)[None] for kind, cells in changed}
