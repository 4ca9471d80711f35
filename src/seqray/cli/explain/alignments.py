"""``seqray explain`` with a model of alignments: columns, rows and pairs of columns, ranked and checked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from seqray.cli.common import Outcome, Progress, SkipLog, open_alignments, provenance
from seqray.cli.explain.arguments import ExplainRequest
from seqray.cli.explain.outputs import Outputs
from seqray.core import Alignment, ConfigError
from seqray.core.results import AlignmentExplanation, Faithfulness
from seqray.explanations import AlignmentOptions, MethodSettings, check_alignments, explain_alignments
from seqray.explanations.attribution import (
    ALIGNMENT_METHODS,
    SEPARATION,
    PairTable,
    Structure,
    pair_table,
    structure_of,
)
from seqray.explanations.checks import CHECKED_ALIGNMENTS, Reservoir
from seqray.io import Staging, open_output
from seqray.io.tables import (
    COLUMN_COLUMNS,
    PAIR_COLUMNS,
    ROW_COLUMNS,
    WriteRows,
    column_lines,
    open_table,
    pair_lines,
    row_lines,
    write_checks,
)
from seqray.modelfile import TrainedModel
from seqray.report.pages import AlignmentReport, render_alignments

_FOR_SEQUENCES = (
    *("--calls", "--best-calls", "--track", "--motifs", "--heads", "--shuffles"),
    *("--members", "--fuse", "--spread", "--steps"),
)


def run_alignments(request: ExplainRequest, model: TrainedModel, outputs: Outputs, started: float) -> Outcome:
    """Read, explain, check, write.

    Parameters
    ----------
    request
        Of ``seqray explain``.
    model
        Of kind ``alignment``.
    outputs
        Whose names were checked.
    started
        When the run began, in seconds of the monotonic clock.
    """
    _refuse_sequence_options(request)
    settings = _settings(request)
    kept = _Kept(request)
    with Staging() as staging:
        staged = outputs.stage(staging)
        skip_path = request.records.skipped and staging.path(request.records.skipped)
        lines = provenance(request.command, model, _facts(request, model, settings))
        with SkipLog(skip_path, lines, quiet=request.quiet) as skipped:
            alignments = open_alignments(request.input, request.records, model.alphabet, skipped)
            _explain(request, explain_alignments(model, alignments, settings), outputs, staged, lines, kept)
        faithfulness = _check(request, model, settings, kept)
        _write_rest(outputs, staged, kept, model, lines, faithfulness)
    request.note(*(faithfulness.verdicts.values() if faithfulness else ()))
    seconds = time.monotonic() - started
    request.say(f"{kept.count} records, {skipped.count} skipped, {seconds:.1f} s")
    return Outcome(records=alignments.count)


def _refuse_sequence_options(request: ExplainRequest) -> None:
    """Say so where options are given that mean nothing for alignments, whatever their value."""
    given = {word.partition("=")[0] for word in request.command}
    for option in _FOR_SEQUENCES:
        if option in given:
            raise ConfigError(f"{option} is for models of sequences, and this one reads alignments")
    for option in ("--separation", "--best-pairs", "--pairs-by"):
        if option in given and not (request.alignments.pairs or request.outputs.html or request.outputs.plot):
            raise ConfigError(f"{option} is about pairs", remedy="name a file by --pairs")


def _settings(request: ExplainRequest) -> AlignmentOptions:
    return AlignmentOptions(
        methods=request.target.methods,
        target=request.target.target,
        rows=request.rows.limit(),
        pairs=bool(request.alignments.pairs or request.outputs.html or request.outputs.plot),
        seed=request.checks.seed,
        settings=MethodSettings(residual=request.settings.residual, block=request.settings.block),
    )


class _Kept:
    """What is kept of the explanations while they stream past."""

    def __init__(self, request: ExplainRequest) -> None:
        self.count = 0
        self.shown: list[tuple[AlignmentExplanation, PairTable]] = []
        self.most_shown = request.outputs.shown
        size = request.checks.check_records or CHECKED_ALIGNMENTS
        self._called: Reservoir[Alignment] = Reservoir(size, request.checks.seed)
        self._any: Reservoir[Alignment] = Reservoir(size, request.checks.seed)
        self._quiet = request.quiet

    def offer(self, explanation: AlignmentExplanation) -> None:
        """Count one, and draw it for the checks or not."""
        self.count += 1
        self._any.offer(explanation.alignment)
        if explanation.label == explanation.target:
            self._called.offer(explanation.alignment)

    def sample(self) -> list[Alignment]:
        """Alignments for the checks: of those called the class explained, or of all where none is."""
        return self._called.kept or self._any.kept


def _explain(
    request: ExplainRequest,
    explanations: Iterable[AlignmentExplanation],
    outputs: Outputs,
    staged: Mapping[str, Path],
    lines: Sequence[str],
    kept: _Kept,
) -> None:
    """Write the tables, keeping what the other outputs need."""
    source = iter(explanations)
    first = list(islice(source, 1))  # a file that can't be read leaves no header on standard output
    with ExitStack() as stack:
        progress = stack.enter_context(Progress("explain", "alignments", quiet=request.quiet))

        def table(name: str | None, columns: Sequence[str]) -> WriteRows | None:
            return stack.enter_context(open_table(staged[name], columns, lines)) if name else None

        columns, rows = table(outputs.table, COLUMN_COLUMNS), table(outputs.row_profile, ROW_COLUMNS)
        pairs = table(outputs.pairs, PAIR_COLUMNS)
        for explanation in chain(first, source):
            kept.offer(explanation)
            progress.advance()
            if columns:
                columns(column_lines(explanation, request.outputs.top))
            if rows:
                rows(row_lines(explanation))
            if pairs or kept.count <= kept.most_shown:
                found = _pairs(request, explanation)
                if pairs:
                    pairs(pair_lines(explanation, found.best))
                if kept.count <= kept.most_shown:
                    kept.shown.append((explanation, found))


def _pairs(request: ExplainRequest, explanation: AlignmentExplanation) -> PairTable:
    wanted = request.alignments.best_pairs
    most = explanation.pairs.size if wanted == 0 and explanation.pairs is not None else wanted
    structure = _structure(request, explanation)
    by = request.alignments.pairs_by or "attention"
    return pair_table(explanation, structure, most, request.alignments.separation or SEPARATION, by)


def _structure(request: ExplainRequest, explanation: AlignmentExplanation) -> Structure | None:
    """The structure of an alignment; one that can't be read is told, and spoils nothing else."""
    try:
        return structure_of(explanation.alignment)
    except ValueError as error:
        where = f"alignment '{explanation.id}': SS_cons"
        request.note(f"caution: {where}: {error}; its pairs are left out")
        return None


def _check(
    request: ExplainRequest, model: TrainedModel, settings: AlignmentOptions, kept: _Kept
) -> Faithfulness | None:
    """Check the rankings of columns on a sample of the alignments."""
    if request.checks.no_check:
        return None
    sample = kept.sample()
    with Progress("check", "alignments", len(sample), quiet=request.quiet) as progress:
        return check_alignments(model, progress.watch(sample), replace(settings, pairs=False))


def _write_rest(
    outputs: Outputs,
    staged: Mapping[str, Path],
    kept: _Kept,
    model: TrainedModel,
    provenance: Sequence[str],
    faithfulness: Faithfulness | None,
) -> None:
    if outputs.faithfulness and faithfulness is not None:
        verdicts = [f"verdict: {verdict}" for verdict in faithfulness.verdicts.values()]
        write_checks(staged[outputs.faithfulness], faithfulness.checks, [*provenance, *verdicts])
    if outputs.plot:
        from seqray.report.plots import plot_alignments

        plot_alignments(staged[outputs.plot], kept.shown)
    if outputs.html:
        report = AlignmentReport(
            title=f"{model.card.name}: which columns the calls rest on",
            shown=kept.shown,
            card=model.card,
            provenance=provenance,
            faithfulness=faithfulness,
            omitted=kept.count - len(kept.shown),
        )
        with open_output(staged[outputs.html]) as handle:
            handle.write(render_alignments(report).encode())


def _facts(request: ExplainRequest, model: TrainedModel, settings: AlignmentOptions) -> dict[str, str]:
    """What the columns mean, for the header."""
    kinds = [
        f"{m} ({'signed' if ALIGNMENT_METHODS[m].signed else 'unsigned shares'})" for m in settings.methods
    ]
    target = settings.target or f"{model.card.positive} (the positive one)"
    depth = min(settings.rows or model.card.model.max_rows, model.card.model.max_rows)
    facts = {
        "methods": ", ".join(kinds),
        "class": f"{target}; rollout is the same for every class",
        "coordinates": "columns and rows of the file and positions in the query (the first row), from 1; "
        "'.' where the query has no letter, and for the score of what was not read",
        "read": f"{depth} rows and {model.card.window} columns at most; columns without letters in these "
        "rows are left out",
        "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
        "occupancy": "share of all rows of the file with a letter",
        "conservation": "1 - entropy / log of the number of letters, of all rows of the file",
    }
    if "occlusion" in settings.methods:
        hidden = (
            f"{settings.settings.block} columns at a time are"
            if (settings.settings.block or 1) > 1
            else "a column is"
        )
        facts["occlusion"] = f"fall of the log-odds when {hidden} masked in all rows, or a row is left out"
    if request.alignments.pairs:
        facts["pairs"] = (
            f"maps of row attention made symmetric, average product taken out; the two columns "
            f"{request.alignments.separation or SEPARATION} or more apart"
        )
        facts["pairs"] += f"; ranked by {request.alignments.pairs_by or 'attention'}"
        facts["covariation"] = "mutual information of all rows of the file, weighted, corrected in that way"
        if model.alphabet.is_nucleotide:
            facts["helix"] = (
                "probability of a base pair, by energies of all rows of the file; not the model's"
            )
    return facts
