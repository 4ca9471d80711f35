"""Tables of an evaluation: figures by source, differences, thresholds, confusion, parts of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seqray.core.results import Evaluation, Figure
from seqray.evaluation import judged_label, threshold_rows
from seqray.metrics import METRICS
from seqray.report.html import MISSING, escape, fixed, name, number, table

THRESHOLD_COLUMNS = ("sensitivity", "specificity", "precision", "f1", "mcc", "accuracy")
PART_COLUMNS = ("mcc", "auroc", "auprc", "sensitivity", "specificity")
PART_SOURCES = ("model", "floor", "against")


def shown(figure: Figure | None, decimals: int = 3) -> str:
    """A value with its interval below it."""
    if figure is None or math.isnan(figure.value):
        return MISSING
    text = fixed(figure.value, decimals)
    if math.isnan(figure.low):
        return text
    return f"{text} <small>({fixed(figure.low, decimals)} to {fixed(figure.high, decimals)})</small>"


def by_key(evaluation: Evaluation, label: str) -> dict[tuple[str, str, str], Figure]:
    """Figures of one class by subset, source and metric."""
    return {(f.subset, f.source, f.metric): f for f in evaluation.figures if f.label == label}


def figures_table(evaluation: Evaluation, label: str) -> str:
    """One row per metric, one column per source."""
    found = by_key(evaluation, label)
    sources = [answers.source for answers in evaluation.answers]
    metrics = [m for m in METRICS if any(("all", s, m) in found for s in sources)]
    rows = [
        [escape(m.replace("_", " ")), *(shown(found.get(("all", s, m))) for s in sources)] for m in metrics
    ]
    return f"<div class=scroll>{table(['', *map(escape, sources)], rows)}</div>"


def differences_table(evaluation: Evaluation) -> str:
    """The model minus what it is compared with; empty where there is nothing."""
    found = by_key(evaluation, judged_label(evaluation))
    sources = [f"model-{source}" for source in evaluation.mcnemar]
    if not sources:
        return ""
    metrics = [m for m in METRICS if any(("all", s, m) in found for s in sources)]
    head = ["", *(cell for s in sources for cell in (escape(s.replace("model-", "model minus ")), "p"))]
    rows = []
    for metric in metrics:
        row = [escape(metric.replace("_", " "))]
        for source in sources:
            figure = found.get(("all", source, metric))
            row += [shown(figure), number(figure.p, 2) if figure else MISSING]
        rows.append(row)
    tests = "".join(
        f"<p class=note>Calls: {model} records are right by the model alone, {other} by the {escape(source)} "
        f"alone; exact p of McNemar's test {number(p, 2)}, records taken as independent.</p>"
        for source, (model, other, p) in evaluation.mcnemar.items()
    )
    return f"<div class=scroll>{table(head, rows)}</div>{tests}"


def threshold_table(evaluation: Evaluation) -> str:
    """What calls at other thresholds would be; for two classes."""
    k = evaluation.classes.index(evaluation.positive)
    model = evaluation.answers[0]
    labels = (evaluation.labels == k).astype(np.int64)
    rows = []
    for row in threshold_rows(labels, model.scores[:, k], model.threshold):
        own = row["threshold"] == model.threshold
        mark = " ◂ in force" if own else ""
        cells = (fixed(row[column], 3) for column in THRESHOLD_COLUMNS)
        rows.append([f"{number(row['threshold'], 4)}{mark}", str(int(row["called"])), *cells])
    return f"<div class=scroll>{table(['threshold', 'called', *THRESHOLD_COLUMNS], rows)}</div>"


def confusion_table(evaluation: Evaluation, source: str) -> str:
    """Records by true class (rows) and class called (columns)."""
    counts = evaluation.confusion(source).tolist()
    rows = [[name(label), *map(str, row)] for label, row in zip(evaluation.classes, counts, strict=True)]
    head = [f"true ╲ called by the {escape(source)}", *(name(label) for label in evaluation.classes)]
    return f"<div class=scroll>{table(head, rows)}</div>"


def parts_table(evaluation: Evaluation, subsets: Sequence[str]) -> str:
    """Figures of parts of the data, a row each."""
    found = by_key(evaluation, judged_label(evaluation))
    sources = [one.source for one in evaluation.answers if one.source in PART_SOURCES]
    columns = [
        (source, metric)
        for metric in PART_COLUMNS
        for source in sources
        if source == "model" or metric in ("mcc", "auroc")
    ]
    rows = []
    for subset in subsets:
        any_figure = next((f for key, f in found.items() if key[0] == subset), None)
        groups = str(any_figure.groups) if any_figure else MISSING
        positives = str(any_figure.positives) if any_figure and any_figure.positives else MISSING
        values = (shown(found.get((subset, *column)), 2) for column in columns)
        rows.append(
            [name(subset.partition(":")[2]), str(evaluation.subsets[subset]), positives, groups, *values]
        )
    head = [
        "",
        "records",
        "positives",
        "groups",
        *(escape(f"{source} {metric}") for source, metric in columns),
    ]
    return f"<div class=scroll>{table(head, rows)}</div>"
