"""``seqray scan``: sites along sequences of any length, on both strands; or one share of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from seqray.cli.inputs import SkipLog, check_files, genes_among, letters_in, open_records, refuse_skipped
from seqray.cli.messages import Progress
from seqray.cli.model import context_fact, open_model, origin_of, provenance, recognize
from seqray.cli.options import Outcome, fill, given
from seqray.cli.scan_options import ScanRequest, WindowOptions, divide_words, recorded_command
from seqray.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from Bio.SeqRecord import SeqRecord

    from seqray.cli.scan_outputs import CallFiles
    from seqray.core.arrays import Floats
    from seqray.core.card import Card
    from seqray.core.records import Region, SequenceRecord
    from seqray.core.results import SkippedRecord
    from seqray.genome.genes import Genome
    from seqray.io.records import OnSkip
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
    source = _Input(request, card, options, not isinstance(files, str) and files.has_genbank)
    with ThreadPoolExecutor(1) as pool:  # genes are predicted while torch is loaded
        finding = pool.submit(source.read_genome)
        model = open_model(request.model, request.computing, locators=True, verbose=request.verbose)
        finding.result()
    model = source.recognize(model)
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


class _Input:
    """The sequences of a scan, opened and read once.

    They are streamed to a model of windows; only for a GenBank output they are read once more. A locator's
    are held, because its genes are looked for in all of them before the first is scanned.
    """

    def __init__(self, request: ScanRequest, card: Card, options: ScanOptions, write_genbank: bool) -> None:
        from seqray.core.alphabet import ALPHABETS
        from seqray.io.files import keep_pipes
        from seqray.io.sequences import read_sequences

        self._request, self._options = request, options
        self.genome: Genome | None = None
        self.notes: list[str] = []
        self.held: list[SequenceRecord] | None = [] if card.model.is_locator else None
        self._parsed: list[SeqRecord] = []  # of a GenBank file, with all that it says beside the letters
        self._early: list[SkippedRecord] = []
        self._on_skip: OnSkip = self._early.append
        if self.held is None and write_genbank:
            keep_pipes(request.input)
        parses = self.held is not None and (write_genbank or request.genes.genes is None)
        read = partial(
            read_sequences,
            soft_masks=options.skip_soft_masked,
            on_genbank=self._parsed.append if parses else None,
        )
        alphabet = ALPHABETS[card.model.alphabet]
        self._read = open_records(
            read, [request.input], request.records, alphabet, lambda record: self._on_skip(record)
        )
        self.records: Iterable[SequenceRecord] = self._read

    @property
    def count(self) -> int:
        """Records read so far."""
        return self._read.count

    def read_genome(self) -> None:
        """Read all sequences of a locator, and find their genes."""
        if self.held is None:
            return
        request, options = self._request, self._options
        try:
            self.records = self.held = list(self._read)
        except InputError as error:
            if request.genes.genes is not None or not re.search("feature|location", error.what):
                raise  # else the file may be sound but for its features
            remedy = "correct the genes, or give --genes predict"
            raise InputError(error.what, where=error.where, remedy=remedy) from None
        self.genome, self.notes = genes_among(
            *(request.genes, request.records, request.input, self.held),
            self._parsed if request.genes.genes is None else (),
            options.is_circular,
            ahead=options.regions is None,  # else the first contig may not be scanned
        )

    def recognize(self, model: TrainedModel) -> TrainedModel:
        """The model for the species that the first records are like."""
        model, records = recognize(self._request.model, model, self.records)
        self.records = records if self.held is None else self.held
        return model

    def skip_to(self, log: OnSkip) -> None:
        """Hand over the records that were skipped before there was a log, and all later ones."""
        for record in self._early:
            log(record)
        self._on_skip = log

    def letters(self) -> int | None:
        """Letters of all records, as far as known before they are read."""
        return letters_in(self._request.input) if self.held is None else sum(map(len, self.held))

    def for_genbank(self) -> str | Iterable[tuple[str, SeqRecord]]:
        """The sequences for an output that holds them; the path of those that were streamed."""
        from seqray.io.files import display_name
        from seqray.io.genbank import named_records, plain_record

        path, duplicates = self._request.input, self._request.records.duplicates
        if self.held is None:
            return path
        parsed = self._parsed
        return (
            named_records(parsed, display_name(path), duplicates) if parsed else map(plain_record, self.held)
        )


def _scan_whole(
    request: ScanRequest,
    files: CallFiles,
    model: TrainedModel,
    scorer: Scorer,
    options: ScanOptions,
    source: _Input,
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
    model: TrainedModel, source: _Input, result: ScanResult, shown: Sequence[int]
) -> dict[int, Floats]:
    """Gradient times input of the letters around calls, from ``STRIP_START`` to ``STRIP_END``.

    The result is by index of the call, empty for a model of windows.
    """
    from seqray.explanations.calls import cut_stretches, explain_calls
    from seqray.explanations.options import ExplainOptions
    from seqray.kinds.kinds import tracks_reader
    from seqray.report.svg.genome import STRIP_END, STRIP_START

    if source.held is None or not shown or (radius := model.locators[0].radius) < -STRIP_START:
        return {}
    genes = result.genes.genes if result.genes else {}
    tracks = tracks_reader(model, lambda contig, _: genes.get(contig.id))
    calls = [result.calls[i] for i in shown]
    stretches = cut_stretches(model, source.held, calls, tracks, circular=result.calls.circular)
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
    source: _Input,
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
