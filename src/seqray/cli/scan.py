"""``seqray scan``: sites along sequences of any length, on both strands; or one share of them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from seqray.cli import inputs, options
from seqray.cli.messages import Progress
from seqray.cli.model import (
    AUTO,
    MODEL_HELP,
    EngineOptions,
    ModelOptions,
    context_fact,
    open_model,
    provenance,
    recognize,
)
from seqray.cli.options import Options, Outcome, Request, divide_words, fill, option, refuse_unused
from seqray.core.errors import ConfigError, InputError
from seqray.core.text import counted, first_and_more
from seqray.scanning.options import DOWNSTREAM, ONLY_FOR, UPSTREAM, ScanOptions, other_kind

if TYPE_CHECKING:
    from seqray.cli.scan_outputs import CallFiles
    from seqray.core.arrays import Floats
    from seqray.core.records import Region
    from seqray.inference.origin import Origin
    from seqray.modelfile.model import TrainedModel
    from seqray.scanning.results import ScanResult
    from seqray.scanning.scorers import Scorer

# --- The outputs that a scan names last in its command, and the share of a scan

PYTORCH = "PyTorch"  # the engine of a shard whose outputs name none
GATHERED = ("strand", "threshold", "fdr", "precision", "trust", "species", "per_kb")
"""Options of a scan that are needed when shards are gathered."""
OUTPUT_OPTIONS = (
    *("--out", "-o", "--html", "--track", "--format", "--skipped"),
    *("--genes-out", "--upstream", "--downstream"),
)


def _parse_shard(text: str) -> tuple[int, int]:
    """``I/N``, from ``1/N`` to ``N/N``."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not I/N with I from 1 to N")
    return int(match[1]), int(match[2])


# --- Options of ``seqray scan``

DEFAULTS = ScanOptions()
FORMAT_HELP = "format of an output without a known suffix, such as '-'"


class CallOutputs(Options, heading="output; all files appear together, or none"):
    """What a scan writes, whole or gathered."""

    out: tuple[str, ...] = option(
        "--out -o FILE",
        "calls as .gff3, .bed, .tsv or .csv (+ .gz); may be repeated (default: TSV on stdout)",
    )
    genes_out: tuple[str, ...] = option(
        "--genes-out FILE",
        "a row a gene: its best start, or why it has none, as .tsv or .csv; or the genes as .gff3, or "
        "their proteins as .faa; may be repeated",
        only_for="whole scans, genomes",
    )
    html: str | None = option(
        "--html FILE", "a page with figures, maps of calls and a table to search", only_for="whole scans"
    )
    format: str | None = option(
        "--format", FORMAT_HELP, choices=("gff3", "bed", "tsv"), only_for="whole scans"
    )
    track: tuple[str, ...] = option(
        "--track FILE",
        "score of every window at its site, or of every position, a file per strand: x.bw gives x.plus.bw "
        "and x.minus.bw; .bw or .bedgraph[.gz]; may be repeated",
        only_for="whole scans",
    )

    def files(self, skipped: str | None, **more: Any) -> CallFiles:
        """The files to write, see `CallFiles`."""
        from seqray.cli.scan_outputs import CallFiles

        given = self.out, self.format, self.html, self.track, skipped
        return CallFiles(*given, genes=self.genes_out, **more)


class ScanOutputs(CallOutputs):
    """The same, with the bases, which a scan reads; or one shard."""

    out: tuple[str, ...] = option(
        "--out -o FILE",
        "calls as .gff3, .bed, .tsv or .csv (+ .gz), their bases as .fa, or .gb; may be repeated (default: "
        "TSV on stdout)",
    )
    format: str | None = option(
        "--format", FORMAT_HELP, choices=("gff3", "bed", "tsv", "genbank"), only_for="whole scans"
    )
    upstream: options.WholeNumber | None = option(
        "--upstream N", f"bases before each start in --out FILE.fa (default: {UPSTREAM})"
    )
    downstream: options.WholeNumber | None = option(
        "--downstream N", f"bases after each start in --out FILE.fa (default: {DOWNSTREAM})"
    )
    shard: Annotated[tuple[int, int], _parse_shard] | None = option(
        "--shard I/N",
        "do the I-th of N shares of the scan and write it to --out FILE.shard, for 'seqray gather'",
    )


class CallingOptions(Options, heading="calling"):
    """Which peaks are called."""

    threshold: options.Probability | None = option(
        "--threshold P", "lowest score of a call (default: the model's)"
    )
    expected_precision: options.Probability | None = option(
        "--precision P",
        "choose the lowest threshold at which this share of calls is expected to be right, with a model for "
        "genomes",
        only_for=ONLY_FOR["precision"],
    )
    trust: Literal["high", "medium"] | None = option(
        "--trust",
        "call what has this trust or more, by the precision of single calls, with a model for genomes",
        only_for=ONLY_FOR["trust"],
    )
    species: str | None = option(
        "--species NAME",
        "expect the precision measured on this species (default: the one that the input is like; for "
        "--precision the median of species left out of training)",
        only_for=ONLY_FOR["species"],
    )
    per_kb: options.Number | None = option(
        "--per-kb N",
        "call the best N sites per thousand positions that score .001 or more, with a model for genomes",
        only_for=ONLY_FOR["per_kb"],
    )
    fdr: options.Probability | None = option(
        "--fdr Q",
        "choose the lowest threshold at which expected false calls are at most this share of all calls",
        only_for=ONLY_FOR["fdr"],
    )
    null_mb: options.Number | None = option(
        "--null-mb MB",
        "most Mb of shuffled input to scan for comparison; 0 for none (default: 1, for genomes 0)",
    )
    seed: options.WholeNumber = option("--seed N", "seed of the shuffles", DEFAULTS.seed)
    min_distance: options.PositiveInt | None = option(
        "--min-distance N", "smallest distance between two sites on one strand (default: 50, for genomes 25)"
    )


class WindowOptions(Options, heading="sequences"):
    """Which windows are scored."""

    strand: Literal["both", "plus", "minus"] = option("--strand", "strands to scan", DEFAULTS.strand)
    stride: options.PositiveInt | None = option(
        "--stride N",
        "bases between windows; peaks are refined at 1 (default: 1 where a prefilter is used, else 10)",
        only_for=ONLY_FOR["stride"],
    )
    prefilter: Literal["auto", "none"] = option(
        "--prefilter",
        "auto: a model with a prefilter scores only the windows that may reach the threshold, unless "
        "--stride is given; none: the prefilter is not used",
        DEFAULTS.prefilter,
        only_for=ONLY_FOR["prefilter"],
    )
    region: tuple[str, ...] = option(
        "--region NAME[:START[-END]]",
        "only sites within this part, 1-based, both ends included; may be repeated",
    )
    gene: str | None = option(
        "--gene NAME",
        "only sites around this gene, by its name or locus tag; tells its starts and its neighbors",
        only_for="whole scans, genomes",
    )
    bed: str | None = option(
        "--bed FILE", "only sites within the parts in a BED file; its strand column is ignored"
    )
    circular: bool = option("--circular", "every sequence is circular")
    circular_ids: tuple[str, ...] = option(
        "--circular-id NAME", "this sequence is circular, as are those marked in the input; may be repeated"
    )
    max_ambiguous: options.Probability = option(
        "--max-ambiguous SHARE",
        "windows with a larger share of ambiguous bases are not scored",
        DEFAULTS.max_ambiguous,
        only_for=ONLY_FOR["max_ambiguous"],
    )
    skip_soft_masked: bool = option("--skip-soft-masked", "leave out windows whose site is a lower-case base")


class ScanRecords(inputs.RecordOptions):
    """Calls name their contig, so ids are unique."""

    duplicates: Literal["error", "rename"] = option(
        "--duplicates", "ids that occur again: refuse (error), or write as id_2 (rename)", "error"
    )


class ScanModelOptions(ModelOptions):
    """A model, or the choice by the kingdom."""

    model: str = option(
        "--model -m NAME|FILE|auto", MODEL_HELP + "; auto: for genomes, by the kingdom of the ribosomal RNA"
    )


class ScanRequest(Request):
    """All options of ``seqray scan``."""

    input: str = option("SEQUENCES", inputs.SEQUENCE_FILES)
    model: ScanModelOptions
    outputs: ScanOutputs
    calling: CallingOptions
    windows: WindowOptions
    genes: inputs.GeneOptions
    records: ScanRecords
    computing: EngineOptions


# --- Check, open the genome and the model, scan, write


def run(request: ScanRequest) -> Outcome:
    """Read, scan, write: all calls, or a share of the scan for ``seqray gather``."""
    from seqray.core.alphabet import ALPHABETS, DNA
    from seqray.inference.origin import MAX_MICROBE_LETTERS, choose_locator
    from seqray.modelfile.header import locate_model, read_card
    from seqray.scanning.scorers import make_scorer
    from seqray.scanning.words import genome_cautions

    named_outputs, settings = divide_words(request.command, OUTPUT_OPTIONS)
    request = replace(request, command=(*settings, *named_outputs))
    outputs, reading = request.outputs, request.records
    if outputs.shard:
        given_both = "and --shard can't both be given", "give it to 'seqray gather'"
        refuse_unused(request, {"whole scans": given_both})
    around = outputs.upstream, outputs.downstream
    files = outputs.files(reading.skipped, around=around, is_shard=outputs.shard is not None)
    beside = (request.model.model, request.windows.bed, request.genes.genes)
    inputs.check_files([request.input], files.paths(), beside=beside)
    options = _scan_options(request)
    card = None if request.model.model == AUTO else read_card(locate_model(request.model.model))
    is_locator = card is None or card.model.is_locator
    source = inputs.GenomeInput(
        request.input,
        DNA if card is None else ALPHABETS[card.model.alphabet],
        reading,
        request.genes if is_locator else None,
        soft_masks=options.skip_soft_masked,
        again=files.has_letters or bool(request.windows.gene) or (is_locator and bool(outputs.html)),
        features=files.has_genbank,
    )
    chosen = []
    if card is None:
        name, why = choose_locator(source.hold(MAX_MICROBE_LETTERS), request.input)
        request, chosen = replace(request, model=replace(request.model, model=name)), [why]
        card = read_card(locate_model(name))
    other, said = other_kind(card)
    refuse_unused(request, {other: (said, "")})
    ahead = options.regions is None  # else the first contig may not be scanned
    if ahead and os.path.isfile(request.input):
        request.note(*genome_cautions(card.name, os.path.getsize(request.input)))
    with ThreadPoolExecutor(1) as pool:  # genes are predicted while torch is loaded
        find = partial(source.find_genes, ahead=ahead, introns=card.locator.introns)
        finding = pool.submit(find, options.is_circular)
        model = open_model(request.model, request.computing, locators=True, verbose=request.verbose)
        finding.result()
    files.check_genes(known=source.annotation is not None)
    if request.windows.gene:
        options = replace(options, regions=_around_gene(request, source, options))
    model, source.records = recognize(request.model, model, source.records)
    how = {"batch_size": request.computing.batch_size, "dtype": request.computing.dtype}
    scorer = make_scorer(model, options, **how, genes=source.annotation)
    findings, last = _scan(request, files, model, scorer, source)
    request.note(*chosen, *source.notes, *_left_out(model, scorer), *findings)
    return Outcome(records=source.count, last=last)


def _scan(
    request: ScanRequest, files: CallFiles, model: TrainedModel, scorer: Scorer, source: inputs.GenomeInput
) -> tuple[list[str], str]:
    """Scan and write all, or the share that ``--shard`` names; returns findings and a last line."""
    from seqray.core.card import describe_card
    from seqray.inference.origin import Origin
    from seqray.scanning.gene_starts import describe_gene
    from seqray.scanning.options import ShardNumber
    from seqray.scanning.scan import scan_sequences
    from seqray.scanning.shards import scan_shard
    from seqray.scanning.words import result_facts, settings_facts, summary

    facts = context_fact(request.model, model) | settings_facts(scorer)
    lines = provenance(request.command, model, facts)
    origin, shard = Origin(model, recognized=request.model.context == AUTO), request.outputs.shard
    keep, quiet = shard is not None, request.quiet
    with files.open(lines, model.card.positive):
        with (
            inputs.SkipLog(files.staged_skipped, lines, quiet=quiet, keep=keep) as skipped,
            Progress("scan", "bases", source.letters(), quiet=quiet) as progress,
        ):
            source.skip_to(skipped)
            refuse = partial(inputs.refuse_skipped, request.input)
            callbacks = files.callbacks(refuse if request.records.strict else skipped, progress.update)
            if shard:
                records = origin.watch(source.records)
                result = scan_shard(scorer, records, callbacks, ShardNumber(*shard))
            else:
                result = scan_sequences(scorer, source.records, callbacks, origin)
            contigs = result[0]["counted"]["contigs"] if isinstance(result, tuple) else len(result.scanned)
            if not request.records.allow_empty:
                skipped.check_some_left(contigs, request.input)
        if isinstance(result, tuple):
            header, arrays = result
            header |= _shard_facts(model, scorer, origin)
            _, settings = divide_words(request.command, OUTPUT_OPTIONS)
            header |= {"facts": facts, "skipped": skipped.kept, "command": settings}
            files.write_shard(header, arrays)
            also = f", {skipped.count} records skipped" if skipped.count else ""
            of = f"{header['share'][0]}/{header['share'][1]}"
            return [], f"shard {of}: {header['counted']['windows']} {scorer.unit}{also}"
        if (gene := request.windows.gene) and not len(result.calls):
            rest = "--per-kb 2 calls the best ones below it"
            result.findings.append(f"no site around {gene} reaches the threshold; {rest}")
        lines = provenance(request.command, model, facts | result_facts(result))
        about = [model.card.name, model.card.summary, *describe_card(model.card)]
        shares = partial(_letter_shares, request.model.model, model, source, result)
        told = describe_gene(result, gene) if gene else []
        files.write(result, lines, about, source=source, shares_of=shares, gene=(gene or "", told))
    return [*result.findings, *_about_genes(result, source), *told], summary(result, skipped.count)


def _about_genes(result: ScanResult, source: inputs.GenomeInput) -> list[str]:
    """That genes were predicted, and of which contigs if only parts were searched."""
    if result.genes is not None and source.annotation is not None and source.annotation.predict is not None:
        moved = "the genes of an annotation (--genes FILE) move some calls"
        of = f" in {first_and_more(result.genes.genes, 3)}" if result.parts else ""
        return [f"{counted(result.genes.count, 'gene')}{of} {result.genes.source}; {moved}"]
    return []


def _scan_options(request: ScanRequest) -> ScanOptions:
    """How to scan, with the parts of the BED file read."""
    from seqray.core.records import Region, parse_region
    from seqray.io.lines import read_regions

    calling, windows = request.calling, request.windows
    parts = [parse_region(text) for text in windows.region]
    for part in read_regions(windows.bed) if windows.bed else ():
        where = f"{windows.bed}: {part.contig}:{part.start + 1}-{part.end}"
        parts.append(Region(part.contig, part.start, part.end, "", where))
    if windows.bed and not parts and not request.records.allow_empty:
        remedy = "leave it out to scan all; --allow-empty scans nothing"
        raise InputError("contains no parts to scan", where=windows.bed, remedy=remedy)
    regions = tuple(parts) if windows.region or windows.bed else None
    if windows.gene and regions is not None:
        raise ConfigError("--gene and other parts can't both be given", remedy="give one of them")
    return fill(ScanOptions, calling, windows, regions=regions, precision=calling.expected_precision)


_GENE_REACH = 1000  # bases on either side of a gene: the reach of its starts, and some of its neighbors


def _around_gene(
    request: ScanRequest, source: inputs.GenomeInput, options: ScanOptions
) -> tuple[Region, ...]:
    """The parts around the genes of a name; errors as of a gene that is not there."""
    from seqray.core.records import Region
    from seqray.core.text import did_you_mean

    wanted, names = request.windows.gene, set[str]()
    regions = list[Region]()
    for record in source:
        genes = source.annotation.find(record, options.is_circular(record)) if source.annotation else None
        for gene in genes or ():
            names |= {gene.name, gene.locus}
            if wanted in (gene.name, gene.locus):
                start, end = max(gene.start - _GENE_REACH, 0), min(gene.end + _GENE_REACH, len(record))
                text = f"{record.id}:{start + 1}-{end}"
                regions.append(Region(record.id, start, end, text, f"--gene {wanted}"))
    if not names:
        raise ConfigError("--gene needs genes", remedy=inputs.GIVE_GENES)
    if not regions:
        otherwise = "give a name or a locus tag of a gene"
        if source.annotation is not None and source.annotation.predict is not None:
            otherwise = (
                f"its genes are predicted, with names such as {min(names)}; see --genes-out genes.gff3"
            )
        remedy = did_you_mean(wanted or "", sorted(names), otherwise=otherwise)
        raise InputError(f"has no gene '{wanted}'", where=request.input, remedy=remedy)
    return tuple(regions)


def _left_out(model: TrainedModel, scorer: Scorer) -> list[str]:
    """Say that windows are left out, unless that was asked for."""
    if scorer.options.stride is not None or scorer.stride == 1:
        return []
    unused, advice = "", "give --stride 1"
    if model.prefilter is None:
        advice += ", or give the model a prefilter (seqray prefilter)"
    elif scorer.options.prefilter == "auto":
        unused = "the prefilter is not used, because too many windows would pass at such a threshold, so "
    stride = scorer.stride
    return [f"{unused}only every {stride}th window is scored, and narrow peaks may be missed: {advice}"]


def _letter_shares(
    path: str, model: TrainedModel, source: inputs.GenomeInput, result: ScanResult, shown: Sequence[int]
) -> dict[int, Floats]:
    """Gradient times input of the letters around calls, by their index; empty for a model of windows."""
    from seqray.explanations.calls import cut_stretches, letter_effects
    from seqray.genome.genes import tracks_reader
    from seqray.report.svg.genome import STRIP_END, STRIP_START

    if not model.is_locator or not shown or (radius := model.card.model.radius) < -STRIP_START:
        return {}
    if not model.networks:  # another engine, which has no gradients
        from seqray.modelfile.file import load_model

        model = load_model(path)
    genes = result.genes.genes if result.genes else {}
    tracks = tracks_reader(model.card.model.tracks, lambda contig, _: genes.get(contig.id))
    calls = [result.calls[i] for i in shown]
    stretches = cut_stretches(model, source, calls, tracks, circular=result.calls.circular)
    around = slice(radius + STRIP_START, radius + STRIP_END)
    return {i: effects[around] for i, effects in zip(shown, letter_effects(model, stretches), strict=True)}


def _shard_facts(model: TrainedModel, scorer: Scorer, origin: Origin) -> dict[str, Any]:
    """What ``seqray gather`` needs of a scan beside its scores."""
    from seqray.core.card import describe_card
    from seqray.core.serialization import to_mapping
    from seqray.core.version import __version__
    from seqray.io.tables import describe_alphabet

    options = scorer.options
    return {
        "version": __version__,
        "model": [model.card.name, model.sha256],
        "engine": model.engine or PYTORCH,
        "card": [model.card.summary, *describe_card(model.card)],
        "findings": [*origin.findings(options.species), *scorer.limits],
        "alphabet": describe_alphabet(model.alphabet),
        "options": {name: getattr(options, name) for name in GATHERED},
        "track name": model.card.positive,
        "expected": to_mapping(model.card.locator),
        "species": options.species or origin.species,
        "foreign": options.species is None and origin.is_foreign,
    }
