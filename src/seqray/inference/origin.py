"""Whether a file is like what a model was trained on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqray.calibration.conformal import CalledShare, HeldOutScores
from seqray.calibration.domain import Domain
from seqray.calibration.signature import MIN_WORDS, ContextDistance, KmerCounter, Signature
from seqray.core.alignment import looks_unaligned
from seqray.core.arrays import Codes, Floats, Ints, Reservoir
from seqray.core.card import Card
from seqray.core.records import Alignment, SequenceRecord
from seqray.core.results import Prediction
from seqray.inference.predictions import reweight
from seqray.inference.sequences import score_ragged
from seqray.modelfile.model import TrainedModel

# --- Where records are from, judged by their k-mers, and what is said of that

CAUTION = "caution: "
"""Begins those findings that speak against the results."""
MAX_NAMED_CONTEXTS = 4


def read_as(model: TrainedModel) -> str:
    """What to tell the user of a context that was recognized."""
    return (
        f"this file is read as {model.context}, which its first records are like; context='NAME' or "
        "context=None reads it otherwise"
    )


class Origin:
    """Watches the records that a model is given, and compares them with its training data.

    A model whose card has no signature is compared with nothing.

    Parameters
    ----------
    model
        With the context in which it reads the records.
    recognized
        Whether that context, if there is one, was recognized by the records (`recognize_context`).
    """

    def __init__(self, model: TrainedModel, *, recognized: bool = False) -> None:
        self._known, self._named = model.card.model.contexts, model.context
        self._recognized = [read_as(model)] if recognized and model.context else []
        self._locator = model.is_locator
        measured = model.card.locator.get("expected", ())
        self._new_species = any(row["held_out"] == "species" for row in measured)
        self._species = {row["species"] for row in measured}
        domain = Domain.of(model.card)
        later = domain.calibration if domain else None
        self._signature = domain.signature if domain else None
        self._calibrated_on = later.signature if later else None
        self._words = KmerCounter(model.alphabet)

    def watch(self, records: Iterable[SequenceRecord]) -> Iterable[SequenceRecord]:
        """Hand records on, and count their words."""
        return self._words.watch(records) if self._signature or self._calibrated_on else records

    @property
    def species(self) -> str | None:
        """The context that the file is as near to as pieces of its genome are; None if there is none."""
        return self._signature.nearest_context(self._words.counts) if self._signature else None

    @property
    def is_foreign(self) -> bool:
        """Whether the file is unlike everything that the model was trained on."""
        return self._signature is not None and self._signature.is_foreign(self._words.counts)

    def findings(self, species: str | None = None) -> Iterator[str]:
        """Yield the context that was recognized, cautions about it or the model, or what to name.

        ``species`` is the one that the user says the file is of.
        """
        yield from self._recognized
        counts = self._words.counts
        found = self._signature.compare(counts) if self._signature else []
        near = [likeness for likeness in found if not likeness.is_foreign]
        if self._calibrated_on:  # the probabilities hold for what is like these data, and for nothing else
            yield from _unlike_calibration(self._calibrated_on, counts)
        elif found and not near and self._signature and self._signature.is_mixture(counts):
            yield "this file is like the contexts of the training data together; give each its own file"
        elif found and not near:
            yield self._foreign(found[0])
        elif self._signature and not found and not species and len(self._species) == 1 and counts.any():
            yield (
                f"{CAUTION}fewer than {MIN_WORDS:,} letters are too few to tell whether this is "
                f"{min(self._species)}; for anything else the precision to expect is not known"
            )
        if near and self._named:
            named = f"context='{self._named}' is given"
            said = f"the first records are like {self._named}" if self._recognized else named
            yield from _against(said, self._named, found, near)
        elif near and near[0].context and self._known:
            yield _advice(near)
        if near and species:
            yield from _against(f"species='{species}' is given", species, found, near)
        elif near and self._locator:
            yield from self._nearest_species(near[0])

    def _nearest_species(self, nearest: ContextDistance) -> Iterator[str]:
        """Name the species if the file is near it, but not as near as pieces of its genome are."""
        if not nearest.is_close and nearest.context in self._species and len(self._species) > 1:
            yield (
                f"the nearest species that was measured is {_distances([nearest])}; this may be another: "
                "the precision to expect is the median over species; if the genome is of it, give "
                f"species='{nearest.context}'"
            )

    def _foreign(self, nearest: ContextDistance) -> str:
        if self._locator:
            then = "expect the precision of a species that is new, and"
            if not self._new_species:
                then = "the precision was not measured in such a genome:"
            return (
                f"{CAUTION}no genome of the training data is like this one ({_distances([nearest])}); "
                f"{then} compare calls with known sites"
            )
        both = self._signature.closest_pair(self._words.counts) if self._signature else None
        if both and both[0].is_close:
            names = f"{both[0].context} and {both[1].context}"
            return f"{CAUTION}this file is like a mixture of {names}; give each its own file and context=..."
        than = "what the model was trained on"
        if nearest.context:  # of a context with few training sequences nothing is known
            whole = self._signature is not None and set(self._known) <= set(self._signature.contexts)
            than = f"any context {'' if whole else 'with a signature '}that the model was trained on"
        return (
            f"{CAUTION}this file is unlike {than}, judged by its 4-mers "
            f"({_distances([nearest])}); its probabilities may not hold, measure them on known sites "
            "(seqray evaluate)"
        )


def _unlike_calibration(data: Signature, counts: Ints) -> Iterator[str]:
    """A caution if 4-mer counts (136,) are unlike each context of a later calibration, and all together."""
    found, pair = data.compare(counts), data.closest_pair(counts)
    if found and found[0].is_foreign and not data.is_mixture(counts) and not (pair and pair[0].is_close):
        yield (
            f"{CAUTION}this file is unlike the data that the model was calibrated on, judged by its "
            f"4-mers ({_distances(found[:1])}); its probabilities may not hold, measure them on known "
            "sites (seqray evaluate), or calibrate it on such data"
        )


def _against(
    said: str, name: str, found: list[ContextDistance], near: list[ContextDistance]
) -> Iterator[str]:
    """A caution if the file is unlike the context that it is read in and like another one."""
    named = [likeness for likeness in found if likeness.context == name]
    if named and named[0].is_foreign:
        unlike = f"this file is unlike it ({_distances(named)}) and nearer to {_distances(near)}"
        yield f"{CAUTION}{said}, but {unlike}"


def _advice(near: list[ContextDistance]) -> str:
    home = [likeness for likeness in near if likeness.is_close]
    if home:
        return (
            f"this file is like {_distances(home)}; name what it is with context=... for better probabilities"
        )
    return f"the nearest that the model was trained on is {_distances(near[:1])}; this may be another species"


def _distances(found: list[ContextDistance]) -> str:
    named = [
        f"{likeness.context} at a distance of {likeness.distance:.2f}"
        if likeness.context
        else f"a distance of {likeness.distance:.2f}"
        for likeness in found[:MAX_NAMED_CONTEXTS]
    ]
    more = len(found) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


# --- What is said of a file whose records are shorter or longer than all training sequences of a model

MIN_FLAGGED_SHARE = 0.05  # of the records; fewer are left to their flags


def usual_share(card: Card, flag: str) -> float:
    """Share of records that may have a flag: twice that of a later calibration, or `MIN_FLAGGED_SHARE`."""
    flags = card.domain.get("calibration", {}).get("flags", {})
    return max(MIN_FLAGGED_SHARE, 2 * flags.get(flag, 0.0))


def _learned_lengths(card: Card) -> tuple[int, int]:
    """Shortest and longest training sequence; the window for a card without them."""
    shortest, longest = card.domain.get("length", (card.window, card.window))
    return shortest, longest


def length_cautions(card: Card, flags: Mapping[str, int], count: int) -> Iterator[str]:
    """Yield cautions for a file that has many records of lengths that the model has never seen.

    Of the flags, ``short`` and ``long`` are read.
    """
    shortest, longest = _learned_lengths(card)
    sides = {
        "short": ("shorter", f"{shortest} letters or more"),
        "long": ("longer", f"at most {longest} letters"),
    }
    for flag, (how, learned) in sides.items():
        odd = flags.get(flag, 0)
        if odd > usual_share(card, flag) * count:
            yield (
                f"{odd} of {count} records ({odd / count:.0%}) are {how} than any sequence that the model "
                f"was trained on ({learned}); its probabilities may not hold for them"
            )


# --- Whether windows are cut around another place than the site of a model: shift a few, and count calls

STEP = 5  # letters between the shifts that are tried first; models tolerate two
SEARCHED, TESTED = 24, 128  # windows to find a shift with, and others to test it on
MIN_WINDOWS = 50
MAX_P_VALUE = 1e-4
MIN_GAIN = 0.05  # share of the windows that the shift must add to the calls
_SEED = 20_240_229


@dataclass(frozen=True, slots=True)
class ShiftedSite:
    """Windows that are called more often when shifted.

    ``site`` is the 0-based place in the windows where the sites seem to lie. Of the windows tested,
    ``before`` were called positive as they are, and ``after`` when shifted.
    """

    site: int
    windows: int
    before: int
    after: int


def find_shifted_site(model: TrainedModel, windows: Sequence[Codes]) -> ShiftedSite | None:
    """Find the place of sites in windows that were cut around another one; None if it is the model's.

    A window that is shifted by s letters loses s letters at one end and gets those of another window at the
    other. Some windows choose the shift with the highest mean probability of the positive class, in steps of
    `STEP` letters and then of one, up to a third of the window. Others test this shift alone: windows that
    only the shift calls against those that only it does not call, by a one-sided sign test. About 600 windows
    of 81 letters are computed, or 1,200 of 251.

    Parameters
    ----------
    model
        With a site (`Card.site`).
    windows
        Letter codes of records; those of another length than the model's window are ignored.
    """
    card = model.card
    whole = [codes for codes in windows if len(codes) == card.window]
    if card.site is None or model.is_locator or len(whole) < MIN_WINDOWS:
        return None
    rng = np.random.default_rng(_SEED)
    rows = np.stack([whole[i] for i in rng.permutation(len(whole))[: SEARCHED + TESTED]])
    ends = np.roll(rows, 1, axis=0)
    searched, tested = slice(SEARCHED), slice(SEARCHED, None)
    shift = _best_shift(model, rows[searched], ends[searched])
    if not shift:
        return None
    before, after = (_called(model, _shifted(rows[tested], ends[tested], s)) for s in (0, shift))
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    if gained - lost < MIN_GAIN * len(before) or _sign_test(gained, lost) > MAX_P_VALUE:
        return None
    return ShiftedSite(card.site + shift, len(before), int(before.sum()), int(after.sum()))


def _best_shift(model: TrainedModel, rows: Codes, ends: Codes) -> int:
    """Shift with the highest mean probability; 0 where no other is higher."""
    width = model.card.window
    farthest = width // 3 // STEP * STEP
    means = {0: _positive(model, rows).mean()}

    def best(shifts: Sequence[int]) -> int:
        for shift in shifts:
            if shift not in means and 0 <= (model.card.site or 0) + shift < width:
                means[shift] = _positive(model, _shifted(rows, ends, shift)).mean()
        return max(means, key=lambda shift: (means[shift], -abs(shift)))

    near = best(range(-farthest, farthest + 1, STEP))
    return best(range(near - STEP // 2, near + STEP // 2 + 1)) if near else 0


def _shifted(rows: Codes, ends: Codes, shift: int) -> Codes:
    """Windows whose letters come from ``shift`` places later; letters of ``ends`` fill the gap."""
    places = np.arange(rows.shape[1]) + shift
    inside = (places >= 0) & (places < rows.shape[1])
    return np.where(inside, np.take(rows, places, axis=1, mode="clip"), ends)


def _positive(model: TrainedModel, rows: Codes) -> np.ndarray:
    return score_ragged(model, list(rows), "auto", "fp32")[:, model.card.positive_index]


def _called(model: TrainedModel, rows: Codes) -> np.ndarray:
    return _positive(model, rows) >= model.card.threshold


def _sign_test(more: int, fewer: int) -> float:
    """Probability that so many of all changes, or more, are of the first kind if both are as likely."""
    n = more + fewer
    return sum(math.comb(n, k) for k in range(more, n + 1)) / 2**n


# --- What is said of a file that is unlike the training data of a model: a line a cause, three at most

MAX_CAUTIONS = 3
MIN_OUT_OF_DOMAIN = 5  # records that a caution needs
OUT_OF_DOMAIN = "out-of-domain"
_MAX_SCORES, _MAX_WINDOWS = 10_000, 400  # records that are held to judge a file of any size


class FileCheck:
    """Watches records and predictions of a run, and says whether the file is like the training data.

    Parameters
    ----------
    model
        With the context in which it reads the records.
    coverage, prior
        Of the predictions (`seqray.inference.PredictOptions`).
    recognized
        Whether the context of the model was recognized by the records.
    labeled
        Whether the share of each class is known, so that the number of calls says nothing new.
    """

    def __init__(
        self,
        model: TrainedModel,
        coverage: float | None = None,
        prior: float | None = None,
        *,
        recognized: bool = False,
        labeled: bool = False,
    ) -> None:
        self._model, self._coverage, self._prior = model, coverage, prior
        self._labeled = labeled
        self._held_out = HeldOutScores(model.card) if model.card.conformal else None
        self._origin = Origin(model, recognized=recognized)
        self._windows: Reservoir[str] = Reservoir(_MAX_WINDOWS)
        self._scores: Reservoir[tuple[float, ...]] = Reservoir(_MAX_SCORES)
        self.flags: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self._unaligned: list[str] = []

    def watch_records(self, records: Iterable[Any]) -> Iterator[Any]:
        """Hand records on, and keep some windows."""
        card = self._model.card
        keep = card.site is not None and card.model.reads_sequences
        for record in self._origin.watch(records):
            if keep and len(record.sequence) == card.window:
                self._windows.offer(record.sequence)
            if isinstance(record, Alignment) and looks_unaligned(record.codes, record.alphabet):
                self._unaligned.append(record.id)
            yield record

    def watch_predictions(self, predictions: Iterable[Prediction]) -> Iterator[Prediction]:
        """Hand predictions on, counted by label and flag."""
        for prediction in predictions:
            self.labels[prediction.label] += 1
            self.flags.update(prediction.flags)
            self._scores.offer(prediction.probabilities)
            yield prediction

    def lines(self) -> list[str]:
        """What is known of the origin of the file, and cautions."""
        told = [line for line in self._origin.findings() if not line.startswith(CAUTION)]
        return [*told, *(CAUTION + text for text in self.cautions())]

    def cautions(self) -> list[str]:
        """Reasons why the results may not hold; the model may compute some windows for them."""
        found = [*self._cautions()][:MAX_CAUTIONS]
        if found and self._coverage is not None:
            found[0] += f"; coverage={self._coverage:g} can't be promised for this file"
        return found

    def _cautions(self) -> Iterator[str]:
        card, count = self._model.card, self.labels.total()
        said = [line for line in self._origin.findings() if line.startswith(CAUTION)]
        if odd := self._unaligned:
            yield (
                f"{len(odd)} of {count} alignments, such as '{odd[0]}', have no gaps, and their rows share "
                "no more letters than unrelated sequences do: a FASTA file is read as one alignment, so "
                "align its records first"
            )
        yield from length_cautions(card, self.flags, count)
        unlike = [line.removeprefix(CAUTION) for line in said] or [
            *out_of_domain_caution(card, self.flags[OUT_OF_DOMAIN], count)
        ]
        yield from unlike
        if self._coverage is not None and card.model.contexts and self._model.context is None:
            yield (
                "the label sets were calibrated on records whose context was known, and hold the true class "
                "less often without it: give context=..."
            )
        if self._held_out and count:
            scores = _as_calibrated(card, self._scores.kept, self._prior)
            windows, asked = self._windows.kept, (self._coverage, self._prior)
            yield from score_cautions(
                self._model, self._held_out, windows, scores, *asked, self._labeled, bool(unlike)
            )


def out_of_domain_caution(card: Card, odd: int, count: int) -> Iterator[str]:
    """Caution about a file of which many records are out-of-domain; a single window rarely shows it."""
    usual = usual_share(card, OUT_OF_DOMAIN)
    if odd >= MIN_OUT_OF_DOMAIN and odd > usual * count:
        later = f", and {usual / 2:.0%} of the data of its calibration" if usual > MIN_FLAGGED_SHARE else ""
        yield (
            f"{odd} of {count} records ({odd / count:.0%}) are out-of-domain: unlike the training data "
            f"of the model, of which about 1 % are{later}; its probabilities may not hold for this file"
        )


def score_cautions(
    model: TrainedModel,
    held_out: HeldOutScores,
    windows: Sequence[str],
    probabilities: Floats,
    coverage: float | None = None,
    prior: float | None = None,
    labeled: bool = False,
    is_foreign: bool = False,
) -> Iterator[str]:
    """Yield a caution for each way in which the scores of a file are unlike those of held-out examples.

    Parameters
    ----------
    windows
        Letters of some records, to look for sites that lie elsewhere.
    probabilities
        (N, K) calibrated, before any re-weighting, of some records.
    coverage
        Of the sets that were asked for.
    prior
        Expected share of positives; that of the calibration data by default.
    labeled
        Leave out the number of calls.
    is_foreign
        Whether the sequences are unlike the training data, so that the share of positives can't be estimated.
    """
    # Held-out examples were read in their contexts; without one all scores are nearer to the middle.
    comparable = labeled or model.context is not None or not model.card.model.contexts
    scores = list(_unlike_scores(held_out, model.card, probabilities, coverage, comparable))
    share = held_out.called_share(probabilities, prior)
    if scores or share or held_out.has_few_calls(probabilities, prior):
        scores = [*_site_caution(model, windows), *scores]
    yield from scores
    if share and not labeled:
        yield _share_caution(model.card, share, prior, comparable and not (scores or is_foreign))


def _unlike_scores(
    held_out: HeldOutScores, card: Card, probabilities: Floats, coverage: float | None, comparable: bool
) -> Iterator[str]:
    """One caution at most: about empty sets, else about scores in the middle."""
    advice = "measure the model on known records like these (seqray evaluate)"
    advice += ", or calibrate it on them" if card.model.kind != "alignment" else ""
    empty = held_out.empty_sets(probabilities, coverage)
    unclear = held_out.unclear_scores(probabilities) if comparable else None
    if empty:
        yield (
            f"{empty.share:.0%} of the label sets at a coverage of {empty.coverage:g} are empty, and at "
            f"most {empty.expected:.0%} should be: these records are unlike held-out ones of any class; "
            + advice
        )
    elif unclear:
        yield (
            f"{unclear.share:.0%} of the records or more score nearer to the threshold than any mixture of "
            f"held-out {' and '.join(card.classes)} does; {advice}"
        )


def _share_caution(card: Card, share: CalledShare, prior: float | None, comparable: bool) -> str:
    """A caution, with an estimate of the share of positives only if nothing else speaks against it."""
    name, more = card.positive, share.called > share.expected
    source = "as in the calibration data" if prior is None else "as prior=... says"
    counted = "at the model's own threshold" + ("" if prior is None else " and without prior=...")
    found = f"{counted}, {share.called:.0%} of the records are called {name}, "
    found += f"{'more' if more else 'fewer'} than if {100 * share.expected:.3g}% were, {source}"
    wrong = "makes false calls" if more else "misses many"
    if comparable and share.likely:
        low, high = share.likely
        advised = min(max((low + high) / 2, 0.01), 0.99)  # 0 and 1 leave nothing to predict
        advice = (
            f"if {low:.0%} to {high:.0%} are, which explains the scores as long as both classes are like the "
            f"held-out ones, give prior={advised:.2f}; if not, the model {wrong} in this file"
        )
    else:
        advice = (
            f"either the share of {name} is another one here, which prior=... takes, or the model {wrong} in "
            "this file: its scores are unlike held-out ones and can't tell; label some records (seqray "
            "evaluate)"
        )
    return f"{found}: {advice}"


def _site_caution(model: TrainedModel, windows: Sequence[str]) -> Iterator[str]:
    found = find_shifted_site(model, [model.alphabet.encode(text) for text in windows])
    if found:
        site, name = model.card.site or 0, model.card.positive
        yield (
            f"the sites seem to lie at index {found.site} of the windows, not {site}: shifted, {found.after} "
            f"of {found.windows} windows are called {name}, and {found.before} as they are; cut windows that "
            f"begin {abs(found.site - site)} letters {'later' if found.site > site else 'earlier'}"
        )


def _as_calibrated(card: Card, rows: Sequence[tuple[float, ...]], prior: float | None) -> Floats:
    """Probabilities (N, K) at the share of positives in the calibration data."""
    probabilities = np.array(rows)
    if prior is None:
        return probabilities
    return reweight(probabilities, card.positive_index, prior, card.prevalence)
