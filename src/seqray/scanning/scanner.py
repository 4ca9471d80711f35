"""The work of a scan in independent units: pieces of contigs, and shuffled blocks.

A unit is one piece of one strand of one contig, or one strand of one shuffled block. Units are numbered as
they come, and one of N shards does every N-th of them. Every shard does what is cheap (reading, counting
letters, drawing and shuffling blocks), so that each unit is the same as in a whole scan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from seqray.annotation import Annotation, Gene
from seqray.core import Floats, InputError, Intervals, MissingContigs, RegionSet, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.scanning.detector import Detector
from seqray.scanning.false_calls import BlockSampler
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.peak_finder import PeakFinder, PiecePeaks
from seqray.scanning.results import Contig, ScanCounts, ScoreProfile
from seqray.scanning.windows import ScoredGrid

# Windows per contig that are compared with the model's training data: their share is known to 2 % or better.
_WINDOWS_COMPARED = 500


class Scanner:
    """Scores the units of a scan, or of one shard of it, and counts.

    Without a shard number all units are scored.
    """

    def __init__(
        self,
        detector: Detector,
        options: ScanOptions,
        callbacks: ScanCallbacks,
        shard: ShardNumber | None = None,
    ) -> None:
        self.detector = detector
        self.options = options
        self.callbacks = callbacks
        self.rule = detector.rule(options)
        self.finder = PeakFinder(
            options.lowest_threshold(detector.default_threshold(options)),
            options.margin,
            detector.distance(options),
            max(1, options.piece // self.rule.stride),
        )
        self.counts = ScanCounts()
        letters = int((detector.null_mb if options.null_mb is None else options.null_mb) * 1e6)
        self._sampler = (
            BlockSampler(letters, self.rule.window, self.rule.unknown, options.seed) if letters else None
        )
        self._genes: dict[str, tuple[Gene, ...]] = {}
        self._shard = shard or ShardNumber()
        self._units = 0
        self._scanned = 0.0  # letters, on all strands
        self._checksum = None if shard is None else hashlib.sha256()  # must be equal in all shards

    @property
    def checksum(self) -> str:
        """SHA-256 of the codes of all contigs so far, each followed by its soft masks if they are skipped."""
        return "" if self._checksum is None else self._checksum.hexdigest()

    @property
    def annotation(self) -> Annotation | None:
        """The genes of the contigs so far; None where the detector knows none."""
        if self.detector.genes is None:
            return None
        return Annotation(self._genes, self.detector.genes.source, circular=self.detector.genes.circular)

    def _report(self, letters: float, total: int | None, phase: str) -> None:
        if self.callbacks.on_progress is not None:
            self.callbacks.on_progress(round(letters), total, phase)

    def _is_ours(self) -> bool:
        """Count one more unit; returns whether it belongs to this shard."""
        ours = self._units % self._shard.total == self._shard.number - 1
        self._units += 1
        return ours

    def contigs(self, records: Iterable[SequenceRecord]) -> Iterator[tuple[Contig, ScoredGrid]]:
        """Yield each contig that is scanned, with its windows; errors as in `scan_sequences`."""
        regions = None if self.options.regions is None else RegionSet(self.options.regions)
        circles = MissingContigs((name, "'circular_ids'") for name in self.options.circular_ids)
        for record in records:
            circles.see(record.id)
            parts = regions.parts_of(record.id, len(record)) if regions is not None else None
            if regions is not None and parts is None:
                continue
            if len(record) < self.rule.window:
                self._skip(record)
                continue
            contig = Contig(record.id, len(record), self._is_circular(record), parts)
            windows = self._open(contig, record)
            yield contig, windows
            self.counts.windows += windows.scored
            del record, windows  # else they are in memory while the next record is read
        circles.check()
        if regions is not None:
            regions.check()

    def _is_circular(self, record: SequenceRecord) -> bool:
        named = self.detector.genes.circular if self.detector.genes else ()
        return self.options.is_circular(record) or record.id in named

    def _skip(self, record: SequenceRecord) -> None:
        reason = f"{len(record)} letters, shorter than the window of {self.rule.window}"
        if self.callbacks.on_skip is None:
            remedy = "remove it, or skip it by strict=False of seqray.scan or 'on_skip' of ScanCallbacks"
            raise InputError(reason, where=f"record '{record.id}'", remedy=remedy)
        self.callbacks.on_skip(SkippedRecord(record.id, reason))

    def _open(self, contig: Contig, record: SequenceRecord) -> ScoredGrid:
        """Count a contig, offer it to the sampler and make its windows."""
        codes = self.detector.alphabet.encode(record.sequence)
        length, circular, options = contig.length, contig.circular, self.options
        masked = Intervals.merge(record.soft_masked) if options.skip_soft_masked else None
        if self._checksum is not None:
            self._checksum.update(codes.data)
            if masked is not None:
                self._checksum.update(np.array(masked.pairs(), "<i8").data)
        # Peaks just outside the parts may suppress peaks within.
        halo = self.detector.halo * (self.finder.min_distance + self.rule.stride)
        scored = contig.scanned.extended(halo, length, circular=circular)
        genes = self.detector.genes.find(record, circular) if self.detector.genes else None
        if genes is not None:
            self._genes[contig.name] = genes
        windows = self.detector.open(codes, self.rule, genes, circular=circular, parts=scored, masked=masked)
        self.counts.contigs += 1
        self.counts.letters += length
        if self.callbacks.on_contig is not None:
            self.callbacks.on_contig(contig.name, length)
        if self._sampler is not None:
            around = scored.extended(self.rule.window, length, circular=circular)
            self._sampler.offer(codes, around, masked, genes)
        if self.detector.out_of_domain is not None and self._shard.number == 1:
            compared = windows.at_sites(contig.scanned.sample_evenly(_WINDOWS_COMPARED))
            self.counts.compared += len(compared)
            self.counts.unlike += int(np.count_nonzero(self.detector.out_of_domain(compared)))
        return windows

    def pieces(
        self, contig: Contig, windows: ScoredGrid, strand: str
    ) -> Iterator[tuple[int, PiecePeaks, ScoreProfile]]:
        """Yield first grid point, peaks and scores of each piece that this scanner computes."""
        firsts = self.finder.firsts(windows)
        for first in firsts:
            if self._is_ours():
                starts, scores, peaks = self.finder.piece(windows, strand, first)
                profile = ScoreProfile.of(contig, windows, strand, starts, scores)
                self.counts.positions += _positions(profile, scores, contig)
                yield first, peaks, profile
            self._scanned += contig.length / (len(firsts) * len(self.options.strands))
            self._report(self._scanned, None, "scan")

    def null_scores(self) -> Floats:
        """Scan our part of the shuffled blocks in the same way; (n,) scores of the peaks in them."""
        scores = [np.empty(0)]
        if self._sampler is None:
            return scores[0]
        done, total = 0, self._sampler.letters * self._sampler.copies
        for block, genes in self._sampler.shuffled():
            windows = self.detector.open(block, self.rule, genes)
            for strand in self.options.strands:
                if self._is_ours():
                    scores.append(self.finder.peaks(windows, strand)[1])
            self.counts.windows += windows.scored
            self.counts.null_positions += len(block) - self.rule.window + 1
            done += len(block)
            self._report(done, total, "scan shuffled sequence")
        return np.concatenate(scores)


def _positions(profile: ScoreProfile, scores: Floats, contig: Contig) -> int:
    """Count the positions within the parts that the scored windows represent."""
    known, parts, length = ~np.isnan(scores), contig.scanned, contig.length
    if contig.parts is None:
        return int(profile.gaps[known].sum())
    first, last = profile.sites[known], profile.sites[known] + profile.gaps[known]
    beyond = np.maximum(last - length, 0)  # across the origin of a circular contig
    ends = parts.count_covered(np.minimum(last, length)) + parts.count_covered(beyond)
    return int((ends - parts.count_covered(first)).sum())
