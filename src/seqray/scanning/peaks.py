"""From scores to peaks: candidates of one piece of a strand, refinement, and suppression over all pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqray.core.arrays import Codes, Floats, Ints, local_maxima, suppress_neighbors
from seqray.scanning.contigs import Grid, OpenContig
from seqray.scanning.scorers import Scorer

_MIN_PROBABILITY = 1e-9  # a threshold of 1 has no log-odds


class PiecePeaks(NamedTuple):
    """Peaks of one piece of one strand.

    ``first`` and ``last`` are the scores of the outermost windows of its grid, NaN if not scored; ``end`` is
    the index of the last window. The peaks (n,) reach the threshold, in the order of the candidates that led
    to them: starts, scores, index of the window that each was ``origin``, and letters (n, K), see
    `Scorer.letters`.
    """

    first: float
    last: float
    end: int
    starts: Ints
    scores: Floats
    origin: Ints
    letters: Codes


def floor_below(threshold: float, margin: float) -> float:
    """Probability that lies ``margin`` log-odds units below a threshold."""
    bounded = min(max(threshold, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    odds = bounded / (1 - bounded) * np.exp(-margin)
    return float(odds / (1 + odds))


def find_peaks(
    scorer: Scorer, contig: OpenContig, strand: str, points: range, margin: float
) -> tuple[Ints, Floats, PiecePeaks]:
    """Score and refine the ``points`` of a piece: its starts and scores (m,) by site, and its peaks.

    A candidate is a local maximum of the coarse profile. The windows within less than one stride of it are
    scored in rounds, each at half the spacing, as long as it may still reach the threshold: by ``margin``
    log-odds units per letter of spacing.
    """
    stride, threshold = contig.stride, scorer.threshold
    starts = contig.starts(points.start, points.stop, strand)
    scores = scorer.score(contig, strand, starts)
    chosen = np.flatnonzero(local_maxima(scores) & (scores >= floor_below(threshold, margin * stride)))
    near, exists = contig.around(starts[chosen])  # (n, 2 stride - 1)
    refined = np.full(near.shape, np.nan)
    refined[:, stride - 1] = scores[chosen]
    reach, alive, spacing = np.arange(1 - stride, stride), np.arange(len(chosen)), stride // 2
    scored = reach == 0
    while spacing >= 1:
        new = (reach % spacing == 0) & ~scored
        place = np.ix_(alive, np.flatnonzero(new))
        block = np.full(near[place].shape, np.nan)
        block[exists[place]] = scorer.score(contig, strand, near[place][exists[place]])
        refined[place] = block
        highest = np.nanmax(refined[alive], axis=1, initial=-np.inf)
        alive = alive[highest >= floor_below(threshold, margin * spacing)]
        scored |= new
        spacing //= 2
    best, best_scores = best_of_each(near[alive], refined[alive])
    reached = best_scores >= threshold
    alive, best, best_scores = alive[reached], best[reached], best_scores[reached]
    letters = scorer.letters(contig, strand, contig.sites(best, strand))
    ends = float(scores[0]), float(scores[-1])
    return starts, scores, PiecePeaks(*ends, len(starts) - 1, best, best_scores, chosen[alive], letters)


def best_of_each(positions: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Pick the best position of every row; of equal ones the first.

    Positions and scores are (n, m) alternatives of n candidates, the results (n,) each. A position with a
    score of NaN is excluded, and at least one score of a row is a number.
    """
    best = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
    rows = np.arange(len(best))
    return positions[rows, best], scores[rows, best]


def join_pieces(
    grid: Grid, strand: str, pieces: Sequence[PiecePeaks], min_distance: int
) -> tuple[Ints, Floats, Codes]:
    """Join the peaks of all pieces of one strand, which are given in order.

    Sites and scores (n,) and letters (n, K) are in ascending order of site.
    """
    around = grid.circular  # the neighbor of the first point is the last one
    joined = []
    for i, piece in enumerate(pieces):
        before = pieces[i - 1].last if i or around else np.nan
        after = pieces[(i + 1) % len(pieces)].first if i + 1 < len(pieces) or around else np.nan
        overtopped = (piece.origin == 0) & (before > piece.first)
        overtopped |= (piece.origin == piece.end) & (after > piece.last)
        joined.append([part[~overtopped] for part in (piece.starts, piece.scores, piece.letters)])
    starts, scores, letters = (np.concatenate(parts) for parts in zip(*joined, strict=True))
    sites = grid.sites(starts, strand)
    kept = suppress_neighbors(sites, scores, min_distance, grid.length if around else None)
    return sites[kept], scores[kept], letters[kept]
