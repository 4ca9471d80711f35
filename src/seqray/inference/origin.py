"""Whether a file is like what a model was trained on."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from seqray.calibration.conformal import HeldOutScores
from seqray.calibration.signature import (
    MAX_SPECIES_DISTANCE,
    MIN_CHECKED,
    MIN_RELATED,
    MIN_SHARE,
    MIN_STATED,
    WORD,
    ContextDistance,
    GenomeSketcher,
    K,
    KmerCounter,
    Signature,
    SketchCount,
    signature_of,
)
from seqray.core.arrays import Codes, Floats
from seqray.core.card_parts import Sketch
from seqray.core.errors import InputError, setting
from seqray.core.records import Alignment, SequenceRecord, looks_unaligned
from seqray.core.results import Prediction
from seqray.core.text import first_and_more
from seqray.inference import sequences
from seqray.modelfile.header import locate_model, read_header
from seqray.modelfile.model import TrainedModel

# --- Where records are from, judged by their k-mers, and what is said of that

CAUTION = "caution: "  # begins those findings that speak against the results
NO_FIGURES = "precision and trust do not hold for these calls"
"""Ends those cautions that name another model to take."""
MAX_NAMED_CONTEXTS = 4
MIN_GENOME = 500_000  # bases: genomes of free-living bacteria are larger, most plasmids and viruses smaller

# Letters of ribosomal RNA that probes of a whole kingdom bind: EUB338 and its variants, EUK516 (Amann et al.
# 1990; Daims et al. 1999) and ARCH915 (Stahl and Amann 1991).
_RIBOSOMAL: dict[str, str] = {
    "bacteria": "AC[AT]CCTACGGG[AT]GGC[AT]GC|GC[AT]GCC[AT]CCCGTAGG[AT]GT",
    "archaea": "AGGAATTGGCGGGGGAGCAC|GTGCTCCCCCGCCAATTCCT",
    "eukaryotes": "GGAGGGCAAGTCTGGT|ACCAGACTTGCCCTCC",
}
_LOCATORS: dict[str, str] = {
    "bacteria": "bacteria-genome",
    "archaea": "archaea-genome",
    "eukaryotes": "fungi-genome",
}
_YEASTS = {"eukaryotes": " for yeasts; no model is for others"}
MAX_MICROBE_LETTERS = 60_000_000
"""Of a file whose model is chosen by its letters; the genomes of most yeasts are far smaller."""


def kingdoms_of(sequence: str) -> set[str]:
    """Kingdoms whose ribosomal RNA a sequence of DNA has, on either strand."""
    letters = sequence.upper()
    return {kingdom for kingdom, probe in _RIBOSOMAL.items() if re.search(probe, letters)}


def choose_locator(records: Iterable[SequenceRecord], where: str = "") -> tuple[str, str]:
    """Name the shipped locator for the kingdom whose ribosomal RNA a file has, and say why."""
    kingdoms, letters = set[str](), 0
    for record in records:
        letters += len(record)
        kingdoms |= kingdoms_of(record.sequence)
    if "eukaryotes" in kingdoms:
        kingdoms.discard("bacteria")  # plastids and mitochondria, which were bacteria
    remedy = f"name one: {', '.join(_LOCATORS.values())}; none is for animals, plants or their viruses"
    if letters >= MAX_MICROBE_LETTERS:
        what = f"no model fits a genome of {MAX_MICROBE_LETTERS // 1_000_000} Mb or more"
        raise InputError(what, where=where, remedy=remedy)
    if len(kingdoms) != 1:
        has = f"ribosomal RNA of {' and '.join(sorted(kingdoms))}" if kingdoms else "no ribosomal RNA"
        raise InputError(f"no model fits: the file has {has}", where=where, remedy=remedy)
    [kingdom] = kingdoms
    why = f"the file has ribosomal RNA of {kingdom}, so {_LOCATORS[kingdom]} is taken"
    return _LOCATORS[kingdom], f"{why},{_YEASTS[kingdom]}" if kingdom in _YEASTS else why


@cache
def _genomes_of_models() -> dict[str, tuple[str, Sketch]]:
    """The genomes of the models of all kingdoms: by name, the model and the sketch."""
    cards = [read_header(locate_model(name)).card for name in _LOCATORS.values()]
    known = {card.name: (card.domain.genomes if card.domain else None) or {} for card in cards}
    return {name: (model, sketch) for model, of in known.items() for name, sketch in of.items()}


def read_as(model: TrainedModel) -> str:
    """What to tell the user of a context that was recognized."""
    return (
        f"this file is read as {model.context}, which its first records are like; "
        f"{setting('context', 'NAME')} or {setting('context', None)} reads it otherwise"
    )


FIRST_LETTERS = 100_000  # about 1,200 windows of 81 letters; ten times what `Signature.compare` needs


def recognize_context(
    model: TrainedModel, records: Iterable[SequenceRecord]
) -> tuple[TrainedModel, Iterable[SequenceRecord]]:
    """Set the context of a model, if it knows some, to that which the first records are like, if any."""
    unset = model.context is None and model.card.model.contexts
    signature = signature_of(model.card) if unset else None
    if signature is None:
        return model, records
    rest, first, words, letters = iter(records), list[SequenceRecord](), KmerCounter(model.alphabet), 0
    for record in rest:
        first.append(record)
        words.add(record.sequence)
        letters += len(record)
        if letters >= FIRST_LETTERS:
            break
    context = sequences.known_context(model, signature.nearest_context(words.counts))
    first.reverse()
    taken = (first.pop() for _ in range(len(first)))  # each leaves memory as it is used up
    return model.with_context(context), chain(taken, rest)


_ALIKE = ((MIN_CHECKED, MIN_SHARE), (MIN_STATED, MIN_RELATED))
"""Words to compare and the share of them that tells a strain, or a relative."""


class Origin:
    """Compares the records that a model is given with its training data, if its card has a signature."""

    def __init__(self, model: TrainedModel, *, recognized: bool = False) -> None:
        self._contexts, self._named = model.card.model.contexts, model.context
        self._recognized = [read_as(model)] if recognized and model.context else []
        self._locator = model.is_locator
        measured = model.card.locator.expected
        self._new_species = any(table.held_out == "species" for table in measured)
        self._species = {table.species for table in measured}
        self._several = self._species if len(self._species) > 1 else set[str]()  # of one there is no median
        self._genomes = (model.card.domain.genomes if model.card.domain else None) or {}
        limit = max((sketch.limit for sketch in self._genomes.values()), default=1)
        self._sketcher = GenomeSketcher(model.alphabet, limit=limit)
        later = model.card.domain.calibration if model.card.domain else None
        self._signature = signature_of(model.card)
        self._calibrated_on = Signature(later.signature) if later and later.signature else None
        self._words = KmerCounter(model.alphabet)
        self._own = model.card.locator.kingdom or "bacteria"
        self._kingdoms = set[str]()

    def add(self, record: SequenceRecord) -> None:
        """Count the words of a record."""
        if self._signature or self._calibrated_on:
            self._words.add(record.sequence)
        if self._locator:
            self._kingdoms |= kingdoms_of(record.sequence)
        if self._genomes:
            self._sketcher.add(record.sequence)

    def watch(self, records: Iterable[SequenceRecord]) -> Iterator[SequenceRecord]:
        """Hand records on, and count their words."""
        for record in records:
            self.add(record)
            yield record
            del record  # else it is in memory while the next one is read

    @property
    def species(self) -> str | None:
        """The measured species that shares as many words with the file as another strain does, if any."""
        for name, words in self._sketcher.compare(self._genomes)[:1]:
            if words.checked >= MIN_CHECKED and words.share >= MIN_SHARE and name in self._species:
                return name
        return None

    @property
    def is_foreign(self) -> bool:
        """Whether the species is none that a locator knows."""
        return self._locator and self.species is None

    def findings(self, species: str | None = None) -> Iterator[str]:
        """Yield the recognized context, cautions, or what to name; ``species`` is what the user says."""
        yield from self._recognized
        plastids = self._own == "eukaryotes" in self._kingdoms  # these and mitochondria were bacteria
        others = sorted(self._kingdoms - {self._own, *(["bacteria"] if plastids else [])})
        for kingdom in others:
            has = f"{CAUTION}this file has ribosomal RNA of {kingdom}, and the model is for {self._own}"
            yield f"{has}: take {_LOCATORS[kingdom]}{_YEASTS.get(kingdom, '')}; {NO_FIGURES}"
        if self._locator:
            yield from () if others and not species else self._species_findings(species)
            return
        signature, later, counts = self._signature, self._calibrated_on, self._words.counts
        distances = signature.compare(counts) if signature else []
        near = [one for one in distances if not one.is_foreign]
        if later:  # the probabilities hold for what is like these data, and for nothing else
            others, pair = later.compare(counts), later.closest_pair(counts)
            mixed = later.is_mixture(counts) or bool(pair and pair[0].is_close)
            if others and others[0].is_foreign and not mixed:
                yield (
                    f"{CAUTION}this file is unlike the data that the model was calibrated on "
                    f"({_named(others[:1])}); its probabilities may not hold, measure them on known "
                    "sites (seqray evaluate), or calibrate it on such data"
                )
        elif signature and distances and not near:
            if signature.is_mixture(counts):
                yield "this file is like the contexts of the training data together; give each its own file"
            else:
                yield CAUTION + self._foreign(signature, distances[0])
        if near and self._named:
            given = f"{setting('context', self._named)} is given"
            said = f"the first records are like {self._named}" if self._recognized else given
            yield from _against(said, self._named, distances, near)
        elif near and near[0].context and self._contexts:
            nearest = f"the nearest that the model was trained on is {_named(near[:1])}"
            home = [one for one in near if one.is_close]
            better = f"name what it is with {setting('context')} for better probabilities"
            yield (
                f"this file is like {_named(home)}; {better}"
                if home
                else f"{nearest}; this may be another species"
            )

    def _species_findings(self, species: str | None) -> Iterator[str]:
        """What a scan with a locator says of the species: by 21-mers which it is, by 4-mers how unlike."""
        signature, counts = self._signature, self._words.counts
        distances = signature.compare(counts) if signature else []
        near = [one for one in distances if not one.is_foreign]
        shares = self._sketcher.compare(self._genomes)
        recognized, (nearest, words) = self.species, (shares or [("", SketchCount(0, 0))])[0]
        enough = any(count.checked >= MIN_CHECKED for _, count in shares)
        related = any(words.checked >= least and words.share >= share for least, share in _ALIKE)
        if species:
            given = f"{setting('species', species)} is given"
            if recognized and dict(shares).get(species, words).share < MIN_SHARE:
                yield f"{CAUTION}{given}, but it shares {words.share:.0%} of its words with {recognized}"
            elif near:
                yield from _against(given, species, distances, near)
        elif recognized or not counts.any():
            return
        elif not related and (other := self._other_model()):
            shared = f"this file shares words of {WORD} bases with {other[1]}"
            yield f"{CAUTION}{shared}, so take {other[0]}; {NO_FIGURES}"
        elif self._new_species and enough and not (self._kingdoms or related):
            what, step = "a draft, which often lacks this RNA", "if in doubt, look up some of its proteins"
            if (letters := int(counts.sum())) < MIN_GENOME:
                what = "a virus, a plasmid or a piece of a genome"
                step = "no model is for viruses; scan a plasmid or a piece with the rest of its genome"
            yield (
                f"{CAUTION}this file has no ribosomal RNA, and the model knows no genome like it: with "
                f"{letters / 1e6:.2g} Mb it may be {what}. The figures hold for {self._own} alone: {step}"
            )
        elif signature and not near and signature.is_mixture(counts):
            yield "this file is like the contexts of the training data together; give each its own file"
        elif self._new_species and (near or not distances):
            median = "the precision to expect is the median over species"
            if near and related and nearest in self._several:
                yield (
                    f"the nearest species that was measured is {nearest}, which shares {words.share:.0%} of "
                    f"the words of {WORD} bases; this may be another: {median}; if the genome is of it, give "
                    f"{setting('species', nearest)}"
                )
            elif near and self._several:
                few = f"no species that was measured shares {MIN_RELATED:.0%} of its words of {WORD} bases"
                short = "this file is too short to compare it with the species that were measured"
                yield f"{few if words.checked >= MIN_STATED else short}: {median}"
        elif self._new_species:
            yield (
                f"{CAUTION}the model learned from no genome of such a composition. The nearest is "
                f"{_named(distances[:1])}, and within a species at most {MAX_SPECIES_DISTANCE:.0%}: the "
                "precision may be lower than stated, so compare some calls with known starts"
            )
        elif self._species:
            why = f"this file shares less than {MIN_SHARE:.0%} of its words of {WORD} bases with it"
            if not enough:
                short = "this file is too short to recognize it"
                why = short if self._genomes else "the model has no sketch of it"
            yield (
                f"{CAUTION}no precision is stated: it was measured in "
                f"{first_and_more(sorted(self._species), MAX_NAMED_CONTEXTS)}, and {why}; if the genome is "
                f"of it, give {setting('species', min(self._species))}, else compare calls with known sites"
            )

    def _other_model(self) -> tuple[str, str] | None:
        """A model of another kingdom, or of more species, that knows a genome like the file, and which."""
        known = {name: of for name, of in _genomes_of_models().items() if name not in self._genomes}
        shares = self._sketcher.compare({name: sketch for name, (_, sketch) in known.items()})
        for genome, words in shares[: bool(self._genomes)]:
            if any(words.checked >= least and words.share >= share for least, share in _ALIKE):
                return known[genome][0], genome
        return None

    def _foreign(self, signature: Signature, nearest: ContextDistance) -> str:
        pair = signature.closest_pair(self._words.counts)
        if pair and pair[0].is_close:
            names = f"{pair[0].context} and {pair[1].context}"
            return f"this file is like a mixture of {names}; give each its own file and {setting('context')}"
        than = "what the model was trained on"
        if nearest.context:  # of a context with few training sequences nothing is known
            whole = set(self._contexts) <= set(signature.contexts)
            than = f"any context {'' if whole else 'with a signature '}that the model was trained on"
        measure = "its probabilities may not hold, measure them on known sites (seqray evaluate)"
        return f"this file is unlike {than} ({_named([nearest])}); {measure}"


def _against(
    said: str, name: str, distances: list[ContextDistance], near: list[ContextDistance]
) -> Iterator[str]:
    """A caution if the file is unlike the context that it is read in and like another one."""
    own = [one for one in distances if one.context == name]
    if own and own[0].is_foreign:
        yield f"{CAUTION}{said}, but this file is unlike it ({_named(own)}) and nearer to {_named(near)}"


def _named(distances: list[ContextDistance]) -> str:
    """The first contexts with their distances, and how many more there are."""
    texts = [f"{f'{one.context}, ' if one.context else ''}{one.distance:.0%}" for one in distances]
    return f"{first_and_more(texts, MAX_NAMED_CONTEXTS)} of the words of {K} bases differ"


MIN_FLAGGED_SHARE = 0.05  # of the records; fewer are left to their flags
MIN_OUT_OF_DOMAIN = 5  # records that a caution needs
OUT_OF_DOMAIN = "out-of-domain"

# --- Whether windows are cut around another place than the site of a model: shift a few, and count calls

STEP = 5  # letters between the shifts that are tried first; models tolerate two
SEARCHED, TESTED = 24, 128  # windows to find a shift with, and others to test it on
MIN_WINDOWS = 50
MAX_P_VALUE = 1e-4
MIN_GAIN = 0.05  # share of the windows that the shift must add to the calls
_SEED = 20_240_229


class ShiftedSite(NamedTuple):
    """Place where sites seem to lie in windows, those tested, and those called as they are and shifted."""

    site: int
    windows: int
    before: int
    after: int


def find_shifted_site(model: TrainedModel, windows: Sequence[Codes]) -> ShiftedSite | None:
    """Find the place of sites in windows that were cut around another one; None if it is the model's.

    Some windows choose the shift, others test it, by a one-sided sign test where the calls differ.
    """
    card = model.card
    whole = [codes for codes in windows if len(codes) == card.window]
    if card.site is None or model.is_locator or len(whole) < MIN_WINDOWS:
        return None
    order = np.random.default_rng(_SEED).permutation(len(whole))[: SEARCHED + TESTED]
    rows = np.stack([whole[i] for i in order])
    ends = np.roll(rows, 1, axis=0)
    searched, tested = slice(SEARCHED), slice(SEARCHED, None)

    def positive(part: slice, shift: int) -> Floats:
        places = np.arange(card.window) + shift
        inside = (places >= 0) & (places < card.window)
        moved = np.where(inside, np.take(rows[part], places, axis=1, mode="clip"), ends[part])
        return sequences.score_ragged(model, list(moved), "auto", "fp32")[:, card.positive_index]

    means = {0: positive(searched, 0).mean()}

    def best(shifts: Iterable[int]) -> int:
        for shift in shifts:
            if shift not in means and 0 <= (card.site or 0) + shift < card.window:
                means[shift] = positive(searched, shift).mean()
        return max(means, key=lambda shift: (means[shift], -abs(shift)))

    farthest = card.window // 3 // STEP * STEP
    near = best(range(-farthest, farthest + 1, STEP))
    shift = best(range(near - STEP // 2, near + STEP // 2 + 1)) if near else 0
    if not shift:
        return None
    before, after = (positive(tested, s) >= card.threshold for s in (0, shift))
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    changed = gained + lost
    p_value = sum(math.comb(changed, k) for k in range(gained, changed + 1)) / 2**changed
    if gained - lost < MIN_GAIN * len(before) or p_value > MAX_P_VALUE:
        return None
    return ShiftedSite(card.site + shift, len(before), int(before.sum()), int(after.sum()))


# --- A random sample of a stream

T = TypeVar("T")


class Reservoir(Generic[T]):
    """Keeps ``size`` of the items offered, each with the same probability (Vitter 1985, algorithm R)."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.offered = 0
        self._size = size
        self._rng = np.random.default_rng(seed)
        self._kept: list[tuple[int, T]] = []

    def offer(self, thing: T) -> None:
        """Offer an item."""
        self.offered += 1
        if len(self._kept) < self._size:
            self._kept.append((self.offered, thing))
        elif (place := int(self._rng.integers(self.offered))) < self._size:
            self._kept[place] = (self.offered, thing)

    @property
    def kept(self) -> list[T]:
        """The items kept, in the order in which they were offered."""
        return [thing for _, thing in sorted(self._kept, key=lambda pair: pair[0])]


# --- What is said of a file that is unlike the training data of a model: a line a cause, three at most

MAX_CAUTIONS = 3
_MAX_SCORES, _MAX_WINDOWS = 10_000, 400  # records that are held to judge a file of any size


class FileCheck:
    """Sees records and predictions of a run, and says whether the file is like the training data."""

    def __init__(
        self,
        model: TrainedModel,
        coverage: float | None = None,
        prior: float | None = None,
        *,
        recognized: bool = False,
    ) -> None:
        self._model, self._coverage, self._prior = model, coverage, prior
        self._held_out = HeldOutScores(model.card) if model.card.conformal else None
        self._origin = Origin(model, recognized=recognized)
        self._windows: Reservoir[str] = Reservoir(_MAX_WINDOWS)
        self._scores: Reservoir[tuple[float, ...]] = Reservoir(_MAX_SCORES)
        self.flags: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self._unaligned: list[str] = []

    def see(self, records: Iterable[Any] = (), predictions: Iterable[Prediction] = ()) -> None:
        """Keep some windows and scores, and count words, labels and flags."""
        card = self._model.card
        keep = card.site is not None and card.model.reads_sequences
        for record in records:
            self._origin.add(record)
            if keep and len(record.sequence) == card.window:
                self._windows.offer(record.sequence)
            if isinstance(record, Alignment) and looks_unaligned(record.codes, record.alphabet):
                self._unaligned.append(record.id)
        for prediction in predictions:
            self.labels[prediction.label] += 1
            self.flags.update(prediction.flags)
            self._scores.offer(prediction.probabilities)

    def lines(self) -> list[str]:
        """What is known of the origin of the file, and cautions."""
        told = [line for line in self._origin.findings() if not line.startswith(CAUTION)]
        return [*told, *(CAUTION + text for text in self.cautions())]

    def cautions(self) -> list[str]:
        """Reasons why the results may not hold; the model may compute some windows for them."""
        card, count = self._model.card, self.labels.total()
        reasons: list[str] = []
        if odd := self._unaligned:
            reasons.append(
                f"{len(odd)} of {count} alignments, such as '{odd[0]}', have no gaps, and their rows share "
                "no more letters than unrelated sequences do: a FASTA file is read as one alignment, so "
                "align its records first"
            )
        learned = card.training.get("config", {}).get("data", {}).get("truncate", "none")
        if self.flags[sequences.TRUNCATED] and card.model.reads_sequences and learned == "none":
            reasons.append(
                "the model never learned from parts of longer sequences, and may call them anything: "
                f"{setting('skip_unusable', True)} with {setting('truncate', 'none')} leaves them out"
            )
        foreign = [line.removeprefix(CAUTION) for line in self._origin.findings() if line.startswith(CAUTION)]
        reasons += foreign or self._out_of_domain(self.flags[OUT_OF_DOMAIN], count)
        if self._coverage is not None and card.model.contexts and self._model.context is None:
            reasons.append(
                "the label sets were calibrated on records whose context was known, and hold the true class "
                f"less often without it: give {setting('context')}"
            )
        if self._held_out and count and len(reasons) < MAX_CAUTIONS:
            reasons += self._score_cautions(self._held_out)
        reasons = reasons[:MAX_CAUTIONS]
        if reasons and self._coverage is not None:
            reasons[0] += f"; {setting('coverage', self._coverage, 'g')} can't be promised for this file"
        return reasons

    def _out_of_domain(self, odd: int, count: int) -> list[str]:
        """A caution if many records are unlike the training data; a single window rarely shows it."""
        domain = self._model.card.domain
        share = domain.calibration.flags.get(OUT_OF_DOMAIN, 0.0) if domain and domain.calibration else 0.0
        if odd < MIN_OUT_OF_DOMAIN or odd <= max(MIN_FLAGGED_SHARE, 2 * share) * count:
            return []
        later = f", and {share:.0%} of the data of its calibration" if 2 * share > MIN_FLAGGED_SHARE else ""
        return [
            f"{odd} of {count} records ({odd / count:.0%}) are out-of-domain: unlike the training data "
            f"of the model, of which about 1 % are{later}; its probabilities may not hold for this file"
        ]

    def _score_cautions(self, held_out: HeldOutScores) -> Iterator[str]:
        """A caution for each way in which the scores are unlike those of held-out examples."""
        model, card, prior = self._model, self._model.card, self._prior
        scores = np.array(self._scores.kept)  # (N, K), at the share of positives in the calibration data
        if prior is not None:
            scores = sequences.reweight(scores, card.positive_index, prior, card.prevalence)
        # Held-out examples were read in their contexts; without one all scores are nearer to the middle.
        in_context = model.context is not None or not card.model.contexts
        advice = "measure the model on known records like these (seqray evaluate)"
        advice += ", or calibrate it on them" if not card.model.reads_alignments else ""
        unusual, shifted = "", None
        if empty := held_out.empty_sets(scores, self._coverage):
            unusual = (
                f"{empty.share:.0%} of the label sets at a coverage of {empty.coverage:g} are empty, and at "
                f"most {empty.expected:.0%} should be: these records are unlike held-out ones of any class; "
                + advice
            )
        elif in_context and (unclear := held_out.unclear_scores(scores)):
            unusual = (
                f"too many scores are near the threshold, by {unclear:.0%} of the records or more: no "
                f"mixture of held-out {' and '.join(map(repr, card.classes))} has so many; {advice}"
            )
        if unusual or held_out.has_few_calls(scores, prior):
            shifted = find_shifted_site(model, [model.alphabet.encode(text) for text in self._windows.kept])
        if shifted:
            site = card.site or 0
            yield (
                f"the sites seem to lie at index {shifted.site} of the windows, not {site}: shifted, "
                f"{shifted.after} of {shifted.windows} windows are called {card.positive}, and "
                f"{shifted.before} as they are; cut windows that begin {abs(shifted.site - site)} letters "
                f"{'later' if shifted.site > site else 'earlier'}"
            )
        if unusual:
            yield unusual
