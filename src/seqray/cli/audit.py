"""``seqray audit``: before training, say what would fool you."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING

from seqray.cli.common import add_data_arguments, check_end, check_files, data_files, read_data, whole_number
from seqray.core import ALPHABETS

if TYPE_CHECKING:
    from seqray.core import Alphabet
    from seqray.core.results import Audit, SkippedRecord

ALARM = 3  # exit status under --strict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add("tables", nargs="*", metavar="TABLE", help="the same as --train TABLE; '-' is standard input")
    add_data_arguments(parser)
    add("--alphabet", choices=tuple(ALPHABETS), default="dna", help="of the sequences (default: dna)")
    add("--out", "-o", metavar="FILE", help="every number, as a TSV; '-' is standard output")
    add("--html", metavar="FILE", help="the same as a page for the browser")
    add("--strict", action="store_true", help=f"exit with {ALARM} where a leak or a shortcut is found")
    add("--no-baselines", action="store_true", help="fit no linear baselines: faster")
    add(
        "--seed",
        type=whole_number,
        default=0,
        metavar="N",
        help="of folds, samples and resamples (default: 0)",
    )
    add("--quiet", "-q", action="store_true", help="print no findings")


def run(args: argparse.Namespace) -> int:
    """Read, audit, write and tell; returns the exit status."""
    args.train = [*args.tables, *args.train]
    check_end(args.out, ".tsv")
    check_end(args.html, ".html", ".htm")
    check_files(data_files(args), [args.out, args.html])
    alphabet = ALPHABETS[args.alphabet]
    letters: list[str] = []
    skipped: list[SkippedRecord] = []
    examples = read_data(args, alphabet, letters.append, skipped.append)
    from seqray.datasets.audit import audit  # here, because it takes a second to load

    found = audit(
        examples,
        alphabet,
        letters,
        in_file_order=_one_file_a_split(args),
        baselines=not args.no_baselines,
        seed=args.seed,
        skipped=len(skipped),
    )
    _write(args, alphabet, found)
    if not args.quiet:
        stream = sys.stderr if "-" in (args.out, args.html) else sys.stdout
        print("\n".join(summary(found, [example.label for example in examples])), file=stream)
    return ALARM if args.strict and found.alarming else 0


def _one_file_a_split(args: argparse.Namespace) -> bool:
    """Whether the order of the examples of a split is that of one table."""
    fastas = args.class_files or args.test_class_files
    return not fastas and all(len(files) <= 1 for files in (args.train, args.validation, args.test))


def _write(args: argparse.Namespace, alphabet: Alphabet, found: Audit) -> None:
    from seqray.io import Staging
    from seqray.io.tables import describe_alphabet, provenance_lines, write_audit

    settings = {name: value for name, value in found.settings.items() if name != "alphabet"}
    lines = provenance_lines(args.command, "", "", describe_alphabet(alphabet), settings)
    with Staging() as staging:
        if args.out:
            write_audit(staging.path(args.out), found, lines)
        if args.html:
            from seqray.io import open_output
            from seqray.report.pages import render_audit

            with open_output(staging.path(args.html)) as handle:
                handle.write(render_audit(found, lines).encode())


def summary(found: Audit, labels: list[str]) -> list[str]:
    """Say in a few lines what was found, worst first."""
    counts = dict(sorted(Counter(labels).items()))
    shown = ", ".join(f"{label} {count}" for label, count in list(counts.items())[:8])
    more = f", and {len(counts) - 8} more classes" if len(counts) > 8 else ""
    measured, _, reason = found.settings["given"].partition("none: ")
    lines = [f"{len(labels)} sequences: {shown}{more}; {measured or reason}"]
    for finding in found.findings:
        lines += [
            f"{finding.severity.upper()}: {finding.what}",
            f"    {finding.effect}",
            f"    -> {finding.remedy}",
        ]
    if not measured:
        lines.append("rules and baselines were not measured")
    elif not found.alarming:
        lines.append("no leak and no shortcut was found")
    return lines
