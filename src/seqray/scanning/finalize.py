"""From the peaks of all pieces to the calls of a scan and the false calls to expect."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from seqray.annotation import Annotation
from seqray.core import Floats
from seqray.scanning.calls import CallTable
from seqray.scanning.false_calls import NullScores
from seqray.scanning.options import ScanOptions
from seqray.scanning.peak_finder import PiecePeaks, join_pieces
from seqray.scanning.results import Contig, ScanCounts, ScanResult
from seqray.scanning.windows import Grid, WindowRule


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
