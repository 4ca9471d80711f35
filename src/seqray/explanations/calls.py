"""Explanations of the calls of a locator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import Alphabet, reverse_complement, reverse_complement_codes
from seqray.core.arrays import Codes, cut_stretch, logistic
from seqray.core.errors import ConfigError, InputError
from seqray.core.explanation import Explanation, Faithfulness, InputShares, Place
from seqray.core.records import SequenceRecord
from seqray.core.results import Call
from seqray.explanations.checks import Evidence, conclude
from seqray.explanations.groups import Group, Item, explain_group, measure_group, reference_method
from seqray.explanations.locator_scores import input_effects
from seqray.explanations.options import SHUFFLES, ExplainOptions
from seqray.explanations.targets import (
    LocatorTarget,
    class_explained,
    ensemble_score,
    randomized_network,
    shuffled_copies,
    target_name,
)
from seqray.io.calls import call_ids
from seqray.modelfile.model import TrainedModel
from seqray.models.locator import LocatorTransformer

# --- The windows of calls in a genome, cut out as the model read them

Cut = TypeVar("Cut")


def extract_call_windows(
    contigs: Iterable[SequenceRecord],
    calls: Sequence[Call],
    alphabet: Alphabet,
    window: int,
    source: str = "",
    best: int | None = None,
) -> tuple[list[SequenceRecord], list[Place]]:
    """Cut the window of each call out of its contig, read on the call's strand.

    Parameters
    ----------
    contigs
        The sequences that were scanned; read once, one at a time.
    calls
        In any order.
    alphabet
        Of the model.
    window
        Letters that the model reads.
    source
        Name of the file of calls, for errors.
    best
        Take the calls of highest score only, at most so many; of equal scores the first ones.

    Returns
    -------
    records, places
        In the order of the calls, or with ``best`` from the highest score down; a record bears the name of
        the call, see `best_calls`.

    Raises
    ------
    InputError
        For a call of another length, on a contig that isn't there, or beyond its end.
    """
    named = best_calls(calls, best)
    for name, call in named:
        check_length(name, call, window, window, source)
    pairs = cut_from_contigs(
        contigs, named, lambda contig, name, call: _cut(contig, name, call, alphabet), source
    )
    return [record for record, _ in pairs], [place for _, place in pairs]


def best_calls(calls: Sequence[Call], best: int | None) -> list[tuple[str, Call]]:
    """Calls with their names, all in their order, or the ``best`` from the highest score down.

    A call that was read keeps its name, unless two have the same: then all are numbered.
    """
    names = [call.id for call in calls]
    unique = all(names) and len(set(names)) == len(names)
    named = list(zip(names, calls, strict=True)) if unique else list(call_ids(calls))
    return named if best is None else sorted(named, key=lambda pair: -pair[1].score)[:best]


def check_length(name: str, call: Call, fewest: int, most: int, source: str) -> None:
    """Refuse a call that another model has made, one of another length, with an InputError."""
    if not fewest <= call.end - call.start <= most:
        raise InputError(
            f"call '{name}' has {call.end - call.start} letters, but those of the model have {most}",
            where=source,
            remedy="give the model that made the calls",
        )


def cut_from_contigs(
    contigs: Iterable[SequenceRecord],
    named: Sequence[tuple[str, Call]],
    cut: Callable[[SequenceRecord, str, Call], Cut],
    source: str,
) -> list[Cut]:
    """Cut something for each call out of its contig, in the order of the calls.

    The contigs are read once, one at a time, and ``cut`` is called contig by contig. InputError is raised for
    a call without a strand, beyond the end of its contig, or on a contig that isn't there.
    """
    wanted: dict[str, list[tuple[str, Call]]] = {}
    for name, call in named:
        wanted.setdefault(call.contig, []).append((name, call))
    found: dict[str, Cut] = {}
    for contig in contigs:
        for name, call in wanted.get(contig.id, ()):
            _check_place(contig, name, call, source)
            found[name] = cut(contig, name, call)
    for name, call in named:
        if name not in found:
            raise InputError(
                f"call '{name}' lies on '{call.contig}', which is not among the sequences", where=source
            )
    return [found[name] for name, _ in named]


def _check_place(contig: SequenceRecord, name: str, call: Call, source: str) -> None:
    if call.strand not in ("+", "-"):
        raise InputError(f"call '{name}' has the strand '{call.strand}'", where=source, remedy="use + or -")
    if not 0 <= call.start < len(contig) or call.end > 2 * len(contig):
        where = f"{call.start + 1}-{call.end}"
        raise InputError(
            f"call '{name}' at {where} lies beyond the end of '{contig.id}' ({len(contig)})", where=source
        )


def _cut(contig: SequenceRecord, name: str, call: Call, alphabet: Alphabet) -> tuple[SequenceRecord, Place]:
    letters = contig.sequence
    piece = letters[call.start : call.end]
    piece += letters[: max(0, call.end - len(letters))]  # across the origin of a circle
    if call.strand == "-":
        piece = reverse_complement(piece, alphabet)
    place = Place(contig.id, call.start, call.end, call.strand, len(letters))
    return SequenceRecord(name, piece), place


# --- Stretches around the calls of a locator: all letters and genes that can change the score of the site

Tracks = npt.NDArray[np.uint8]
TracksOf = Callable[[SequenceRecord, str, bool], Tracks | None]
"""A contig, a strand of it and whether it is circular to the tracks (T, L) that the model names, in reading
direction; None where the genes are not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Letters around a call, in reading direction.

    Attributes
    ----------
    id, label, place
        Of the call: its name, its class, and where the stretch lies.
    codes
        (n,) letter codes; unknown beyond the ends of a contig. The site is in the middle.
    tracks
        (T, n) gene tracks; None where no genes are known.
    phase
        Place of the first letter within a token of the strand.
    """

    id: str
    label: str
    place: Place
    codes: Codes
    tracks: Tracks | None
    phase: int


def cut_stretches(
    model: TrainedModel,
    contigs: Iterable[SequenceRecord],
    calls: Sequence[Call],
    tracks_of: TracksOf,
    *,
    circular: Collection[str] = (),
    source: str = "",
    best: int | None = None,
) -> list[Stretch]:
    """Cut the stretch around the site of each call.

    Parameters
    ----------
    model
        A locator.
    contigs, calls, source, best
        As in `extract_call_windows`.
    tracks_of
        The genes.
    circular
        Names of contigs that are circular beside those that are marked so.

    Returns
    -------
    list of Stretch
        In the order of the calls, or with ``best`` from the highest score down.

    Raises
    ------
    ConfigError
        For a model that is no locator.
    InputError
        For a call of another model, on a contig that isn't there, or beyond its end.
    """
    named = best_calls(calls, best)
    before, after = model.card.locator.get("extent", (0, 0))
    for name, call in named:
        check_length(name, call, 1, before + 1 + after, source)  # fewer at the end of a contig
        if call.label not in model.card.classes:
            known = ", ".join(model.card.classes)
            raise InputError(f"call '{name}' is a {call.label}; the model knows {known}", where=source)
    cutter = _Cutter(model, tracks_of, circular, source)
    return cut_from_contigs(contigs, named, cutter.cut, source)


class _Cutter:
    """Cuts stretches; keeps what one contig needs."""

    def __init__(
        self, model: TrainedModel, tracks_of: TracksOf, circular: Collection[str], source: str
    ) -> None:
        self._source = source
        self._alphabet, self._network = model.alphabet, model.locators[0]
        self._tracks_of, self._circular = tracks_of, circular
        self._contig, self._strands = "", dict[str, tuple[Codes, Tracks | None]]()

    def cut(self, contig: SequenceRecord, name: str, call: Call) -> Stretch:
        circular = contig.circular or contig.id in self._circular
        codes, tracks = self._strand(contig, call.strand, circular)
        radius, length = self._network.radius, len(codes)
        if not 0 <= call.site < length:
            raise InputError(
                f"call '{name}' has its site at {call.site + 1}, beyond the end of '{contig.id}' ({length})",
                where=self._source,
            )
        site = call.site if call.strand == "+" else length - 1 - call.site
        span = site - radius, site + radius + 1
        return Stretch(
            name,
            call.label,
            _place(contig.id, call, radius, length, circular),
            cut_stretch(codes, *span, self._alphabet.unknown, circular=circular),
            None if tracks is None else cut_stretch(tracks, *span, 0, circular=circular),
            span[0] % self._network.stem.stride,
        )

    def _strand(self, contig: SequenceRecord, strand: str, circular: bool) -> tuple[Codes, Tracks | None]:
        if self._contig != contig.id:
            self._contig, self._strands = contig.id, {}
        if strand not in self._strands:
            codes = self._alphabet.encode(contig.sequence)
            codes = codes if strand == "+" else reverse_complement_codes(codes)
            self._strands[strand] = codes, self._tracks_of(contig, strand, circular)
        return self._strands[strand]


def _place(contig: str, call: Call, radius: int, length: int, circular: bool) -> Place:
    start = call.site - radius
    start = start % length if circular else start
    return Place(contig, start, start + 2 * radius + 1, call.strand, length, circular)


def check_explained_calls(path: str | None) -> str:
    """Return the file of calls; a locator explains nothing else. Raises ConfigError without one."""
    if path is None:
        raise ConfigError(
            "a locator is explained by its calls",
            remedy="write them by 'seqray scan --out calls.gff3' and name them by --calls",
        )
    return path


# --- From calls of a locator to explanations: `explain_calls`, and `check_calls` for their reliability

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
