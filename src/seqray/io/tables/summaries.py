"""Summaries: one row per table of calls or of an evaluation, from its header and rows."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from seqray.core import InputError
from seqray.io.files import open_input
from seqray.io.tables.writing import write_table

UNKNOWN = "."
CALLS: tuple[str, ...] = ("sequences", "letters", "positions", "parts", "calls", "calls_per_mb", "threshold")
EXPECTED: tuple[str, ...] = ("expected_precision", "expected_precision_low", "expected_precision_high")
FALSE_CALLS: tuple[str, ...] = ("false_calls_per_mb", "false_calls_per_mb_low", "false_calls_per_mb_high")
METRICS = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece", "brier")
_WITH_INTERVAL = ("mcc", "auroc", "auprc")
_OF_FLOOR = ("mcc", "auroc")
_OF_ALL_CLASSES = ("all", "macro")
_SCANNED = re.compile(
    r"(\d+) sequences?, (\d+) letters,(?: (\d+) positions)?(?: per strand in (\d+) parts?)?"
)
_WRITE_AGAIN = "write it again with the command of its header"
_CALLED = re.compile(r"(\d{1,18}), (\d+(?:\.\d+)?(?:e[+-]?\d+)?) per ([Mk]b)")  # of a locator per kb
_EXPECTED = re.compile(r"(\S+) \((\S+) to ([^\s,)]+)")
_FALSE_CALLS = re.compile(r"(\S+) per Mb \(95 % interval (\S+) to (\S+?)\)")


def summarize(path: str | Path) -> dict[str, str]:
    """Summarize a table of ``seqray scan``, ``gather`` or ``evaluate`` as column -> cell.

    Raises `InputError` for a table of another kind, one without the header that they write, or one that was
    cut short.
    """
    facts, header, rows = _read(path)
    model = facts.get("model", UNKNOWN)  # its name and checksum
    if {"contig", "site", "score"} <= set(header):
        return {"model": model} | _calls(facts, len(rows), str(path))
    if {"source", "metric", "value"} <= set(header):
        return {"model": model} | _evaluation(
            [dict(zip(header, row, strict=True)) for row in rows], str(path)
        )
    raise InputError(
        "is neither a table of calls nor of an evaluation",
        where=str(path),
        remedy="give a .tsv of 'seqray scan', 'seqray gather' or 'seqray evaluate'",
    )


def _read(path: str | Path) -> tuple[dict[str, str], list[str], list[list[str]]]:
    """Facts of the ``# key: value`` lines, names of the columns, and the rows."""
    with open_input(path) as handle:
        try:
            # Not `splitlines`, for which a line also ends at signs that an id may hold.
            lines = [line.rstrip("\n") for line in io.TextIOWrapper(handle, encoding="utf-8")]
        except UnicodeDecodeError:
            raise InputError("is not text in UTF-8", where=str(path)) from None
    pairs = (line[2:].partition(": ") for line in lines if line.startswith("# "))
    header, *rows = [line.split("\t") for line in lines if not line.startswith("#")] or [[]]
    if header in rows:
        raise InputError("holds two tables", where=str(path), remedy="give each in a file of its own")
    if any(len(row) != len(header) for row in rows):
        raise InputError("is cut short: rows lack cells", where=str(path), remedy=_WRITE_AGAIN)
    return {key: value for key, _, value in pairs}, header, rows


def _calls(facts: Mapping[str, str], count: int, where: str) -> dict[str, str]:
    scanned = _SCANNED.match(facts.get("scanned", ""))
    called = _CALLED.match(facts.get("calls", ""))
    threshold = facts.get("threshold", "").split(",")[0]
    if scanned is None or called is None or not threshold:
        raise InputError(
            "has no header with what was scanned",
            where=where,
            remedy="give it as 'seqray scan' or 'seqray gather' wrote it, with its lines of '#'",
        )
    if int(called[1]) != count:
        raise InputError(
            f"is cut short or was edited: its header states {called[1]} calls, and it has {count}",
            where=where,
            remedy="write it again with 'seqray scan' or 'seqray gather'",
        )
    false_calls = _FALSE_CALLS.match(facts.get("expected false calls", ""))
    per_mb = called[2] if called[3] == "Mb" else f"{1000 * float(called[2]):.4g}"
    sequences, letters, positions, parts = scanned.groups(UNKNOWN)
    where_searched = parts if "parts" in facts else "all"
    known = threshold if threshold[0].isdigit() else UNKNOWN
    cells = (sequences, letters, positions, where_searched, called[1], per_mb, known)
    expected = _EXPECTED.match(facts.get("expected precision", ""))
    return (
        dict(zip(CALLS, cells, strict=True))
        | _with_interval(FALSE_CALLS, false_calls)
        | _with_interval(EXPECTED, expected)
    )


def _with_interval(columns: Sequence[str], found: re.Match[str] | None) -> dict[str, str]:
    """A figure and its interval, each unknown if nothing was found."""
    return dict(zip(columns, found.groups() if found else [UNKNOWN] * len(columns), strict=True))


def _evaluation(rows: Sequence[Mapping[str, str]], where: str) -> dict[str, str]:
    wanted = {(row["source"], row["metric"]): row for row in reversed(rows) if row.get("subset") == "all"}
    if not any(source == "model" for source, _ in wanted):
        raise InputError("has no rows of the subset 'all' for the model", where=where, remedy=_WRITE_AGAIN)
    any_row = wanted.get(("model", "mcc"), {})
    summary = {key: any_row.get(key, UNKNOWN) for key in ("split", "n", "positives")}
    if any_row.get("class") in _OF_ALL_CLASSES:  # which have no positives
        summary["positives"] = UNKNOWN
    for metric in METRICS:
        row = wanted.get(("model", metric), {})
        summary[metric] = row.get("value", UNKNOWN)
        if metric in _WITH_INTERVAL:
            summary |= {f"{metric}_{end}": row.get(end, UNKNOWN) for end in ("low", "high")}
    for metric in _OF_FLOOR:
        summary[f"floor_{metric}"] = wanted.get(("floor", metric), {}).get("value", UNKNOWN)
    return summary


def write_summary(path: str | Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write rows that have the same columns as a TSV."""
    write_table(path, list(rows[0]), (list(row.values()) for row in rows))
