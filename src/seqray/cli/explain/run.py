"""``seqray explain``: which letters or columns drive a call, ranked, and how reliable the ranking is."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from seqray.cli.common import (
    Outcome,
    Progress,
    SkipLog,
    check_files,
    context_fact,
    describe_input,
    find_genes,
    given,
    open_model,
    open_records,
    provenance,
    recognize,
    recognized,
    records_in,
    truncation_fact,
)
from seqray.cli.explain.arguments import OF_METHODS, ExplainRequest
from seqray.core import ConfigError, counted
from seqray.io import keep_pipes
from seqray.io.tracks import read_circular

if TYPE_CHECKING:
    from seqray.kinds import ExplanationRequest
    from seqray.modelfile import TrainedModel

__all__ = ["ExplainRequest", "run"]


def run(request: ExplainRequest) -> Outcome:
    """Read, explain, check, write."""
    from seqray.kinds import check_options, kind_of

    started = time.monotonic()
    asked, options = request.for_library(), request.records
    if asked.files.track and options.duplicates == "keep":
        raise ConfigError("a track requires unique ids", remedy="use --duplicates rename")
    outputs = [*asked.files.paths(), options.skipped]
    check_files(request.input, outputs, beside=(request.model.model, asked.calls, request.genes.genes))
    keep_pipes(asked.calls)  # read for what the scan states, and for its calls
    model = open_model(
        request.model, request.computing, alignments=True, locators=True, verbose=request.verbose
    )
    check_options(kind_of(model.card), given(request))
    _check_together(request)
    model = model.with_truncation(request.truncate)
    read, summary = _explain(request, _with_genes(request, asked, model), model)
    request.say(f"{summary}, {time.monotonic() - started:.1f} s")
    return Outcome(records=read)


def _check_together(request: ExplainRequest) -> None:
    """Refuse options that another option leaves without effect."""
    checks, target = request.checks, request.target
    if checks.no_check and (checks.faithfulness or checks.check_records):
        other = "faithfulness" if checks.faithfulness else "check-records"
        raise ConfigError(f"--no-check and --{other} can't both be given", remedy="give one of them")
    if target.best_calls and not target.calls:
        raise ConfigError(
            "--best-calls is given without --calls", remedy="name the calls of a scan: --calls FILE"
        )
    named = set(given(request))
    if "--html-records" in named and not (request.outputs.html or request.outputs.plot):
        raise ConfigError("--html-records is given without --html or --plot", remedy="give one of them")
    for name in sorted(named & OF_METHODS.keys()):
        if not any(OF_METHODS[name] in method for method in target.methods):
            remedy = f"leave it out, or add --method {OF_METHODS[name]}"
            raise ConfigError(f"{name} changes nothing with --method {target.methods[0]}", remedy=remedy)


def _explain(request: ExplainRequest, asked: ExplanationRequest, model: TrainedModel) -> tuple[int, str]:
    """Write all files; the number of records that were read, and a summary."""
    from seqray.io import Staging
    from seqray.kinds import kind_of

    kind, options = kind_of(model.card), request.records
    total = records_in(request.input) if kind.reads_each_record and not asked.calls else None
    with Staging() as staging:
        staged = asked.files.stage(staging)
        skip_path = options.skipped and staging.path(options.skipped)
        with (
            SkipLog(skip_path, provenance(request.command, model, {}), quiet=request.quiet) as skipped,
            Progress("explain", "records", total, quiet=request.quiet) as progress,
        ):
            records = open_records(kind.read, request.input, options, model.alphabet, skipped)
            model, read = recognize(request.model, model, records)
            work = kind.explanation_run(model, asked)
            facts = context_fact(request.model, model) | truncation_fact(model.card) | work.facts()
            lines = provenance(request.command, model, facts)
            work.explain(read, staged, lines, progress.advance)
            if not options.allow_empty:
                skipped.check_some_left(records.count, describe_input(request.input))
        if work.truncated:
            request.say(kind.describe_truncation(work.truncated, work.count, model.card))
        request.note(*recognized(request.model, model), *(f"caution: {text}" for text in work.cautions))
        with Progress("check", "records", len(work.sample()), quiet=request.quiet) as progress:
            faithfulness = work.check(progress.watch)
        work.write(staged, lines, faithfulness)
    request.note(*(faithfulness.verdicts.values() if faithfulness else ()), *work.remarks())
    return records.count, f"{counted(work.count, 'record')}, {skipped.count} skipped"


def _with_genes(
    request: ExplainRequest, asked: ExplanationRequest, model: TrainedModel
) -> ExplanationRequest:
    """Find the genes that a locator reads beside the letters."""
    if not model.is_locator:
        return asked
    source, *others = request.input
    if others:
        raise ConfigError("a locator explains the calls of one file", remedy="give one genome at a time")
    keep_pipes(source)
    circular = read_circular(asked.calls) if asked.calls else frozenset[str]()
    found, notes = find_genes(
        request.genes,
        request.records,
        source,
        model.alphabet,
        lambda record: record.circular or record.id in circular,
    )
    request.note(*notes)
    if found is None:
        return replace(asked, circular=circular)
    names = circular | set(found.circular)
    return replace(asked, genes=found.find, gene_source=found.source, circular=names)
