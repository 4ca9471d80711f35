"""The page of an audit: verdicts first, then what they rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seqray.core.results import ALARMING, SEVERITIES, Audit, AuditFigure, Finding
from seqray.report.html import MISSING, count, document, escape, fixed, name, number, table
from seqray.report.svg import STYLE, histogram_rows

_BADGES = {
    "leak": "<span class='badge bad'>■ leak</span>",
    "shortcut": "<span class='badge bad'>▲ shortcut</span>",
    "caution": "<span class='badge'>○ caution</span>",
    "note": "<span class='badge good'>note</span>",
}
_STYLE = STYLE + " .remedy { color: #3c4653; } .remedy b { font-weight: 600; }"
_MOST_PLOTS = 24  # of one quantity; a set of many classes has its numbers in the table

_CUE = (
    "A leak is what training has seen of what is measured, or will have seen once the data are divided at "
    "random. A shortcut is a feature that tells the class without being what you look for. Both raise a "
    "score above what it will be elsewhere. The limits behind each word are listed in the documentation."
)
_NOTES = {
    "identity": (
        "Identity of measured sequences to the most similar training sequence, by alignment: identical "
        "letters divided by the length of the shorter one. Bars near 1 are relatives."
    ),
    "length": "Letters of each sequence.",
    "gc": "Share of G and C. Classes that differ here can be told apart without reading a single word.",
}
_AXES = {"identity": "identity to training", "length": "letters", "gc": "GC share"}


def render_audit(audit: Audit, provenance: Sequence[str], title: str = "Audit of labelled sequences") -> str:
    """Write the page: one text of HTML that refers to nothing outside itself; the same for the same audit."""
    sections = {
        "verdict": ("What would fool a model here?", _verdicts(audit.findings)),
        "rules": ("What trivial rules score", _scores(audit.figures, "rules")),
        "baselines": ("What linear baselines score", _baselines(audit)),
        "relatives": ("Copies and relatives", _counted(audit.figures)),
        "similarity": ("Similarity to training", _plots(audit, "identity")),
        "shape": ("Counts, lengths and composition", _shape(audit)),
    }
    shown = {anchor: (heading, body) for anchor, (heading, body) in sections.items() if body}
    return document(title, _STYLE, shown, _facts(audit), provenance)


def _facts(audit: Audit) -> dict[str, str]:
    sizes = [
        f"{name(f.split)} {number(f.value, 9)}"
        for f in audit.figures
        if f.section == "counts" and f.quantity == "sequences" and f.label == "*"
    ]
    counts = {severity: sum(f.severity == severity for f in audit.findings) for severity in SEVERITIES}
    found = [count(many, severity) for severity, many in counts.items() if many]
    return {
        "Sequences": ", ".join(sizes) or "none",
        "Found": ", ".join(found) or "nothing",
        "Scores": f"learnt and measured on {escape(audit.settings.get('given', 'n/a'))}",
        "Relatives": escape(audit.settings.get("relatives", "n/a")),
    }


def _verdicts(findings: Sequence[Finding]) -> str:
    items = "".join(
        f"<div class=verdict><dt>{_BADGES[f.severity]} {_sentence(f.what)}"
        f"<dd>{_sentence(f.effect)}<dd class=remedy><b>Remedy:</b> {escape(f.remedy)}.</div>"
        for f in findings
    )
    alarming = any(f.severity in ALARMING for f in findings)
    head = f"<p class=lead>{_CUE}</p>"
    head += "" if alarming else "<p class=lead><b>No leak and no shortcut was found.</b></p>"
    return head + (f"<dl class=verdicts>{items}</dl>" if items else "")


def _sentence(text: str) -> str:
    return escape(text[:1].upper() + text[1:]) + "."


def _scores(figures: Sequence[AuditFigure], section: str) -> str:
    """AUROC and MCC of each rule or baseline, a row each; most telling first."""
    auroc = [f for f in figures if f.section == section and f.quantity.endswith("_auroc")]
    mcc = {(f.split, f.label, f.quantity): f for f in figures if f.section == section}
    ordered = sorted(auroc, key=lambda f: (-f.value if math.isfinite(f.value) else 1.0, f.quantity, f.label))
    rows = [
        (
            escape(_plain(f.quantity)),
            "all" if f.label == "*" else name(f.label),
            escape(f.split),
            _cell(f),
            _cell(mcc.get((f.split, f.label, f.quantity.removesuffix("auroc") + "mcc"))),
        )
        for f in ordered
    ]
    head = ("rule", "class", "split", "AUROC (95 % interval)", "MCC (95 % interval)")
    return f"<div class=scroll>{table(head, rows, ' class=checks')}</div>" if rows else ""


def _plain(quantity: str) -> str:
    return quantity.removesuffix("_auroc").replace("_", " ")


def _cell(f: AuditFigure | None) -> str:
    if f is None or not math.isfinite(f.value):
        return MISSING
    interval = f" ({fixed(f.low, 3)} to {fixed(f.high, 3)})" if math.isfinite(f.low) else ""
    return fixed(f.value, 3) + interval


def _baselines(audit: Audit) -> str:
    body = _scores(audit.figures, "baselines")
    note = (
        f"<p class=note>given: {escape(audit.settings.get('given', ''))}. unrelated: the same fit, measured "
        "on the held-out sequences without relatives in training. grouped: "
        f"{escape(audit.settings.get('grouped', ''))}.</p>"
    )
    return body + note if body else ""


def _counted(figures: Sequence[AuditFigure]) -> str:
    """Counts of copies and relatives, a row for each class of each part or pair of parts."""
    kinds = dict.fromkeys(
        f.quantity
        for f in figures
        if f.section in ("copies", "relatives", "groups")
        and not f.quantity.endswith("_share")
        and not (f.quantity == "strand_duplicates" and _none_of(figures, f.quantity))
    )
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for f in figures:
        if f.section in ("copies", "relatives", "groups") and f.quantity in kinds:
            rows.setdefault((f.split, f.label), {})[f.quantity] = f.value
    cells = [
        (
            escape(split),
            "all" if label == "*" else name(label),
            *(number(values[kind], 9) if kind in values else "" for kind in kinds),
        )
        for (split, label), values in rows.items()
    ]
    head = ("split", "class", *(escape(kind.replace("_", " ")) for kind in kinds))
    return f"<div class=scroll>{table(head, cells, ' class=checks')}</div>" if cells else ""


def _none_of(figures: Sequence[AuditFigure], quantity: str) -> bool:
    return all(f.value == 0 for f in figures if f.quantity == quantity)


def _plots(audit: Audit, quantity: str) -> str:
    drawn = [h for h in audit.histograms if h.quantity == quantity and sum(h.counts)]
    if not drawn:
        return ""
    left = len(drawn) - _MOST_PLOTS
    more = (
        f"<p class=note>{count(left, 'more plot')} left out; the table has the numbers.</p>"
        if left > 0
        else ""
    )
    plots = histogram_rows(drawn[:_MOST_PLOTS], _AXES[quantity])
    return f"<p class=note>{_NOTES[quantity]}</p>{plots}{more}"


def _shape(audit: Audit) -> str:
    wanted = {
        ("counts", "sequences"): 0,
        ("length", "min"): 0,
        ("length", "median"): 0,
        ("length", "max"): 0,
        ("composition", "gc_mean"): 3,
        ("case", "all_lower"): 3,
        ("case", "mixed"): 3,
        ("ambiguity", "with_ambiguous"): 3,
    }
    by_row: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for f in audit.figures:
        if (f.section, f.quantity) in wanted:
            by_row.setdefault((f.split, f.label), {})[f.section, f.quantity] = f.value
    rows = [
        (
            escape(split),
            "all" if label == "*" else name(label),
            *(fixed(values.get(key, math.nan), digits) for key, digits in wanted.items()),
        )
        for (split, label), values in by_row.items()
    ]
    head = (
        "split",
        "class",
        "sequences",
        "shortest",
        "median",
        "longest",
        "GC",
        "all lower case",
        "mixed case",
        "with ambiguous",
    )
    plots = "".join(
        f"<h3>{heading}</h3>{drawn}"
        for heading, quantity in (("Length", "length"), ("GC", "gc"))
        if (drawn := _plots(audit, quantity))
    )
    return f"<div class=scroll>{table(head, rows, ' class=checks')}</div>{plots}" if rows else ""
