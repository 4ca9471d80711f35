"""The page of an audit: verdicts first, then the figures behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from seqray.core.results import ALARMING, SEVERITIES, Audit, AuditFigure
from seqray.core.text import counted
from seqray.report.html import MISSING, document, fixed, name, number, shown_value, templates, wide_table
from seqray.report.svg.charts import class_histograms

_MAX_PLOTS = 24  # of one quantity; a set of many classes has its numbers in the table
_AXES = {"identity": "identity to training", "length": "bases or residues", "gc": "GC share"}
_ALL = "*"  # the label of figures of all classes
_COUNTED = ("copies", "relatives", "groups")  # sections
_SHAPE = {  # section and quantity: heading and decimals
    ("counts", "sequences"): ("sequences", 0),
    ("length", "min"): ("shortest", 0),
    ("length", "median"): ("median", 0),
    ("length", "max"): ("longest", 0),
    ("composition", "gc_mean"): ("GC", 3),
    ("case", "all_lower"): ("all lower case", 3),
    ("case", "mixed"): ("mixed case", 3),
    ("ambiguity", "with_ambiguous"): ("with ambiguous", 3),
}


def render_audit(audit: Audit, provenance: Sequence[str]) -> str:
    """Write the page as HTML that runs nothing; names may hold any text and are escaped."""
    words = templates("audit.html")
    alarming = any(finding.severity in ALARMING for finding in audit.findings)
    shape = {"length": _plots(audit, "length"), "gc": _plots(audit, "gc")}
    baselines = words.baselines(_scores(audit, "baselines"), audit.settings)
    return document(
        "Audit of labeled sequences",
        _summary(audit),
        {
            "verdict": ("What would fool a model here?", words.verdicts(audit.findings, alarming)),
            "rules": ("Scores of trivial rules", _scores(audit, "rules")),
            "baselines": ("Scores of linear baselines", baselines),
            "relatives": ("Copies and relatives", _counts(audit.figures)),
            "similarity": ("Similarity to training", _plots(audit, "identity")),
            "shape": ("Counts, lengths and composition", words.shape(_shape(audit.figures), shape)),
        },
        provenance,
    )


def _summary(audit: Audit) -> dict[str, str]:
    sizes = [
        f"{name(f.split)} {number(f.value, 9)}"
        for f in audit.figures
        if (f.section, f.quantity, f.label) == ("counts", "sequences", _ALL)
    ]
    counts = {severity: sum(f.severity == severity for f in audit.findings) for severity in SEVERITIES}
    found = [counted(many, severity) for severity, many in counts.items() if many]
    return {
        "Sequences": Markup(", ".join(sizes) or "none"),
        "Found": ", ".join(found) or "nothing",
        "Scores": f"learned and measured on {audit.settings.get('given', MISSING)}",
        "Relatives": audit.settings.get("relatives", MISSING),
    }


def _label(figure_label: str) -> str:
    return "all" if figure_label == _ALL else name(figure_label)


def _scores(audit: Audit, section: str) -> Markup:
    """AUROC and MCC of each rule or baseline, a row each, the highest first."""
    figures = {(f.split, f.label, f.quantity): f for f in audit.figures if f.section == section}
    auroc = [f for f in figures.values() if f.quantity.endswith("_auroc")]
    auroc.sort(key=lambda f: (-f.value if math.isfinite(f.value) else 1.0, f.quantity, f.label))
    rows = []
    for f in auroc:
        rule = f.quantity.removesuffix("_auroc")
        mcc = figures.get((f.split, f.label, f"{rule}_mcc"))
        cells = (rule.replace("_", " "), _label(f.label), f.split, shown_value(f), shown_value(mcc))
        rows.append(cells)
    head = ("rule", "class", "split", "AUROC (95 % interval)", "MCC (95 % interval)")
    return wide_table(head, rows, "checks") if rows else Markup()


def _counts(figures: Sequence[AuditFigure]) -> Markup:
    """Counts of copies and relatives, a row for each class of each part or pair of parts."""
    kept = [f for f in figures if f.section in _COUNTED and not f.quantity.endswith("_share")]
    if not any(f.value for f in kept if f.quantity == "strand_duplicates"):
        kept = [f for f in kept if f.quantity != "strand_duplicates"]
    kinds = list(dict.fromkeys(f.quantity for f in kept))
    return _class_table(
        ((f.split, f.label, f.quantity, number(f.value, 9)) for f in kept),
        {kind: kind.replace("_", " ") for kind in kinds},
        missing="",
    )


def _shape(figures: Sequence[AuditFigure]) -> Markup:
    """Lengths and composition, a row for each class of each part."""
    wanted = [(f, _SHAPE[key]) for f in figures if (key := (f.section, f.quantity)) in _SHAPE]
    return _class_table(
        ((f.split, f.label, heading, fixed(f.value, decimals)) for f, (heading, decimals) in wanted),
        {heading: heading for heading, _ in _SHAPE.values()},
        missing=MISSING,
    )


def _class_table(
    cells: Iterable[tuple[str, str, str, str]], headings: Mapping[str, str], missing: str
) -> Markup:
    """A row for each split and class of cells: split, class, column, text; ``missing`` stands for no cell."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for split, label, column, text in cells:
        rows.setdefault((split, label), {})[column] = text
    lines = [
        (split, _label(label), *(texts.get(column, missing) for column in headings))
        for (split, label), texts in rows.items()
    ]
    return wide_table(("split", "class", *headings.values()), lines, "checks") if lines else Markup()


def _plots(audit: Audit, quantity: str) -> Markup:
    drawn = [h for h in audit.histograms if h.quantity == quantity and sum(h.counts)]
    if not drawn:
        return Markup()
    plots = class_histograms(drawn[:_MAX_PLOTS], _AXES[quantity])
    return templates("audit.html").plots(quantity, plots, len(drawn) - _MAX_PLOTS)
