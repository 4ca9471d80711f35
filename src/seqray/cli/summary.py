"""``seqray summary``: a row for each of several tables of calls or evaluations, as a table and as a page."""

from __future__ import annotations

import argparse
from unicodedata import category

from seqray.core import InputError

# Control characters, and those that end a line.
_BREAKING = ("Cc", "Zl", "Zp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "tables",
        nargs="+",
        metavar="NAME=TABLE",
        help="a .tsv of 'seqray scan' or 'gather', or of 'seqray evaluate', all of one kind; NAME is its row",
    )
    parser.add_argument("--out", "-o", default="-", metavar="FILE", help="TSV (default: standard output)")
    parser.add_argument("--html", metavar="FILE", help="the same as a page for the browser")
    parser.add_argument("--title", default="Summary", metavar="TEXT", help="heading of the page")
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="write nothing but errors to standard error"
    )


def _divide(word: str) -> tuple[str, str]:
    """Name and file of ``NAME=TABLE``."""
    name, equals, path = word.partition("=")
    if not (name and equals and path):
        raise InputError(f"{word!r} names no table", remedy="write NAME=TABLE")
    if any(category(letter) in _BREAKING for letter in name):
        raise InputError(f"the name {name!r} has a tab or another control character", remedy="leave it out")
    return name, path


def run(args: argparse.Namespace) -> int:
    """Read the tables, write the summary."""
    from seqray.cli.common import check_end, check_files
    from seqray.io import Staging, open_output
    from seqray.io.tables import summarize, write_summary

    check_end(args.html, ".html", ".htm")
    rows: list[dict[str, str]] = []
    for word in args.tables:
        name, path = _divide(word)
        if any(row["sample"] == name for row in rows):
            raise InputError(f"two tables have the name '{name}'", remedy="give each a name of its own")
        check_files([path], [args.out, args.html])
        rows.append({"sample": name} | summarize(path))
        if list(rows[-1]) != list(rows[0]):
            raise InputError("is a table of another kind than the first", where=path)
    args.records = len(rows)
    with Staging() as staging:
        write_summary(staging.path(args.out), rows)
        if args.html:
            from seqray.report.pages import render_summary

            with open_output(staging.path(args.html)) as handle:
                handle.write(render_summary(args.title, rows).encode())
    return 0
