"""Findings about trivial rules: one feature tells the class by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from seqray.core.results import AuditFigure, Finding
from seqray.datasets.audit.lookup import EVERYTHING, Lookup, of_class, percent, with_interval

# AUROC from which on a rule is a shortcut, and from which on a caution. Letter case never carries meaning, so
# little is enough; composition may well do, so it takes much.
LIMITS = {"letter_case": (0.55, 0.55), "first_capital": (0.55, 0.55), "gc": (0.8, 0.65)}
DEFAULT_LIMITS = (0.65, 0.58)
SIGMAS = 3.5  # standard errors above 0.5, so that a dozen rules on a small set raise no false alarm

_WORDS = {
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
_WRITTEN = ("letter_case", "first_capital")  # rules about how letters are written, not which they are
_UPPER = "write all letters in upper case; seqray folds case, but tools that keep it read the label here"
_REMEDIES = {
    "length": "cut all classes to one length, or draw the negatives to the lengths of the positives",
    "gc": "draw negatives of matching composition, and report this rule's score beside yours",
    "ambiguous": "remove sequences with ambiguous letters, or mask all classes alike",
    "first_letter": "cut the first letter off, or match it between the classes",
    "last_letter": "cut the last letter off, or match it between the classes",
    "initial_m": "cut the initial M off, or draw negatives that begin alike (fragments with fragments)",
    "letter_case": _UPPER,
    "first_capital": _UPPER,
    "context": "balance the classes within each context, or measure each context alone",
}


def shortcuts(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Rules that score too well."""
    measured = settings["held_out"] or "all"

    def judged(name: str, f: AuditFigure) -> str:
        counted = "sequences" if name in _WRITTEN else "groups"
        return severity(name, f, chance_error(look, measured, f.label, counted))

    told = {f.label for f in look.ending("rules", "letter_case_auroc") if judged("letter_case", f)}
    for f in sorted(look.ending("rules", "_auroc"), key=lambda f: (f.label, -f.value)):
        name = f.quantity.removesuffix("_auroc")
        grade = judged(name, f)
        if grade and not (name == "first_capital" and f.label in told):
            mcc = look.value("rules", f.split, f"{name}_mcc", f.label)
            yield Finding(
                grade,
                name,
                f"{_WORDS[name]} alone tells the class{of_class(f.label)}: AUROC {with_interval(f)}, "
                f"MCC {mcc:.3f}{_letters(look, name)}",
                "a model may score that much without reading anything else",
                _REMEDIES[name],
            )


def chance_error(look: Lookup, split: str, label: str, counted: str) -> float:
    """Standard deviation of the AUROC of a rule that knows nothing: sqrt((n + m + 1) / (12 n m)).

    n and m are numbers of what is ``counted``: of groups for a rule about the letters, which relatives share;
    of sequences for one about how they are written, which each could have in its own way.

    References
    ----------
    Mann and Whitney 1947, On a test of whether one of two random variables is stochastically larger than the
    other, eq. 5.
    """
    sizes = {f.label: f.value for f in look.named("counts", counted) if f.split == split}
    total = sizes.pop(EVERYTHING)
    n = sizes[label] if label in sizes else min(sizes.values())  # a group may hold several classes
    return math.sqrt((total + 1) / (12 * n * (total - n))) if 0 < n < total else math.inf


def severity(name: str, f: AuditFigure, least_error: float) -> str:
    """Judge the AUROC of a rule: ``shortcut``, ``caution`` or nothing.

    Its error is that of the bootstrap, which knows of relatives, but no less than chance makes it.
    """
    error = least_error if math.isnan(f.low) else max(least_error, (f.high - f.low) / (2 * 1.96))
    if not f.value - 0.5 > SIGMAS * error:
        return ""
    shortcut, caution = LIMITS.get(name, DEFAULT_LIMITS)
    return "shortcut" if f.value >= shortcut else "caution" if f.value >= caution else ""


def _letters(look: Lookup, name: str) -> str:
    """Name the letter that differs most between classes."""
    end = {"first_letter": "first_", "last_letter": "last_", "initial_m": "first_M"}.get(name)
    if end is None:
        return ""
    shares: dict[str, list[AuditFigure]] = {}
    for f in look.figures:
        if f.section == "ends" and f.quantity.startswith(end) and f.split in ("train", "all"):
            shares.setdefault(f.quantity, []).append(f)
    classes = {q: [f for f in found if f.label != EVERYTHING] for q, found in shares.items()}
    widest = max(classes.values(), key=lambda found: _spread(found)[0], default=[])
    if len(widest) < 2:
        return ""
    _, low, high = _spread(widest)
    letter = widest[0].quantity[-1]
    return f"; {letter} in {percent(low.value)} of '{low.label}', {percent(high.value)} of '{high.label}'"


def _spread(figures: list[AuditFigure]) -> tuple[float, AuditFigure, AuditFigure]:
    low, high = min(figures, key=lambda f: f.value), max(figures, key=lambda f: f.value)
    return high.value - low.value, low, high
