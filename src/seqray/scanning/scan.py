"""Scans of contigs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.core.arrays import Floats
from seqray.core.card import Card
from seqray.core.errors import InputError, require_type
from seqray.core.records import Intervals, MissingContigs, RegionSet, SequenceRecord, require_record
from seqray.core.results import SkippedRecord
from seqray.genome.genes import Annotation, Gene
from seqray.inference.origin import Origin
from seqray.inference.predictions import BatchSize, Dtype
from seqray.io.records import note_soft_masks
from seqray.modelfile.model import TrainedModel
from seqray.scanning.calls import CallTable
from seqray.scanning.describe import call_cautions, describe_result, model_limits
from seqray.scanning.detectors import Detector, make_detector
from seqray.scanning.genes import GeneSource
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.peaks import PeakFinder, PiecePeaks, add_calls, finalize_scan
from seqray.scanning.results import BlockSampler, Contig, ScanCounts, ScanResult, ScoreProfile
from seqray.scanning.windows import ScoredGrid

# --- The work of a scan in independent units: pieces of contigs, and shuffled blocks

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


# --- Scan long sequences: scores along both strands, then calls


def scan_sequences(
    detector: Detector,
    records: Iterable[SequenceRecord],
    options: ScanOptions,
    callbacks: ScanCallbacks,
) -> ScanResult:
    """Scan sequences with any detector.

    Raises `InputError` for a contig shorter than the window if there is no ``on_skip``, and for names in the
    options that no contig has or parts beyond a contig's end.

    Parameters
    ----------
    detector
        Scores windows or positions.
    records
        Read once, one in memory at a time.
    options
        How to scan.
    callbacks
        Called for contigs, scores and progress.

    Returns
    -------
    ScanResult
        The same for any ``options.piece``.
    """
    scanner = Scanner(detector, options, callbacks)
    calls = CallTable(detector.label, detector.extent)
    contigs: list[Contig] = []

    def pieces(contig: Contig, windows: ScoredGrid, strand: str) -> Iterator[PiecePeaks]:
        for _, peaks, profile in scanner.pieces(contig, windows, strand):
            if callbacks.on_profile is not None:
                callbacks.on_profile(profile)
            yield peaks

    with detector.running():
        for contig, windows in scanner.contigs(records):
            contigs.append(contig)
            distance = scanner.finder.min_distance
            add_calls(calls, contig, windows, options.strands, distance, partial(pieces, contig, windows))
            del windows  # else they are in memory while the next record is read
        null = scanner.null_scores()
    threshold = scanner.finder.threshold
    genes = scanner.annotation
    return finalize_scan(calls, null, scanner.counts, options, threshold, scanner.rule, contigs, genes)


def scan_records(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    options: ScanOptions | None = None,
    callbacks: ScanCallbacks | None = None,
    *,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
    genes: GeneSource | None = None,
    recognized: bool = False,
) -> ScanResult:
    """Find the sites of a model's positive class along sequences of any length.

    Parameters
    ----------
    model
        A locator, or a model of fixed windows over nucleotides.
    records
        Read once, one in memory at a time. Those shorter than a model's window are an error unless
        ``callbacks`` has an ``on_skip``.
    options, callbacks
        How to scan, and what is called while it runs.
    batch_size, dtype
        As in `seqray.inference.predict_records`.
    genes
        For a locator: `genes_of_annotation` or `predicted_genes`; None where they are not known.
    recognized
        Whether the context of the model was recognized by the records.

    Returns
    -------
    ScanResult
        Calls in the order of the input, the threshold in force and what to expect: false calls, or with a
        locator the precision.
    """
    require_type(model, TrainedModel, "load it by seqray.load_model")
    options = options or ScanOptions()
    records = map(require_record, records)
    if options.skip_soft_masked:
        records = map(note_soft_masks, records)
    detector = make_detector(model, batch_size=batch_size, dtype=dtype, genes=genes)
    origin = Origin(model, recognized=recognized)
    result = scan_sequences(detector, origin.watch(records), options, callbacks or ScanCallbacks())
    return assess_scan(model.card, result, options, origin)


def assess_scan(card: Card, result: ScanResult, options: ScanOptions, origin: Origin) -> ScanResult:
    """Describe the calls of a scan, and say what to expect of them and when not to trust them.

    Parameters
    ----------
    card
        Of the model.
    result
        Of `scan_sequences`.
    options
        How it was scanned.
    origin
        That watched the sequences.
    """
    foreign = options.species is None and origin.is_foreign
    expected = ExpectedPrecision.from_mapping(card.locator, foreign=foreign)
    described = describe_result(result, expected, options.species or origin.species)
    findings = [*origin.findings(options.species), *model_limits(card, options)]
    findings += call_cautions(described, options, expected)
    return replace(described, findings=tuple(findings))
