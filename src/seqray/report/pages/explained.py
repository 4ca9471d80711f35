"""What the pages of explained sequences and of explained alignments share: facts, checks, card, ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Card, Floats, counted, describe_card, headline_metric
from seqray.core.results import Check, Faithfulness
from seqray.report.html import MISSING, decimals_for, fixed, templates, wide_table
from seqray.report.svg import LINES, curve_plot, legend

MAX_RANKED = 12
_MEASURES = {
    "share_of_reference": "share of the reference's gain",
    "randomised_weights": "similarity after the weights were randomized",
}
_CHECK_COLUMNS = ("method", "measure", "against", "value", "95 % interval", "records")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report:
    """What a page of explanations needs.

    ``faithfulness`` is None if there were no checks. ``omitted`` counts records left out of the page because
    there are too many; ``checked`` says in a sentence which records the checks used, empty if all or none.
    """

    title: str
    card: Card
    provenance: Sequence[str]
    faithfulness: Faithfulness | None = None
    omitted: int = 0
    checked: str = ""


def facts(
    report: Report, shown: int, one: str, targets: Iterable[str], methods: Iterable[str]
) -> dict[str, str]:
    """Facts below the heading of a page.

    ``one`` is the word for one of the records shown; targets and methods may repeat.
    """
    left = f"; {counted(report.omitted, one)} left out" if report.omitted else ""
    found = {
        "Model": templates("explained.html").model(report.card),
        "Measured": headline_metric(report.card),
        f"{one.capitalize()}s": f"{counted(shown, one)} on this page{left}",
        "Class explained": ", ".join(dict.fromkeys(targets)) or "none",
        "Methods": ", ".join(dict.fromkeys(methods)) or "none",
    }
    return {fact: value for fact, value in found.items() if value != "-"}


def verdict_section(report: Report, unit: str) -> tuple[str, Markup]:
    """State first of all whether the rankings of units (``letter`` or ``column``) can be trusted."""
    found = report.faithfulness
    badges = {method: _badge(found.checks, method) for method in found.verdicts} if found else {}
    words = templates("explained.html").verdicts(found, badges, unit, _reference(found), report.checked)
    return "Can the rankings be trusted?", words


def _reference(found: Faithfulness | None) -> str:
    """The method that the gains of others are compared with; empty without such a comparison."""
    against = (c.against for c in (found.checks if found else ()) if c.measure == "share_of_reference")
    return next(against, "")


def _badge(checks: Sequence[Check], method: str) -> tuple[str, str] | None:
    """Kind and text that summarize the gains over random rankings; None without such a check."""
    against = [
        c for c in checks if c.method == method and c.against == "random" and c.measure.endswith("_gain")
    ]
    bounds = [(c.low, c.high) for c in against if math.isfinite(c.low + c.high)]
    if not bounds:
        return ("", "○ not assessed") if against else None
    if all(low > 0 for low, _ in bounds):
        return "good", "▲ better than random"
    if any(high < 0 for _, high in bounds):
        return "bad", "▼ worse than random"
    return "", "○ not distinguishable from random"


def checks(faithfulness: Faithfulness | None, unit: str) -> Markup:
    """Curves of all methods, and a table of the checks; empty where there are none."""
    if faithfulness is None:
        return Markup()
    curves = faithfulness.curves
    named = dict.fromkeys(c.method for c in curves if c.method != "random")
    shades = {method: f"k{place % LINES}" for place, method in enumerate(named)}
    names = shades | ({"random rankings": "kr"} if any(c.method == "random" for c in curves) else {})
    kinds = {kind: [c for c in curves if c.kind == kind] for kind in dict.fromkeys(c.kind for c in curves)}
    words = templates("explained.html")
    plots = {
        kind: curve_plot(group, shades | {"random": "kr"}, str(words.axis(kind, unit)), f"{kind} curves")
        for kind, group in kinds.items()
    }
    rows = wide_table(_CHECK_COLUMNS, map(_check_row, faithfulness.checks), "checks")
    bands = any(np.isfinite(c.low + c.high).any() for c in curves)
    return words.checks(plots, bands, legend(names), rows if faithfulness.checks else "")


def _check_row(check: Check) -> list[str]:
    figures = [check.value, check.low, check.high]
    decimals = min(4, decimals_for(max((abs(v) for v in figures if math.isfinite(v)), default=1.0)))
    value, low, high = (fixed(v, decimals) for v in figures)
    measure = _MEASURES.get(check.measure, check.measure.replace("_", " "))
    interval = f"{low} to {high}" if math.isfinite(check.low + check.high) else MISSING
    return [check.method, measure, check.against, value, interval, str(check.records)]


@dataclass(frozen=True, slots=True)
class ModelText:
    """What a page says of a model: its name, the summary and the lines of its card."""

    name: str
    summary: str = ""
    lines: Sequence[str] = ()

    @classmethod
    def of(cls, card: Card) -> ModelText:
        """Describe a card."""
        return cls(card.name, card.summary, describe_card(card))


def card_section(model: ModelText) -> tuple[str, Markup]:
    """Show the model card."""
    return "Model card", templates("explained.html").card(model)


def ranking(scores: Floats) -> list[int]:
    """Indices of the `MAX_RANKED` highest scores, the highest first, ties by position; nan last."""
    return np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")[:MAX_RANKED].tolist()
