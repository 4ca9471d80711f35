"""What is said of a file that is unlike the training data of a model: a line a cause, three at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from seqray.calibration import CalledShare, HeldOutScores
from seqray.core import Alignment, Card, Floats, Reservoir
from seqray.core.msa import looks_unaligned
from seqray.core.results import Prediction
from seqray.inference.origin import CAUTION, Origin
from seqray.inference.predictions import reweight
from seqray.inference.record_lengths import MIN_FLAGGED_SHARE, length_cautions, usual_share
from seqray.inference.site_place import find_shifted_site
from seqray.modelfile import TrainedModel

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
