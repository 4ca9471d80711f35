"""``seqray explain``: which letters or columns drive a call, ranked, and how reliable the ranking is."""

from __future__ import annotations

import time

from seqray.cli.common import (
    Outcome,
    Progress,
    SkipLog,
    check_files,
    given,
    open_model,
    open_records,
    provenance,
    records_in,
)
from seqray.cli.explain.arguments import ExplainRequest
from seqray.core import ConfigError

__all__ = ["ExplainRequest", "run"]


def run(request: ExplainRequest) -> Outcome:
    """Read, explain, check, write."""
    from seqray.io import Staging
    from seqray.kinds import check_options, kind_of

    started = time.monotonic()
    asked, options = request.for_library(), request.records
    if asked.files.track and options.duplicates == "keep":
        raise ConfigError("a track requires unique ids", remedy="use --duplicates rename")
    outputs = [*asked.files.paths(), options.skipped]
    check_files(request.input, outputs, beside=(request.model.model, asked.calls))
    model = open_model(request.model, request.computing, alignments=True, verbose=request.verbose)
    kind = kind_of(model.card)
    check_options(kind, given(request))
    work = kind.explanation_run(model, asked)
    total = records_in(request.input) if kind.reads_each_record and not asked.calls else None
    with Staging() as staging:
        staged = asked.files.stage(staging)
        lines = provenance(request.command, model, work.facts())
        with (
            SkipLog(options.skipped and staging.path(options.skipped), lines, quiet=request.quiet) as skipped,
            Progress("explain", "records", total, quiet=request.quiet) as progress,
        ):
            records = open_records(kind.read, request.input, options, model.alphabet, skipped)
            work.explain(records, staged, lines, progress.advance)
        request.note(*(f"caution: {text}" for text in work.cautions))
        with Progress("check", "records", len(work.sample()), quiet=request.quiet) as progress:
            faithfulness = work.check(progress.watch)
        work.write(staged, lines, faithfulness)
    request.note(*(faithfulness.verdicts.values() if faithfulness else ()))
    seconds = time.monotonic() - started
    request.say(f"{work.count} records, {skipped.count} skipped, {seconds:.1f} s")
    return Outcome(records=records.count)
