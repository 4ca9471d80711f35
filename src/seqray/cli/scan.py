"""``seqray scan``: sites along sequences of any length, on both strands."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from seqray.cli.inputs import SkipLog, check_files, find_genes, letters_in, open_records, refuse_skipped
from seqray.cli.messages import Progress
from seqray.cli.model import context_fact, open_model, origin_of, provenance, recognize
from seqray.cli.options import Outcome, fill, given, name_options
from seqray.cli.scan_options import ScanRequest, recorded_command
from seqray.core.errors import InputError
from seqray.io.files import keep_pipes

if TYPE_CHECKING:
    from seqray.cli.scan_options import WindowOptions
    from seqray.cli.scan_outputs import CallFiles
    from seqray.core.card import Card
    from seqray.core.records import Region
    from seqray.modelfile.model import TrainedModel
    from seqray.scanning.detectors import Detector
    from seqray.scanning.genes import GeneSource
    from seqray.scanning.options import ScanOptions


def run(request: ScanRequest) -> Outcome:
    """Read, scan, write."""
    started = time.monotonic()
    from seqray.modelfile.header import read_card
    from seqray.modelfile.zoo import locate_model
    from seqray.scanning.detectors import check_scan_options, make_detector

    request = replace(request, command=recorded_command(request.command))
    read_again = False
    if request.outputs.shard:
        from seqray.cli.scan_shards import check_outputs, write_share as scan

        written = check_outputs(request)
    else:
        scan, written = _scan, call_files(request).paths()
        read_again = call_files(request).has_genbank
    beside = (request.model.model, request.windows.bed, request.genes.genes)
    check_files([request.input], written, beside=beside)
    options = scan_options(request)
    card = read_card(locate_model(request.model.model))
    check_scan_options(card, given(request))
    if read_again or card.model.kind == "locator" or card.model.contexts:
        keep_pipes(request.input)
    with ThreadPoolExecutor(1) as pool:  # genes are predicted while torch is loaded
        finding = pool.submit(_genes, request, card, options)
        model = open_model(request.model, request.computing, locators=True, verbose=request.verbose)
        genes, notes = finding.result()
    model, computing = _in_context(request, model), request.computing
    detector = make_detector(model, batch_size=computing.batch_size, dtype=computing.dtype, genes=genes)
    records, lines = scan(request, model, detector, options)
    request.note(*notes, *_left_out(model, detector, options))
    request.say(*lines[:-1], f"{lines[-1]}, {time.monotonic() - started:.1f} s")
    return Outcome(records=records)


def _genes(request: ScanRequest, card: Card, options: ScanOptions) -> tuple[GeneSource | None, list[str]]:
    """Where the genes of a locator are from, and what to tell the user."""
    if card.model.kind != "locator":
        return None, []
    from seqray.core.alphabet import ALPHABETS

    alphabet, ahead = ALPHABETS[card.model.alphabet], options.regions is None  # else it may not be scanned
    inputs = request.genes, request.records, request.input
    return find_genes(*inputs, alphabet, options.is_circular, ahead=ahead)


def _in_context(request: ScanRequest, model: TrainedModel) -> TrainedModel:
    """The model for the species that the first records are like, before it is made a detector."""
    if not model.card.model.contexts:
        return model
    from seqray.io.sequences import read_sequences

    records = open_records(
        read_sequences, [request.input], request.records, model.alphabet, on_skip=lambda record: None
    )
    return recognize(request.model, model, records)[0]


def call_files(request: ScanRequest) -> CallFiles:
    """Outputs of a scan that isn't divided."""
    from seqray.cli.scan_outputs import CallFiles

    return CallFiles.plan(request.outputs, request.records.skipped)


def scan_options(request: ScanRequest) -> ScanOptions:
    """How to scan, with the parts of the BED file read."""
    from seqray.scanning.options import ScanOptions

    calling = request.calling
    return fill(
        ScanOptions,
        calling,
        request.windows,
        regions=_regions(request.windows, allow_empty=request.records.allow_empty),
        precision=calling.expected_precision,
    )


def _regions(windows: WindowOptions, *, allow_empty: bool) -> tuple[Region, ...] | None:
    from seqray.core.records import Region, parse_region
    from seqray.io.bed import read_bed

    if not windows.region and not windows.bed:
        return None
    parts = [parse_region(text) for text in windows.region]
    for part in read_bed(windows.bed) if windows.bed else ():
        where = f"{windows.bed}: {part.contig}:{part.start + 1}-{part.end}"
        parts.append(Region(part.contig, part.start, part.end, "", where))
    if not parts and not allow_empty:
        remedy = "leave it out to scan all; --allow-empty scans nothing"
        raise InputError("contains no parts to scan", where=windows.bed or "", remedy=remedy)
    return tuple(parts)


def _left_out(model: TrainedModel, detector: Detector, options: ScanOptions) -> list[str]:
    """Say that windows are left out, unless that was asked for."""
    stride = detector.rule(options).stride
    if options.stride is not None or stride == 1:
        return []
    unused, advice = "", "give --stride 1"
    if model.prefilter is None:
        advice += ", or give the model a prefilter (seqray prefilter)"
    elif options.prefilter == "auto":
        unused = "the prefilter is not used, because too many windows would pass at such a threshold, so "
    return [f"{unused}only every {stride}th window is scored, and narrow peaks may be missed: {advice}"]


def _scan(
    request: ScanRequest, model: TrainedModel, detector: Detector, options: ScanOptions
) -> tuple[int, list[str]]:
    """Scan and write; returns the number of records and what to say of them."""
    from seqray.cli.scan_facts import result_facts, settings_facts, summary
    from seqray.cli.scan_outputs import Sequences
    from seqray.io.files import Staging
    from seqray.io.sequences import read_sequences
    from seqray.scanning.scan import assess_scan, scan_sequences

    facts = context_fact(request.model, model) | settings_facts(detector, options)
    lines = provenance(request.command, model, facts)
    origin = origin_of(request.model, model)
    with Staging() as staging, call_files(request).stage(staging, lines, model.card.positive) as staged:
        with (
            SkipLog(staged.skipped, lines, quiet=request.quiet) as skipped,
            Progress("scan", "letters", letters_in(request.input), quiet=request.quiet) as progress,
        ):
            refuse = partial(refuse_skipped, request.input)
            callbacks = staged.callbacks(refuse if request.records.strict else skipped, progress.update)
            read = partial(read_sequences, soft_masks=options.skip_soft_masked)
            records = open_records(read, [request.input], request.records, model.alphabet, skipped)
            result = scan_sequences(detector, origin.watch(records), options, callbacks)
            if not request.records.allow_empty:
                skipped.check_some_left(result.contigs, request.input)
        result = assess_scan(model.card, result, options, origin)
        findings = [name_options(line) for line in result.findings]
        lines = provenance(request.command, model, facts | result_facts(result, options))
        staged.write(result, lines, Sequences(request.input, request.records.duplicates, options))
        if staged.page is not None:
            from seqray.cli.scan_page import letter_shares
            from seqray.report.pages.sequences import ModelText

            shares_of = partial(letter_shares, request, model, result)
            staged.page.write(result, lines, findings, ModelText.of(model.card), shares_of)
    return records.count, [*(f"seqray: {line}" for line in findings), summary(result, skipped.count)]
