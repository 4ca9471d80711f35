"""What holds for the whole set: verdicts, curves, checks, heads, motifs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

import numpy as np

from seqray.core.results import Check, Curve, Faithfulness, HeadFigures, Motif
from seqray.report.explanation.data import ReportData
from seqray.report.html import MISSING, count, decimals_for, escape, fixed, name, number, table
from seqray.report.svg import COLOURS, curve_plot, levels, motif_logo, position_histogram

UNCHECKED = (
    "The rankings on this page are unchecked (--no-check): nothing here tells whether the letters ranked "
    "first matter to the model any more than letters drawn at random."
)

_CUE = (
    "A ranking is worth reading if replacing the letters it ranks first changes the model's output more than "
    "replacing random ones, and if it agrees with exhaustive substitution (ism). That says what is "
    "associated with the model's output. It does not show what the cell does."
)
_MEASURES = {
    "deletion_gain": "deletion gain",
    "insertion_gain": "insertion gain",
    "share_of_ism": "share of ism's gain",
    "rank_correlation": "rank correlation",
    "stability": "stability",
    "randomised_weights": "similarity after the weights were randomised",
}
_KINDS = {
    "deletion": (
        "Deletion",
        "letters replaced, highest rank first",
        "A faithful ranking falls fast and early.",
    ),
    "insertion": (
        "Insertion",
        "letters put back, highest rank first",
        "A faithful ranking rises fast and early.",
    ),
}


def verdict_section(faithfulness: Faithfulness | None) -> str:
    """Say in words, first of all, whether the rankings are worth believing."""
    return _section("verdict", "Are the rankings worth believing?", verdicts(faithfulness, _CUE, UNCHECKED))


def verdicts(faithfulness: Faithfulness | None, cue: str, unchecked: str) -> str:
    """List the verdicts below a cue on how to read them, or say that there are none."""
    if faithfulness is None:
        return f'<p class="warn">{unchecked}</p>'
    items = "".join(
        f"<div class=verdict><dt>{escape(method)}{_badge(faithfulness.checks, method)}"
        f"<dd>{escape(text)}</div>"
        for method, text in faithfulness.verdicts.items()
    )
    return f"<p class=lead>{cue}</p><dl class=verdicts>{items}</dl>"


def _badge(checks: Sequence[Check], method: str) -> str:
    """Sum up the gains over random rankings; none without such a check."""
    against = [
        c for c in checks if c.method == method and c.against == "random" and c.measure.endswith("_gain")
    ]
    bounds = [(c.low, c.high) for c in against if math.isfinite(c.low) and math.isfinite(c.high)]
    if not bounds:
        return "<span class='badge'>○ not judged</span>" if against else ""
    if all(low > 0 for low, _ in bounds):
        return "<span class='badge good'>▲ better than random</span>"
    if any(high < 0 for _, high in bounds):
        return "<span class='badge bad'>▼ worse than random</span>"
    return "<span class='badge'>○ not told apart from random</span>"


def set_section(data: ReportData, longest: int) -> str:
    """Curves, checks, motifs and heads of the whole set; each where it is given."""
    parts = []
    if data.faithfulness is not None:
        parts += [curve_figures(data.faithfulness.curves), check_table(data.faithfulness.checks)]
    parts += [_motifs(data.motifs, data.site, longest), _heads(data.heads)]
    body = "".join(parts)
    return _section("set", "The whole set", body) if body else ""


def _section(anchor: str, title: str, body: str) -> str:
    heading = f"<h2 id={anchor}-title>{title}</h2>"
    return f"<section id={anchor} aria-labelledby={anchor}-title>{heading}{body}</section>\n"


def line_shades(methods: Sequence[str]) -> dict[str, str]:
    """Give each method a kind of line; ``random`` is grey and dashed."""
    named = [method for method in dict.fromkeys(methods) if method != "random"]
    shades = {method: f"k{place % COLOURS}" for place, method in enumerate(named)}
    return shades | {"random": "kr"}


def curve_figures(curves: Sequence[Curve], deeds: Mapping[str, str] = MappingProxyType({})) -> str:
    """Draw the curves of all methods.

    Parameters
    ----------
    curves
        Of both kinds.
    deeds
        What was done along the x axis, by kind; to letters where not given.
    """
    if not curves:
        return ""
    shades = line_shades([curve.method for curve in curves])
    shown = [method for method in shades if any(curve.method == method for curve in curves)]
    legend = "".join(
        "<li><svg width=34 height=10 aria-hidden=true>"
        f'<path class="line {shades[method]}" d="M2 5h30"/></svg>'
        f"{'random rankings' if method == 'random' else escape(method)}"
        for method in shown
    )
    kinds = list(dict.fromkeys(curve.kind for curve in curves))
    plots = "".join(
        _curve_figure(kind, [c for c in curves if c.kind == kind], shades, deeds.get(kind, ""))
        for kind in kinds
    )
    note = "<p class=note>Lines are means over the records, bands their 95 % bootstrap intervals.</p>"
    return (
        f"<h3>Deletion and insertion</h3><div class=figures>{plots}</div><ul class=legend>{legend}</ul>{note}"
    )


def _curve_figure(kind: str, curves: Sequence[Curve], shades: dict[str, str], deed: str) -> str:
    title, axis, hint = _KINDS.get(kind, (kind, "letters", ""))
    plot = curve_plot(curves, shades, f"share of {deed or axis}", f"{title} curves")
    return f"<figure><figcaption><b>{escape(title)}.</b> {hint}</figcaption>{plot}</figure>"


def check_table(checks: Sequence[Check]) -> str:
    """List the figures of the checks."""
    if not checks:
        return ""
    head = ("method", "measure", "against", "value", "95 % interval", "records")
    rows = (
        (
            escape(check.method),
            escape(_MEASURES.get(check.measure, check.measure.replace("_", " "))),
            escape(check.against),
            _value(check, check.value),
            _interval(check),
            str(check.records),
        )
        for check in checks
    )
    return f"<h3>Checks</h3><div class=scroll>{table(head, rows, ' class=checks')}</div>"


def _interval(check: Check) -> str:
    if not (math.isfinite(check.low) and math.isfinite(check.high)):
        return MISSING
    return f"{_value(check, check.low)} to {_value(check, check.high)}"


def _value(check: Check, value: float) -> str:
    known = [abs(v) for v in (check.value, check.low, check.high) if math.isfinite(v)]
    return fixed(value, min(4, decimals_for(max(known, default=1.0))))


def _motifs(motifs: Sequence[Motif], site: int | None, longest: int) -> str:
    if not motifs:
        return ""
    cards = "".join(_motif(motif, site, longest) for motif in motifs)
    note = (
        "<p class=note>Stretches of high score, aligned over the records. The height of a column is its "
        "information over the background of the records; sites are counted by their first letter.</p>"
    )
    return f"<h3>Motifs</h3>{note}<div class=motifs>{cards}</div>"


def _motif(motif: Motif, site: int | None, longest: int) -> str:
    known = "no known consensus was given"
    if motif.known:
        known = f"most like {escape(motif.known)}"
        known += f", similarity {number(motif.similarity, 2)}" if math.isfinite(motif.similarity) else ""
    title = f"<h4>{escape(motif.name)} <code>{escape(motif.consensus)}</code></h4>"
    facts = f"<p>{count(motif.sites, 'site')}; {known}</p>"
    plot = position_histogram(motif.positions, site, longest, f"Positions of {motif.name}")
    return f"<article class=motif>{title}{facts}<div class=figures>{motif_logo(motif)}{plot}</div></article>"


def _heads(heads: Sequence[HeadFigures]) -> str:
    if not heads:
        return ""
    tables = "".join(_head_table(member, list(group)) for member, group in groupby(heads, lambda h: h.member))
    note = (
        "<p class=note>Means over records. Entropy: 0 is all weight on one key, 1 is all keys alike. "
        "Distance: letters between query and key. CLS: share of the weights that goes to CLS. Importance: "
        "change of the log-odds when the head gives zeros; below 0 the head supported the class. Darker is "
        "more within a column; of importance, orange is below 0.</p>"
    )
    return f"<h3>Attention heads</h3>{note}<div class=heads>{tables}</div>"


def _head_table(member: int, heads: Sequence[HeadFigures]) -> str:
    columns = (
        _shaded([h.entropy for h in heads], False),
        _shaded([h.distance for h in heads], False),
        _shaded([h.cls_mass for h in heads], False),
        _shaded([h.importance for h in heads], True),
    )
    rows = ((str(h.layer), str(h.head), *cells) for h, *cells in zip(heads, *columns, strict=True))
    head = ("layer", "head", "entropy", "distance", "CLS", "importance")
    return table(head, rows, " class=heat", f"member {member}")


def _shaded(values: Sequence[float], signed: bool) -> list[str]:
    shades = levels(np.array(values, dtype=np.float64), signed)
    return [f"<td class=l{s}>{number(v)}" for v, s in zip(values, shades, strict=True)]


def model_name(data: ReportData) -> str:
    """Name the model with its one-line summary."""
    summary = f": {escape(data.card.summary)}" if data.card.summary else ""
    return f"<b>{name(data.card.name)}</b>{summary}"
