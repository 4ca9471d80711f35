"""Tables of evaluations, audits and summaries."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqray.core.errors import InputError
from seqray.core.results import Audit, AuditFigure, Evaluation, Figure, Finding
from seqray.core.text import format_number
from seqray.core.version import __version__
from seqray.io.files import open_input, write_file
from seqray.io.tables import one_line, write_table

# --- Figures of merit as files: a long TSV, the same as JSON, and a table for MultiQC

COLUMNS = (
    *("split", "subset", "source", "class", "metric"),
    *("value", "low", "high", "p", "n", "positives", "groups"),
)
NUMBERS = ("value", "low", "high", "p")
NAMES = {"against": "the other"}  # of sources, in sentences
MULTIQC_ENDING = "_mqc.json"
MULTIQC_ID = "seqray_evaluate"
# Figures of a row of MultiQC's table, and whether more is better.
MULTIQC_METRICS = {
    "mcc": ("MCC", "Matthews correlation coefficient", -1, 1, "RdYlGn"),
    "auroc": ("AUROC", "area under the ROC curve", 0, 1, "RdYlGn"),
    "auprc": ("AUPRC", "average precision; its floor is the share of positives", 0, 1, "RdYlGn"),
    "sensitivity": ("Sensitivity", "share of the positives that are called", 0, 1, "RdYlGn"),
    "specificity": ("Specificity", "share of the negatives that are not called", 0, 1, "RdYlGn"),
    "precision": ("Precision", "share of the calls that are positive", 0, 1, "RdYlGn"),
    "ece": ("ECE", "expected calibration error", 0, 1, "RdYlGn-rev"),
}
_BESIDE = ("mcc", "auroc")  # shown of the floor too, and as a difference


# --------------------------------------------------------------------------------------------------- TSV


def write_figures(path: str | Path, evaluation: Evaluation, provenance: Sequence[str]) -> None:
    """Write one row per figure.

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    evaluation
        Its sources, tests and notes become ``#`` lines.
    """
    rows = (_row(evaluation.split, figure).values() for figure in evaluation.figures)
    cells = ([one_line(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    write_table(path, COLUMNS, cells, [*provenance, *header_lines(evaluation)])


def header_lines(evaluation: Evaluation) -> list[str]:
    """Header lines for facts outside the rows: sources, groups, tests of calls, notes."""
    sources = [f"source {one.source}: {one.note}{_calls(one.threshold)}" for one in evaluation.answers]
    tests = [
        f"McNemar, model against {NAMES.get(name, name)}: {model} right by the model alone, {other} by "
        f"{NAMES.get(name, f'the {name}')} alone, "
        f"exact p {format_number(p)}, records taken as independent"
        for name, (model, other, p) in evaluation.mcnemar.items()
    ]
    draws = (
        f"intervals: 95 %, percentiles of {evaluation.draws} bootstrap draws, seed {evaluation.seed}; "
        f"{evaluation.grouping}"
    )
    return [*sources, draws, *tests, *(f"note: {note}" for note in evaluation.notes)]


def _calls(threshold: float | None) -> str:
    return "" if threshold is None else f"; calls from {format_number(threshold)} on"


def _row(split: str, figure: Figure) -> dict[str, Any]:
    plain = asdict(figure)
    plain["class"] = plain.pop("label")
    plain["split"] = split
    return {column: plain[column] for column in COLUMNS}


# -------------------------------------------------------------------------------------------------- JSON


def evaluation_mapping(
    evaluation: Evaluation, provenance: Sequence[str], card: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Plain data of an evaluation: the figures of the TSV, confusion tables, and facts of the card.

    Numbers are rounded as in the TSV; undefined ones are None.

    Parameters
    ----------
    evaluation
        Figures to write.
    provenance
        Comment lines of the file.
    card
        Model card as plain data; None without a model.
    """
    rows = [_row(evaluation.split, figure) for figure in evaluation.figures]
    return {
        "seqray": __version__,
        "provenance": list(provenance),
        "model": dict(card) if card else None,
        "split": evaluation.split,
        "classes": list(evaluation.classes),
        "positive": evaluation.positive,
        "records": len(evaluation.labels),
        "subsets": evaluation.subsets,
        "bootstrap": {"draws": evaluation.draws, "seed": evaluation.seed, "groups": evaluation.grouping},
        "sources": [
            {
                "source": one.source,
                "what": one.note,
                "threshold": _plain(math.nan if one.threshold is None else one.threshold),
                "probabilities": one.probabilities,
            }
            for one in evaluation.answers
        ],
        "figures": [
            {key: _plain(value) if key in NUMBERS else value for key, value in row.items()} for row in rows
        ],
        "confusion": {one.source: evaluation.confusion(one.source).tolist() for one in evaluation.answers},
        "mcnemar": {
            name: {"model_only": model, "other_only": other, "p": _plain(p)}
            for name, (model, other, p) in evaluation.mcnemar.items()
        },
        "notes": list(evaluation.notes),
    }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(format_number(value))


def write_json(path: str | Path, mapping: Mapping[str, Any]) -> None:
    """Write plain data as JSON, the same bytes for the same data."""
    text = json.dumps(mapping, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(path, text)


# ----------------------------------------------------------------------------------------------- MultiQC


def check_multiqc_path(path: str | Path) -> None:
    """Refuse a name under which MultiQC would not find the file."""
    if not str(path).endswith(MULTIQC_ENDING):
        raise InputError(
            "is not a name that MultiQC looks for", where=str(path), remedy=f"end it in {MULTIQC_ENDING}"
        )


def multiqc_mapping(evaluation: Evaluation, sample: str) -> dict[str, Any]:
    """MultiQC's custom content: a table with one row, the sample.

    Files of several samples share the section's id, and MultiQC puts their rows into one table.

    References
    ----------
    https://docs.seqera.io/multiqc/custom_content
    """
    label = evaluation.positive if len(evaluation.classes) == 2 else "macro"
    values = {(f.source, f.metric): f.value for f in evaluation.figures if _is_headline(f, label)}
    row: dict[str, float] = {"records": len(evaluation.labels)}
    headers: dict[str, Any] = {
        "records": {"title": "Records", "description": "records evaluated", "format": "{:,.0f}", "min": 0}
    }
    for metric, (title, words, low, high, scale) in MULTIQC_METRICS.items():
        column = {"min": low, "max": high, "scale": scale, "format": "{:,.3f}"}
        if ("model", metric) in values:
            row[metric] = values["model", metric]
            headers[metric] = {"title": title, "description": words[0].upper() + words[1:], **column}
        if metric in _BESIDE and ("floor", metric) in values:
            row[f"floor_{metric}"] = values["floor", metric]
            headers[f"floor_{metric}"] = {
                "title": f"Floor {title}",
                "description": f"{title} of logistic regression on k-mers, on the same records",
                **column,
            }
    return {
        "id": MULTIQC_ID,
        "section_name": "seqray evaluate",
        "description": "Predictions against labels; the floor is logistic regression on k-mers.",
        "plot_type": "table",
        "pconfig": {"id": f"{MULTIQC_ID}_table", "title": "seqray: figures of merit", "namespace": "seqray"},
        "headers": headers,
        "data": {
            sample: {key: number for key, value in row.items() if (number := _plain(value)) is not None}
        },
    }


def _is_headline(figure: Figure, label: str) -> bool:
    return figure.subset == "all" and figure.label == label


# --- Write an audit as a table: its findings as comments, and every figure as a row

AUDIT_COLUMNS = ("section", "split", "class", "quantity", "value", "low", "high")


def write_audit(path: str | Path, audit: Audit, provenance: Sequence[str]) -> None:
    """Write the table of an audit.

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    audit
        Its findings become ``#`` lines, its figures and the counts of its histograms become rows.
    """
    findings = [f"finding: {finding_line(finding)}" for finding in audit.findings]
    figures = [*audit.figures, *_bins(audit)]
    write_table(path, AUDIT_COLUMNS, map(_audit_row, figures), [*provenance, *findings])


def finding_line(finding: Finding) -> str:
    """A finding in one line, as the table and the terminal show it."""
    return f"{finding.severity} ({finding.kind}): {finding.what}; {finding.effect}; {finding.remedy}"


def _bins(audit: Audit) -> list[AuditFigure]:
    """Counts of histograms, with the edges of the bins as ``low`` and ``high``."""
    return [
        AuditFigure("histogram", h.split, h.label, h.quantity, count, low, high)
        for h in audit.histograms
        for count, low, high in zip(h.counts, h.edges[:-1], h.edges[1:], strict=True)
    ]


def _audit_row(figure: AuditFigure) -> list[object]:
    names = (figure.section, figure.split, figure.label, figure.quantity)
    return [*map(one_line, names), float(figure.value), float(figure.low), float(figure.high)]


# --- Summaries: one row per table of calls or of an evaluation, from its header and rows

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
        return {"model": model} | _summaries_calls(facts, len(rows), str(path))
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


def _summaries_calls(facts: Mapping[str, str], count: int, where: str) -> dict[str, str]:
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
