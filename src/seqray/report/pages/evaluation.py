"""The page of an evaluation: figures with their floor, curves, calibration, thresholds, parts of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from seqray.core.results import Answers, Evaluation
from seqray.evaluation import judged_label
from seqray.report.html import document, escape, name, templates
from seqray.report.pages.evaluation_tables import (
    by_key,
    compared_sources,
    confusion_table,
    differences_table,
    figures_table,
    subsets_table,
    threshold_table,
)
from seqray.report.svg import (
    Ranking,
    legend,
    precision_recall_plot,
    reliability_plot,
    roc_plot,
    score_histogram,
    similarity_plot,
)

_SHADES = {"model": "k0", "against": "k1", "floor": "k4", "gc": "k5", "length": "k5", "majority": "kr"}
_MAX_CLASSES = 6  # that have a line of their own
_BINS = 20


def render_evaluation(
    evaluation: Evaluation, title: str, provenance: Sequence[str], card: Mapping[str, Any] | None = None
) -> str:
    """Write the page as HTML that runs nothing.

    Parameters
    ----------
    evaluation
        What the page shows; names may hold any text and are escaped.
    title
        Name of what was evaluated.
    provenance
        Lines for the end of the page.
    card
        Facts of the model.
    """
    words = templates("evaluation.html")
    return document(
        f"Evaluation of {title}",
        _summary(evaluation, title, card),
        {
            "figures": ("Figures", _figures(evaluation)),
            "curves": ("Curves", _curves(evaluation)),
            "calibration": ("Calibration", _calibration(evaluation)),
            "thresholds": ("Thresholds", threshold_table(evaluation)),
            "calls": (
                "Calls",
                words.figures(confusion_table(evaluation, s) for s in compared_sources(evaluation)),
            ),
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
    classes = ", ".join(f"{n} {name(c)}" for n, c in zip(counts, evaluation.classes, strict=True))
    about = f", {escape(card['summary'])}" if card and card.get("summary") else ""
    return {
        "Evaluated": Markup(name(title) + about),
        "Records": Markup(f"{len(evaluation.labels)} of split {escape(evaluation.split)}: {classes}"),
        "Intervals": f"95 %, {evaluation.draws} bootstrap draws; {evaluation.grouping}",
    }


def _figures(evaluation: Evaluation) -> Markup:
    if len(evaluation.classes) == 2:
        labels = {evaluation.positive: f"Class {name(evaluation.positive)}"}
    else:
        labels = {"all": "All classes at once", "macro": "Mean over the classes, each against the rest"}
        labels |= {c: f"Class {name(c)} against the rest" for c in evaluation.classes[: 2 * _MAX_CLASSES]}
    tables = {Markup(heading): figures_table(evaluation, label) for label, heading in labels.items()}
    words = templates("evaluation.html")
    return words.tables(evaluation.answers, tables, differences_table(evaluation), evaluation.mcnemar)


def _truth(evaluation: Evaluation, k: int) -> np.ndarray:
    """1 for records of class k, else 0."""
    return (evaluation.labels == k).astype(np.int64)


def _positive(evaluation: Evaluation) -> int | None:
    """Index of the positive class, None if there are more than two classes."""
    return evaluation.classes.index(evaluation.positive) if len(evaluation.classes) == 2 else None


def _curves(evaluation: Evaluation) -> Markup:
    k, model = _positive(evaluation), evaluation.answers[0]
    if k is not None:  # a line for each source
        drawn = [one for one in evaluation.answers if one.source != "majority"]
        rankings = [_ranking(evaluation, one, k) for one in drawn]
    else:  # a line for each class, by the model
        rankings = [
            Ranking(c, f"k{i}", _truth(evaluation, i), model.scores[:, i])
            for i, c in enumerate(evaluation.classes[:_MAX_CLASSES])
        ]
    prevalence = None if k is None else float(rankings[0].labels.mean())
    return templates("evaluation.html").curves(
        legend({r.name: r.shade for r in rankings}),
        roc_plot(rankings),
        precision_recall_plot(rankings, prevalence),
        prevalence,
    )


def _ranking(evaluation: Evaluation, answers: Answers, k: int | None) -> Ranking:
    """Scores of class k, or without it those of the most probable class, which is right or not."""
    if k is None:
        labels = (answers.scores.argmax(axis=1) == evaluation.labels).astype(np.int64)
        scores = answers.scores.max(axis=1)
    else:
        labels, scores = _truth(evaluation, k), answers.scores[:, k]
    return Ranking(answers.source, _SHADES[answers.source], labels, scores)


def _calibration(evaluation: Evaluation) -> Markup:
    k = _positive(evaluation)
    drawn = [a for a in evaluation.answers if a.source in compared_sources(evaluation) and a.probabilities]
    rankings = [_ranking(evaluation, one, k) for one in drawn]
    words = templates("evaluation.html")
    plots = []
    if rankings:
        lines = legend({r.name: r.shade for r in rankings})
        plots.append(words.reliability(reliability_plot(rankings), lines, rankings[0].name, k is not None))
    if k is not None:
        plots.append(words.scores(*_histogram(evaluation, k)))
    return words.figures(plots)


def _histogram(evaluation: Evaluation, k: int) -> tuple[Markup, Markup]:
    model = evaluation.answers[0]
    values = model.scores[:, k]
    low, high = (0.0, 1.0) if model.probabilities else (float(values.min()), float(values.max()))
    bins = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    scores = {c: values[evaluation.labels == i] for i, c in enumerate(evaluation.classes)}
    shades = {c: f"k{i}" for i, c in enumerate(evaluation.classes)}
    return score_histogram(scores, shades, bins), legend(shades)


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
        plots.append(similarity_plot(rows, _SHADES, metric.upper()))
    lines = legend({source: _SHADES[source] for source in sources})
    return templates("evaluation.html").similarity(lines, plots, subsets_table(evaluation, "similarity:"))
