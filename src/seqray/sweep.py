"""Sweep one strand of one contig: coarse profile, candidates, refinement, suppression.

A peak may lie between two windows of the grid and be missed by both. So local maxima of the coarse profile
are followed from well below the threshold, in rounds: windows around them are scored at half the spacing,
then at half of that, down to every letter. Before each round those are dropped whose best score so far lies
more than a margin below the threshold. The margin is in log-odds and proportional to the spacing scored so
far: the closer one has looked, the less a score can still rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.peaks import best_of_each, local_maxima, suppress
from seqray.windows import ContigWindows, Scorer

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
OnPiece = Callable[[Ints, Floats], None]

_ODDS_LIMIT = 1e-9  # a threshold of 1 has no log-odds


def floor_below(threshold: float, margin: float) -> float:
    """Probability that lies ``margin`` log-odds units below a threshold."""
    bounded = min(max(threshold, _ODDS_LIMIT), 1 - _ODDS_LIMIT)
    odds = bounded / (1 - bounded) * np.exp(-margin)
    return float(odds / (1 + odds))


@dataclass(frozen=True)
class Sweep:
    """The procedure, the same for the user's sequence and for a shuffled one.

    Attributes
    ----------
    scorer
        Codes (N, W) to probabilities (N,).
    threshold
        Peaks below it are dropped.
    margin
        Log-odds units, per letter of spacing, by which a score may still rise.
    min_distance
        Smallest distance between two sites.
    points
        Grid points per piece.
    """

    scorer: Scorer
    threshold: float
    margin: float
    min_distance: int
    points: int

    def peaks(
        self, windows: ContigWindows, strand: str, on_piece: OnPiece | None = None
    ) -> tuple[Ints, Floats]:
        """Find the peaks of one strand.

        Parameters
        ----------
        windows
            Of one contig.
        strand
            ``+`` or ``-``.
        on_piece
            Is given starts and scores of the grid's windows as they come, in ascending order of site.

        Returns
        -------
        starts, scores
            (n,) each, in ascending order of site.
        """
        found = [
            self._refine(windows, strand, starts, scores)
            for starts, scores in self._candidates(windows, strand, on_piece)
        ]
        starts = np.concatenate([starts for starts, _ in found])
        scores = np.concatenate([scores for _, scores in found])
        length = windows.length if windows.circular else None
        kept = suppress(windows.sites(starts, strand), scores, self.min_distance, length)
        return starts[kept], scores[kept]

    def _pieces(self, windows: ContigWindows, strand: str) -> Iterator[tuple[Ints, Floats]]:
        for first in range(0, windows.points, self.points):
            starts = windows.starts(first, first + self.points, strand)
            yield starts, windows.score(starts, strand, self.scorer)

    def _floor(self, spacing: int) -> float:
        return floor_below(self.threshold, self.margin * spacing)

    def _candidates(
        self, windows: ContigWindows, strand: str, on_piece: OnPiece | None
    ) -> Iterator[tuple[Ints, Floats]]:
        """Starts and scores of the local maxima above the floor; each piece waits for the next one."""
        floor = self._floor(windows.rule.stride)
        pieces = self._pieces(windows, strand)
        starts, scores = next(pieces)
        before = after_all = np.nan
        if windows.circular:  # the neighbour of the first point is the last one
            end = windows.starts(windows.points - 1, windows.points, strand)
            before, after_all = windows.score(end, strand, self.scorer)[0], scores[0]
        while True:
            if on_piece is not None:
                on_piece(starts, scores)
            following = next(pieces, None)
            after = after_all if following is None else following[1][0]
            chosen = local_maxima(scores, before, after) & (scores >= floor)
            yield starts[chosen], scores[chosen]
            if following is None:
                return
            before = scores[-1]
            starts, scores = following

    def _refine(
        self, windows: ContigWindows, strand: str, starts: Ints, scores: Floats
    ) -> tuple[Ints, Floats]:
        """Best window within less than one stride of each candidate, where it reaches the threshold."""
        stride = windows.rule.stride
        near, exists = windows.around(starts)  # (n, 2 stride - 1)
        found = np.full(near.shape, np.nan)
        found[:, stride - 1] = scores
        alive = np.arange(len(starts))
        for spacing, offsets in _rounds(stride):
            place = np.ix_(alive, stride - 1 + offsets)
            block = np.full(near[place].shape, np.nan)
            block[exists[place]] = windows.score(near[place][exists[place]], strand, self.scorer)
            found[place] = block
            alive = alive[np.nanmax(found[alive], axis=1, initial=-np.inf) >= self._floor(spacing)]
        best, best_scores = best_of_each(near[alive], found[alive])
        reached = best_scores >= self.threshold
        return best[reached], best_scores[reached]


def _rounds(stride: int) -> Iterator[tuple[int, Ints]]:
    """Spacing reached by each round of refinement, and the offsets that it adds to those known."""
    reach = np.arange(1 - stride, stride)
    known, spacing = reach == 0, stride // 2
    while spacing >= 1:
        new = (reach % spacing == 0) & ~known
        yield spacing, reach[new]
        known |= new
        spacing //= 2
