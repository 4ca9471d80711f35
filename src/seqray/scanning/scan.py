"""Long sequences and a model of fixed windows: scores along both strands, then calls.

One contig is in memory at a time, and its scores only piece by piece. What comes out doesn't depend on how
it was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from seqray.calibration import Domain
from seqray.core import Card, Codes, ConfigError, InputError, SequenceRecord
from seqray.inference import score_codes
from seqray.modelfile import TrainedModel
from seqray.scanning.calls import CallTable
from seqray.scanning.options import ScanOptions
from seqray.scanning.sweep import join
from seqray.scanning.types import Detector, ScanCallbacks, ScanResult
from seqray.scanning.work import ScanWork, finalize_scan, within_parts


def scan_sequences(
    detector: Detector,
    records: Iterable[SequenceRecord],
    options: ScanOptions,
    callbacks: ScanCallbacks,
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
    callbacks
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
    work = ScanWork(detector, options, callbacks)
    calls = CallTable(detector.label, detector.window)
    for contig, windows in work.contigs(records):
        rows = []
        for strand in options.strands:
            pieces = [piece for _, piece in work.pieces(contig, windows, strand, callbacks.on_profile)]
            peaks = join(windows, strand, pieces, options.min_distance)
            rows.append(within_parts(contig, windows, strand, peaks))
        calls.add(contig.name, contig.length, contig.circular, rows)
    return finalize_scan(calls, work.sweep_null(), work.counts, options, work.sweep.threshold)


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
    callbacks: ScanCallbacks | None = None,
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
        Read once, one in memory at a time. Those shorter than the window are an error unless ``callbacks``
        has an ``on_skip``.
    options, callbacks
        How to scan, and who is told while it runs.
    batch_size, precision
        As in `predict_records`.

    Returns
    -------
    ScanResult
        Calls in the order of the input, the threshold in force and the false calls to expect.
    """
    detector = as_detector(model, batch_size=batch_size, precision=precision)
    return scan_sequences(detector, records, options or ScanOptions(), callbacks or ScanCallbacks())
