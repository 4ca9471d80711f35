"""Summary of an evaluation in a few lines of text."""

from __future__ import annotations

import math

from seqray.core import align_columns, format_interval
from seqray.core.results import Evaluation, Figure

SHOWN_METRICS = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece")
DIFFERENCES = ("mcc", "auroc", "auprc")
OF_PARTS = ("mcc", "auroc")  # with their intervals


def summary(evaluation: Evaluation, name: str) -> list[str]:
    """Metrics of the model and of what it is compared with, differences, subsets and notes."""
    judged = judged_label(evaluation)
    found = {(f.subset, f.source, f.metric): f for f in evaluation.figures if f.label == judged}
    lines = [_head(evaluation, name)]
    columns = [metric for metric in SHOWN_METRICS if ("all", "model", metric) in found]
    rows = [["" if judged == evaluation.positive else "mean of classes", *columns]]
    for answers in evaluation.answers:
        rows.append(
            [answers.source, *(_value(found.get(("all", answers.source, metric))) for metric in columns)]
        )
    lines += align_columns(rows)
    lines += _differences(evaluation, found)
    lines += _parts(evaluation, found)
    return [*lines, *(f"note: {note}" for note in evaluation.notes)]


def judged_label(evaluation: Evaluation) -> str:
    """The label of the summary metrics: the positive class of two, else the mean over classes."""
    return evaluation.positive if len(evaluation.classes) == 2 else "macro"


def _head(evaluation: Evaluation, name: str) -> str:
    counts = [int((evaluation.labels == k).sum()) for k in range(len(evaluation.classes))]
    classes = ", ".join(f"{count} {label}" for count, label in zip(counts, evaluation.classes, strict=True))
    return f"{name} on {len(evaluation.labels)} records of split {evaluation.split}: {classes}"


def _differences(evaluation: Evaluation, found: dict[tuple[str, str, str], Figure]) -> list[str]:
    lines = []
    for source, (model, other, p) in evaluation.mcnemar.items():
        parts = [
            f"{metric} {figure.value:+.3f} ({figure.low:+.3f} to {figure.high:+.3f}, p {figure.p:.2g})"
            if math.isfinite(figure.low)
            else f"{metric} {figure.value:+.3f}{' (no interval: too few groups)' if evaluation.draws else ''}"
            for metric in DIFFERENCES
            if (figure := found.get(("all", f"model-{source}", metric))) and not math.isnan(figure.value)
        ]
        lines.append(f"model minus {source}: {', '.join(parts)}")
        lines.append(
            f"  records that only one gets right: model {model}, {source} {other}; McNemar p {p:.2g}"
        )
    return lines


def _parts(evaluation: Evaluation, found: dict[tuple[str, str, str], Figure]) -> list[str]:
    if not evaluation.subsets:
        return []
    sources = [one.source for one in evaluation.answers if one.source in ("model", "floor", "against")]
    rows = [["", "n", *(f"{source} {metric}" for source in sources for metric in OF_PARTS)]]
    for subset, count in evaluation.subsets.items():
        values = [_value(found.get((subset, source, m))) for source in sources for m in OF_PARTS]
        rows.append([subset, str(count), *values])
    return align_columns(rows)


def _value(figure: Figure | None) -> str:
    if figure is None or math.isnan(figure.value):
        return "-"
    interval = format_interval(figure.low, figure.high, ".2f") if figure.metric in OF_PARTS else ""
    return f"{figure.value:.3f}{interval}"
