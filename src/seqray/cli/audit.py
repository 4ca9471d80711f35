"""``seqray audit``: find leaks and shortcuts before training."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.labeled import INFERRED_ALPHABET, TableOptions, describe_letters, naming_alphabet
from seqray.cli.messages import Progress
from seqray.cli.options import Outcome, Request, WholeNumber, option
from seqray.core.text import class_counts

if TYPE_CHECKING:
    from seqray.core.results import Audit, SkippedRecord

ALARM = 3  # exit status under --strict


class AuditRequest(Request):
    """Options of ``seqray audit``."""

    data: TableOptions
    alphabet: str | None = INFERRED_ALPHABET
    out: str | None = option("--out -o FILE", "every number, as a TSV; '-' is standard output")
    html: str | None = option("--html FILE", "the same as a page for the browser")
    strict: bool = option("--strict", f"exit with {ALARM} if a leak or a shortcut is found")
    no_baselines: bool = option("--no-baselines", "fit no linear baselines: faster")
    seed: WholeNumber = option("--seed N", "seed of folds, samples and resamples", 0)
    quiet: bool = option("--quiet -q", "print no findings")


def run(request: AuditRequest) -> Outcome:
    """Read, audit, write and report."""
    check_suffix(request.out, ".tsv")
    check_suffix(request.html, ".html", ".htm")
    check_files(request.data.files(), [request.out, request.html])
    letters: list[str] = []
    skipped: list[SkippedRecord] = []
    from seqray.datasets.audit.run import audit
    from seqray.io.files import Staging, write_file
    from seqray.io.summaries import write_audit
    from seqray.io.tables import describe_alphabet, provenance_lines
    from seqray.kinds.kinds import read_sequence_examples

    with naming_alphabet():
        files = request.data.located(request)
        examples, alphabet = read_sequence_examples(files, request.alphabet, letters.append, skipped.append)
    # the order of the rows says something if each split is one table
    splits = Counter(split for split, _ in request.data.tables())
    in_file_order = not request.data.fastas() and all(count == 1 for count in splits.values())
    with Progress("audit", "checks", quiet=request.quiet) as progress:
        result = audit(
            examples,
            alphabet,
            letters,
            in_file_order=in_file_order,
            baselines=not request.no_baselines,
            seed=request.seed,
            skipped=len(skipped),
            on_progress=progress.update,
        )
    settings = {name: value for name, value in result.settings.items() if name != "alphabet"}
    lines = provenance_lines(request.command, "", "", describe_alphabet(alphabet), settings)
    with Staging() as staging:
        if request.out:
            write_audit(staging.path(request.out), result, lines)
        if request.html:
            from seqray.report.pages.audit import render_audit

            write_file(staging.path(request.html), render_audit(result, lines))
        if not request.quiet:  # before the files appear: all is written, or nothing
            stream = sys.stderr if "-" in (request.out, request.html) else sys.stdout
            print("\n".join(summary(result, [e.label for e in examples])), file=stream)
    return Outcome(records=len(examples), status=ALARM if request.strict and result.alarming else 0)


def summary(result: Audit, labels: list[str]) -> list[str]:
    """Summarize the findings, worst first."""
    counts = sorted(Counter(labels).items())
    shown = class_counts(dict(counts[:8]))
    more = f", and {len(counts) - 8} more classes" if len(counts) > 8 else ""
    measured, _, reason = result.settings["given"].partition("none: ")
    letters = describe_letters(result.settings["alphabet"])
    lines = [f"{len(labels)} sequences of {letters}: {shown}{more}; {measured or reason}"]
    for f in result.findings:
        lines += [f"{f.severity.upper()}: {f.what}", f"    {f.effect}", f"    -> {f.remedy}"]
    if not measured:
        lines.append("rules and baselines were not measured")
    elif not result.alarming:
        beyond = " beyond the cautions above" if any(f.severity == "caution" for f in result.findings) else ""
        lines.append(f"no leak and no shortcut was found{beyond}")
    return lines
