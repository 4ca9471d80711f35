"""The work of one scan, in units that know nothing of each other: pieces of contigs, shuffled blocks.

A unit is one piece of one strand of one contig, or one strand of one shuffled block. Units are numbered as
they come, and a share of the work is every N-th of them. Everything that is cheap (reading, counting letters,
drawing and shuffling blocks) is done by every share, so that each unit is what it is in a whole scan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from seqray.core import Codes, Floats, InputError, Intervals, Ints, NamesWanted, RegionSet, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.scanning.calls import CallTable
from seqray.scanning.false_calls import BlockSampler, NullScores
from seqray.scanning.options import ScanOptions
from seqray.scanning.sweep import Sweep, Swept
from seqray.scanning.types import Contig, Detector, Profile, ScanCallbacks, ScanCounts, ScanResult, Share
from seqray.scanning.windows import ContigWindows, Grid, WindowRule

OnProfile = Callable[[Profile], None]

# Windows per contig that are compared with the model's training data: a share to 2 per cent or better.
_WINDOWS_COMPARED = 500


class ScanWork:
    """One scan under way, or one share of it: what has been swept and counted so far.

    Parameters
    ----------
    detector, options, callbacks
        As `seqray.scanning.scan_sequences`.
    share
        Which units are swept.
    """

    def __init__(
        self, detector: Detector, options: ScanOptions, callbacks: ScanCallbacks, share: Share | None = None
    ) -> None:
        self.detector = detector
        self.options = options
        self.callbacks = callbacks
        self.rule = window_rule(detector, options)
        self.sweep = Sweep(
            self._count_and_score,
            options.lowest_threshold(detector.threshold),
            options.margin,
            options.min_distance,
            max(1, options.piece // options.stride),
        )
        self.counts = ScanCounts()
        self._sampler = BlockSampler(
            int(options.null_mb * 1e6), detector.window, detector.alphabet.unknown, options.seed
        )
        self._share = share or Share()
        self._units = 0
        # Of what the shares of one scan have to agree on; a whole scan has nobody to agree with.
        self._checksum = None if share is None else hashlib.sha256()

    @property
    def checksum(self) -> str:
        """SHA-256 of the codes opened so far, each contig's followed by its soft masks where they count."""
        return "" if self._checksum is None else self._checksum.hexdigest()

    def _count_and_score(self, codes: Codes) -> npt.NDArray[np.floating]:
        scores = self.detector.score(codes)
        self.counts.windows += len(codes)
        if self.callbacks.on_windows is not None:
            self.callbacks.on_windows(self.counts.windows)
        return scores

    def _is_ours(self) -> bool:
        """Count one more unit, and tell whether it belongs to this share."""
        ours = self._units % self._share.total == self._share.number - 1
        self._units += 1
        return ours

    def contigs(self, records: Iterable[SequenceRecord]) -> Iterator[tuple[Contig, ContigWindows]]:
        """Yield each contig that is scanned, with its windows.

        Raises
        ------
        InputError
            As `seqray.scanning.scan_sequences`.
        """
        regions = None if self.options.regions is None else RegionSet(self.options.regions)
        circles = NamesWanted((name, "--circular-id") for name in self.options.circular_ids)
        for record in records:
            circles.see(record.id)
            parts = regions.parts_of(record.id, len(record)) if regions is not None else None
            if regions is not None and parts is None:
                continue
            if len(record) < self.detector.window:
                self._skip(record)
                continue
            circular = self.options.circular or record.circular or record.id in self.options.circular_ids
            contig = Contig(record.id, len(record), circular, parts)
            yield contig, self._open(contig, record)
        circles.check()
        if regions is not None:
            regions.check()

    def _skip(self, record: SequenceRecord) -> None:
        reason = f"{len(record)} letters, shorter than the window of {self.detector.window}"
        if self.callbacks.on_skip is None:
            raise InputError(reason, where=f"record '{record.id}'", remedy="remove it, or don't use --strict")
        self.callbacks.on_skip(SkippedRecord(record.id, reason))

    def _open(self, contig: Contig, record: SequenceRecord) -> ContigWindows:
        """Count a contig, show it to the sampler and make its windows."""
        codes = self.detector.alphabet.encode(record.sequence)
        length, circular, options = contig.length, contig.circular, self.options
        masked = Intervals.merge(record.soft_masked) if options.skip_soft_masked else None
        if self._checksum is not None:
            self._checksum.update(codes.data)
            if masked is not None:
                self._checksum.update(np.array(masked.pairs(), "<i8").data)
        # Peaks just outside the parts are needed to know which ones within are suppressed.
        halo = 2 * (options.min_distance + options.stride)
        scored = contig.scanned.widened(halo, length, circular=circular)
        windows = ContigWindows(codes, self.rule, circular=circular, parts=scored, masked=masked)
        self.counts.contigs += 1
        self.counts.letters += length
        if self.callbacks.on_contig is not None:
            self.callbacks.on_contig(contig.name, length)
        if options.null_mb:
            self._sampler.offer(codes, scored.widened(self.rule.window, length, circular=circular), masked)
        if self.detector.outlying is not None and self._share.number == 1:
            compared = windows.at_sites(contig.scanned.spread(_WINDOWS_COMPARED))
            self.counts.compared += len(compared)
            self.counts.unlike += int(np.count_nonzero(self.detector.outlying(compared)))
        return windows

    def pieces(
        self, contig: Contig, windows: ContigWindows, strand: str, on_profile: OnProfile | None
    ) -> Iterator[tuple[int, Swept]]:
        """Sweep the pieces of one strand that are ours; yields the first grid point of each and its peaks."""

        def on_piece(starts: Ints, scores: Floats) -> None:
            profile = make_profile(contig, windows, strand, starts, scores)
            self.counts.positions += _positions(windows.sites(starts, strand), profile, scores, contig)
            if on_profile is not None:
                on_profile(profile)

        for first in self.sweep.firsts(windows):
            if self._is_ours():
                yield first, self.sweep.piece(windows, strand, first, on_piece)

    def sweep_null(self) -> Floats:
        """Sweep our share of the shuffled blocks in the very same way; (n,) scores of the peaks in them."""
        scores = [np.empty(0)]
        for block in self._sampler.shuffled():
            windows = ContigWindows(block, self.rule)
            for strand in self.options.strands:
                if self._is_ours():
                    scores.append(self.sweep.peaks(windows, strand)[1])
            self.counts.null_positions += len(block) - self.rule.window + 1
        return np.concatenate(scores)


def window_rule(detector: Detector, options: ScanOptions) -> WindowRule:
    """What a window of this scan is."""
    unknown = detector.alphabet.unknown
    return WindowRule(detector.window, detector.anchor, options.stride, options.max_ambiguous, unknown)


def make_profile(contig: Contig, grid: Grid, strand: str, starts: Ints, scores: Floats) -> Profile:
    """The scores of a piece at their sites, those outside the parts of the contig taken out."""
    sites = grid.sites(starts, strand)
    if contig.parts is not None:
        scores = np.where(contig.parts.contains(sites), scores, np.nan)
    return Profile(contig.name, contig.length, strand, sites, grid.gaps(starts), scores)


def _positions(sites: Ints, profile: Profile, scores: Floats, contig: Contig) -> int:
    """Count the positions within the parts that the scored windows stand for."""
    known, parts, length = ~np.isnan(scores), contig.scanned, contig.length
    first, last = sites[known], sites[known] + profile.gaps[known]
    beyond = np.maximum(last - length, 0)  # across the origin of a circle
    ends = parts.covered(np.minimum(last, length)) + parts.covered(beyond)
    return int((ends - parts.covered(first)).sum())


def within_parts(
    contig: Contig, grid: Grid, strand: str, peaks: tuple[Ints, Floats]
) -> tuple[str, Ints, Ints, Floats]:
    """The peaks in the parts of a contig, as `CallTable` takes them: strand, starts, sites and scores."""
    starts, scores = peaks
    sites = grid.sites(starts, strand)
    inside = contig.scanned.contains(sites)
    return strand, starts[inside], sites[inside], scores[inside]


def finalize_scan(
    calls: CallTable, null_scores: Floats, counts: ScanCounts, options: ScanOptions, threshold: float
) -> ScanResult:
    """Settle the threshold and the false calls to expect, and hand over the calls.

    Parameters
    ----------
    calls
        All that were collected.
    null_scores
        (n,) of all peaks in shuffled sequence.
    counts
        Of the whole scan; positions are summed over the strands.
    options
        Of the scan.
    threshold
        Down to which peaks were collected.
    """
    null = NullScores(null_scores, counts.null_positions) if counts.null_positions else None
    positions = counts.positions // len(options.strands)
    in_force: float | None = threshold
    if options.fdr is not None:
        in_force = null.threshold_for(options.fdr, calls.scores, positions) if null else None
    return ScanResult(
        calls=calls.reaching(np.inf if in_force is None else in_force),
        threshold=in_force,
        false_calls=None if null is None or in_force is None else null.at(in_force, positions),
        contigs=counts.contigs,
        letters=counts.letters,
        positions=positions,
        windows=counts.windows,
        unlike=counts.unlike / counts.compared if counts.compared else None,
    )
