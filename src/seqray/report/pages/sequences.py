"""The page of explained sequences: verdicts, what holds for all records, then each record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from seqray.core import Alphabet
from seqray.core.results import Explanation, HeadFigures, Motif
from seqray.io.tracks import ScanStatement
from seqray.report.html import document, number, resource, table, templates
from seqray.report.pages.explained import ModelText, Report, card_section, checks, facts, verdict_section
from seqray.report.pages.record import Series, record
from seqray.report.svg import (
    BAR_DEFINITIONS,
    axis_definitions,
    glyph_definitions,
    line_width,
    logo_style,
    motif_logo,
    position_histogram,
    write_levels,
)

_HEAD_COLUMNS = ("layer", "head", "entropy", "distance", "CLS", "importance")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SequenceReport(Report):
    """What the page shows.

    Attributes
    ----------
    explanations
        Those of one record are adjacent and share ``record``: several methods, several members.
    alphabet
        Its letters are the columns of ``effects``.
    site
        Index of the transcription start in each record; None if unknown.
    heads, motifs
        Of all records together; empty where not computed.
    scan
        What the scan states of its calls; None if no calls are explained.
    """

    explanations: Sequence[Explanation]
    alphabet: Alphabet
    site: int | None
    heads: Sequence[HeadFigures] = ()
    motifs: Sequence[Motif] = ()
    scan: ScanStatement | None = None


def render_sequences(report: SequenceReport) -> str:
    """Write the page as HTML; without JavaScript all of it is shown, only its controls are not."""
    shown = report.explanations
    groups = [list(group) for _, group in groupby(shown, key=lambda item: item.record)]
    series = _series(shown)
    together = checks(report.faithfulness, "letter") + _motifs(report) + _heads(report.heads)
    return document(
        report.title,
        facts(report, len(groups), "record", (e.target for e in shown), (e.method for e in shown)),
        {
            "scan": ("Are these calls right?", templates("sequences.html").calls(report.scan)),
            "verdict": verdict_section(report, "letter"),
            "set": ("All records together", together),
            "records": ("Records", _records(report, groups, series)),
            "card": card_section(ModelText.of(report.card)),
        },
        report.provenance,
        style=logo_style(report.alphabet),
        contents=templates("sequences.html").contents([group[0] for group in groups], _quantity(report)),
        definitions=glyph_definitions(report.alphabet) + BAR_DEFINITIONS,
        **({"script": resource("script.js")} if groups else {}),  # its controls are those of records
    )


def _quantity(report: SequenceReport) -> str:
    """What the model gives a class."""
    return "score" if report.card.model.kind == "locator" else "probability"


def _series(explanations: Sequence[Explanation]) -> dict[tuple[str, str], Series]:
    """Number the methods and members in the order of their first appearance."""
    series: dict[tuple[str, str], Series] = {}
    for item in explanations:
        found = Series(len(series), item.method, item.member, item.signed)
        series.setdefault((item.method, item.member), found)
    return series


def _records(
    report: SequenceReport, groups: Sequence[Sequence[Explanation]], series: dict[tuple[str, str], Series]
) -> Markup:
    words = templates("sequences.html")
    if not groups:
        return words.nothing()
    lengths = [len(group[0].sequence) for group in groups]
    width = line_width(max(lengths))
    logo = any(item.effects is not None for item in report.explanations)
    notes = {this.method: this.note for this in series.values()}
    quantity = _quantity(report)
    records = (
        record(group, place, series, width, report.site, quantity) for place, group in enumerate(groups)
    )
    return Markup().join(
        (
            words.reading(report.site, groups[0][0].first, notes, logo),
            words.controls(series.values(), logo),
            words.none_found(),
            axis_definitions(lengths, width, report.site),
            Markup("<div id=list>{}</div>").format(Markup().join(records)),
        )
    )


def _motifs(report: SequenceReport) -> Markup:
    longest = max((len(item.sequence) for item in report.explanations), default=1)
    drawn = [
        (m, motif_logo(m), position_histogram(m.positions, report.site, longest, f"Positions of {m.name}"))
        for m in report.motifs
    ]
    return templates("sequences.html").motifs(drawn)


def _heads(heads: Sequence[HeadFigures]) -> Markup:
    members = groupby(heads, lambda head: head.member)
    return templates("sequences.html").heads([_head_table(m, list(group)) for m, group in members])


def _head_table(member: int, heads: Sequence[HeadFigures]) -> Markup:
    columns = (
        _shaded([h.entropy for h in heads]),
        _shaded([h.distance for h in heads]),
        _shaded([h.cls_mass for h in heads]),
        _shaded([h.importance for h in heads], signed=True),
    )
    rows = ((str(h.layer), str(h.head), *cells) for h, *cells in zip(heads, *columns, strict=True))
    return table(_HEAD_COLUMNS, rows, "heat", f"member {member}")


def _shaded(values: Sequence[float], signed: bool = False) -> list[Markup]:
    levels = write_levels(np.array(values, dtype=np.float64), signed)
    return [Markup(f"<td class=l{level}>{number(v)}") for v, level in zip(values, levels, strict=True)]
