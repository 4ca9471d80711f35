"""Tables of evaluations, audits and summaries."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqray.core.errors import InputError
from seqray.core.results import Audit, Evaluation, Figure
from seqray.core.text import format_number, round_number
from seqray.core.version import __version__
from seqray.io.files import open_input, write_file
from seqray.io.tables import MISSING, one_line, write_table

# ------------------------------------------------ figures of merit: a long TSV, the same as JSON, MultiQC

COLUMNS = (
    *("split", "subset", "source", "class", "metric"),
    *("value", "low", "high", "p", "n", "positives", "groups"),
)
_NUMBERS = ("value", "low", "high", "p")
_NAMES = {"against": "the other"}  # of sources, in sentences
_MULTIQC_ENDING = "_mqc.json"


def write_figures(path: str | Path, evaluation: Evaluation, provenance: Sequence[str]) -> None:
    """Write one row per figure; sources, tests and notes become ``#`` lines."""
    rows = (figure_row(evaluation.split, figure).values() for figure in evaluation.figures)
    cells = ([one_line(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    write_table(path, COLUMNS, cells, [*provenance, *header_lines(evaluation)])


def figure_row(split: str, figure: Figure) -> dict[str, Any]:
    plain = {**asdict(figure), "class": figure.label, "split": split}
    return {column: plain[column] for column in COLUMNS}


def header_lines(evaluation: Evaluation) -> list[str]:
    """Header lines for facts outside the rows: sources, groups, tests of calls, notes."""
    lines = []
    for answers in evaluation.answers:
        calls = "" if answers.threshold is None else f"; calls from {format_number(answers.threshold)} on"
        lines.append(f"source {answers.source}: {answers.note}{calls}")
    lines.append(
        f"intervals: 95 %, percentiles of {evaluation.draws} bootstrap draws, seed {evaluation.seed}; "
        f"{evaluation.grouping}"
    )
    lines += [
        f"McNemar, model against {_NAMES.get(name, name)}: {model} right by the model alone, {other} by "
        f"{_NAMES.get(name, f'the {name}')} alone, "
        f"exact p {format_number(p)}, records taken as independent"
        for name, (model, other, p) in evaluation.mcnemar.items()
    ]
    return lines + [f"note: {note}" for note in evaluation.notes]


def evaluation_mapping(
    evaluation: Evaluation, provenance: Sequence[str], card: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Plain data of an evaluation, rounded as in the TSV; ``card`` is that of the model as plain data."""
    rows = [figure_row(evaluation.split, figure) for figure in evaluation.figures]
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
                "source": answers.source,
                "what": answers.note,
                "threshold": _plain(answers.threshold),
                "probabilities": answers.probabilities,
            }
            for answers in evaluation.answers
        ],
        "figures": [
            {key: _plain(value) if key in _NUMBERS else value for key, value in row.items()} for row in rows
        ],
        "confusion": {a.source: evaluation.confusion(a.source).tolist() for a in evaluation.answers},
        "mcnemar": {
            name: {"model_only": model, "other_only": other, "p": _plain(p)}
            for name, (model, other, p) in evaluation.mcnemar.items()
        },
        "notes": list(evaluation.notes),
    }


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round_number(value)


def write_json(path: str | Path, mapping: Mapping[str, Any]) -> None:
    """Write plain data as JSON, the same bytes for the same data."""
    write_file(path, json.dumps(mapping, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def check_multiqc_path(path: str | Path) -> None:
    """Refuse a name under which MultiQC would not find the file."""
    if not str(path).endswith(_MULTIQC_ENDING):
        what = "is not a name that MultiQC looks for"
        raise InputError(what, where=str(path), remedy=f"end it in {_MULTIQC_ENDING}")


def multiqc_mapping(evaluation: Evaluation, sample: str, model: str) -> dict[str, Any]:
    """The figures of an evaluation as MultiQC's custom content, with the columns of its summary."""
    figures = [figure_row(evaluation.split, figure) for figure in evaluation.figures]
    rows = [{key: _cell(value) for key, value in row.items()} for row in figures]
    summary = _summarize_evaluation(rows, sample)
    return summary_multiqc("evaluate", [{"sample": sample, "model": model} | summary])


def _cell(value: Any) -> str:
    if value is None or value != value:  # nan
        return MISSING
    return format_number(value) if isinstance(value, float) else str(value)


# --------------------------------------------- an audit: its findings as comments, and every figure as a row

_AUDIT_COLUMNS = ("section", "split", "class", "quantity", "value", "low", "high")


def write_audit(path: str | Path, audit: Audit, provenance: Sequence[str]) -> None:
    """Write findings as ``#`` lines, figures as rows, and counts of histograms with their edges."""
    findings = [f"finding: {f.severity} ({f.kind}): {f.what}; {f.effect}; {f.remedy}" for f in audit.findings]
    figures = [(f.section, f.split, f.label, f.quantity, f.value, f.low, f.high) for f in audit.figures]
    figures += [
        ("histogram", h.split, h.label, h.quantity, *counted)
        for h in audit.histograms
        for counted in zip(h.counts, h.edges[:-1], h.edges[1:], strict=True)
    ]
    rows = ([*map(one_line, figure[:4]), *map(float, figure[4:])] for figure in figures)
    write_table(path, _AUDIT_COLUMNS, rows, [*provenance, *findings])


# ------------------------- summaries: a row for each table of predictions, calls or an evaluation, as written

_NAMING = ("sample", "model", "status")
_CALLS = ("sequences", "letters", "positions", "parts", "calls", "calls_per_mb", "threshold")
_EXPECTED = ("expected_precision", "expected_precision_low", "expected_precision_high")
_FALSE_CALLS = ("false_calls_per_mb", "false_calls_per_mb_low", "false_calls_per_mb_high")
_METRICS = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece", "brier")
_WITH_INTERVAL = ("mcc", "auroc", "auprc")
_OF_FLOOR = ("mcc", "auroc")
_STATED_SCANNED = re.compile(
    r"(\d+) sequences?, (\d+) (?:bases|letters),(?: (\d+) positions)?(?: per strand in (\d+) parts?)?"
)
_STATED_CALLS = re.compile(r"(\d{1,18}), (\d+(?:\.\d+)?(?:e[+-]?\d+)?) per ([Mk]b)")  # of a locator per kb
_STATED_EXPECTED = re.compile(r"(\S+) \((\S+) to ([^\s,)]+)")
_STATED_FALSE_CALLS = re.compile(r"(\S+) per Mb \(95 % interval (\S+) to (\S+?)\)")
_STATED_THRESHOLD = re.compile(r"at least (\d\S*)")
_WRITE_AGAIN = "write it again with the command of its header"


def summarize(path: str | Path) -> tuple[str, dict[str, str]]:
    """Summarize a table of ``predict``, ``scan``, ``gather`` or ``evaluate``: its verb, column -> cell."""
    where = str(path)
    with open_input(path) as handle:
        try:
            # Not `splitlines`, for which a line also ends at signs that an id may hold.
            lines = [line.rstrip("\n") for line in io.TextIOWrapper(handle, encoding="utf-8")]
        except UnicodeDecodeError:
            raise InputError("is not text in UTF-8", where=where) from None
    pairs = (line[2:].partition(": ") for line in lines if line.startswith("# "))
    facts = {key: value for key, _, value in pairs}
    header, *rows = [line.split("\t") for line in lines if not line.startswith("#")] or [[]]
    if header in rows:
        raise InputError("holds two tables", where=where, remedy="give each in a file of its own")
    if any(len(row) != len(header) for row in rows):
        raise InputError("is cut short: rows lack cells", where=where, remedy=_WRITE_AGAIN)
    cells = (dict(zip(header, row, strict=True)) for row in rows)
    if {"contig", "site", "score"} <= set(header):
        verb, summary = "scan", _summarize_calls(facts, len(rows), where)
    elif {"source", "metric", "value"} <= set(header):
        verb, summary = "evaluate", _summarize_evaluation(list(cells), where)
    elif {"label", "flags"} <= set(header):
        verb, summary = "predict", _summarize_predictions(facts, header, list(cells))
    else:
        remedy = "give a .tsv of 'seqray predict', 'scan', 'gather' or 'evaluate'"
        raise InputError("is no table of predictions, calls or an evaluation", where=where, remedy=remedy)
    cautions = [text for key, text in facts.items() if key.startswith("caution ")]
    about = {"model": facts.get("model", MISSING), "status": "ok"}  # the model: its name and checksum
    return verb, about | summary | {"cautions": one_line("; ".join(cautions)) or MISSING}


def summary_multiqc(verb: str, rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The rows of a summary as MultiQC's custom content; several models of a sample are part of the name."""
    several = len({row["sample"] for row in rows}) < len(rows)
    data = {
        f"{row['sample']} {row['model']}" if several else row["sample"]: {
            column: cell
            for column, cell in plain_cells(row).items()
            if column != "sample" and cell is not None
        }
        for row in rows
    }
    return {
        "id": f"seqray_{verb}",  # files of one id become one table
        "section_name": f"seqray {verb}",
        "description": "One row for each sample.",
        "plot_type": "table",
        "pconfig": {"id": f"seqray_{verb}_table", "title": f"seqray {verb}", "namespace": "seqray"},
        "headers": {column: _multiqc_header(column) for column in rows[0] if column != "sample"},
        "data": data,
    }


def _multiqc_header(column: str) -> dict[str, Any]:
    header = {"title": column.replace("floor", "baseline").replace("_", " ")}
    figure = column.removeprefix("floor_")
    if figure.endswith(("_low", "_high")):
        return header | {"hidden": True}
    shares = {"max": 1, "format": "{:,.3f}"}  # else MultiQC shows one decimal
    return header | (shares if figure in _METRICS or column == "threshold" or "precision" in column else {})


def plain_cells(row: Mapping[str, str]) -> dict[str, str | float | None]:
    """Cells of a summary as plain data: numbers, text, and None for what is unknown."""
    return {
        column: cell if column in _NAMING else None if cell == MISSING else _number(cell)
        for column, cell in row.items()
    }


def _number(cell: str) -> str | float:
    try:
        return int(cell) if cell.isdecimal() else float(cell)
    except ValueError:
        return cell


def _summarize_calls(facts: Mapping[str, str], count: int, where: str) -> dict[str, str]:
    scanned = _STATED_SCANNED.match(facts.get("scanned", ""))
    calls = _STATED_CALLS.match(facts.get("calls", ""))
    threshold = facts.get("threshold", "").split(",")[0]
    if scanned is None or calls is None or not threshold:
        what = "has no header with what was scanned"
        remedy = "give it as 'seqray scan' or 'seqray gather' wrote it, with its lines of '#'"
        raise InputError(what, where=where, remedy=remedy)
    if int(calls[1]) != count:
        what = f"is cut short or was edited: its header states {calls[1]} calls, and it has {count}"
        raise InputError(what, where=where, remedy="write it again with 'seqray scan' or 'seqray gather'")
    sequences, letters, positions, parts = scanned.groups(MISSING)
    per_mb = calls[2] if calls[3] == "Mb" else f"{1000 * float(calls[2]):.4g}"
    searched = (sequences, letters, positions, parts if "parts" in facts else "all")
    shown = format_number(float(threshold)) if threshold[0].isdigit() else MISSING  # a header has more digits
    cells = (*searched, calls[1], per_mb, shown)
    summary: dict[str, str] = dict(zip(_CALLS, cells, strict=True))
    for columns, stated in (
        (_FALSE_CALLS, _STATED_FALSE_CALLS.match(facts.get("expected false calls", ""))),
        (_EXPECTED, _STATED_EXPECTED.match(facts.get("expected precision", ""))),
    ):
        summary |= dict(zip(columns, stated.groups() if stated else [MISSING] * 3, strict=True))
    return summary


def _summarize_predictions(
    facts: Mapping[str, str], header: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Counts of records, of those with a flag, and of each class that the table has a probability of."""
    threshold = _STATED_THRESHOLD.search(facts.get("label", ""))
    labels = Counter(row["label"] for row in rows)
    classes = [column[2:] for column in header if column.startswith("p_")]
    return {
        "records": str(len(rows)),
        "flagged": str(sum(row["flags"] != MISSING for row in rows)),
        "threshold": threshold[1] if threshold else MISSING,
        **{f"called_{name}": str(labels[name]) for name in classes},
    }


def _summarize_evaluation(rows: Sequence[Mapping[str, str]], where: str) -> dict[str, str]:
    wanted = {(row["source"], row["metric"]): row for row in reversed(rows) if row.get("subset") == "all"}
    if not any(source == "model" for source, _ in wanted):
        raise InputError("has no rows of the subset 'all' for the model", where=where, remedy=_WRITE_AGAIN)
    any_row = wanted.get(("model", "mcc"), {})
    summary = {key: any_row.get(key, MISSING) for key in ("split", "n", "positives")}
    if any_row.get("class") in ("all", "macro"):  # which have no positives
        summary["positives"] = MISSING
    for metric in _METRICS:
        row = wanted.get(("model", metric), {})
        summary[metric] = row.get("value", MISSING)
        if metric in _WITH_INTERVAL:
            summary |= {f"{metric}_{end}": row.get(end, MISSING) for end in ("low", "high")}
    for metric in _OF_FLOOR:
        summary[f"floor_{metric}"] = wanted.get(("floor", metric), {}).get("value", MISSING)
    return summary
