"""``seqray audit``: find leaks and shortcuts before training."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.labeled import INFERRED_ALPHABET, TableOptions, describe_letters, read_examples
from seqray.cli.messages import Progress
from seqray.cli.options import Outcome, Request, WholeNumber, option

if TYPE_CHECKING:
    from seqray.core.alphabet import Alphabet
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
    examples, alphabet = read_examples(
        request.alphabet,
        request.data.located(request),
        on_letters=letters.append,
        on_skip=skipped.append,
    )
    from seqray.datasets.audit.run import audit

    with Progress("audit", "checks", quiet=request.quiet) as progress:
        found = audit(
            examples,
            alphabet,
            letters,
            in_file_order=_one_file_per_split(request.data),
            baselines=not request.no_baselines,
            seed=request.seed,
            skipped=len(skipped),
            on_progress=progress.update,
        )
    _write(request, alphabet, found, summary(found, [example.label for example in examples]))
    status = ALARM if request.strict and found.alarming else 0
    return Outcome(records=len(examples), status=status)


def _one_file_per_split(data: TableOptions) -> bool:
    """Whether the order of the examples of a split is that of one table."""
    splits = Counter(split for split, _ in data.tables())
    return not data.fastas() and all(count == 1 for count in splits.values())


def _write(request: AuditRequest, alphabet: Alphabet, found: Audit, told: list[str]) -> None:
    from seqray.io.files import Staging
    from seqray.io.summaries import write_audit
    from seqray.io.tables import describe_alphabet, provenance_lines

    settings = {name: value for name, value in found.settings.items() if name != "alphabet"}
    lines = provenance_lines(request.command, "", "", describe_alphabet(alphabet), settings)
    with Staging() as staging:
        if request.out:
            write_audit(staging.path(request.out), found, lines)
        if request.html:
            from seqray.io.files import write_file
            from seqray.report.pages.audit import render_audit

            write_file(staging.path(request.html), render_audit(found, lines))
        if not request.quiet:  # before the files appear: all is written, or nothing
            stream = sys.stderr if "-" in (request.out, request.html) else sys.stdout
            print("\n".join(told), file=stream)


def summary(found: Audit, labels: list[str]) -> list[str]:
    """Summarize the findings, worst first."""
    counts = dict(sorted(Counter(labels).items()))
    shown = ", ".join(f"{label} {count}" for label, count in list(counts.items())[:8])
    more = f", and {len(counts) - 8} more classes" if len(counts) > 8 else ""
    measured, _, reason = found.settings["given"].partition("none: ")
    letters = describe_letters(found.settings["alphabet"])
    lines = [f"{len(labels)} sequences of {letters}: {shown}{more}; {measured or reason}"]
    for finding in found.findings:
        lines += [
            f"{finding.severity.upper()}: {finding.what}",
            f"    {finding.effect}",
            f"    -> {finding.remedy}",
        ]
    if not measured:
        lines.append("rules and baselines were not measured")
    elif not found.alarming:
        beyond = " beyond the cautions above" if any(f.severity == "caution" for f in found.findings) else ""
        lines.append(f"no leak and no shortcut was found{beyond}")
    return lines
