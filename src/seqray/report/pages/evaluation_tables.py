"""Tables of an evaluation: figures by source, differences, thresholds, confusion, parts of the data."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from seqray.core.results import Evaluation, Figure
from seqray.evaluation import judged_label, threshold_rows
from seqray.metrics import METRICS
from seqray.report.html import MISSING, fixed, interval, name, number, wide_table

_THRESHOLD_COLUMNS = ("sensitivity", "specificity", "precision", "f1", "mcc", "accuracy")
_SUBSET_METRICS = ("mcc", "auroc", "auprc", "sensitivity", "specificity")
_COMPARED_METRICS = ("mcc", "auroc")  # of a subset, for every source
_LOWER_IS_BETTER = ("brier", "log_loss", "ece")
Key = tuple[str, str, str]


def compared_sources(evaluation: Evaluation) -> list[str]:
    """The model and the sources that it is compared with in detail."""
    return [one.source for one in evaluation.answers if one.source in ("model", "floor", "against")]


def _shown(figure: Figure | None, decimals: int = 3) -> Markup:
    """A value with its interval."""
    if figure is None or math.isnan(figure.value):
        return Markup(MISSING)
    bounds = interval(figure.low, figure.high, decimals)
    return Markup(fixed(figure.value, decimals) + (bounds and f" <small>{bounds.strip()}</small>"))


def by_key(evaluation: Evaluation, label: str) -> dict[Key, Figure]:
    """Figures of one class by subset, source and metric."""
    return {(f.subset, f.source, f.metric): f for f in evaluation.figures if f.label == label}


def _metrics(found: dict[Key, Figure], sources: list[str]) -> list[tuple[str, list[Figure | None]]]:
    """Each metric that a source has, with the figure of each source for all records."""
    rows = [(metric, [found.get(("all", source, metric)) for source in sources]) for metric in METRICS]
    return [(_title(metric), figures) for metric, figures in rows if any(figures)]


def _title(metric: str) -> str:
    return metric.replace("_", " ") + (" (lower is better)" if metric in _LOWER_IS_BETTER else "")


def figures_table(evaluation: Evaluation, label: str) -> Markup:
    """One row per metric, one column per source."""
    sources = [answers.source for answers in evaluation.answers]
    found = _metrics(by_key(evaluation, label), sources)
    return wide_table(["", *sources], ([metric, *map(_shown, figures)] for metric, figures in found))


def differences_table(evaluation: Evaluation) -> Markup:
    """The model minus what it is compared with; empty where there is nothing."""
    sources = [f"model-{source}" for source in evaluation.mcnemar]
    if not sources:
        return Markup()
    head = ["", *(cell for s in sources for cell in (s.replace("model-", "model minus "), "p"))]
    found = _metrics(by_key(evaluation, judged_label(evaluation)), sources)
    rows = (
        [metric, *(cell for f in figures for cell in (_shown(f), number(f.p, 2) if f else MISSING))]
        for metric, figures in found
    )
    return wide_table(head, rows)


def threshold_table(evaluation: Evaluation) -> Markup:
    """Calls at other thresholds; empty unless there are two classes."""
    if len(evaluation.classes) != 2:
        return Markup()
    k, model = evaluation.classes.index(evaluation.positive), evaluation.answers[0]
    labels = (evaluation.labels == k).astype(np.int64)
    rows = []
    for row in threshold_rows(labels, model.scores[:, k], model.threshold):
        mark = " ◂ in force" if row["threshold"] == model.threshold else ""
        cells = (fixed(row[column]) for column in _THRESHOLD_COLUMNS)
        rows.append([f"{number(row['threshold'], 4)}{mark}", str(int(row["called"])), *cells])
    return wide_table(["threshold", "called", *_THRESHOLD_COLUMNS], rows)


def confusion_table(evaluation: Evaluation, source: str) -> Markup:
    """Records by true class (rows) and class called (columns)."""
    counts = evaluation.confusion(source).tolist()
    rows = [[name(label), *map(str, row)] for label, row in zip(evaluation.classes, counts, strict=True)]
    return wide_table([f"true ╲ called by the {source}", *map(name, evaluation.classes)], rows)


def subsets_table(evaluation: Evaluation, kind: str) -> Markup:
    """Figures of the subsets whose names begin with a kind, a row each; empty where there are none."""
    found = by_key(evaluation, judged_label(evaluation))
    columns = [
        (source, metric)
        for metric in _SUBSET_METRICS
        for source in compared_sources(evaluation)
        if source == "model" or metric in _COMPARED_METRICS
    ]
    rows = []
    for subset, records in evaluation.subsets.items():
        if subset.startswith(kind):
            one = next((f for key, f in found.items() if key[0] == subset), None)
            counts = [str(one.positives or MISSING), str(one.groups)] if one else [MISSING, MISSING]
            cells = (_shown(found.get((subset, *column)), 2) for column in columns)
            rows.append([name(subset.partition(":")[2]), str(records), *counts, *cells])
    head = ["", "records", "positives", "groups", *(f"{source} {metric}" for source, metric in columns)]
    return wide_table(head, rows) if rows else Markup()
