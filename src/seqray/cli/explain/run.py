"""``seqray explain``: which letters or columns a call rests on, ranked, and whether to believe that."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.common import (
    Counted,
    Outcome,
    Progress,
    SkipLog,
    check_files,
    check_suffix,
    describe_input,
    open_model,
    open_records,
    provenance,
    refuse_row_options,
)
from seqray.cli.explain.arguments import ExplainRequest
from seqray.core import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seqray.cli.explain.outputs import Gathered
    from seqray.core import SequenceRecord
    from seqray.core.results import Faithfulness, HeadFigures, Place
    from seqray.explanations import ExplainOptions
    from seqray.modelfile import TrainedModel

__all__ = ["ExplainRequest", "run"]


def run(request: ExplainRequest) -> Outcome:
    """Read, explain, check, write."""
    from seqray.cli.explain.outputs import Gathered, Outputs, write_outputs
    from seqray.io import Staging

    started = time.monotonic()
    check_suffix(request.outputs.html, ".html", ".htm")
    outputs = Outputs.of(request)
    if request.outputs.track and request.records.duplicates == "keep":
        raise ConfigError("a track needs ids that tell records apart", remedy="use --duplicates rename")
    check_files(
        request.input,
        [*outputs.paths(), request.records.skipped],
        beside=(request.model.model, request.target.calls),
    )
    if request.target.calls == "-":
        raise InputError("calls are read from a file", where="standard input")
    model = open_model(request.model, request.computing, alignments=True, verbose=request.verbose)
    if model.card.model.kind == "alignment":
        from seqray.cli.explain.alignments import run_alignments

        return run_alignments(request, model, outputs, started)
    refuse_row_options(request.rows, request.alignments)
    if request.outputs.heads:
        from seqray.explanations.attribution import check_heads

        check_heads(model)
    settings = _settings(request)
    gathered = Gathered(request, settings)
    with Staging() as staging:
        staged = outputs.stage(staging)
        skip_path = request.records.skipped and staging.path(request.records.skipped)
        lines = provenance(request.command, model, _facts(request, model, settings))
        with SkipLog(skip_path, lines, quiet=request.quiet) as skipped:
            records = _explain(
                request, model, settings, gathered, skipped, staged[request.outputs.out], lines
            )
        faithfulness, heads = _check(request, model, settings, gathered)
        write_outputs(outputs, staged, gathered, model, lines, faithfulness, heads)
    request.note(*(faithfulness.verdicts.values() if faithfulness else ()))
    seconds = time.monotonic() - started
    request.say(f"{gathered.records} records, {skipped.count} skipped, {seconds:.1f} s")
    return Outcome(records=records.count)


def _settings(request: ExplainRequest) -> ExplainOptions:
    from seqray.explanations import ExplainOptions, MethodSettings

    return ExplainOptions(
        methods=request.target.methods,
        target=request.target.target,
        members=request.target.members,
        shuffles=request.checks.shuffles,
        effects=not request.checks.no_check,
        attention=bool(request.outputs.html),
        seed=request.checks.seed,
        settings=MethodSettings(
            residual=request.settings.residual,
            heads=request.settings.heads_fused,
            steps=request.settings.steps,
            block=request.settings.block,
            spread=request.settings.spread,
        ),
    )


def _explain(
    request: ExplainRequest,
    model: TrainedModel,
    settings: ExplainOptions,
    gathered: Gathered,
    skipped: SkipLog,
    table: Path,
    lines: list[str],
) -> Counted[SequenceRecord]:
    """Explain and write the table, gathering what the other outputs need; returns the records read."""
    from seqray.explanations import explain_records
    from seqray.io.tables import write_explanations

    with Progress("explain", "records", quiet=request.quiet) as progress:
        read = open_records(request.input, request.records, model.alphabet, skipped)
        records, places = _records(request, model, read)
        source = describe_input(request.input)
        explanations = explain_records(model, records, settings, places=places, source=source)
        write_explanations(table, gathered.watch(explanations, progress), lines, request.outputs.top)
    return read


def _records(
    request: ExplainRequest, model: TrainedModel, records: Iterable[SequenceRecord]
) -> tuple[Iterable[SequenceRecord], list[Place] | None]:
    """The records of the file, or the windows of the calls and where they lie."""
    if not request.target.calls:
        return records, None
    from seqray.explanations import extract_call_windows
    from seqray.io.tracks import read_gff3_calls

    calls = read_gff3_calls(request.target.calls)
    if not calls and not request.records.allow_empty:
        remedy = "--allow-empty gives an empty output instead"
        raise InputError("holds no calls of 'seqray scan'", where=request.target.calls, remedy=remedy)
    return extract_call_windows(
        records, calls, model.alphabet, model.card.window, request.target.calls, request.target.best_calls
    )


def _check(
    request: ExplainRequest, model: TrainedModel, settings: ExplainOptions, gathered: Gathered
) -> tuple[Faithfulness | None, tuple[HeadFigures, ...]]:
    """Check the rankings on a sample of the records, and describe the heads where somebody will look."""
    from seqray.explanations import check, heads

    sample = gathered.sample()
    with Progress("check", "records", len(sample), quiet=request.quiet) as progress:
        faithfulness = None if request.checks.no_check else check(model, progress.watch(sample), settings)
        shown = (
            request.outputs.html and model.card.model.backbone is None
        )  # a page does without what can't be had
        return faithfulness, heads(model, sample, settings) if request.outputs.heads or shown else ()


def _facts(request: ExplainRequest, model: TrainedModel, settings: ExplainOptions) -> dict[str, str]:
    """What the columns mean, for the header."""
    from seqray.explanations.attribution import METHODS as KNOWN

    kinds = [f"{m} ({'signed' if KNOWN[m].signed else 'unsigned shares'})" for m in settings.methods]
    target = settings.target or f"{model.card.positive} (the positive one)"
    facts = {
        "methods": ", ".join(kinds),
        "class": f"{target}; rollout and value-rollout are the same for every class",
        "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
        "ism_delta": "change of the log-odds of the class, mean over the three or more other letters",
    }
    if settings.shuffles:
        facts["p"] = (
            f"share of letters in {settings.shuffles} shuffled copies of the record that score as high"
        )
        facts["q"] = "p after Benjamini and Hochberg over the positions of the record"
    if request.target.calls:
        facts["calls"] = Path(request.target.calls).name
    return facts
