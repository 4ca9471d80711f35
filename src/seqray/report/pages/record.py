"""One explained sequence: its call, its letters and tracks, the positions ranked first, its attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Floats
from seqray.core.results import Explanation
from seqray.report.html import MISSING, decimals_for, fixed, number, offset, table, templates
from seqray.report.pages.explained import ranking
from seqray.report.svg import (
    MAX_LETTER_HEIGHT,
    SLOT,
    Line,
    attention_map,
    axis_row,
    bar_extent,
    effect_letters,
    label,
    letter_effects,
    lines_of,
    reach,
    score_bars,
    sequence_row,
    site_within,
    write_levels,
)

_SAME_FOR_EVERY_CLASS = ("rollout", "value-rollout")


@dataclass(frozen=True, slots=True)
class Series:
    """A method and the members it was computed from: one track of every record."""

    number: int
    method: str
    member: str
    signed: bool

    @property
    def label(self) -> str:
        """Name on the page."""
        return self.method if self.member == "mean" else f"{self.method}, member {self.member}"

    @property
    def mark(self) -> str:
        """Class of all elements that belong to it."""
        return f"m{self.number}"

    @property
    def note(self) -> str:
        """Meaning of its scores."""
        if self.signed:
            return "signed: a score above 0 supports the class explained, a score below 0 opposes it"
        if self.method in _SAME_FOR_EVERY_CLASS:
            return (
                "shares of attention-based relevance: unsigned, and the same for every class "
                "(rollout, value-rollout)"
            )
        return "shares of relevance: unsigned, so letters that support and letters that oppose look the same"


Numbered = Mapping[tuple[str, str], Series]


def record(
    group: Sequence[Explanation], place: int, series: Numbered, width: int, site: int | None, quantity: str
) -> Markup:
    """Show all explanations of a record.

    Parameters
    ----------
    group
        At least one; they share the record.
    place
        Number of the record on the page, from 0: its anchor is ``r`` and this number.
    width
        Letters of a line.
    site
        Index of the site, None if unknown.
    quantity
        What the model gives a class: its probability, or a score.
    """
    length = len(group[0].sequence)
    inside = site_within(length, site)
    lines = "".join(_line(group, series, line) for line in lines_of(length, width, inside))
    ranks = "".join(_ranks(item, series[item.method, item.member], inside) for item in group)
    weights = next((item.attention for item in group if item.attention is not None), None)
    attention = attention_map(weights, width, inside) if weights is not None and weights.size else ""
    return templates("sequences.html").record(
        group[0], place, quantity, Markup(lines), Markup(ranks), Markup(attention)
    )


def _line(group: Sequence[Explanation], series: Numbered, line: Line) -> str:
    part = slice(line.start, line.end)
    letters, first = group[0].sequence[part], group[0].first
    levels = ["-"] * len(series)
    tracks = ""
    for item in group:
        this, largest = series[item.method, item.member], reach(item.scores)
        levels[this.number] = write_levels(item.scores[part], item.signed, largest) or "-"
        bars = score_bars(item.scores[part], item.signed, this.label, largest, line.start == 0)
        tracks += _around_axis(line, bars, *bar_extent(item.signed), this.mark)
    rows = (
        f"{axis_row(line)}{_logo(group, line, letters)}{sequence_row(line, letters, first, levels)}{tracks}"
    )
    spoken = f"Letters {first + line.start} to {first + line.end - 1} with their scores"
    return f'<div class=line role=img aria-label="{spoken}">{rows}</div>'


def _around_axis(line: Line, body: str, above: int, below: int, kind: str) -> str:
    return line.row(body, -above - 4, above + below + 8, kind)


def _logo(group: Sequence[Explanation], line: Line, letters: str) -> str:
    effects = next((item.effects for item in group if item.effects is not None), None)
    if effects is None:
        return ""
    scores = letter_effects(effects)
    largest = reach(scores)
    up, down = _extent(scores, largest), _extent(-scores, largest)
    drawn = effect_letters(letters, scores[line.start : line.end], largest)
    base = f"<path class=axis d=M0,0h{len(letters) * SLOT} />"
    scale = f"log-odds, largest ±{number(largest)}" if line.start == 0 else ""
    text = label("substitution effect", scale, y=-(up - down) // 2 - 2)
    return _around_axis(line, f"{text}{base}{drawn}", up, down, "lg")


def _extent(scores: Floats, largest: float) -> int:
    """Height that the letters of a record need above the line, px."""
    top = float(scores[np.isfinite(scores)].max(initial=0.0))
    return max(12, round(top / largest * MAX_LETTER_HEIGHT)) if largest > 0 else 12


def _ranks(item: Explanation, this: Series, site: int | None) -> Markup:
    """The positions ranked first; columns that the record lacks are left out."""
    top = [i for i in ranking(item.scores) if np.isfinite(item.scores[i])]
    decimals = decimals_for(reach(item.scores))
    columns = {
        "rank": [str(rank) for rank in range(1, len(top) + 1)],
        "index": [str(item.first + i) for i in top],
        "site": None if site is None else [offset(i - site) for i in top],
        "genome": None if item.place is None else [_from_one(item.place.positions()[i]) for i in top],
        "letter": [item.sequence[i] for i in top],
        "score": [fixed(float(item.scores[i]), decimals) for i in top],
        "p": None if item.p is None else [number(float(item.p[i]), 2) for i in top],
        "q": None if item.q is None else [number(float(item.q[i]), 2) for i in top],
    }
    shown = {title: cells for title, cells in columns.items() if cells is not None}
    return table(shown, zip(*shown.values(), strict=True), this.mark, this.label)


def _from_one(position: int) -> str:
    """Count from 1, as GFF3 and the page of a scan; nothing lies beyond the ends of a contig."""
    return str(position + 1) if position >= 0 else MISSING
