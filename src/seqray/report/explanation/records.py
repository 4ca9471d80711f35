"""One record: what it was called, its letters and tracks, the positions ranked first, its attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Floats
from seqray.core.results import Explanation, Place
from seqray.report.explanation.data import Series
from seqray.report.html import decimals_for, escape, fixed, name, number, offset, table
from seqray.report.svg import (
    HALF,
    SLOT,
    Line,
    attention_map,
    axis_row,
    effect_letters,
    label,
    letter_effects,
    levels,
    lines_of,
    reach,
    score_row,
    sequence_row,
    site_within,
)

TOP = 12  # positions in a table of ranks

Numbered = dict[tuple[str, str], Series]


def record_section(
    group: Sequence[Explanation], number_: int, series: Numbered, width: int, site: int | None
) -> str:
    """Show all explanations of a record.

    Parameters
    ----------
    group
        At least one; they share the record.
    number_
        Place of the record on the page, from 0: its anchor is ``r`` and this number.
    series
        All methods and members of the page.
    width
        Letters of a line.
    site
        Index of the site, None if unknown.
    """
    first = group[0]
    inside = site_within(len(first.sequence), site)
    parts = (
        _head(first, number_),
        _panel(group, series, width, inside),
        _ranks(group, series, inside),
        _attention(group, width, inside),
    )
    return f"<article class=record id=r{number_} tabindex=-1>{''.join(parts)}</article>\n"


def _head(item: Explanation, number_: int) -> str:
    facts = [f"called <b>{escape(item.label)}</b>", _probability(item), f"{len(item.sequence)} letters"]
    if item.place is not None:
        facts.append(f"{_place(item.place)}, 0-based, half-open")
    return (
        f"<header><h3><a href=#r{number_}>{name(item.id)}</a></h3>"
        f"<p class=facts>{' <span class=dot>·</span> '.join(facts)}</p></header>\n"
    )


def _probability(item: Explanation) -> str:
    share = min(1.0, max(0.0, item.probability)) if np.isfinite(item.probability) else 0.0
    bar = (
        f'<svg class=prob width=62 height=8 aria-hidden=true><path class=base d="M1 4h60"/>'
        f'<path class=part d="M1 4h{60 * share:.0f}"/></svg>'
    )
    return f"probability of {escape(item.target)} {bar} <b>{fixed(item.probability, 3)}</b>"


def _place(place: Place) -> str:
    return f"{name(place.contig)}:{place.start}\N{EN DASH}{place.end} ({escape(place.strand)})"


def _panel(group: Sequence[Explanation], series: Numbered, width: int, site: int | None) -> str:
    rows = "".join(_line(group, series, line) for line in lines_of(len(group[0].sequence), width, site))
    return f"<div class=scroll><div class=panel>{rows}</div></div>\n"


def _line(group: Sequence[Explanation], series: Numbered, line: Line) -> str:
    part = slice(line.start, line.end)
    letters = group[0].sequence[part]
    tracks = "".join(_track(item, series, line) for item in group)
    spoken = f"Letters {line.start} to {line.end - 1} with their scores"
    body = (
        axis_row(line)
        + _logo(group, line, letters)
        + sequence_row(line, letters, _shades(group, series, part))
    )
    return f'<div class=line role=img aria-label="{spoken}">{body}{tracks}</div>'


def _shades(group: Sequence[Explanation], series: Numbered, part: slice) -> list[str]:
    texts = ["-"] * len(series)
    for item in group:
        text = levels(item.scores[part], item.signed, reach(item.scores))
        texts[series[item.method, item.member].number] = text or "-"
    return texts


def _track(item: Explanation, series: Numbered, line: Line) -> str:
    this = series[item.method, item.member]
    part = item.scores[line.start : line.end]
    return score_row(line, part, item.signed, this.label, reach(item.scores), this.mark)


def _logo(group: Sequence[Explanation], line: Line, letters: str) -> str:
    effects = next((item.effects for item in group if item.effects is not None), None)
    if effects is None:
        return ""
    scores = letter_effects(effects)
    largest = reach(scores)
    up, down = _extent(scores, largest)
    drawn = effect_letters(letters, scores[line.start : line.end], largest, SLOT)
    base = f"<path class=axis d=M0,0h{len(letters) * SLOT} />"
    scale = f"log-odds, largest ±{number(largest)}" if line.start == 0 else ""
    text = label("substitution effect", scale, y=-(up - down) // 2 - 2)
    return line.row(f"{text}{base}{drawn}", -up - 4, up + down + 8, "lg")


def _extent(scores: Floats, largest: float) -> tuple[int, int]:
    """Height that the letters of a record need above and below the line, px."""
    known = scores[np.isfinite(scores)]
    if not largest > 0:
        return 12, 12
    up = float(known.max(initial=0.0)) / largest * HALF
    down = -float(known.min(initial=0.0)) / largest * HALF
    return max(12, round(up)), max(12, round(down))


def ranking(scores: Floats, top: int = TOP) -> list[int]:
    """Indices of the highest scores, the highest first, ties by position; nan last."""
    return np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")[:top].tolist()


def _ranks(group: Sequence[Explanation], series: Numbered, site: int | None) -> str:
    tables = "".join(_rank_table(item, series[item.method, item.member], site) for item in group)
    return f"<div class=ranks>{tables}</div>\n"


def _rank_table(item: Explanation, this: Series, site: int | None) -> str:
    head = ["rank", "index"]
    head += ["site"] if site is not None else []
    head += ["genome"] if item.place is not None else []
    head += ["letter", "score"]
    head += ["p"] if item.p is not None else []
    head += ["q"] if item.q is not None else []
    rows = (_rank_row(item, rank, index, site) for rank, index in enumerate(ranking(item.scores), start=1))
    return table(head, rows, f" class={this.mark}", escape(this.label))


def _rank_row(item: Explanation, rank: int, index: int, site: int | None) -> list[str]:
    decimals = decimals_for(reach(item.scores))
    cells = [str(rank), str(index)]
    cells += [offset(index - site)] if site is not None else []
    cells += [str(item.place.positions()[index])] if item.place is not None else []
    cells += [escape(item.sequence[index]), fixed(float(item.scores[index]), decimals)]
    cells += [number(float(item.p[index]), 2)] if item.p is not None else []
    cells += [number(float(item.q[index]), 2)] if item.q is not None else []
    return cells


def _attention(group: Sequence[Explanation], width: int, site: int | None) -> str:
    weights = next((item.attention for item in group if item.attention is not None), None)
    if weights is None or weights.size == 0:
        return ""
    drawn = attention_map(weights, width, site)
    return (
        "<details class=attention><summary>Attention per layer and head</summary>"
        f"<div class=scroll><div class=panel>{drawn}</div></div></details>\n"
    )
