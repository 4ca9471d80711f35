"""Stretches of high scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.explanation import Explanation, Motif
from seqray.explanations.checks import mean_ranks

# --- Cut seqlets, the stretches of a record on which high scores lie, out of explained records

# A promoter has about three elements that a classifier can lean on; one more leaves room for chance.
_MAX_SEQLETS_PER_RECORD = 4
# This only selects windows; whether their letters have something in common is tested later, against shuffled
# letters. A sixth of normally distributed windows lie one standard deviation above the mean.
_DEVIATIONS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Seqlets:
    """Windows of high scores with some letters to either side, in which a motif may be shifted.

    ``codes`` (S, r) are those of unknown letters beyond the ends of a record; ``starts`` (S,) are indices in
    the record of the first column, negative before the record; ``lengths`` (S,) are letters of that record.
    """

    codes: Codes
    starts: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.codes)

    def select(self, chosen: npt.NDArray[np.bool_]) -> Seqlets:
        """Those where ``chosen``, shape (S,), is true."""
        return Seqlets(self.codes[chosen], self.starts[chosen], self.lengths[chosen])

    def shuffled(self, rng: np.random.Generator) -> Seqlets:
        """The same with the letters of each seqlet in random order: composition stays, motifs do not."""
        return Seqlets(rng.permuted(self.codes, axis=1), self.starts, self.lengths)


def window_sums(scores: Floats, width: int) -> Floats:
    """Sums (n - width + 1,) of the scores (n,) in each window; scores below 0 and nan count as 0."""
    running = np.concatenate([[0.0], np.cumsum(np.fmax(scores, 0.0))])
    return running[width:] - running[:-width]


def window_peaks(scores: Floats, width: int, apart: int) -> list[int]:
    """Find the windows of unusually high summed support among those of the same record: their first letters.

    At most four windows of ``width`` letters, at least ``apart`` letters from each other, the highest sum
    first; none in a record shorter than a window or with the same sum everywhere.
    """
    if len(scores) < width:
        return []
    sums = window_sums(scores, width)
    if np.ptp(sums) <= 1e-9 * sums.max():  # else rounding errors would make peaks of a flat record
        return []
    limit = sums.mean() + _DEVIATIONS * sums.std()
    found: list[int] = []
    while len(found) < _MAX_SEQLETS_PER_RECORD and sums.max() > limit:
        best = int(sums.argmax())
        found.append(best)
        sums[max(0, best - apart + 1) : best + apart] = -np.inf
    return found


def extract_seqlets(explanations: Iterable[Explanation], alphabet: Alphabet, width: int) -> Seqlets:
    """Cut the seqlets out of all records; no two of a record share a letter.

    A seqlet has ``width // 3`` letters more on either side than the window that is scored, because scores and
    motif may be shifted against each other.
    """
    flank = width // 3
    region = width + 2 * flank
    codes, starts, lengths = [], [], []
    for explanation in explanations:
        padding = np.full(flank, alphabet.unknown, dtype=np.uint8)
        padded = np.concatenate([padding, alphabet.encode(explanation.sequence), padding])
        for peak in window_peaks(explanation.scores, width, apart=region):
            codes.append(padded[peak : peak + region])
            starts.append(peak - flank)
            lengths.append(len(explanation.sequence))
    return Seqlets(
        np.array(codes, dtype=np.uint8).reshape(-1, region),
        np.array(starts, dtype=np.int64),
        np.array(lengths, dtype=np.int64),
    )


# --- Whether the sites of a motif are where the scores are high, or anywhere in the records

_PSEUDOCOUNT = 0.5
# Passed by one in thirty thousand if scores and motif are independent; that strict because the motif was
# fitted to letters with high scores.
_SUPPORT_DEVIATIONS = 4.0


def support_ranks(
    motif: Motif, explanations: Sequence[Explanation], alphabet: Alphabet, background: Floats
) -> Floats:
    """Rank of the scores under each good match to a motif, among all windows of its record.

    Those windows are taken that match best, half as many as the motif has sites; records without a site count
    too. A rank is 0 for the lowest and 1 for the highest sum of supporting scores of the record; ranks are
    uniform if the scores are independent of the motif. ``background`` holds the (A,) shares of the letters.
    """
    smooth = motif.counts + _PSEUDOCOUNT * background
    odds = np.log(smooth / smooth.sum(axis=1, keepdims=True) / background)
    width, weights = len(odds), np.pad(odds, ((0, 0), (0, 1)))  # unknown letters, last, weigh nothing
    long_enough = [e for e in explanations if len(e.sequence) >= width]
    matches = []
    for explanation in long_enough:
        windows = np.lib.stride_tricks.sliding_window_view(alphabet.encode(explanation.sequence), width)
        matches.append(weights[np.arange(width), windows].sum(axis=1))
    if not matches:
        return np.empty(0)
    # As many as half of the sites: the better half of them, unless others match as well.
    limit = np.sort(np.concatenate(matches))[-max(1, motif.sites // 2)]
    ranks = []
    for explanation, match in zip(long_enough, matches, strict=True):
        sums = window_sums(explanation.scores, width)
        ranks.append((mean_ranks(sums)[match >= limit] - 1) / max(1, len(sums) - 1))
    return np.concatenate(ranks)


def scores_prefer(
    motif: Motif, explanations: Sequence[Explanation], alphabet: Alphabet, background: Floats
) -> bool:
    """Whether the mean of the `support_ranks` exceeds 0.5 by more than chance allows."""
    ranks = support_ranks(motif, explanations, alphabet, background)
    deviation = 1 / np.sqrt(12 * max(1, len(ranks)))  # of the mean of uniform ranks
    return bool(len(ranks) and ranks.mean() - 0.5 > _SUPPORT_DEVIATIONS * deviation)
