"""Pages of evaluations and summaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from markupsafe import Markup

from seqray.core.results import Answers, Evaluation, Figure
from seqray.core.version import __version__
from seqray.evaluation.floor import threshold_rows
from seqray.evaluation.run import SHOWN, for_people, judged_label
from seqray.metrics.classification import METRICS
from seqray.report import html
from seqray.report.html import MISSING
from seqray.report.svg import charts

# --- Tables of an evaluation: figures by source, differences, thresholds, confusion, parts of the data

_THRESHOLD_COLUMNS = ("sensitivity", "specificity", "precision", "f1", "mcc", "accuracy")
_SUBSET_METRICS = ("mcc", "auroc", "sensitivity", "specificity")
_COMPARED_METRICS = ("mcc", "auroc")  # of a subset, for every source
_LOWER_IS_BETTER = ("brier", "log_loss", "ece")
Key = tuple[str, str, str]


def compared_sources(evaluation: Evaluation) -> list[str]:
    """The model and the sources that it is compared with in detail."""
    return [a.source for a in evaluation.answers if a.source in SHOWN]


def by_key(evaluation: Evaluation, label: str) -> dict[Key, Figure]:
    """Figures of one class by subset, source and metric."""
    return {(f.subset, f.source, f.metric): f for f in evaluation.figures if f.label == label}


def _metrics(
    evaluation: Evaluation, label: str, sources: list[str]
) -> Iterator[tuple[str, list[Figure | None]]]:
    """Each metric that a source has for a class, with the figure of each source for all records."""
    figures = by_key(evaluation, label)
    for metric in METRICS:
        row = [figures.get(("all", source, metric)) for source in sources]
        if any(row):
            lower = " (lower is better)" if metric in _LOWER_IS_BETTER else ""
            yield metric.replace("_", " ") + lower, row


def differences_table(evaluation: Evaluation) -> Markup:
    """The model minus what it is compared with; empty where there is nothing."""
    sources = [f"model-{source}" for source in evaluation.mcnemar]
    if not sources:
        return Markup()
    head = ["", *(cell for s in sources for cell in (s.replace("model-", "model minus "), "p"))]
    rows = []
    for metric, row in _metrics(evaluation, judged_label(evaluation), sources):
        pairs = ((html.shown_value(f), html.number(f.p, 2) if f else MISSING) for f in row)
        rows.append([metric, *chain.from_iterable(pairs)])
    return html.wide_table(head, rows)


def threshold_table(evaluation: Evaluation) -> Markup:
    """Calls at other thresholds; empty unless there are two classes."""
    k, model = _positive(evaluation), evaluation.answers[0]
    if k is None:
        return Markup()
    labels = (evaluation.labels == k).astype(np.int64)
    rows = []
    for row in threshold_rows(labels, model.scores[:, k], model.threshold):
        mark = " ◂ in force" if row["threshold"] == model.threshold else ""
        cells = (html.fixed(row[column]) for column in _THRESHOLD_COLUMNS)
        rows.append([f"{html.number(row['threshold'], 4)}{mark}", str(int(row["called"])), *cells])
    return html.wide_table(["threshold", "called", *_THRESHOLD_COLUMNS], rows)


def confusion_table(evaluation: Evaluation, source: str) -> Markup:
    """Records by true class (rows) and class called (columns)."""
    counts = evaluation.confusion(source).tolist()
    rows = [[html.name(label), *map(str, row)] for label, row in zip(evaluation.classes, counts, strict=True)]
    return html.wide_table([f"true ╲ called by the {source}", *map(html.name, evaluation.classes)], rows)


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
            cells = (html.shown_value(found.get((subset, *column)), 2) for column in columns)
            rows.append([html.name(subset.partition(":")[2]), str(records), *counts, *cells])
    head = ["", "records", "positives", "groups", *(f"{source} {metric}" for source, metric in columns)]
    return html.wide_table(head, rows) if rows else Markup()


# --- The page: figures beside those of the baseline, curves, calibration, thresholds, parts of the data

_SHADES = {
    "model": "k0",
    "against": "k1",
    "baseline": "k4",
    "forest": "k3",
    "gc": "k5",
    "length": "k5",
    "majority": "kr",
}
_MAX_CLASSES = 6  # that have a line of their own
_BINS = 20


def render_evaluation(
    evaluation: Evaluation, title: str, provenance: Sequence[str], card: Mapping[str, Any] | None = None
) -> str:
    """Write the page of what has a title as HTML that runs nothing; ``card`` has facts of the model."""
    evaluation = for_people(evaluation)
    confusions = (confusion_table(evaluation, source) for source in compared_sources(evaluation))
    return html.document(
        f"Evaluation of {title}",
        _summary(evaluation, title, card),
        {
            "figures": ("Figures", _figures(evaluation)),
            "curves": ("Curves", _curves(evaluation)),
            "calibration": ("Calibration", _calibration(evaluation)),
            "thresholds": ("Thresholds", threshold_table(evaluation)),
            "calls": ("Calls", html.templates("evaluation.html").figures(confusions)),
            "similarity": ("By similarity to training", _similarity(evaluation)),
            "contexts": ("By context", subsets_table(evaluation, "context:")),
            "subclasses": (
                "By subclass, with all records of other classes",
                subsets_table(evaluation, "subclass:"),
            ),
        },
        [*provenance, f"seed: {evaluation.seed}"],
        notes=evaluation.notes,
    )


def _summary(evaluation: Evaluation, title: str, card: Mapping[str, Any] | None) -> dict[str, str]:
    counts = np.bincount(evaluation.labels, minlength=len(evaluation.classes)).tolist()
    classes = ", ".join(f"{n} {html.name(c)}" for n, c in zip(counts, evaluation.classes, strict=True))
    about = f", {html.escape(card['summary'])}" if card and card.get("summary") else ""
    return {
        "Evaluated": Markup(html.name(title) + about),
        "Records": Markup(f"{len(evaluation.labels)} of split {html.escape(evaluation.split)}: {classes}"),
        "Intervals": f"95 %, {evaluation.draws} bootstrap draws; {evaluation.grouping}",
    }


def _figures(evaluation: Evaluation) -> Markup:
    if len(evaluation.classes) == 2:
        labels = {evaluation.positive: f"Class {html.name(evaluation.positive)}"}
    else:
        labels = {"all": "All classes at once", "macro": "Mean over the classes, each against the rest"}
        labels |= {
            c: f"Class {html.name(c)} against the rest" for c in evaluation.classes[: 2 * _MAX_CLASSES]
        }
    sources, tables = [answers.source for answers in evaluation.answers], {}
    for label, heading in labels.items():
        rows = ([metric, *map(html.shown_value, row)] for metric, row in _metrics(evaluation, label, sources))
        tables[Markup(heading)] = html.wide_table(["", *sources], rows)
    words = html.templates("evaluation.html")
    return words.tables(evaluation.answers, tables, differences_table(evaluation), evaluation.mcnemar)


def _positive(evaluation: Evaluation) -> int | None:
    """Index of the positive class, None if there are more than two classes."""
    return evaluation.classes.index(evaluation.positive) if len(evaluation.classes) == 2 else None


def _curves(evaluation: Evaluation) -> Markup:
    k, model = _positive(evaluation), evaluation.answers[0]
    if k is not None:  # a line for each source
        rankings = [_ranking(evaluation, a, k) for a in evaluation.answers if a.source != "majority"]
    else:  # a line for each class, by the model
        rankings = [
            charts.Ranking(c, f"k{i}", (evaluation.labels == i).astype(np.int64), model.scores[:, i])
            for i, c in enumerate(evaluation.classes[:_MAX_CLASSES])
        ]
    prevalence = None if k is None else float(rankings[0].labels.mean())
    return html.templates("evaluation.html").curves(
        charts.legend({r.name: r.shade for r in rankings}),
        charts.roc_plot(rankings),
        charts.precision_recall_plot(rankings, prevalence),
        prevalence,
    )


def _ranking(evaluation: Evaluation, answers: Answers, k: int | None) -> charts.Ranking:
    """Scores of class k, or without it those of the most probable class, which is right or not."""
    truth, scores = answers.scores.argmax(axis=1) == evaluation.labels, answers.scores.max(axis=1)
    if k is not None:
        truth, scores = evaluation.labels == k, answers.scores[:, k]
    return charts.Ranking(answers.source, _SHADES[answers.source], truth.astype(np.int64), scores)


def _calibration(evaluation: Evaluation) -> Markup:
    k, model = _positive(evaluation), evaluation.answers[0]
    drawn = [a for a in evaluation.answers if a.source in compared_sources(evaluation) and a.probabilities]
    rankings = [_ranking(evaluation, answers, k) for answers in drawn]
    words = html.templates("evaluation.html")
    plots = []
    if rankings:
        lines = charts.legend({r.name: r.shade for r in rankings})
        plots.append(
            words.reliability(charts.reliability_plot(rankings), lines, rankings[0].name, k is not None)
        )
    if k is not None:
        values = model.scores[:, k]
        low, high = (0.0, 1.0) if model.probabilities else (float(values.min()), float(values.max()))
        bins = np.linspace(low, high if high > low else low + 1, _BINS + 1)
        scores = {c: values[evaluation.labels == i] for i, c in enumerate(evaluation.classes)}
        shades = {c: f"k{i}" for i, c in enumerate(evaluation.classes)}
        plots.append(words.scores(charts.score_histogram(scores, shades, bins), charts.legend(shades)))
    return words.figures(plots)


def _similarity(evaluation: Evaluation) -> Markup:
    subsets = {s.partition(":")[2]: s for s in evaluation.subsets if s.startswith("similarity:")}
    if not subsets:
        return Markup()
    found, sources = by_key(evaluation, judged_label(evaluation)), compared_sources(evaluation)
    plots = []
    for metric in ("mcc", "auroc"):
        rows = {
            name_: {s: found[subset, s, metric] for s in sources if (subset, s, metric) in found}
            for name_, subset in subsets.items()
        }
        plots.append(charts.similarity_plot(rows, _SHADES, metric.upper()))
    lines = charts.legend({source: _SHADES[source] for source in sources})
    return html.templates("evaluation.html").similarity(
        lines, plots, subsets_table(evaluation, "similarity:")
    )


# --- The page of ``seqray summary``: a row for each result, with drawings all to one scale

_WIDTH, _HEIGHT, _EDGE = 130, 18, 6
# Column -> its drawing: heading, column of the mark, column of the interval, and whether the scale ends at 1.
_DRAWN = {
    "calls_per_mb": ("calls against chance, per Mb", "false_calls_per_mb", "false_calls_per_mb", False),
    "expected_precision": ("expected precision", "", "expected_precision", True),
    "mcc": ("MCC, against the baseline", "floor_mcc", "mcc", True),
    "auroc": ("AUROC, against the baseline", "floor_auroc", "auroc", True),
}
_BELOW = ("false_calls_per_mb", "floor_mcc", "floor_auroc")  # stated in the cell of a drawing
_OF_PARTS = ("positions", "parts")
_FIRST = ("sample", "model", "status", "calls", "calls_per_mb", "expected_precision", "threshold")
_UNKNOWN = "."


def render_summary(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Lay out rows of the same columns, column to cell; a column without any value is left out.

    Text that is no number is a name from a file; ``X_low`` to ``X_high`` is the interval of ``X``.
    """
    of_parts = any(row.get("parts", "all") != "all" for row in rows)
    left_out = _BELOW if of_parts else (*_BELOW, *_OF_PARTS)
    if all(row.get("status") == "ok" for row in rows):
        left_out = (*left_out, "status")
    columns = [
        column
        for column in dict.fromkeys((*_FIRST, *rows[0]))
        if not column.endswith(("_low", "_high"))
        and column not in left_out
        and any(row.get(column, _UNKNOWN) != _UNKNOWN for row in rows)
    ]
    by_chance = any(math.isfinite(_value(row, "false_calls_per_mb")) for row in rows)
    kinds = [column for column in columns if column in _DRAWN and (by_chance or column != "calls_per_mb")]
    drawn = {column: _drawings(rows, column) for column in kinds}
    head = [_DRAWN[column][0] if column in drawn else column.replace("_", " ") for column in columns]
    body = [
        [drawn[column][i] if column in drawn else _cell(row, column) for column in columns]
        for i, row in enumerate(rows)
    ]
    section = html.templates("parts.html").summary(html.wide_table(head, body), columns, kinds)
    lines = [f"seqray {__version__}", "a dot in place of a number means that the value is not known"]
    return html.document(title, {"results": str(len(rows))}, {"summary": ("Results", section)}, lines)


def _value(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (KeyError, ValueError):
        return math.nan


def _bounds(row: Mapping[str, str], column: str) -> tuple[float, float]:
    return _value(row, f"{column}_low"), _value(row, f"{column}_high")


def _text(row: Mapping[str, str], column: str) -> Markup:
    """Text and whole numbers unchanged, other numbers to three digits; and the interval."""
    value = _value(row, column)
    if math.isnan(value):
        return html.name(row[column])
    low, high = map(html.number, _bounds(row, column))
    shown = row[column] if row[column].isdigit() else html.number(value)
    return Markup(shown if MISSING in (low, high) else f"{shown} <small>{low} to {high}</small>")


def _cell(row: Mapping[str, str], column: str) -> Markup:
    is_number = math.isfinite(_value(row, column))
    return Markup(f"<td class={'n' if is_number else 'name'}>{_text(row, column)}")


def _drawings(rows: Sequence[Mapping[str, str]], column: str) -> list[Markup]:
    """For each row a dot, a mark and its interval, all to the same scale, with the numbers below."""
    _, mark, interval_of, to_one = _DRAWN[column]
    drawn = [[_value(row, column), _value(row, mark), *_bounds(row, interval_of)] for row in rows]
    known = [value for values in drawn for value in values if math.isfinite(value)]
    low, high = min([0.0, *known]), max([1.0 if to_one else 0.0, *known])
    scale = (_WIDTH - 2 * _EDGE) / (high - low or 1.0)

    def x(value: float) -> str:
        return html.compact(_EDGE + (value - low) * scale) if math.isfinite(value) else ""

    figure = html.templates("parts.html").summary_cell
    below = (mark if mark and math.isfinite(values[1]) else "" for values in drawn)
    return [
        figure(_WIDTH, _HEIGHT, _EDGE, [*map(x, values)], _text(row, column), other and _text(row, other))
        for row, values, other in zip(rows, drawn, below, strict=True)
    ]
