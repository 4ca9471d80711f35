"""``seqray scan``: sites along sequences of any length, on both strands; or one share of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from seqray.cli.inputs import GenomeInput, SkipLog, check_files, refuse_skipped
from seqray.cli.messages import Progress
from seqray.cli.model import context_fact, open_model, origin_of, provenance, recognize
from seqray.cli.options import Outcome, fill, given
from seqray.cli.scan_options import ScanRequest, WindowOptions, divide_words, recorded_command
from seqray.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from seqray.cli.scan_outputs import CallFiles
    from seqray.core.arrays import Floats
    from seqray.core.records import Region
    from seqray.core.results import SkippedRecord
    from seqray.modelfile.model import TrainedModel
    from seqray.scanning.options import ScanOptions
    from seqray.scanning.results import ScanResult
    from seqray.scanning.scorers import Scorer

PYTORCH = "PyTorch"
"""The engine of a shard whose outputs name none."""
GATHERED = ("strand", "threshold", "fdr", "precision", "species", "per_kb")
"""Options of a scan that are needed when shards are gathered."""


def run(request: ScanRequest) -> Outcome:
    """Read, scan, write."""
    started = time.monotonic()
    from seqray.cli.scan_outputs import CallFiles
    from seqray.core.alphabet import ALPHABETS
    from seqray.modelfile.header import read_card
    from seqray.modelfile.zoo import locate_model
    from seqray.scanning.scorers import check_scan_options, make_scorer

    request = replace(request, command=recorded_command(request.command))
    files = (
        _share_file(request) if request.outputs.shard else CallFiles(request.outputs, request.records.skipped)
    )
    beside = (request.model.model, request.windows.bed, request.genes.genes)
    check_files([request.input], [files] if isinstance(files, str) else files.paths(), beside=beside)
    options = _scan_options(request)
    card = read_card(locate_model(request.model.model))
    check_scan_options(card, given(request))
    has_genbank = not isinstance(files, str) and files.has_genbank
    source = GenomeInput(
        *(request.input, ALPHABETS[card.model.alphabet], request.records),
        request.genes if card.model.is_locator else None,
        soft_masks=options.skip_soft_masked,
        again=has_genbank or (card.model.is_locator and bool(request.outputs.html)),
        features=has_genbank,
    )
    ahead = options.regions is None  # else the first contig may not be scanned
    with ThreadPoolExecutor(1) as pool:  # genes are predicted while torch is loaded
        finding = pool.submit(source.find_genes, options.is_circular, ahead=ahead)
        model = open_model(request.model, request.computing, locators=True, verbose=request.verbose)
        finding.result()
    model, source.records = recognize(request.model, model, source.records)
    how = {"batch_size": request.computing.batch_size, "dtype": request.computing.dtype}
    scorer = make_scorer(model, options, **how, genes=source.genome)
    if isinstance(files, str):
        findings, last = [], _scan_share(request, files, model, scorer, options, source)
    else:
        findings, last = _scan_whole(request, files, model, scorer, options, source)
    request.note(*source.notes, *_left_out(model, scorer, options), *findings)
    request.say(f"{last}, {time.monotonic() - started:.1f} s")
    return Outcome(records=source.count)


def _scan_options(request: ScanRequest) -> ScanOptions:
    """How to scan, with the parts of the BED file read."""
    from seqray.scanning.options import ScanOptions

    calling, windows = request.calling, request.windows
    regions = None
    if windows.region or windows.bed:
        regions = _regions(windows, allow_empty=request.records.allow_empty)
    return fill(ScanOptions, calling, windows, regions=regions, precision=calling.expected_precision)


def _regions(windows: WindowOptions, *, allow_empty: bool) -> tuple[Region, ...]:
    from seqray.core.records import Region, parse_region
    from seqray.io.bed import read_bed

    parts = [parse_region(text) for text in windows.region]
    for part in read_bed(windows.bed) if windows.bed else ():
        where = f"{windows.bed}: {part.contig}:{part.start + 1}-{part.end}"
        parts.append(Region(part.contig, part.start, part.end, "", where))
    if not parts and not allow_empty:
        remedy = "leave it out to scan all; --allow-empty scans nothing"
        raise InputError("contains no parts to scan", where=windows.bed or "", remedy=remedy)
    return tuple(parts)


def _left_out(model: TrainedModel, scorer: Scorer, options: ScanOptions) -> list[str]:
    """Say that windows are left out, unless that was asked for."""
    if options.stride is not None or scorer.stride == 1:
        return []
    unused, advice = "", "give --stride 1"
    if model.prefilter is None:
        advice += ", or give the model a prefilter (seqray prefilter)"
    elif options.prefilter == "auto":
        unused = "the prefilter is not used, because too many windows would pass at such a threshold, so "
    stride = scorer.stride
    return [f"{unused}only every {stride}th window is scored, and narrow peaks may be missed: {advice}"]


def _scan_whole(
    request: ScanRequest,
    files: CallFiles,
    model: TrainedModel,
    scorer: Scorer,
    options: ScanOptions,
    source: GenomeInput,
) -> tuple[list[str], str]:
    """Scan and write; returns findings and a last line for the user."""
    from seqray.core.card import describe_card
    from seqray.scanning.scan import scan_sequences
    from seqray.scanning.words import result_facts, settings_facts, summary

    facts = context_fact(request.model, model) | settings_facts(scorer, options)
    lines = provenance(request.command, model, facts)
    with files.open(lines, model.card.positive):
        with (
            SkipLog(files.staged_skipped, lines, quiet=request.quiet) as skipped,
            Progress("scan", "letters", source.letters(), quiet=request.quiet) as progress,
        ):
            source.skip_to(skipped)
            refuse = partial(refuse_skipped, request.input)
            callbacks = files.callbacks(refuse if request.records.strict else skipped, progress.update)
            origin = origin_of(request.model, model)
            result = scan_sequences(scorer, source.records, options, callbacks, origin)
            if not request.records.allow_empty:
                skipped.check_some_left(len(result.scanned), request.input)
        lines = provenance(request.command, model, facts | result_facts(result, options))
        if files.has_genbank:
            circular = None if options.circular else options.circular_ids
            files.write_genbank(result, lines, source.for_genbank, circular, request.records.duplicates)
        card = [model.card.name, model.card.summary, *describe_card(model.card)]
        files.write(result, lines, card, partial(_letter_shares, model, source, result))
    return result.findings, summary(result, skipped.count)


def _letter_shares(
    model: TrainedModel, source: GenomeInput, result: ScanResult, shown: Sequence[int]
) -> dict[int, Floats]:
    """Gradient times input of the letters around calls, from ``STRIP_START`` to ``STRIP_END``.

    The result is by index of the call, empty for a model of windows.
    """
    from seqray.explanations.calls import cut_stretches, explain_calls
    from seqray.explanations.options import ExplainOptions
    from seqray.kinds.kinds import tracks_reader
    from seqray.report.svg.genome import STRIP_END, STRIP_START

    if not model.is_locator or not shown or (radius := model.locators[0].radius) < -STRIP_START:
        return {}
    genes = result.genes.genes if result.genes else {}
    tracks = tracks_reader(model, lambda contig, _: genes.get(contig.id))
    calls = [result.calls[i] for i in shown]
    stretches = cut_stretches(model, source, calls, tracks, circular=result.calls.circular)
    options = ExplainOptions(methods=("input-x-gradient",), shuffles=0, effects=False)
    around = slice(radius + STRIP_START, radius + STRIP_END)
    explained = explain_calls(model, stretches, options)
    return {i: explanation.scores[around] for i, explanation in zip(shown, explained, strict=True)}


# --- One share of a scan into a file


def _share_file(request: ScanRequest) -> str:
    """The file of a share. Raises `ConfigError` without one, and for outputs that ``gather`` writes."""
    outputs, records = request.outputs, request.records
    for name, value in (
        *(("html", outputs.html), ("track", outputs.track)),
        *(("format", outputs.format), ("skipped", records.skipped)),
    ):
        if value:
            remedy = f"give --{name} to 'seqray gather'"
            raise ConfigError(f"--shard and --{name} can't both be given", remedy=remedy)
    if len(outputs.out) != 1 or not (outputs.out[0] == "-" or outputs.out[0].endswith(".shard")):
        raise ConfigError("--shard needs one output", remedy="give --out FILE.shard")
    return outputs.out[0]


def _scan_share(
    request: ScanRequest,
    path: str,
    model: TrainedModel,
    scorer: Scorer,
    options: ScanOptions,
    source: GenomeInput,
) -> str:
    """Scan one share, write its shard, and return a last line for the user."""
    from seqray.core.card import describe_card
    from seqray.core.serialization import to_mapping
    from seqray.core.version import __version__
    from seqray.io.files import Staging
    from seqray.io.tables import describe_alphabet
    from seqray.scanning.options import ScanCallbacks, ShardNumber
    from seqray.scanning.shards import scan_shard, write_shard
    from seqray.scanning.words import settings_facts

    skips: list[tuple[str, str]] = []
    origin, number = origin_of(request.model, model), ShardNumber(*(request.outputs.shard or (1, 1)))
    with Staging() as staging:
        target = staging.path(path)
        with (
            SkipLog(None, (), quiet=request.quiet) as skipped,
            Progress("scan", "letters", source.letters(), quiet=request.quiet) as progress,
        ):

            def on_skip(record: SkippedRecord) -> None:
                skips.append((record.id, record.reason))
                skipped(record)

            source.skip_to(on_skip)
            refuse = partial(refuse_skipped, request.input)
            callbacks = ScanCallbacks(
                on_skip=refuse if request.records.strict else on_skip, on_progress=progress.update
            )
            header, arrays = scan_shard(scorer, origin.watch(source.records), options, callbacks, number)
            if not request.records.allow_empty:
                skipped.check_some_left(header["counted"]["contigs"], request.input)
        findings = [*origin.findings(options.species), *scorer.limits]
        header |= {
            "skipped": skips,
            "version": __version__,
            "command": divide_words(request.command)[0],
            "model": [model.card.name, model.sha256],
            "engine": model.engine or PYTORCH,
            "card": [model.card.summary, *describe_card(model.card)],
            "findings": list(findings),
            "alphabet": describe_alphabet(model.alphabet),
            "facts": context_fact(request.model, model) | settings_facts(scorer, options),
            "options": {name: getattr(options, name) for name in GATHERED},
            "track name": model.card.positive,
            "expected": to_mapping(model.card.locator),
            "species": options.species or origin.species,
            "foreign": options.species is None and origin.is_foreign,
        }
        write_shard(target, header, arrays)
    also = f", {len(skips)} records skipped" if skips else ""
    return f"shard {number.number}/{number.total}: {header['counted']['windows']} {scorer.unit}{also}"
