"""Cut seqlets, the stretches of a record on which high scores lie, out of explained records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core import Alphabet, Codes, Floats, Ints
from seqray.core.results import Explanation

# A promoter has about three elements that a classifier can lean on; one more leaves room for chance.
_MAX_SEQLETS_PER_RECORD = 4
# This only selects windows; whether their letters have something in common is tested later, against shuffled
# letters. A sixth of normally distributed windows lie one standard deviation above the mean.
_DEVIATIONS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Seqlets:
    """Windows of high scores with some letters to either side, in which a motif may be shifted.

    Attributes
    ----------
    codes
        (S, r) letter codes; beyond the ends of a record that of unknown letters.
    starts, lengths
        (S,) index in the record of the first column, negative where it lies before the record; and letters
        of that record.
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
    """Find the windows of unusually high summed support among those of the same record.

    Windows of ``width`` letters are at least ``apart`` letters from each other. The result has the first
    letters of at most four windows, the highest sum first; none in a record shorter than a window or with the
    same sum everywhere.
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
