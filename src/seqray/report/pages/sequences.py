"""The page of explained sequences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats
from seqray.core.card import Card
from seqray.core.explanation import Check, Explanation, Faithfulness, HeadFigures, Motif
from seqray.core.text import counted, headline_metric
from seqray.explanations.checks import MAX_RANDOM_CORRELATION
from seqray.io.lines import ScanStatement
from seqray.report import html
from seqray.report.svg.charts import LINES, curve_plot, legend, position_histogram
from seqray.report.svg.rows import (
    BAR_DEFINITIONS,
    MAX_LETTER_HEIGHT,
    SLOT,
    Line,
    attention_map,
    axis_definitions,
    bar_extent,
    effect_letters,
    glyph_definitions,
    label,
    letter_effects,
    line_width,
    lines_of,
    logo_style,
    motif_logo,
    reach,
    score_bars,
    sequence_row,
    site_within,
    write_levels,
)

# --- What the pages of explained sequences and of explained alignments share: facts, checks, card, ranks

MAX_RANKED = 12
_MEASURES = {
    "share_of_reference": "share of the reference's gain",
    "randomised_weights": "similarity after the weights were randomized",
}
_CHECK_COLUMNS = ("method", "measure", "against", "value", "95 % interval", "records")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report:
    """What a page of explanations needs; ``omitted`` counts records that are too many for it."""

    title: str
    card: Card
    provenance: Sequence[str]
    faithfulness: Faithfulness | None = None
    omitted: int = 0
    checked: str = ""


def facts(
    report: Report, shown: int, unit: str, targets: Iterable[str], methods: Iterable[str]
) -> dict[str, str]:
    """Facts below the heading of a page; targets and methods may repeat, a record shown is a ``unit``."""
    left = f"; {counted(report.omitted, unit)} left out" if report.omitted else ""
    stated = {
        "Model": html.templates("parts.html").model(report.card),
        "Measured": headline_metric(report.card.metrics),
        f"{unit.capitalize()}s": f"{counted(shown, unit)} on this page{left}",
        "Class explained": ", ".join(dict.fromkeys(targets)) or "none",
        "Methods": ", ".join(dict.fromkeys(methods)) or "none",
    }
    return {fact: value for fact, value in stated.items() if value != "-"}


def verdict_section(report: Report, unit: str) -> tuple[str, Markup]:
    """State whether rankings of units (``position`` or ``column``) can be trusted, a badge a method."""
    faithfulness = report.faithfulness
    checks = faithfulness.checks if faithfulness else ()
    methods = faithfulness.verdicts if faithfulness else ()
    badges = {method: _badge([c for c in checks if c.method == method]) for method in methods}
    reference = next((c.against for c in checks if c.measure == "share_of_reference"), "")
    words = html.templates("parts.html").verdicts(faithfulness, badges, unit, reference, report.checked)
    return "Can the rankings be trusted?", words


def _badge(checks: Sequence[Check]) -> tuple[str, str] | None:
    gains = [c for c in checks if c.against == "random" and c.measure.endswith("_gain")]
    bounds = [(c.low, c.high) for c in gains if math.isfinite(c.low + c.high)]
    alike = (c.value for c in checks if c.measure == "randomised_weights")
    if not bounds:
        return ("", "○ too few records for a verdict") if gains else None
    if any(high < 0 for _, high in bounds):
        return "bad", "▼ worse than random"
    if not all(low > 0 for low, _ in bounds):
        return "", "○ not distinguishable from random"
    if any(value >= MAX_RANDOM_CORRELATION for value in alike):
        return "", "○ better than random, but much the same with random weights"
    return "good", "▲ better than random"


def checks(faithfulness: Faithfulness | None, unit: str) -> Markup:
    """Curves of all methods, and a table of the checks; empty where there are none."""
    if faithfulness is None:
        return Markup()
    curves = faithfulness.curves
    named = dict.fromkeys(c.method for c in curves if c.method != "random")
    shades = {method: f"k{place % LINES}" for place, method in enumerate(named)}
    names = shades | ({"random rankings": "kr"} if any(c.method == "random" for c in curves) else {})
    words, plots = html.templates("parts.html"), {}
    for kind in dict.fromkeys(c.kind for c in curves):
        group = [c for c in curves if c.kind == kind]
        title = str(words.axis(kind, unit))
        plots[kind] = curve_plot(group, shades | {"random": "kr"}, title, f"{kind} curves")
    rows = html.wide_table(_CHECK_COLUMNS, map(_check_row, faithfulness.checks), "checks")
    bands = any(np.isfinite(c.low + c.high).any() for c in curves)
    return words.checks(plots, bands, legend(names), rows if faithfulness.checks else "")


def _check_row(check: Check) -> list[str]:
    figures = [check.value, check.low, check.high]
    decimals = min(4, html.decimals_for(max((abs(v) for v in figures if math.isfinite(v)), default=1.0)))
    value, low, high = (html.fixed(v, decimals) for v in figures)
    measure = _MEASURES.get(check.measure, check.measure.replace("_", " "))
    interval = f"{low} to {high}" if math.isfinite(check.low + check.high) else html.MISSING
    return [check.method, measure, check.against, value, interval, str(check.records)]


def ranking(scores: Floats) -> list[int]:
    """Indices of the `MAX_RANKED` highest scores, the highest first, ties by position; nan last."""
    return np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")[:MAX_RANKED].tolist()


# --- One explained sequence: its call, its letters and tracks, the positions ranked first, its attention


def track_name(item: Explanation) -> str:
    """The method and its member: a track of every record; elements have the class ``m`` and its number."""
    return item.method if item.member == "mean" else f"{item.method}, network {item.member}"


def _record(
    report: SequenceReport, group: Sequence[Explanation], place: int, series: list[str], width: int
) -> Markup:
    """Show all explanations of a record; ``place`` is its number on the page, ``width`` letters a line."""
    length = len(group[0].sequence)
    inside = site_within(length, report.site)
    lines = "".join(_line(group, series, line) for line in lines_of(length, width, inside))
    ranks = "".join(_ranks(item, f"m{series.index(track_name(item))}", inside) for item in group)
    weights = next((item.attention for item in group if item.attention is not None), None)
    attention = attention_map(weights, width, inside) if weights is not None and weights.size else ""
    return html.templates("sequences.html").record(
        group[0], place, report.quantity, report.unit, Markup(lines), Markup(ranks), Markup(attention)
    )


def _line(group: Sequence[Explanation], series: list[str], line: Line) -> str:
    part = slice(line.start, line.end)
    letters, first = group[0].sequence[part], group[0].first
    levels = ["-"] * len(series)
    tracks = ""
    for item in group:
        number, largest = series.index(name := track_name(item)), reach(item.scores)
        levels[number] = write_levels(item.scores[part], item.signed, largest) or "-"
        bars = score_bars(item.scores[part], item.signed, name, largest, line.start == 0)
        above, below = bar_extent(item.signed)
        tracks += line.row(bars, -above - 4, above + below + 8, f"m{number}")
    axis = line.row(f"<use href=#{line.axis} />", -22, 22, "ax")
    boxes = _marked(_boxes(group[0]), line)
    rows = f"{axis}{_logo(group, line, letters)}{sequence_row(line, letters, first, levels)}{boxes}{tracks}"
    spoken = f"Positions {first + line.start} to {first + line.end - 1} with their scores"
    return f'<div class=line role=img aria-label="{spoken}">{rows}</div>'


def _boxes(item: Explanation) -> dict[str, list[int]]:
    """Indices of the letters in each box, as the file of calls has them."""
    if (place := item.place) is None or place.call is None or place.call.context is None:
        return {}
    index, size = {at: i for i, at in enumerate(place.positions().tolist())}, place.length
    spans = {box.name: range(box.start, box.start + len(box.letters)) for box in place.call.context.boxes}
    return {name: [index[at % size] for at in span if at % size in index] for name, span in spans.items()}


def _marked(boxes: Mapping[str, Sequence[int]], line: Line) -> str:
    """Strokes under the letters of boxes, with their names; empty if the line has none."""
    drawn = ""
    for name, at in boxes.items():
        if own := [(i - line.start) * SLOT for i in at if line.start <= i < line.end]:
            drawn += f'<path class="line k0" d="M{min(own)} 0H{max(own) + SLOT}"/>'
            drawn += html.tick_label((min(own) + max(own) + SLOT) // 2, 14, name.replace("-", html.MINUS))
    return line.row(label("boxes of the call", y=8) + drawn, -4, 24, "boxes") if drawn else ""


def _logo(group: Sequence[Explanation], line: Line, letters: str) -> str:
    effects = next((item.effects for item in group if item.effects is not None), None)
    if effects is None:
        return ""
    scores = letter_effects(effects)
    largest = reach(scores)
    up, down = 12, 12  # height that the letters of the record need above and below the line, px
    if largest > 0:
        tops = (float(s[np.isfinite(s)].max(initial=0.0)) for s in (scores, -scores))
        up, down = (max(12, round(top / largest * MAX_LETTER_HEIGHT)) for top in tops)
    drawn = effect_letters(letters, scores[line.start : line.end], largest)
    base = f"<path class=axis d=M0,0h{len(letters) * SLOT} />"
    scale = f"log-odds, largest ±{html.number(largest)}" if line.start == 0 else ""
    text = label("substitution effect", scale, y=-(up - down) // 2 - 2)
    return line.row(f"{text}{base}{drawn}", -up - 4, up + down + 8, "lg")


def _ranks(item: Explanation, mark: str, site: int | None) -> Markup:
    """The positions ranked first; on the genome they count from 1, and beyond a contig have none."""
    top = [i for i in ranking(item.scores) if np.isfinite(item.scores[i])]
    decimals = html.decimals_for(reach(item.scores))
    places = None if item.place is None else [item.place.positions()[i] for i in top]
    named = {i: name.replace("-", html.MINUS) for name, at in _boxes(item).items() for i in at}
    columns = {
        "rank": [str(rank) for rank in range(1, len(top) + 1)],
        "index": [str(item.first + i) for i in top],
        "site": None if site is None else [html.offset(i - site) for i in top],
        "genome": None if places is None else [str(p + 1) if p >= 0 else html.MISSING for p in places],
        "letter": [item.sequence[i] for i in top],
        "box": [named.get(i, "") for i in top] if named else None,
        "score": [html.fixed(float(item.scores[i]), decimals) for i in top],
        "p": None if item.p is None else [html.number(float(item.p[i]), 2) for i in top],
        "q": None if item.q is None else [html.number(float(item.q[i]), 2) for i in top],
    }
    shown = {title: cells for title, cells in columns.items() if cells is not None}
    return html.table(shown, zip(*shown.values(), strict=True), mark, track_name(item))


# --- The page of explained sequences: verdicts, what holds for all records, then each record

_HEAD_COLUMNS = ("layer", "head", "entropy", "distance", "CLS", "importance")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SequenceReport(Report):
    """What the page shows."""

    explanations: Sequence[Explanation]
    alphabet: Alphabet
    site: int | None
    heads: Sequence[HeadFigures] = ()
    motifs: Sequence[Motif] = ()
    scan: ScanStatement | None = None

    @property
    def quantity(self) -> str:
        """What the model gives a class."""
        return "score" if self.card.model.is_locator else "probability"

    @property
    def unit(self) -> str:
        """What a sequence consists of."""
        return "base" if self.alphabet.is_nucleotide else "residue"


def render_sequences(report: SequenceReport) -> str:
    """Write the page as HTML; without JavaScript all of it is shown, only its controls are not."""
    shown, words = report.explanations, html.templates("sequences.html")
    groups = [list(group) for _, group in groupby(shown, key=lambda item: item.record)]
    longest = max((len(item.sequence) for item in shown), default=1)
    motifs = [
        (m, motif_logo(m), position_histogram(m.positions, report.site, longest, f"Positions of {m.name}"))
        for m in report.motifs
    ]
    members = groupby(report.heads, lambda head: head.member)
    heads = words.heads([_head_table(member, list(heads)) for member, heads in members])
    return html.document(
        report.title,
        facts(report, len(groups), "record", (e.target for e in shown), (e.method for e in shown)),
        {
            "scan": ("Are these calls right?", words.calls(report.scan)),
            "verdict": verdict_section(report, "position"),
            "records": ("Records", _records(report, groups)),
            "set": (
                "All records together",
                checks(report.faithfulness, "position") + words.motifs(motifs) + heads,
            ),
            "card": html.card_section(html.ModelText.of(report.card)),
        },
        report.provenance,
        style=logo_style(report.alphabet),
        contents=words.contents([group[0] for group in groups], report.quantity),
        definitions=glyph_definitions(report.alphabet) + BAR_DEFINITIONS,
        **({"script": html.resource("script.js")} if groups else {}),  # its controls are those of records
    )


def _records(report: SequenceReport, groups: Sequence[Sequence[Explanation]]) -> Markup:
    words = html.templates("sequences.html")
    if not groups:
        return words.nothing()
    lengths = [len(group[0].sequence) for group in groups]
    width, series = line_width(max(lengths)), list(dict.fromkeys(map(track_name, report.explanations)))
    logo = any(item.effects is not None for item in report.explanations)
    tested = any(item.q is not None for item in report.explanations)
    signed = {item.method: item.signed for item in report.explanations}
    records = (_record(report, group, place, series, width) for place, group in enumerate(groups))
    return Markup().join(
        (
            words.reading(report.site, groups[0][0].first, signed, logo, tested),
            words.controls(series, logo),
            words.none_found(),
            axis_definitions(lengths, width, report.site),
            Markup("<div id=list>{}</div>").format(Markup().join(records)),
        )
    )


def _head_table(member: int, heads: Sequence[HeadFigures]) -> Markup:
    """Figures of the heads of a member, darker where they are higher within a column."""
    columns = []
    for name in ("entropy", "distance", "cls_mass", "importance"):
        values = [getattr(head, name) for head in heads]
        levels = write_levels(np.array(values, dtype=np.float64), signed=name == "importance")
        cells = zip(values, levels, strict=True)
        columns.append([Markup(f"<td class=l{level}>{html.number(value)}") for value, level in cells])
    rows = ((str(h.layer), str(h.head), *cells) for h, *cells in zip(heads, *columns, strict=True))
    return html.table(_HEAD_COLUMNS, rows, "heat", f"network {member}")
