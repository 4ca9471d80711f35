"""Scan long sequences: scores along both strands, then calls.

One contig is in memory at a time, and its scores only piece by piece. The result doesn't depend on the size
of the pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from seqray.calibration import ExpectedPrecision
from seqray.core import Card, SequenceRecord, require_record, require_type
from seqray.inference import BatchSize, Dtype, Origin
from seqray.io.sequences import note_soft_masks
from seqray.modelfile import TrainedModel
from seqray.scanning.calls import CallTable
from seqray.scanning.cautions import call_cautions, model_limits
from seqray.scanning.describe import describe_result
from seqray.scanning.detector import Detector
from seqray.scanning.detectors import make_detector
from seqray.scanning.finalize import add_calls, finalize_scan
from seqray.scanning.genes import GeneSource
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.peak_finder import PiecePeaks
from seqray.scanning.results import Contig, ScanResult
from seqray.scanning.scanner import Scanner
from seqray.scanning.windows import ScoredGrid


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
