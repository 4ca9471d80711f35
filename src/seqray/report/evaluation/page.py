"""The page of an evaluation: figures with their floor, curves, calibration, thresholds, parts of the data."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from seqray.core.results import Answers, Evaluation
from seqray.evaluation import judged_label
from seqray.report.evaluation.plots import (
    Ranking,
    histogram_plot,
    legend,
    precision_recall_plot,
    reliability_plot,
    roc_plot,
    similarity_plot,
)
from seqray.report.evaluation.tables import (
    PART_SOURCES,
    by_key,
    confusion_table,
    differences_table,
    figures_table,
    parts_table,
    threshold_table,
)
from seqray.report.html import escape, name

SHADES = {"model": "k0", "against": "k1", "floor": "k4", "gc": "k5", "length": "k5", "majority": "kr"}
MOST_CLASSES = 6  # that have a line of their own
CONTENTS = {
    "figures": "Figures",
    "curves": "Curves",
    "calibration": "Calibration",
    "thresholds": "Thresholds",
    "calls": "Calls",
    "similarity": "By similarity to training",
    "contexts": "By context",
    "provenance": "Provenance",
}


def render_evaluation(
    evaluation: Evaluation, title: str, provenance: Sequence[str], card: Mapping[str, Any] | None = None
) -> str:
    """Write the page: one text of HTML that refers to nothing outside itself and runs no script.

    Parameters
    ----------
    evaluation
        What it shows; names may hold any text and are escaped.
    title
        Name of what was evaluated.
    provenance
        Lines for the end of the page.
    card
        Facts of the model.

    Returns
    -------
    str
        The same for the same input.
    """
    bodies = {
        "figures": _figures(evaluation),
        "curves": _curves(evaluation),
        "calibration": _calibration(evaluation),
        "thresholds": threshold_table(evaluation) if len(evaluation.classes) == 2 else "",
        "calls": _calls(evaluation),
        "similarity": _similarity(evaluation),
        "contexts": _contexts(evaluation),
        "provenance": _provenance(evaluation, provenance),
    }
    bodies = {key: body for key, body in bodies.items() if body}
    links = "".join(f"<li><a href=#{key}>{CONTENTS[key]}</a>" for key in bodies)
    sections = "".join(_section(key, body) for key, body in bodies.items())
    return (
        f"{_head(f'Evaluation of {title}')}<body><a class=skip href=#figures>Skip to the figures</a>\n"
        f"<nav aria-label=Contents><details open><summary>Contents</summary><ul>{links}</ul></details>"
        "</nav>\n"
        f"<main>{_title(evaluation, title, card)}{sections}</main></body></html>\n"
    )


def _section(key: str, body: str) -> str:
    title = f"<h2 id={key}-title>{CONTENTS[key]}</h2>"
    return f"<section id={key} aria-labelledby={key}-title>{title}{body}</section>\n"


def _head(title: str) -> str:
    style = files("seqray.report").joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n"
    )


def _title(evaluation: Evaluation, title: str, card: Mapping[str, Any] | None) -> str:
    counts = np.bincount(evaluation.labels, minlength=len(evaluation.classes)).tolist()
    classes = ", ".join(f"{n} {name(c)}" for n, c in zip(counts, evaluation.classes, strict=True))
    facts = {
        "Evaluated": name(title) + (f", {escape(card['summary'])}" if card and card.get("summary") else ""),
        "Records": f"{len(evaluation.labels)} of split {escape(evaluation.split)}: {classes}",
        "Intervals": f"95 %, {evaluation.draws} bootstrap draws; {escape(evaluation.grouping)}",
    }
    rows = "".join(f"<div><dt>{key}<dd>{value}</div>" for key, value in facts.items())
    notes = "".join(f"<p class=warn>{escape(note)}</p>" for note in evaluation.notes)
    head = f"<h1>Evaluation of {name(title)}</h1>"
    return f"<header class=top>{head}<dl class=summary>{rows}</dl>{notes}</header>\n"


def _figures(evaluation: Evaluation) -> str:
    if len(evaluation.classes) == 2:
        labels = {evaluation.positive: f"Class {name(evaluation.positive)}"}
    else:
        labels = {"all": "All classes at once", "macro": "Mean over the classes, each against the rest"}
        labels |= {c: f"Class {name(c)} against the rest" for c in evaluation.classes[: 2 * MOST_CLASSES]}
    tables = "".join(f"<h3>{words}</h3>{figures_table(evaluation, c)}" for c, words in labels.items())
    sources = "".join(f"<dt>{escape(one.source)}<dd>{escape(one.note)}" for one in evaluation.answers)
    differences = differences_table(evaluation)
    compared = f"<h3>Is the model better?</h3>{differences}" if differences else ""
    return f"<div class=reading><dl>{sources}</dl></div>{tables}{compared}"


def _rankings(evaluation: Evaluation) -> list[Ranking]:
    """Of two classes the sources; of more the classes, by the model."""
    if len(evaluation.classes) == 2:
        k = evaluation.classes.index(evaluation.positive)
        labels = (evaluation.labels == k).astype(np.int64)
        drawn = [one for one in evaluation.answers if one.source != "majority"]
        return [Ranking(one.source, SHADES[one.source], labels, one.scores[:, k]) for one in drawn]
    model = evaluation.answers[0]
    return [
        Ranking(c, f"k{k}", (evaluation.labels == k).astype(np.int64), model.scores[:, k])
        for k, c in enumerate(evaluation.classes[:MOST_CLASSES])
    ]


def _curves(evaluation: Evaluation) -> str:
    rankings = _rankings(evaluation)
    prevalence = float(rankings[0].labels.mean()) if len(evaluation.classes) == 2 else None
    line = "" if prevalence is None else f" The dashed line is the share of positives, {prevalence:.3f}."
    return (
        f"{legend({r.name: r.shade for r in rankings})}<div class=figures>"
        f"<figure><figcaption>ROC. The dashed line is chance.</figcaption>{roc_plot(rankings)}</figure>"
        f"<figure><figcaption>Precision and recall.{line}</figcaption>"
        f"{precision_recall_plot(rankings, prevalence)}</figure></div>"
    )


def _calibration(evaluation: Evaluation) -> str:
    two = len(evaluation.classes) == 2
    k = evaluation.classes.index(evaluation.positive)
    drawn = [one for one in evaluation.answers if one.source in PART_SOURCES and one.probabilities]
    rankings = [_confidence(evaluation, one, k if two else None) for one in drawn]
    plots = ""
    if rankings:
        words = "" if two else " Of the most probable class: how often it is the true one."
        plots = (
            "<figure><figcaption>Reliability: on the dashed line probabilities are right. Numbers count "
            f"records of the {escape(rankings[0].name)}.{words}</figcaption>{reliability_plot(rankings)}"
            f"{legend({r.name: r.shade for r in rankings})}</figure>"
        )
    if two:
        plots += _histogram(evaluation, k)
    return f"<div class=figures>{plots}</div>" if plots else ""


def _confidence(evaluation: Evaluation, answers: Answers, k: int | None) -> Ranking:
    if k is not None:
        labels, scores = (evaluation.labels == k).astype(np.int64), answers.scores[:, k]
    else:
        labels = (answers.scores.argmax(axis=1) == evaluation.labels).astype(np.int64)
        scores = answers.scores.max(axis=1)
    return Ranking(answers.source, SHADES[answers.source], labels, scores)


def _histogram(evaluation: Evaluation, k: int) -> str:
    model = evaluation.answers[0]
    values = model.scores[:, k]
    low, high = (0.0, 1.0) if model.probabilities else (float(values.min()), float(values.max()))
    scores = {c: values[evaluation.labels == i] for i, c in enumerate(evaluation.classes)}
    shades = {c: f"k{i}" for i, c in enumerate(evaluation.classes)}
    drawn = histogram_plot(scores, low, high if high > low else low + 1)
    return (
        f"<figure><figcaption>Scores of the model by true class.</figcaption>{drawn}{legend(shades)}</figure>"
    )


def _calls(evaluation: Evaluation) -> str:
    sources = [one.source for one in evaluation.answers if one.source in PART_SOURCES]
    return f"<div class=figures>{''.join(confusion_table(evaluation, source) for source in sources)}</div>"


def _similarity(evaluation: Evaluation) -> str:
    subsets = [subset for subset in evaluation.subsets if subset.startswith("similarity:")]
    if not subsets:
        return ""
    found = by_key(evaluation, judged_label(evaluation))
    sources = [one.source for one in evaluation.answers if one.source in PART_SOURCES]
    plots = ""
    for metric in ("mcc", "auroc"):
        rows = {
            subset.partition(":")[2]: {
                source: found[subset, source, metric]
                for source in sources
                if (subset, source, metric) in found
            }
            for subset in subsets
        }
        plots += f"<figure>{similarity_plot(rows, SHADES, metric.upper())}</figure>"
    lead = (
        "<p class=lead>Best identity of each record to a sequence of the training data. Figures that fall "
        "from right to left come from knowing relatives; new sequences lie on the left.</p>"
    )
    shades = legend({source: SHADES[source] for source in sources})
    return f"{lead}{shades}<div class=figures>{plots}</div>{parts_table(evaluation, subsets)}"


def _contexts(evaluation: Evaluation) -> str:
    subsets = [subset for subset in evaluation.subsets if subset.startswith("context:")]
    return parts_table(evaluation, subsets) if subsets else ""


def _provenance(evaluation: Evaluation, provenance: Sequence[str]) -> str:
    lines = "".join(f"<li>{escape(line)}" for line in [*provenance, f"seed: {evaluation.seed}"])
    return f"<ul class=lines>{lines}</ul>"
