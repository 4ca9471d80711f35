"""Findings about trivial rules: one feature that predicts the class by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from seqray.core.results import AuditFigure, Finding
from seqray.datasets.audit.dataset import EVERY_CLASS
from seqray.datasets.audit.figure_table import FigureTable, of_class, percent, with_interval

# Lowest AUROC of a shortcut, and of a caution. Letter case has no biological meaning, so the limits are low;
# composition may have, so they are high.
LIMITS = {"letter_case": (0.55, 0.55), "first_capital": (0.55, 0.55), "gc": (0.8, 0.65)}
DEFAULT_LIMITS = (0.65, 0.58)
SIGMAS = 3.5  # standard errors above 0.5, so that a dozen rules on a small data set raise no false alarm

_FEATURE_NAMES = {
    "length": "the length",
    "gc": "the GC content",
    "ambiguous": "the number of ambiguous letters",
    "first_letter": "the first letter",
    "last_letter": "the last letter",
    "initial_m": "an initial M",
    "letter_case": "the share of lower-case letters",
    "first_capital": "the position of the first capital letter",
    "context": "the context",
}
_CASE_RULES = ("letter_case", "first_capital")
_UPPER = "write all letters in upper case; seqray ignores case, but other tools can read the label from it"
_REMEDIES = {
    "length": "cut all classes to one length, or draw negatives with the lengths of the positives",
    "gc": "draw negatives of matching composition, and report the score of this rule beside your model's",
    "ambiguous": "remove sequences with ambiguous letters, or mask them in all classes",
    "first_letter": "cut off the first letter or match it between classes, unless it is part of the signal",
    "last_letter": "cut off the last letter or match it between classes, unless it is part of the signal",
    "initial_m": "cut off the initial M, or use negatives that start alike (fragments with fragments)",
    "letter_case": _UPPER,
    "first_capital": _UPPER,
    "context": "balance the classes within each context, or evaluate each context separately",
}


def shortcuts(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Rules with too high an AUROC."""
    measured = settings["held_out"] or "all"

    def grade_of(name: str, f: AuditFigure) -> str:
        counted = "sequences" if name in _CASE_RULES else "groups"
        return severity(name, f, chance_error(table, measured, f.label, counted))

    reported = {f.label for f in table.ending("rules", "letter_case_auroc") if grade_of("letter_case", f)}
    for f in sorted(table.ending("rules", "_auroc"), key=lambda f: (f.label, -f.value)):
        name = f.quantity.removesuffix("_auroc")
        grade = grade_of(name, f)
        if grade and not (name == "first_capital" and f.label in reported):
            mcc = table.value("rules", f.split, f"{name}_mcc", f.label)
            yield Finding(
                grade,
                name,
                f"{_FEATURE_NAMES[name]} alone predicts the class{of_class(f.label)}: "
                f"AUROC {with_interval(f)}, MCC {mcc:.3f}{_differing_letter(table, name)}",
                "a model can reach this score from this feature alone",
                _REMEDIES[name],
            )


def chance_error(table: FigureTable, split: str, label: str, counted: str) -> float:
    """Standard deviation of the AUROC of a random rule: sqrt((n + m + 1) / (12 n m)).

    ``counted`` is what n and m count: ``groups`` for a rule about the letters, which relatives share, or
    ``sequences`` for one about letter case, which doesn't depend on relatives.

    References
    ----------
    Mann and Whitney 1947, On a test of whether one of two random variables is stochastically larger than the
    other, eq. 5.
    """
    sizes = {f.label: f.value for f in table.named("counts", counted) if f.split == split}
    total = sizes.pop(EVERY_CLASS)
    n = sizes[label] if label in sizes else min(sizes.values())
    m = min(total, sum(sizes.values()) - n)  # a group may hold several classes, and counts for each
    return math.sqrt((n + m + 1) / (12 * n * m)) if n and m else math.inf


def severity(name: str, f: AuditFigure, least_error: float) -> str:
    """Severity of a rule by its AUROC: ``shortcut``, ``caution`` or nothing.

    The AUROC has a bootstrap interval, which accounts for relatives; ``least_error`` is a lower bound of its
    standard error.
    """
    error = least_error if math.isnan(f.low) else max(least_error, (f.high - f.low) / (2 * 1.96))
    if not f.value - 0.5 > SIGMAS * error:
        return ""
    shortcut, caution = LIMITS.get(name, DEFAULT_LIMITS)
    return "shortcut" if f.value >= shortcut else "caution" if f.value >= caution else ""


def _differing_letter(table: FigureTable, name: str) -> str:
    """The letter whose share differs most between classes."""
    end = {"first_letter": "first_", "last_letter": "last_", "initial_m": "first_M"}.get(name)
    if end is None:
        return ""
    shares: dict[str, list[AuditFigure]] = {}
    for f in table.figures:
        if f.section == "ends" and f.quantity.startswith(end) and f.split in ("train", "all"):
            shares.setdefault(f.quantity, []).append(f)
    classes = {q: [f for f in found if f.label != EVERY_CLASS] for q, found in shares.items()}
    widest = max(classes.values(), key=lambda found: _spread(found)[0], default=[])
    if len(widest) < 2:
        return ""
    _, low, high = _spread(widest)
    letter = widest[0].quantity[-1]
    return f"; {letter} in {percent(low.value)} of '{low.label}', {percent(high.value)} of '{high.label}'"


def _spread(figures: list[AuditFigure]) -> tuple[float, AuditFigure, AuditFigure]:
    low, high = min(figures, key=lambda f: f.value), max(figures, key=lambda f: f.value)
    return high.value - low.value, low, high
