"""``seqray explain``: which letters or columns drive a call, ranked, and how reliable the ranking is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.explain_options import ExplainRequest, check_names, output_paths
from seqray.cli.inputs import SkipLog, check_files, describe_input, open_records
from seqray.cli.messages import Progress
from seqray.cli.model import (
    context_fact,
    open_model,
    provenance,
    recognize,
    recognized,
    refuse_for_others,
    truncation_fact,
)
from seqray.cli.options import Outcome, refuse_unused
from seqray.core.errors import ConfigError, InputError
from seqray.core.text import counted

if TYPE_CHECKING:
    from seqray.modelfile.model import TrainedModel


def run(request: ExplainRequest) -> Outcome:
    """Read, explain, check, write."""
    from seqray.kinds.kinds import kind_of

    check_names(request)
    request.settings.for_library()  # refuses values that no model takes, before one is loaded
    request.rows.limit()
    if request.target.calls == "-":
        raise InputError("calls are read from a file", where="standard input")
    if request.outputs.track and request.records.duplicates == "keep":
        raise ConfigError("a track requires unique ids", remedy="use --duplicates rename")
    calls, outputs = request.target.calls, [*output_paths(request), request.records.skipped]
    check_files(request.input, outputs, beside=(request.model.model, calls, request.genes.genes))
    model = open_model(
        request.model, request.computing, alignments=True, locators=True, verbose=request.verbose
    )
    kind = kind_of(model.card)
    methods = request.target.method or kind.default_methods
    request = replace(request, target=replace(request.target, method=methods))
    refuse_for_others(request, kind)
    _check_together(request)
    model = model.with_truncation(request.truncate)
    read, summary = _explain(request, model)
    return Outcome(records=read, last=summary)


def _check_together(request: ExplainRequest) -> None:
    """Refuse options that another option leaves without effect."""
    checks, target = request.checks, request.target
    if checks.no_check and (checks.faithfulness or checks.check_records):
        other = "faithfulness" if checks.faithfulness else "check-records"
        raise ConfigError(f"--no-check and --{other} can't both be given", remedy="give one of them")
    absent = {}
    if not target.calls:
        absent["calls"] = "is given without --calls", "name the calls of a scan: --calls FILE"
    for use in ("rollout", "integrated-gradients", "occlusion"):
        if not any(use in method for method in target.methods):  # rollout has several kinds
            what = f"changes nothing with --method {target.methods[0]}"
            absent[use] = what, f"leave it out, or add --method {use}"
    refuse_unused(request, absent)


def _explain(request: ExplainRequest, model: TrainedModel) -> tuple[int, str]:
    """Write all files; the number of records that were read, and a summary."""
    from seqray.cli.explain_records import EXPLAINERS, find_genome
    from seqray.inference.sequences import checked_records
    from seqray.io.files import Staging
    from seqray.io.gff3 import read_called
    from seqray.kinds.kinds import kind_of

    kind, options = kind_of(model.card), request.records
    called = read_called(request.target.calls) if request.target.calls else None
    opened = find_genome(request, model, called) if model.is_locator else None
    with Staging() as staging:
        staged = {path: Path(staging.path(path)) for path in output_paths(request)}
        skip_path = options.skipped and staging.path(options.skipped)
        with (
            SkipLog(skip_path, provenance(request.command, model, {}), quiet=request.quiet) as skipped,
            Progress("explain", "records", quiet=request.quiet) as progress,
        ):
            if opened is not None:
                opened.skip_to(skipped)
            records = opened or open_records(
                kind.reader(request.columns), request.input, options, model.alphabet, skipped
            )
            usable = opened.records if opened else records
            if (
                options.skip_unusable
                and model.card.model.reads_sequences
                and not (opened or request.target.calls)
            ):
                usable = checked_records(usable, model, "", skipped)
            model, read = recognize(request.model, model, usable)
            work = EXPLAINERS[model.card.model.kind](model, request, called, opened and opened.annotation)
            facts = context_fact(request.model, model) | truncation_fact(model.card) | work.facts()
            lines = provenance(request.command, model, facts)
            work.explain(read, staged, lines, progress.advance)
            if not options.allow_empty:
                skipped.check_some_left(records.count, describe_input(request.input))
        if work.truncated:
            request.say(kind.describe_truncation(work.truncated, work.count, model.card))
        request.note(*recognized(request.model, model), *(f"caution: {text}" for text in work.cautions))
        with Progress("check", "records", len(work.sample()), quiet=request.quiet) as progress:
            sample = progress.watch(work.sample())
            faithfulness = None if request.checks.no_check else work.check(sample)
        work.write(staged, lines, faithfulness)
        undrawn = work.plot(staged)
    request.note(*(faithfulness.verdicts.values() if faithfulness else ()), *work.remarks())
    if undrawn:
        raise undrawn
    return records.count, f"{counted(work.count, 'record')}, {skipped.count} skipped"
