"""Calls cut out of a genome as a model read them, and the explanations of those of a locator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

import numpy as np
import torch

from seqray.core.alphabet import Alphabet, reverse_complement, reverse_complement_codes
from seqray.core.arrays import Codes, Floats, cut_stretch, logistic
from seqray.core.errors import InputError
from seqray.core.explanation import Explanation, Faithfulness, InputShares, Place
from seqray.core.records import SequenceRecord, unknown_contig
from seqray.core.results import Call
from seqray.core.text import Brief, did_you_mean
from seqray.explanations.checks import shuffled_copies
from seqray.explanations.options import SHUFFLES, ExplainOptions
from seqray.explanations.sequences import Group, Item, check_groups, explain_group
from seqray.explanations.targets import (
    LocatorTarget,
    Tracks,
    class_explained,
    ensemble_score,
    randomized_network,
)
from seqray.io.calls import call_ids
from seqray.modelfile.model import TrainedModel
from seqray.models.locator import LocatorTransformer

TracksOf = Callable[[SequenceRecord, str, bool], Tracks | None]
"""A contig, a strand of it and whether it is circular to the tracks (T, L) that the model names, in reading
direction; None where the genes are not known."""
_SHUFFLE_KEY = 103  # of the shuffled copies, apart from those of the other checks

# --- The windows of calls, and the stretches around the calls of a locator


def extract_call_windows(
    contigs: Iterable[SequenceRecord],
    calls: Sequence[Call],
    alphabet: Alphabet,
    window: int,
    source: str = "",
) -> tuple[list[SequenceRecord], list[Place]]:
    """Cut the window of each call on its strand; contigs are read once."""
    named, cut = best_calls(calls), dict[str, tuple[SequenceRecord, Place]]()
    for call in named:
        _check_length(call, window, window, source)
    for contig, own in _on_contigs(contigs, named, source):
        letters = contig.sequence
        for call in own:
            piece = letters[call.start : call.end]
            piece += letters[: max(0, call.end - len(letters))]  # across the origin of a circle
            if call.strand == "-":
                piece = reverse_complement(piece, alphabet)
            place = Place(contig.id, call.start, call.end, call.strand, len(letters), call=call)
            cut[call.id] = SequenceRecord(call.id, piece), place
    pairs = [cut[call.id] for call in named]
    return [record for record, _ in pairs], [place for _, place in pairs]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stretch(Brief):
    """All letters and genes around a call that can change its score, in reading direction."""

    id: str  # of the call: its name, its class, and where the stretch lies
    label: str
    place: Place
    codes: Codes  # (n,) letter codes; unknown beyond the ends of a contig. The site is in the middle
    tracks: Tracks | None  # (T, n) gene tracks; None where no genes are known
    phase: int  # place of the first letter within a token of the strand


def cut_stretches(
    model: TrainedModel,
    contigs: Iterable[SequenceRecord],
    calls: Sequence[Call],
    tracks_of: TracksOf,
    *,
    circular: Collection[str] = (),
    source: str = "",
) -> list[Stretch]:
    """Cut the stretch around the site of each call of a locator; ``tracks_of`` gives its genes."""
    network, alphabet = model.locators[0], model.alphabet
    radius, stretches = network.radius, dict[str, Stretch]()
    named = best_calls(calls)
    before, after = model.card.locator.extent
    for call in named:
        if call.context is None or not call.context.boxes:  # which GFF3 spans
            _check_length(call, 1, before + 1 + after, source)  # fewer at the end of a contig
        if call.label not in model.card.classes:
            classes = ", ".join(model.card.classes)
            raise InputError(f"call '{call.id}' is a {call.label}; the model knows {classes}", where=source)
    for contig, own in _on_contigs(contigs, named, source):
        is_circle, length = contig.circular or contig.id in circular, len(contig)
        forward = alphabet.encode(contig.sequence)
        read = {"+": forward, "-": reverse_complement_codes(forward)}
        tracks = {sign: tracks_of(contig, sign, is_circle) for sign in {call.strand for call in own}}
        for call in own:
            if not 0 <= call.site < length:
                beyond = f"beyond the end of '{contig.id}' ({length})"
                raise InputError(f"call '{call.id}' has its site at {call.site + 1}, {beyond}", where=source)
            site = call.site if call.strand == "+" else length - 1 - call.site
            start = (call.site - radius) % length if is_circle else call.site - radius
            span, along = (site - radius, site + radius + 1), tracks[call.strand]
            stretches[call.id] = Stretch(
                call.id,
                call.label,
                Place(contig.id, start, start + 2 * radius + 1, call.strand, length, is_circle, call),
                cut_stretch(read[call.strand], *span, alphabet.unknown, circular=is_circle),
                None if along is None else cut_stretch(along, *span, 0, circular=is_circle),
                span[0] % network.stem.stride,
            )
    return [stretches[call.id] for call in named]


def best_calls(calls: Sequence[Call], best: int | None = None) -> list[Call]:
    """Calls in order, or the ``best`` by score; all ids are numbered if two are alike."""
    named = list(calls)
    if len({call.id for call in calls} - {""}) < len(named):
        named = [replace(call, id=name) for name, call in call_ids(calls)]
    return named if best is None else sorted(named, key=lambda call: -call.score)[:best]


def calls_of_gene(calls: Sequence[Call], gene: str, source: str) -> list[Call]:
    """The calls before the gene of a name or locus tag; an `InputError` if there is none."""
    by_name: dict[str, list[Call]] = {}
    for call in calls:
        for name in {call.context.gene, call.context.locus} - {""} if call.context else ():
            by_name.setdefault(name, []).append(call)
    if gene not in by_name:
        why = "'seqray scan --genes-out FILE' says why a gene has none"
        remedy = f"{did_you_mean(gene, by_name, otherwise='')} {why}".lstrip()
        raise InputError(f"has no call of the gene '{gene}'", where=source, remedy=remedy)
    return by_name[gene]


def _check_length(call: Call, fewest: int, most: int, source: str) -> None:
    """Refuse a call that another model has made, one of another length, with an InputError."""
    if not fewest <= call.end - call.start <= most:
        what = f"call '{call.id}' has {call.end - call.start} bases, but those of the model have {most}"
        raise InputError(what, where=source, remedy="give the model that made the calls")


def _on_contigs(
    contigs: Iterable[SequenceRecord], calls: Sequence[Call], source: str
) -> Iterator[tuple[SequenceRecord, list[Call]]]:
    """Contigs with their calls, if they have some; contigs are read once."""
    wanted: dict[str, list[Call]] = {}
    for call in calls:
        wanted.setdefault(call.contig, []).append(call)
    read = list[str]()
    for contig in contigs:
        read.append(contig.id)
        for call in wanted.get(contig.id, ()):
            if call.strand not in ("+", "-"):
                what = f"call '{call.id}' has the strand '{call.strand}'"
                raise InputError(what, where=source, remedy="use + or -")
            if not 0 <= call.start < len(contig) or call.end > 2 * len(contig):
                beyond = f"lies beyond the end of '{contig.id}' ({len(contig)})"
                raise InputError(f"call '{call.id}' at {call.start + 1}-{call.end} {beyond}", where=source)
        if contig.id in wanted:
            yield contig, wanted[contig.id]
    for contig, [call, *_] in wanted.items():
        if contig not in read:
            raise unknown_contig(f"call '{call.id}' lies on", contig, read, source)


# --- From calls of a locator to explanations, and `check_calls` for their reliability


def explain_calls(
    model: TrainedModel, stretches: Iterable[Stretch], options: ExplainOptions | None = None
) -> Iterator[Explanation]:
    """Explain the score of each call of a locator, in order, as `explain_records` explains records."""
    chosen = options or ExplainOptions()
    class_explained(model, chosen.target, model.card.positive)
    groups = (_group(model, number, one, chosen) for number, one in enumerate(stretches))
    return (explanation for group in groups for explanation in explain_group(group, chosen))


@torch.inference_mode(False)
@torch.enable_grad()
def letter_effects(model: TrainedModel, stretches: Iterable[Stretch]) -> list[Floats]:
    """What each letter (n,) around a call adds to its score: gradient times input, the mean over members."""
    effects = []
    for stretch in stretches:
        targets = _targets(model, stretch, model.card.classes.index(stretch.label))
        effects.append(np.mean([target.effects(stretch.codes[None])[0] for target in targets], axis=0))
    return effects


def check_calls(
    model: TrainedModel, stretches: Iterable[Stretch], options: ExplainOptions | None = None
) -> Faithfulness:
    """Measure how reliable the rankings are; the reference gains more than occlusion, at less cost."""
    chosen = options or ExplainOptions()
    random_weights = randomized_network(model)
    assert isinstance(random_weights, LocatorTransformer)

    def with_chance(number: int, stretch: Stretch) -> tuple[Group, LocatorTarget]:
        group = _group(model, number, stretch, chosen)
        target = group.items[0].target
        return group, LocatorTarget(model, random_weights, target, stretch.tracks, stretch.phase)

    return check_groups(model, starmap(with_chance, enumerate(stretches)), "input-x-gradient", chosen)


def input_shares(
    model: TrainedModel, number: int, stretch: Stretch, options: ExplainOptions | None = None
) -> InputShares:
    """What the letters and the genes around a call, the record of that number, add to its score."""
    chosen = options or ExplainOptions()
    [item] = _group(model, number, stretch, chosen).items
    targets = _targets(model, stretch, item.target)
    effects = [target.input_effects(stretch.codes) for target in targets]
    by_letter, by_track = (np.mean(members, axis=0) for members in zip(*effects, strict=True))
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
