"""The page as a whole: head with its policy, contents, controls, sections, card and provenance."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from seqray.core import describe, headline
from seqray.core.results import Explanation
from seqray.report.explanation.data import ReportData, Series, by_record, series_of
from seqray.report.explanation.overview import model_name, set_section, verdict_section
from seqray.report.explanation.records import record_section
from seqray.report.html import count, escape, fixed, name
from seqray.report.svg import BAR_DEFINITIONS, axis_definitions, glyph_definitions, logo_rules, width_for

Groups = list[list[Explanation]]


def render_report(data: ReportData) -> str:
    """Write the page: one text of HTML that refers to nothing outside itself.

    Parameters
    ----------
    data
        What it shows. Names, card and provenance may hold any text; they are escaped.

    Returns
    -------
    str
        The same for the same data. Without JavaScript all of it is shown; with it, tracks can be switched
        off and records be searched.
    """
    style, script = _resource("page.css") + logo_rules(data.alphabet), _resource("page.js")
    groups, series = by_record(data.explanations), series_of(data.explanations)
    parts = (
        _document_head(data.title, style, script),
        "<body><a class=skip href=#verdict>Skip to the findings</a>\n",
        glyph_definitions(data.alphabet) + BAR_DEFINITIONS,
        _contents(data, groups),
        "<main>",
        _title(data, groups, series),
        verdict_section(data.faithfulness),
        set_section(data, max((len(item.sequence) for item in data.explanations), default=1)),
        _records(data, groups, series),
        _closing(data),
        f"</main>\n<script>{script}</script></body></html>\n",
    )
    return "".join(parts)


def _resource(name_: str) -> str:
    return files("seqray.report").joinpath(name_).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _document_head(title: str, style: str, script: str) -> str:
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n"
    )


def _contents(data: ReportData, groups: Groups) -> str:
    links = "".join(_link(group[0], place) for place, group in enumerate(groups))
    whole = data.faithfulness is not None or data.motifs or data.heads
    return (
        "<nav aria-label=Contents><details open><summary>Contents</summary><ul>"
        "<li><a href=#verdict>Are the rankings worth believing?</a>"
        f"{'<li><a href=#set>The whole set</a>' if whole else ''}"
        "<li><a href=#records>Records</a><li><a href=#card>Model card</a>"
        "<li><a href=#provenance>Provenance</a></ul>\n"
        "<p class=control><label>Find a record<input type=search id=filter autocomplete=off></label>"
        "<span id=found role=status></span></p>\n"
        f"<ol id=index>{links}</ol></details></nav>\n"
    )


def _link(item: Explanation, place: int) -> str:
    return (
        f"<li><a href=#r{place}>{name(item.id)}</a> <small>{escape(item.label)} {fixed(item.probability, 2)}"
        "</small>\n"
    )


def _title(data: ReportData, groups: Groups, series: dict[tuple[str, str], Series]) -> str:
    methods = ", ".join(dict.fromkeys(escape(this.method) for this in series.values())) or "none"
    targets = ", ".join(dict.fromkeys(escape(item.target) for item in data.explanations)) or "none"
    facts = {
        "Model": model_name(data),
        "Measured": escape(headline(data.card)),
        "Records": _shown(len(groups), data.omitted),
        "Class explained": targets,
        "Methods": methods,
    }
    rows = "".join(f"<div><dt>{key}<dd>{value}</div>" for key, value in facts.items() if value != "-")
    return f"<header class=top><h1>{escape(data.title)}</h1><dl class=summary>{rows}</dl></header>\n"


def _shown(records: int, omitted: int) -> str:
    left = f"; {count(omitted, 'record is', 'records are')} left out of this page" if omitted else ""
    return f"{count(records, 'record')} on this page{left}"


def _records(data: ReportData, groups: Groups, series: dict[tuple[str, str], Series]) -> str:
    lengths = [len(group[0].sequence) for group in groups]
    width = width_for(max(lengths, default=1))
    shown = "".join(
        record_section(group, place, series, width, data.site) for place, group in enumerate(groups)
    )
    logo = any(item.effects is not None for item in data.explanations)
    return (
        "<section id=records aria-labelledby=records-title><h2 id=records-title>Records</h2>"
        f"{_reading(data, list(series.values()), logo)}{_controls(list(series.values()), logo)}"
        f"{axis_definitions(lengths, width, data.site)}<div id=list>{shown}</div></section>\n"
    )


def _reading(data: ReportData, series: Sequence[Series], logo: bool) -> str:
    notes = {this.method: f"<dt>{escape(this.method)}<dd>{escape(this.note)}" for this in series}
    site = (
        "The site is unknown: positions are indices from 0."
        if data.site is None
        else f"Positions are relative to the site, the letter of index {data.site}: it is 0, the letter "
        "before it −1. A dotted line marks it."
    )
    effect = (
        "<dt>substitution effect<dd>minus the mean change of the log-odds over all replacements of the "
        "letter: letters that support the class explained stand up, letters that oppose it hang down"
        if logo
        else ""
    )
    return (
        "<div class=reading><p class=lead>A high score means that a letter is associated with the model's "
        f"output for this record. {site} Bars and logos fill their height in every record, so compare shapes "
        "between records, and numbers in the tables.</p>"
        f"<dl>{effect}{''.join(notes.values())}</dl>{_scale()}</div>\n"
    )


def _scale() -> str:
    def strip(shades: str) -> str:
        return "".join(f"<td class=l{shade}>" for shade in shades)

    return (
        "<table class=scale><caption>Shades of the letters</caption>"
        f"<tr><th scope=row>share<td>0{strip('123456')}<td>highest"
        f"<tr><th scope=row>signed<td>against{strip('fedcba')}<td class=l0>0{strip('ABCDEF')}<td>for</table>"
    )


def _controls(series: Sequence[Series], logo: bool) -> str:
    boxes = "".join(_box(this.mark, this.label) for this in series)
    logos = _box("lg", "substitution effect") if logo else ""
    choices = "".join(f"<option value={this.number}>{escape(this.label)}" for this in series)
    return (
        "<form class=control id=controls><fieldset><legend>Tracks</legend>"
        f"<label><input type=checkbox id=every checked> all methods</label>{boxes}{logos}</fieldset>"
        f"<label>Shade letters by <select id=shade>{choices}</select></label>"
        "<p class=keys><kbd>j</kbd> next record, <kbd>k</kbd> previous</p></form>\n"
    )


def _box(mark: str, text: str) -> str:
    return f"<label><input type=checkbox class=switch data-for={mark} checked> {escape(text)}</label>"


def _closing(data: ReportData) -> str:
    card = "\n".join(escape(line) for line in describe(data.card))
    lines = "".join(f"<li>{escape(line)}" for line in data.provenance)
    return (
        "<section id=card aria-labelledby=card-title><h2 id=card-title>Model card</h2>"
        f"<p class=lead>{model_name(data)}</p><pre>{card}</pre></section>\n"
        "<section id=provenance aria-labelledby=provenance-title><h2 id=provenance-title>Provenance</h2>"
        f"<ul class=lines>{lines or '<li>none given'}</ul></section>\n"
    )
