"""Long sequences and a model of fixed windows: scores along both strands, then calls.

One contig is in memory at a time, and its scores only piece by piece. What comes out doesn't depend on how
it was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from seqray.alphabet import Codes
from seqray.calibrate import Domain
from seqray.calls import CallTable
from seqray.card import Card
from seqray.errors import ConfigError, InputError
from seqray.modelfile import TrainedModel
from seqray.null import BlockSampler, NullScores
from seqray.prediction import score_codes
from seqray.records import SequenceRecord
from seqray.regions import Intervals, NamesWanted, RegionSet
from seqray.results import SkippedRecord
from seqray.scantypes import Detector, Listeners, Profile, ScanOptions, ScanResult
from seqray.sweep import Sweep
from seqray.windows import ContigWindows, WindowRule

__all__ = ["Detector", "Listeners", "Profile", "ScanOptions", "ScanResult", "scan_records", "scan_sequences"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Windows per contig that are compared with the model's training data: a share to 2 per cent or better.
_WINDOWS_COMPARED = 500


class _Scan:
    """One scan under way: what has been found and counted so far."""

    def __init__(self, detector: Detector, options: ScanOptions, listeners: Listeners) -> None:
        self.detector = detector
        self.options = options
        self.listeners = listeners
        unknown = detector.alphabet.unknown
        self.rule = WindowRule(
            detector.window, detector.anchor, options.stride, options.max_ambiguous, unknown
        )
        self.sweep = Sweep(
            self._count_and_score,
            options.lowest_threshold(detector.threshold),
            options.margin,
            options.min_distance,
            max(1, options.piece // options.stride),
        )
        self.sampler = BlockSampler(int(options.null_mb * 1e6), detector.window, unknown, options.seed)
        self.calls = CallTable(detector.label, detector.window)
        self.contigs = self.letters = self.windows = 0
        self.positions = 0  # summed over the strands
        self.compared = self.unlike = 0

    def _count_and_score(self, codes: Codes) -> npt.NDArray[np.floating]:
        scores = self.detector.score(codes)
        self.windows += len(codes)
        if self.listeners.on_windows is not None:
            self.listeners.on_windows(self.windows)
        return scores

    def add(self, record: SequenceRecord, parts: Intervals, circular: bool) -> None:
        """Scan one contig: sites within ``parts``."""
        codes = self.detector.alphabet.encode(record.sequence)
        length = len(codes)
        masked = Intervals.merge(record.soft_masked) if self.options.skip_soft_masked else None
        # Peaks just outside the parts are needed to know which ones within are suppressed.
        halo = 2 * (self.options.min_distance + self.options.stride)
        scored = parts.widened(halo, length, circular=circular)
        windows = ContigWindows(codes, self.rule, circular=circular, parts=scored, masked=masked)
        self.contigs += 1
        self.letters += length
        if self.listeners.on_contig is not None:
            self.listeners.on_contig(record.id, length)
        strands = [(s, *self._strand(record.id, windows, s, parts)) for s in self.options.strands]
        self.calls.add(record.id, length, circular, strands)
        if self.options.null_mb:
            self.sampler.offer(codes, scored.widened(self.rule.window, length, circular=circular), masked)
        self._compare(windows, parts)

    def _strand(
        self, contig: str, windows: ContigWindows, strand: str, parts: Intervals
    ) -> tuple[Ints, Ints, Floats]:
        """Starts, sites and scores of the calls on one strand."""

        def on_piece(starts: Ints, scores: Floats) -> None:
            sites, gaps = windows.sites(starts, strand), windows.gaps(starts)
            self.positions += _positions(sites, gaps, scores, parts, windows.length)
            if self.listeners.on_profile is not None:
                scores = np.where(parts.contains(sites), scores, np.nan)
                self.listeners.on_profile(Profile(contig, windows.length, strand, sites, gaps, scores))

        starts, scores = self.sweep.peaks(windows, strand, on_piece)
        sites = windows.sites(starts, strand)
        inside = parts.contains(sites)
        return starts[inside], sites[inside], scores[inside]

    def _compare(self, windows: ContigWindows, parts: Intervals) -> None:
        """Compare windows spread evenly over the parts with the model's training data."""
        if self.detector.outlying is not None:
            codes = windows.at_sites(parts.spread(_WINDOWS_COMPARED))
            self.compared += len(codes)
            self.unlike += int(np.count_nonzero(self.detector.outlying(codes)))

    def scan_null(self) -> NullScores | None:
        """Scan the shuffled blocks in the very same way; None where there is nothing to scan."""
        scores, positions = [np.empty(0)], 0
        for block in self.sampler.shuffled():
            windows = ContigWindows(block, self.rule)
            for strand in self.options.strands:
                scores.append(self.sweep.peaks(windows, strand)[1])
            positions += len(block) - self.rule.window + 1
        return NullScores(np.concatenate(scores), positions) if positions else None

    def finish(self) -> ScanResult:
        """Scan shuffled sequence, settle the threshold and hand over the calls."""
        null = self.scan_null()
        positions = self.positions // len(self.options.strands)
        threshold: float | None = self.sweep.threshold
        if self.options.fdr is not None:
            scores = self.calls.scores
            threshold = null.threshold_for(self.options.fdr, scores, positions) if null else None
        return ScanResult(
            calls=self.calls.reaching(np.inf if threshold is None else threshold),
            threshold=threshold,
            false_calls=None if null is None or threshold is None else null.at(threshold, positions),
            contigs=self.contigs,
            letters=self.letters,
            positions=positions,
            windows=self.windows,
            unlike=self.unlike / self.compared if self.compared else None,
        )


def _positions(sites: Ints, gaps: Ints, scores: Floats, parts: Intervals, length: int) -> int:
    """Count the positions within ``parts`` that the scored windows stand for."""
    known = ~np.isnan(scores)
    first, last = sites[known], sites[known] + gaps[known]
    beyond = np.maximum(last - length, 0)  # across the origin of a circle
    ends = parts.covered(np.minimum(last, length)) + parts.covered(beyond)
    return int((ends - parts.covered(first)).sum())


def _skip(record: SequenceRecord, window: int, listeners: Listeners) -> None:
    reason = f"{len(record)} letters, shorter than the window of {window}"
    if listeners.on_skip is None:
        raise InputError(reason, where=f"record '{record.id}'", remedy="remove it, or don't use --strict")
    listeners.on_skip(SkippedRecord(record.id, reason))


def scan_sequences(
    detector: Detector,
    records: Iterable[SequenceRecord],
    options: ScanOptions,
    listeners: Listeners,
) -> ScanResult:
    """Scan sequences with anything that scores windows.

    Parameters
    ----------
    detector
        Scores windows.
    records
        Read once, one in memory at a time.
    options
        How to scan.
    listeners
        Who is told of contigs, scores and progress.

    Returns
    -------
    ScanResult
        The same for any ``options.piece``.

    Raises
    ------
    InputError
        For a contig shorter than the window where nobody listens for it, and for names in the options that
        no contig bears or parts that lie beyond a contig's end.
    """
    scan = _Scan(detector, options, listeners)
    regions = None if options.regions is None else RegionSet(options.regions)
    circles = NamesWanted((name, "--circular-id") for name in options.circular_ids)
    for record in records:
        circles.see(record.id)
        everything = Intervals.merge([(0, len(record))])
        parts = regions.parts_of(record.id, len(record)) if regions is not None else everything
        if parts is None:
            continue
        if len(record) < detector.window:
            _skip(record, detector.window, listeners)
            continue
        scan.add(record, parts, options.circular or record.circular or record.id in options.circular_ids)
    circles.check()
    if regions is not None:
        regions.check()
    return scan.finish()


def _scan_threshold(card: Card) -> float:
    """Return the card's ``scan_threshold``, or the one for single windows where it has none.

    Training windows hold far more sites than a genome does: the best threshold for them calls too much.
    """
    threshold = card.info.get("scan_threshold", card.threshold)
    if not isinstance(threshold, int | float) or not 0 < threshold < 1:
        raise ConfigError(f"the card's 'scan_threshold' is {threshold!r}", remedy="give --threshold")
    return float(threshold)


def as_detector(
    model: TrainedModel,
    *,
    batch_size: int | Literal["auto"] = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Detector:
    """Wrap a model for scanning.

    Raises
    ------
    InputError
        For a protein model: proteins have no strands.
    """
    if not model.alphabet.is_nucleotide:
        raise InputError(
            f"the model '{model.card.name}' reads {model.alphabet.name}",
            remedy="scan takes DNA or RNA models",
        )
    positive = model.card.positive_index

    def score(codes: Codes) -> npt.NDArray[np.floating]:
        return score_codes(model, codes, batch_size=batch_size, precision=precision)[:, positive]

    domain = Domain.from_mapping(model.card.domain) if model.card.domain else None
    return Detector(
        score=score,
        window=model.card.window,
        site=model.card.site,
        threshold=_scan_threshold(model.card),
        label=model.card.positive,
        alphabet=model.alphabet,
        outlying=domain.outlying if domain else None,
    )


def scan_records(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    options: ScanOptions | None = None,
    listeners: Listeners | None = None,
    *,
    batch_size: int | Literal["auto"] = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
) -> ScanResult:
    """Find the sites of a model's positive class along sequences of any length.

    Parameters
    ----------
    model
        Of fixed windows over nucleotides.
    records
        Read once, one in memory at a time. Those shorter than the window are an error unless ``listeners``
        has an ``on_skip``.
    options, listeners
        How to scan, and who is told while it runs.
    batch_size, precision
        As in `predict_records`.

    Returns
    -------
    ScanResult
        Calls in the order of the input, the threshold in force and the false calls to expect.
    """
    detector = as_detector(model, batch_size=batch_size, precision=precision)
    return scan_sequences(detector, records, options or ScanOptions(), listeners or Listeners())
