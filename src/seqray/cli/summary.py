"""``seqray summary``: one row for each table of predictions, calls or an evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from unicodedata import category

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.options import Outcome, Printable, Request, option
from seqray.core.errors import InputError

# Control characters, and those that end a line.
_BREAKING = ("Cc", "Zl", "Zp")

_CHECKSUM = len("sha256:") + 8  # signs of it that tell two models apart


class SummaryRequest(Request):
    """Options of ``seqray summary``."""

    tables: tuple[str, ...] = option(
        "NAME=TABLE*",
        "a .tsv of 'seqray predict', 'scan', 'gather' or 'evaluate', all of one kind; NAME is its row",
    )
    failed: tuple[str, ...] = option(
        "--failed NAME=MODEL[=WHY]",
        "a row for a table that is missing, because its command failed, and WHY as its caution; may be "
        "repeated",
    )
    out: str = option("--out -o FILE", "TSV (default: standard output)", "-")
    json: str | None = option("--json FILE", "the same as JSON")
    html: str | None = option("--html FILE", "the same as a page for the browser")
    multiqc: str | None = option("--multiqc FILE", "the same as a table for MultiQC; ends in _mqc.json")
    title: Printable = option("--title TEXT", "heading of the page", "Summary")


def run(request: SummaryRequest) -> Outcome:
    """Read the tables, write the summary."""
    from seqray.io.files import Staging, write_file
    from seqray.io.summaries import check_multiqc_path, plain_cells, summarize, summary_multiqc, write_json
    from seqray.io.tables import MISSING, provenance_lines, write_table

    check_suffix(request.out, ".tsv")
    check_suffix(request.json, ".json")
    check_suffix(request.html, ".html", ".htm")
    if request.multiqc:
        check_multiqc_path(request.multiqc)
    outputs = [request.out, request.json, request.html, request.multiqc]
    rows: list[dict[str, str]] = []
    verbs: list[str] = []
    if not request.tables and not request.failed:
        raise InputError("no table is given", remedy="write NAME=TABLE")
    for word in request.tables:
        name, path = _named(word)
        check_files([path], outputs)
        verb, row = summarize(path)
        verbs.append(verb)
        rows.append({"sample": name} | row)
        if verb != verbs[0]:
            what = f"is a table of '{verb}', and the first is one of '{verbs[0]}'"
            raise InputError(what, where=path, remedy="make a summary of each kind")
    for word in request.failed:
        name, failed = _named(word)
        model, _, why = failed.partition("=")
        rows.append({"sample": name, "model": model, "status": "failed", "cautions": why or MISSING})
    _name_models(rows)
    columns = dict.fromkeys(column for row in rows for column in row)  # models may have other classes
    columns = sorted(columns, key="cautions".__eq__)  # they come last
    rows = [dict.fromkeys(columns, MISSING) | row for row in rows]
    with Staging() as staging:
        if request.html:  # first: what is printed can't be taken back
            from seqray.report.pages.evaluation import render_summary

            write_file(staging.path(request.html), render_summary(request.title, rows))
        if request.json:
            lines = provenance_lines(request.command, "", "", "")
            plain = {"provenance": lines, "rows": [plain_cells(row) for row in rows]}
            write_json(staging.path(request.json), plain)
        if request.multiqc:
            write_json(staging.path(request.multiqc), summary_multiqc([*verbs, "scan"][0], rows))
        write_table(staging.path(request.out), columns, (list(row.values()) for row in rows))
    return Outcome(records=len(rows))


def _named(word: str) -> tuple[str, str]:
    """The name of a row, and what it is of."""
    name, equals, of = word.partition("=")
    if not (name and equals and of):
        of = of or name
        raise InputError("has no name for its row", where=of, remedy=f"write NAME={of}")
    if any(category(letter) in _BREAKING for letter in word):
        what = f"the name {word!r} has a tab or another control character"
        raise InputError(what, remedy="leave it out")
    return name, of


def _name_models(rows: Sequence[dict[str, str]]) -> None:
    """Shorten each model to its name, and where a name has several, also to the start of its checksum."""
    names = Counter((row["sample"], row["model"].partition(" ")[0]) for row in rows)
    seen: set[tuple[str, str]] = set()
    for row in rows:
        model, _, checksum = row["model"].partition(" ")
        sample = row["sample"]
        row["model"] = f"{model} {checksum[:_CHECKSUM]}".rstrip() if names[sample, model] > 1 else model
        if (sample, row["model"]) in seen:
            what = f"two tables of the model '{model}' have the name '{sample}'"
            raise InputError(what, remedy="give each a unique name")
        seen.add((sample, row["model"]))
