"""From records to explanations: `explain_records`, `check` for their reliability, and `heads`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.errors import ConfigError, require_type
from seqray.core.explanation import Explanation, Faithfulness, HeadFigures, Place
from seqray.core.host import as_guest
from seqray.core.records import SequenceRecord
from seqray.core.text import kept_parts
from seqray.explanations.checks import MIN_RECORDS, Evidence, conclude, curves, p_values, q_values
from seqray.explanations.methods import METHODS, member_effects, member_scores, method_cautions
from seqray.explanations.options import ExplainOptions
from seqray.explanations.targets import (
    LetterTarget,
    SequenceTarget,
    class_explained,
    ensemble_score,
    randomized_network,
    sequence_targets,
    wanted_class,
)
from seqray.explanations.trace import SequenceLayer, trace, twin
from seqray.inference.sequences import called_labels, checked_records, score_codes
from seqray.modelfile.model import TrainedModel
from seqray.models.attention import MultiHeadAttention
from seqray.models.sequence import SequenceNetwork, SequenceTransformer

CHUNK_RECORDS = 128
MAX_MUTATED = 500  # letters; every substitution of a longer record would cost too much to be a reference
MAX_SUBSTITUTIONS = 4_000  # of a record, so of 210 residues, each of which has 19


@as_guest
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
        As for `seqray.predict_records`.
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
    numbered = enumerate(checked_records(records, model, source))
    return _explain_numbered(model, numbered, chosen, places)


def _explain_numbered(
    model: TrainedModel,
    numbered: Iterator[tuple[int, SequenceRecord]],
    options: ExplainOptions,
    places: Sequence[Place] | None,
) -> Iterator[Explanation]:
    while chunk := list(islice(numbered, CHUNK_RECORDS)):
        items = _read(model, chunk, options, places)
        explained: dict[int, list[Explanation]] = {}
        for group in _groups(model, items):
            for explanation in explain_group(group, options):
                explained.setdefault(explanation.record, []).append(explanation)
        for item in items:
            yield from explained[item.number]


def check(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    options: ExplainOptions | None = None,
    *,
    note: Callable[[str], None] = warnings.warn,
) -> Faithfulness:
    """Measure how reliable the rankings are, for this model and these records; some hundred suffice.

    ``note`` gets what of the model the methods can't show.
    """
    chosen = options or ExplainOptions()
    for caution in method_cautions(model, chosen.methods):
        note(caution)
    items = _read(model, list(enumerate(checked_records(records, model, ""))), chosen)
    letters, random_weights = max((len(item.codes) for item in items), default=0), randomized_network(model)
    assert isinstance(random_weights, SequenceNetwork)
    groups = _groups(model, items)
    pairs = ((group, SequenceTarget(model, random_weights, group.items[0].target)) for group in groups)
    reference = "ism" if is_mutated(letters, model.alphabet) else "occlusion"
    return check_groups(model, pairs, reference, chosen)


# --- Records that are explained together


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A record to explain."""

    number: int  # its number in the input, its letters, and where it lies in a longer sequence, if known
    record: SequenceRecord
    codes: Codes  # (n,) letter codes of what the model reads
    read: Ints  # (n,) indices of these letters in the record, which may be longer
    label: str  # the class called, the index of the class explained, and the probability of that
    target: int
    probability: float
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """N records, at least one, of one length and class, with the target of each member of the model."""

    items: Sequence[Item]
    targets: Sequence[LetterTarget]

    @property
    def codes(self) -> Codes:
        """Letter codes (N, n)."""
        return np.stack([item.codes for item in self.items])


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
            read = np.concatenate([np.arange(len(record))[part] for part in parts])
            items[i] = Item(number, record, encoded[i], read, label, target, float(row[target]), place)
    return [items[i] for i in range(len(chunk))]


def _groups(model: TrainedModel, items: Sequence[Item]) -> Iterator[Group]:
    """Group by length and class explained."""
    groups: dict[tuple[int, int], list[Item]] = {}
    for item in items:
        groups.setdefault((len(item.codes), item.target), []).append(item)
    for (_, target), group in groups.items():
        yield Group(group, sequence_targets(model, target))


def explain_group(group: Group, options: ExplainOptions) -> Iterator[Explanation]:
    """Explain the records of a group, each by each method in turn."""
    codes, settings, targets = group.codes, options.settings, group.targets
    mutated = options.effects and is_mutated(codes.shape[1], targets[0].model.alphabet)
    by_member = member_effects(targets, codes) if mutated or "ism" in options.methods else None
    effects = None if by_member is None else by_member.mean(axis=0)
    scores = {m: member_scores(targets, codes, m, settings, by_member) for m in options.methods}
    means = {method: members.mean(axis=0) for method, members in scores.items()}
    tests = {method: _tests(group, method, mean, options) for method, mean in means.items()}
    attention = None
    if options.attention:
        attention = np.mean([t.attention(codes) for t in targets if isinstance(t, SequenceTarget)], axis=0)
    for row, item in enumerate(group.items):
        for method in options.methods:
            p, q = tests[method]
            explanation = Explanation(
                record=item.number,
                id=item.record.id,
                sequence=item.record.sequence,
                label=item.label,
                target=targets[0].class_name,
                probability=item.probability,
                method=method,
                member="mean",
                signed=METHODS[method].signed,
                scores=means[method][row].copy(),  # a view would keep the whole group in memory
                effects=None if effects is None else effects[row].copy(),
                p=None if p is None else p[row],
                q=None if q is None else q[row],
                attention=None if attention is None else attention[row].copy(),
                place=item.place,
            )
            yield explanation.spread_over(item.read)
            for number in range(len(targets) if options.members == "each" else 0):
                own = None if by_member is None else by_member[number, row]
                changes = {"scores": scores[method][number, row], "effects": own, "p": None, "q": None}
                yield replace(explanation, member=str(number + 1), **changes).spread_over(item.read)


def _tests(
    group: Group, method: str, scores: Floats, options: ExplainOptions
) -> tuple[Floats | None, Floats | None]:
    """p- and q-values (N, n), if requested."""
    if options.shuffles == 0:
        return None, None
    score = lambda some: member_scores(group.targets, some, method, options.settings).mean(axis=0)  # noqa: E731
    paired = group.targets[0].model.alphabet.is_nucleotide
    p = p_values(group.codes, scores, score, options.shuffles, options.seed, paired)
    return p, q_values(p)


def is_mutated(letters: int, alphabet: Alphabet) -> bool:
    """Whether a record of so many letters gets every substitution unasked."""
    return letters <= MAX_MUTATED and letters * (len(alphabet.letters) - 1) <= MAX_SUBSTITUTIONS


def check_groups(
    model: TrainedModel, groups: Iterable[tuple[Group, LetterTarget]], reference: str, options: ExplainOptions
) -> Faithfulness:
    """Measure groups of records with a reference method, each beside a target of random weights."""
    rest, settings, paired = iter(groups), options.settings, model.alphabet.is_nucleotide
    first = list(islice(rest, MIN_RECORDS))
    evidence = Evidence(sum(len(group.items) for group, _ in first))
    methods = dict.fromkeys([*options.methods, reference])
    for group, chance in chain(first, rest):
        codes, score = group.codes, partial(ensemble_score, group.targets)
        by_member = {method: member_scores(group.targets, codes, method, settings) for method in methods}
        by_chance = {m: member_scores([chance], codes, m, settings)[0] for m in options.methods}
        evidence.distinct.update(row.tobytes() for row in codes)
        evidence.add(codes, by_member, by_chance, partial(curves, codes, score=score, paired=paired))
    return conclude(evidence, reference, wanted_class(model.card, options.target), options.seed)


# --- Figures of attention heads: how sharp each is, how far it attends, and the log-odds without it


def heads(
    model: TrainedModel, records: Iterable[SequenceRecord], options: ExplainOptions | None = None
) -> tuple[HeadFigures, ...]:
    """Describe the attention heads of all members by their means over the records, and the queries used."""
    check_heads(model)
    items = _read(model, list(enumerate(checked_records(records, model, ""))), options or ExplainOptions())
    groups = list(_groups(model, items))
    figures = []
    for number in range(len(model.networks) if groups else 0):
        described = [_describe(group.targets[number], group.codes) for group in groups]
        means = np.average(described, axis=0, weights=[len(group.items) for group in groups])
        for (layer, head), values in zip(np.ndindex(means.shape[:2]), means.reshape(-1, 4), strict=True):
            figures.append(HeadFigures(number + 1, layer + 1, head + 1, *values.tolist()))
    return tuple(figures)


def check_heads(model: TrainedModel) -> None:
    """Refuse a model whose heads are not accessible, one on a backbone, with a ConfigError."""
    if not model.card.model.is_plain:
        what = f"model '{model.card.name}' is another network, whose heads can't be switched off one by one"
        raise ConfigError(what, remedy="leave out the figures of heads")


def _describe(target: LetterTarget, codes: Codes) -> Floats:
    """Entropy, distance, CLS mass and importance: (layers, H, 4), means over the records."""
    assert isinstance(target, SequenceTarget)
    network = twin(target.network)
    assert isinstance(network, SequenceTransformer)
    sums: list[Floats] = []
    for _, tokens in target.batches(codes):
        layers = [_weight_figures(layer, network.embedding.stride) for layer in trace(network, tokens).layers]
        sums.append(torch.stack(layers).double().cpu().numpy() * len(tokens))  # (layers, H, 3)
    before, changed = target.of_codes(codes), SequenceTarget(target.model, network, target.target)
    attentions = [module for module in network.modules() if isinstance(module, MultiHeadAttention)]
    importance = np.empty((len(attentions), attentions[0].heads, 1))  # change of the mean log-odds
    for i, attention in enumerate(attentions):
        for head in range(attention.heads):
            columns = torch.arange(attention.head_width, device=target.model.device)
            columns += head * attention.head_width
            hook = lambda _, given, own=columns: given[0].index_fill(-1, own, 0)  # noqa: E731
            handle = attention.out.register_forward_pre_hook(hook)
            importance[i, head] = (changed.of_codes(codes) - before).mean()
            handle.remove()
    return np.concatenate([np.sum(sums, axis=0) / len(codes), importance], axis=-1)


@torch.no_grad()
def _weight_figures(layer: SequenceLayer, stride: int) -> Tensor:
    """Entropy, distance and CLS mass of a layer's heads, means over batch and queries: (H, 3)."""
    total, queries = torch.zeros(layer.attention.heads, 3, device=layer.x.device), 0
    keys = layer.x.shape[1]
    places = torch.arange(keys, device=layer.x.device, dtype=torch.float32)
    for block in layer.blocks():
        weights, rows = block.weights, block.queries[1]
        entropy = torch.special.entr(weights).sum(dim=-1) / np.log(max(keys, 2))  # (B, H, c)
        letters = weights[..., 1:] / weights[..., 1:].sum(dim=-1, keepdim=True).clamp(min=1e-12)
        gaps = (places[rows, None] - places[1:]).abs() * stride  # (c, T - 1)
        distance = torch.einsum("bhct,ct->bhc", letters, gaps)
        if rows.start == 0:
            distance[..., 0] = 0  # CLS has no place
        total += torch.stack([x.sum(dim=(0, 2)) for x in (entropy, distance, weights[..., 0])], dim=-1)
        queries += weights.shape[0] * weights.shape[2]
    figures = total / queries
    placed = queries - len(layer.x)
    figures[:, 1] = total[:, 1] / placed if placed else torch.nan
    return figures
