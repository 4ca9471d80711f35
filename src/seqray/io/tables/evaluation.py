"""Figures of merit as files: a long TSV, the same as JSON, and a table for MultiQC."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqray.core import InputError, __version__, format_number
from seqray.core.results import Evaluation, Figure
from seqray.io.files import write_file
from seqray.io.tables.writing import one_line, write_table

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
