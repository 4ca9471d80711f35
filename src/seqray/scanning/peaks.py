"""Peaks and the calls made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import Codes, Floats, Ints, local_maxima, suppress_neighbors
from seqray.genome.genes import Annotation
from seqray.scanning.calls import CallTable
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import Contig, NullScores, ScanCounts, ScanResult
from seqray.scanning.windows import Grid, ScoredGrid, WindowRule

# --- Find the peaks of one strand of one contig: coarse profile, candidates, refinement, suppression

_MIN_PROBABILITY = 1e-9  # a threshold of 1 has no log-odds


def floor_below(threshold: float, margin: float) -> float:
    """Probability that lies ``margin`` log-odds units below a threshold."""
    bounded = min(max(threshold, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    odds = bounded / (1 - bounded) * np.exp(-margin)
    return float(odds / (1 + odds))


@dataclass(frozen=True, slots=True)
class PiecePeaks:
    """Peaks of one piece of one strand.

    Attributes
    ----------
    first, last
        Scores of the first and the last window of the piece's grid; NaN if not scored.
    end
        Index of the last window within the piece.
    starts, scores
        (n,) refined peaks that reach the threshold, in the order of the candidates that led to them.
    origin
        (n,) index within the piece of the window that each was refined from.
    letters
        (n, K) codes around each, see `ScoredGrid.letters`.
    """

    first: float
    last: float
    end: int
    starts: Ints
    scores: Floats
    origin: Ints
    letters: Codes


def join_pieces(
    grid: Grid, strand: str, pieces: Sequence[PiecePeaks], min_distance: int
) -> tuple[Ints, Floats, Codes]:
    """Join the peaks of all pieces of one strand, which are given in order.

    Starts and scores (n,) and letters (n, K) are in ascending order of site.
    """
    around = grid.circular  # the neighbor of the first point is the last one
    found = []
    for i, piece in enumerate(pieces):
        before = pieces[i - 1].last if i or around else np.nan
        after = pieces[(i + 1) % len(pieces)].first if i + 1 < len(pieces) or around else np.nan
        overtopped = (piece.origin == 0) & (before > piece.first)
        overtopped |= (piece.origin == piece.end) & (after > piece.last)
        found.append(tuple(part[~overtopped] for part in (piece.starts, piece.scores, piece.letters)))
    starts, scores, letters = (np.concatenate(parts) for parts in zip(*found, strict=True))
    length = grid.length if grid.circular else None
    kept = suppress_neighbors(grid.sites(starts, strand), scores, min_distance, length)
    return starts[kept], scores[kept], letters[kept]


@dataclass(frozen=True)
class PeakFinder:
    """The procedure, the same for the user's sequence and for a shuffled one.

    Peaks below ``threshold`` are dropped; ``margin`` is the log-odds units, per letter of spacing, by which a
    score may still rise; ``min_distance`` the smallest distance between two sites; ``points`` are those of
    the grid per piece.
    """

    threshold: float
    margin: float
    min_distance: int
    points: int

    def peaks(self, windows: ScoredGrid, strand: str) -> tuple[Ints, Floats]:
        """Starts and scores (n,) of the peaks of one strand, in ascending order of site."""
        pieces = [self.piece(windows, strand, first)[2] for first in self.firsts(windows)]
        return join_pieces(windows, strand, pieces, self.min_distance)[:2]

    def firsts(self, grid: Grid) -> range:
        """Index of the first grid point of each piece."""
        return range(0, grid.points, self.points)

    def piece(self, windows: ScoredGrid, strand: str, first: int) -> tuple[Ints, Floats, PiecePeaks]:
        """Score and refine one piece: starts and scores (m,) of its grid by ascending site, and its peaks.

        ``first`` is the first grid point of the piece.
        """
        starts = windows.starts(first, first + self.points, strand)
        scores = windows.score(starts, strand)
        candidates = local_maxima(scores) & (scores >= self._floor(windows.rule.stride))
        chosen = np.flatnonzero(candidates)
        kept, best, best_scores = self._refine(windows, strand, starts[chosen], scores[chosen])
        ends = float(scores[0]), float(scores[-1])
        letters = windows.letters(windows.sites(best, strand), strand)
        return starts, scores, PiecePeaks(*ends, len(starts) - 1, best, best_scores, chosen[kept], letters)

    def _floor(self, spacing: int) -> float:
        return floor_below(self.threshold, self.margin * spacing)

    def _refine(
        self, windows: ScoredGrid, strand: str, starts: Ints, scores: Floats
    ) -> tuple[Ints, Ints, Floats]:
        """Best window within less than one stride of each candidate, if it reaches the threshold.

        Returns the indices of those candidates, and start and score of their best windows.
        """
        stride = windows.rule.stride
        near, exists = windows.around(starts)  # (n, 2 stride - 1)
        found = np.full(near.shape, np.nan)
        found[:, stride - 1] = scores
        alive = np.arange(len(starts))
        for spacing, offsets in _rounds(stride):
            place = np.ix_(alive, stride - 1 + offsets)
            block = np.full(near[place].shape, np.nan)
            block[exists[place]] = windows.score(near[place][exists[place]], strand)
            found[place] = block
            alive = alive[np.nanmax(found[alive], axis=1, initial=-np.inf) >= self._floor(spacing)]
        best, best_scores = best_of_each(near[alive], found[alive])
        reached = best_scores >= self.threshold
        return alive[reached], best[reached], best_scores[reached]


def _rounds(stride: int) -> Iterator[tuple[int, Ints]]:
    """Spacing of each round of refinement, and its new offsets."""
    reach = np.arange(1 - stride, stride)
    known, spacing = reach == 0, stride // 2
    while spacing >= 1:
        new = (reach % spacing == 0) & ~known
        yield spacing, reach[new]
        known |= new
        spacing //= 2


def best_of_each(positions: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """Pick the best position of every row; of equal ones the first.

    Positions and scores are (n, m) alternatives of n candidates, the results (n,) each. A position with a
    score of NaN is excluded, and at least one score of a row is a number.
    """
    best = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
    rows = np.arange(len(best))
    return positions[rows, best], scores[rows, best]


# --- From the peaks of all pieces to the calls of a scan and the false calls to expect


def add_calls(
    calls: CallTable,
    contig: Contig,
    grid: Grid,
    strands: Iterable[str],
    min_distance: int,
    pieces_of: Callable[[str], Iterable[PiecePeaks]],
) -> None:
    """Add the peaks within the parts of a contig to the calls of the contigs before.

    ``pieces_of`` is called with a strand, and gives its pieces, in order.
    """
    rows = []
    for strand in strands:
        pieces = list(pieces_of(strand))
        starts, scores, letters = join_pieces(grid, strand, pieces, min_distance)
        sites = grid.sites(starts, strand)
        inside = contig.scanned.contains(sites)
        rows.append((strand, sites[inside], scores[inside], letters[inside]))
    calls.add(contig.name, contig.length, contig.circular, rows)


def finalize_scan(
    calls: CallTable,
    null_scores: Floats,
    counts: ScanCounts,
    options: ScanOptions,
    threshold: float,
    rule: WindowRule,
    contigs: Iterable[Contig],
    genes: Annotation | None = None,
) -> ScanResult:
    """Choose the threshold, estimate the false calls to expect, and keep the calls that reach it.

    ``null_scores`` (n,) are those of all peaks in shuffled sequence. ``counts`` are those of the whole scan,
    positions summed over the strands. Peaks were collected down to ``threshold``.
    """
    null = NullScores(null_scores, counts.null_positions) if counts.null_positions else None
    positions = counts.positions // len(options.strands)
    contigs = list(contigs)
    parts = {contig.name: contig.parts for contig in contigs if contig.parts is not None}
    linear = [contig.length for contig in contigs if not contig.circular]
    unknown = [contig.length for contig in contigs if genes is None or contig.name not in genes.genes]
    applied: float | None = threshold
    if options.fdr is not None:
        applied = null.threshold_for(options.fdr, calls.scores, positions) if null else None
    if options.per_kb is not None:
        applied = _threshold_of_best(calls.scores, options.most_calls(positions), threshold)
    return ScanResult(
        calls=calls.reaching(np.inf if applied is None else applied),
        threshold=applied,
        false_calls=None if null is None or applied is None else null.at(applied, positions),
        contigs=counts.contigs,
        letters=counts.letters,
        positions=positions,
        windows=counts.windows,
        unlike=counts.unlike / counts.compared if counts.compared and positions else None,
        parts=parts or None,
        strand=options.strand,
        genes=genes,
        from_positions=rule.is_position,
        contigs_without_genes=len(unknown),
        letters_without_genes=sum(unknown),
        circular=len(contigs) - len(linear),
        mean_linear_length=sum(linear) / len(linear) if linear else None,
    )


def _threshold_of_best(scores: Floats, count: int, lowest: float) -> float:
    """Threshold that this many scores reach (more if they are equal); the lowest if there are not as many."""
    return float(np.partition(scores, -count)[-count]) if count <= len(scores) else lowest
