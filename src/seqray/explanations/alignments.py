"""From alignments to explanations: `explain_alignments`, and `check_alignments` for whether to believe them.

What the model doesn't read (rows beyond its depth, columns without letters or beyond its width) has no score;
scores stand in the coordinates of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from seqray.core import Alignment, ConfigError, Floats, Ints
from seqray.core.msa import choose
from seqray.core.results import AlignmentExplanation, Faithfulness
from seqray.explanations.attribution import (
    CALLED,
    AlignmentKnobs,
    AlignmentQuestion,
    class_explained,
    find_alignment_method,
    occlude_columns,
    score_alignment,
    score_pairs,
)
from seqray.explanations.checks import RANDOM_RANKINGS, SHARES, Evidence, conclude, gather, random_ranks
from seqray.inference import called_labels, score_alignments
from seqray.modelfile import Network, TrainedModel
from seqray.models import AxialTransformer, build_network
from seqray.models.tokenizers import AlignmentTokenizer

REFERENCE = "occlusion"
_WRONG_WEIGHTS_SEED = 20_261_121


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentOptions:
    """What is explained, and how.

    Attributes
    ----------
    methods
        Names, see `seqray.explanations.attribution.alignment_methods.ALIGNMENT_METHODS`.
    target
        The class explained; ``called`` for the one that each alignment is called; the positive one if None.
    rows
        Most rows to read, the query counted, where fewer are wanted than the model reads.
    pairs
        Whether to score pairs of columns.
    seed
        Of the bootstrap.
    knobs
        Settings of single methods.
    """

    methods: tuple[str, ...] = ("rollout",)
    target: str | None = None
    rows: int | None = None
    pairs: bool = False
    seed: int = 0
    knobs: AlignmentKnobs = field(default_factory=AlignmentKnobs)

    def __post_init__(self) -> None:
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise ConfigError("name one method or more, each once")
        for method in self.methods:
            find_alignment_method(method)
        if self.rows is not None and self.rows < 1:
            raise ConfigError(f"rows are {self.rows}", remedy="give 1 or more")


def explain_alignments(
    model: TrainedModel, alignments: Iterable[Alignment], options: AlignmentOptions | None = None
) -> Iterator[AlignmentExplanation]:
    """Explain each alignment by itself, in order.

    Parameters
    ----------
    model
        Of kind ``alignment``.
    alignments
        Of any depth and width.
    options
        What is explained, and how.

    Returns
    -------
    iterator of AlignmentExplanation
        One for each alignment; the mean over the members of the model.

    Raises
    ------
    ConfigError
        For a model of sequences, or a class that the model doesn't have.
    InputError
        For an alignment whose rows that are read have no letters.
    """
    chosen = options or AlignmentOptions()
    _members(model)
    class_explained(model, chosen.target, model.card.positive)
    return (_explain(model, number, one, chosen) for number, one in enumerate(alignments))


def _explain(
    model: TrainedModel, number: int, alignment: Alignment, options: AlignmentOptions
) -> AlignmentExplanation:
    item = _read(model, alignment, options)
    questions = item.questions(model, _members(model))
    return AlignmentExplanation(
        record=number,
        alignment=alignment,
        label=item.label,
        target=model.card.classes[item.target],
        probabilities=tuple(item.probabilities.tolist()),
        probability=float(item.probabilities[item.target]),
        rows=item.rows,
        columns=item.columns,
        scores=tuple(score_alignment(questions, method, options.knobs) for method in options.methods),
        pairs=score_pairs(questions) if options.pairs else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """An alignment on its way: what is read of it, its call and the class explained."""

    alignment: Alignment
    rows: Ints
    columns: Ints
    label: str
    target: int
    probabilities: Floats

    def questions(self, model: TrainedModel, networks: Iterable[AxialTransformer]) -> list[AlignmentQuestion]:
        codes = self.alignment.codes[np.ix_(self.rows, self.columns)]
        tokens = AlignmentTokenizer(model.alphabet).encode(codes)
        return [AlignmentQuestion(model, network, self.target, tokens) for network in networks]


def _read(model: TrainedModel, alignment: Alignment, options: AlignmentOptions) -> _Item:
    """Choose what is read, and classify it."""
    config = model.card.model
    depth = config.max_rows if options.rows is None else min(options.rows, config.max_rows)
    rows, columns = choose(alignment, depth, model.card.window, config.row_choice)
    probabilities = score_alignments(model, [alignment], options.rows)
    [label] = called_labels(probabilities, model.card, model.card.threshold)
    target = class_explained(model, options.target, label)
    return _Item(alignment, rows, columns, label, target, probabilities[0])


def _members(model: TrainedModel) -> list[AxialTransformer]:
    members = [_axial(network) for network in model.networks]
    if None in members:
        raise ConfigError(f"model '{model.card.name}' reads sequences, not alignments")
    return [one for one in members if one is not None]


def _axial(network: Network) -> AxialTransformer | None:
    return network if isinstance(network, AxialTransformer) else None


def check_alignments(
    model: TrainedModel, alignments: Iterable[Alignment], options: AlignmentOptions | None = None
) -> Faithfulness:
    """Measure whether the rankings of columns are worth believing, for this model and these alignments.

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
    evidence = Evidence()
    wrong = _wrong_network(model)
    for alignment in alignments:
        item = _read(model, alignment, chosen)
        _measure(evidence, model, item, wrong, chosen)
    name = "the called class" if chosen.target == CALLED else (chosen.target or model.card.positive)
    return conclude(evidence, REFERENCE, name, chosen.seed, deed="hiding the columns")


def _measure(
    evidence: Evidence,
    model: TrainedModel,
    item: _Item,
    wrong: AxialTransformer,
    options: AlignmentOptions,
) -> None:
    questions, [chance] = item.questions(model, _members(model)), item.questions(model, [wrong])
    methods = dict.fromkeys([*options.methods, REFERENCE])

    def scores(question: AlignmentQuestion, method: str) -> Floats:
        if method == REFERENCE:  # without its rows, which cost as much and aren't checked
            return occlude_columns(question, options.knobs.block)
        return score_alignment([question], method, options.knobs).columns

    codes = item.alignment.codes[np.ix_(item.rows, item.columns)]
    gather(
        evidence,
        {method: np.stack([scores(q, method)[None] for q in questions]) for method in methods},
        {method: scores(chance, method)[None] for method in options.methods},
        lambda ranks: hiding_curves(questions, ranks[0]),
        [random_ranks(codes[None], draw) for draw in range(RANDOM_RANKINGS)],
    )


def hiding_curves(questions: list[AlignmentQuestion], ranks: Ints) -> dict[str, Floats]:
    """Log-odds while columns are hidden, and while they are shown, in the order of their ranks (C,).

    Returns
    -------
    dict
        ``deletion`` and ``insertion``, (1, S) each, at `seqray.explanations.checks.SHARES`; the mean
        over the questions.
    """
    first = ranks < np.round(SHARES * len(ranks))[:, None]  # (S, C)
    changed = {"deletion": first, "insertion": ~first}
    return {
        kind: np.mean([question.of_hidden(hidden) for question in questions], axis=0)[None]
        for kind, hidden in changed.items()
    }


def _wrong_network(model: TrainedModel) -> AxialTransformer:
    """A network of the model's shape with random weights."""
    _members(model)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_WRONG_WEIGHTS_SEED)  # a GPU's generator is left alone
        network = build_network(model.card.model).to(model.device)
    network.requires_grad_(False).eval()
    assert isinstance(network, AxialTransformer)
    return network
