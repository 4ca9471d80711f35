"""The page of explained alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats
from seqray.core.card import Card
from seqray.core.explanation import AlignmentExplanation, AlignmentScores
from seqray.core.records import conservation, occupancy
from seqray.core.text import counted
from seqray.report import html
from seqray.report.pages.sequences import Report, checks, facts, ranking, verdict_section
from seqray.report.palette import Color, letter_color, tint
from seqray.report.svg import rows
from seqray.report.svg.rows import picture

# --- An alignment as a colored grid in lines, with profiles of its columns above and of its rows beside

MAX_ROWS = 30
MAX_LINE_COLUMNS, MIN_LINE_COLUMNS = 80, 40
_STEPS = 7  # of relevance
_MIN_TINT, _MAX_TINT = 0.10, 0.72
_ROW = 15  # px, as all below
_AXIS, _STRUCTURE, _SPACE = 22, 18, 6
_ROW_BARS, _BETWEEN = 78, 14  # width of the bars of rows, and the space between those of two methods
_MAX_NAME_LENGTH = 21


def cell_relevance(explanation: AlignmentExplanation) -> Floats:
    """Relevance (R', C') of each cell, from 0 to 1: the root of its share of the largest score."""
    grid = next((np.abs(s.grid) for s in explanation.scores if s.grid is not None), None)
    if grid is None:
        grid = np.tile(np.abs(explanation.scores[0].columns), (len(explanation.rows), 1))
    top = float(grid.max(initial=0.0))
    return np.sqrt(grid / top) if top > 0 else np.zeros(grid.shape)


def alignment_panel(explanation: AlignmentExplanation, width: int) -> Markup:
    """Draw an alignment with the profiles of its columns and rows, ``width`` columns a line."""
    drawing = _Drawing(explanation, width)
    lines = "".join(drawing.line(start) for start in range(0, len(explanation.columns), width))
    return Markup(f"<div class=scroll><div class=panel>{lines}</div></div>\n")


class _Drawing:
    """What all lines of one alignment have in common."""

    def __init__(self, e: AlignmentExplanation, width: int) -> None:
        self.explanation, self.width = e, width
        self.rows = min(MAX_ROWS, len(e.rows))  # shown, the first ones
        self.codes = e.alignment.codes[np.ix_(e.rows[: self.rows], e.columns)]  # (rows, C')
        self.relevance = cell_relevance(e)[: self.rows]  # (rows, C')
        self.positions = e.alignment.query_positions()[e.columns]  # (C',) 0-based in the query, -1 for none

    def line(self, start: int) -> str:
        """The columns from ``start``: axis, profiles, structure, grid; the first line names the rows."""
        e = self.explanation
        part = slice(start, min(start + self.width, len(e.columns)))
        body, y = self._axis(part), _AXIS
        for scores in e.scores:
            above, below = rows.bar_extent(scores.signed)
            largest = rows.reach(scores.columns)
            bars = rows.score_bars(scores.columns[part], scores.signed, scores.method, largest, start == 0)
            body += f"<g transform=translate(0,{y + above + 2})>{bars}</g>"
            y += above + below + 4 + _SPACE
        if e.alignment.ss_cons is not None:
            signs = "".join(e.alignment.ss_cons[c] for c in e.columns[part])
            body += f"{rows.label('SS_cons', y=y + 12)}{rows.letters_at(signs, y + 12, 'ss')}"
            y += _STRUCTURE
        body += f"<g transform=translate(0,{y})>{self._grid(part)}</g>"
        for place, scores in enumerate(e.scores if start == 0 else ()):
            x = self.width * rows.SLOT + 12 + place * (_ROW_BARS + _BETWEEN)
            body += f"<g transform=translate({x},{y})>{self._row_bars(scores)}</g>"
        high = y + self.rows * _ROW + 4
        total = rows.GUTTER + self.width * rows.SLOT + 16 + len(e.scores) * (_ROW_BARS + _BETWEEN)
        spoken = f"Columns {e.columns[part][0] + 1} to {e.columns[part][-1] + 1} with their scores"
        strips = "".join(
            f"<rect x={i * rows.SLOT} y=0 width={rows.SLOT} height={high}><title>{text}</title></rect>"
            for i, text in enumerate(self._titles[part])
        )  # over each column, to show its figures under the pointer
        return (
            f'<div class=line><svg class=row viewBox="{-rows.GUTTER} 0 {total} {high}" role=img '
            f'aria-label="{spoken}">{body}<g class=hover>{strips}</g></svg></div>\n'
        )

    def _axis(self, part: slice) -> str:
        """Positions of the query, every tenth, and marks where columns were not read."""
        positions, columns = self.positions[part].tolist(), self.explanation.columns[part]
        ticks = [(i, p + 1) for i, p in enumerate(positions) if p >= 0 and (p + 1) % 10 == 0]
        texts = "".join(html.tick_label(rows.center(i), 11, p) for i, p in ticks)
        marks = "".join(f"M{rows.center(i)} 19v-4" for i, _ in ticks)
        gaps = np.flatnonzero(np.diff(columns) > 1).tolist()
        passed = "".join(f"M{(i + 1) * rows.SLOT} 20v-5" for i in gaps)
        title = html.tick_label(-12, 12, "position in the query", "end")
        return f'{title}{texts}<path class=axis d="{marks}"/><path class=skipped d="{passed}"/>'

    def _grid(self, part: slice) -> str:
        """Names of the rows, and their letters on colors."""
        names = ""
        for r, row in enumerate(self.explanation.rows[: self.rows].tolist()):
            full = " ".join(self.explanation.alignment.names[row].split())
            short = full if len(full) <= _MAX_NAME_LENGTH else f"{full[: _MAX_NAME_LENGTH - 1]}…"
            title = f"row {row + 1}{' (the query)' if r == 0 else ''}: {html.escape(full)}"
            names += html.tick_label(-12, r * _ROW + 12, f"{html.escape(short)}<title>{title}</title>", "end")
        codes, relevance = self.codes[:, part], self.relevance[:, part]
        alphabet, high = self.explanation.alignment.alphabet, self.rows * _ROW
        image = picture(*_colors(codes, relevance, alphabet), codes.shape[1] * rows.SLOT, high)
        gaps = np.argwhere(codes == alphabet.unknown + 1).tolist()
        strokes = "".join(f"M{c * rows.SLOT + 4} {r * _ROW + 8}h4" for r, c in gaps)
        letters = alphabet.letters + alphabet.unknown_letter + " ~"
        texts = "".join(
            rows.letters_at("".join(letters[code] for code in row.tolist()), r * _ROW + 12, "seq")
            for r, row in enumerate(codes)
        )
        return f'{names}{image}<path class=gaps d="{strokes}"/>{texts}'

    def _row_bars(self, scores: AlignmentScores) -> str:
        """Bars of the scores of rows; a row without a score has none."""
        largest = rows.reach(scores.rows)
        zero = _ROW_BARS // 2 if scores.signed else 0
        bars = ""
        for r, score in enumerate(scores.rows[: self.rows].tolist()):
            if np.isfinite(score):
                long = abs(score) / largest * (_ROW_BARS - zero) if largest > 0 else 0.0
                kind = ("oppose" if score < 0 else "support") if scores.signed else "share"
                left = zero - long if score < 0 else zero
                x, width = html.compact(left), html.compact(max(long, 0.5))
                bars += (
                    f"<rect class={kind} x={x} y={r * _ROW + 3} width={width} "
                    f"height=9><title>row {self.explanation.rows[r] + 1}: {html.number(score)}</title></rect>"
                )
        title = f"<text class=tick x=0 y=-6>{html.escape(scores.method)}</text>"
        return f'{title}{bars}<path class=axis d="M{zero} 0v{self.rows * _ROW}"/>'

    @cached_property
    def _titles(self) -> list[str]:
        """Text that the pointer shows for each column (C',)."""
        e = self.explanation
        codes, letters = e.alignment.codes[:, e.columns], e.alignment.text(0)
        full, conserved = (count(codes, e.alignment.alphabet) for count in (occupancy, conservation))
        titles = []
        for i, column in enumerate(e.columns.tolist()):
            place = self.positions[i] + 1
            query = f"query {place} {letters[column]}" if place > 0 else "a gap in the query"
            scores = "; ".join(f"{s.method} {html.number(float(s.columns[i]))}" for s in e.scores)
            filled, same = (html.number(float(share[i]), 2) for share in (full, conserved))
            shares = f"occupancy {filled}, conservation {same}"
            titles.append(html.escape(f"column {column + 1}; {query}; {scores}; {shares}"))
        return titles


def _colors(codes: np.ndarray, relevance: Floats, alphabet: Alphabet) -> tuple[np.ndarray, list[str]]:
    """Number of each cell's color, and the colors: white, missing, then tints of each kind of letter."""
    kinds = [*(letter_color(letter, alphabet) for letter in alphabet.letters), Color.EDGE]  # last: ambiguous
    distinct = list(dict.fromkeys(kinds))
    shares = [_MIN_TINT + (_MAX_TINT - _MIN_TINT) * step / _STEPS for step in range(_STEPS + 1)]
    colors = [Color.PAPER, Color.FAINT, *(tint(kind, share) for kind in distinct for share in shares)]
    first = np.array([2 + distinct.index(kind) * len(shares) for kind in kinds])
    steps = rows.scaled(relevance, _STEPS, 1.0)
    letter = codes <= alphabet.unknown
    cells = np.where(codes == alphabet.unknown + 2, 1, 0)
    cells[letter] = first[codes[letter]] + steps[letter]
    return cells.astype(np.uint8), colors


def _color_key(alphabet: Alphabet) -> Markup:
    """A table of the colors of the letters."""
    groups: dict[str, str] = {}
    for letter in alphabet.letters:
        color = tint(letter_color(letter, alphabet), _MAX_TINT)
        groups[color] = groups.get(color, "") + letter
    cells = "".join(
        "<td><svg width=15 height=15 aria-hidden=true>"
        f'<rect width=15 height=15 fill="{color}" /></svg> {text}'
        for color, text in (groups | {Color.FAINT: "~ missing"}).items()
    )
    return Markup(f"<table class=swatch><tr>{cells}<td>- gap</table>")


# --- The page of explained alignments: verdicts, then each alignment with its profiles

_MAX_CLASSES = 8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AlignmentReport(Report):
    """What the page shows."""

    shown: Sequence[AlignmentExplanation]


def render_alignments(report: AlignmentReport) -> str:
    """Write the page as HTML that runs nothing."""
    explanations = report.shown
    methods = list(dict.fromkeys(s.method for e in explanations for s in e.scores))
    longest = max((len(e.columns) for e in explanations), default=1)
    width = rows.line_width(longest, MIN_LINE_COLUMNS, MAX_LINE_COLUMNS)
    reading = ""
    if explanations:
        key = _color_key(explanations[0].alignment.alphabet)
        reading = html.templates("alignments.html").reading(methods, key) + rows.BAR_DEFINITIONS
    panels = {
        f"r{i}": (html.name(e.id), _alignment(e, report.card, width)) for i, e in enumerate(explanations)
    }
    return html.document(
        report.title,
        facts(report, len(explanations), "alignment", (e.target for e in explanations), methods),
        {
            "verdict": verdict_section(report, "column"),
            "reading": ("How to read the alignments", reading),
            **panels,
            "set": ("All alignments together", checks(report.faithfulness, "column")),
            "card": html.card_section(html.ModelText.of(report.card)),
        },
        report.provenance,
    )


def _alignment(e: AlignmentExplanation, card: Card, width: int) -> Markup:
    omitted = []  # by the grid
    if len(e.rows) > MAX_ROWS:
        omitted.append(f"{counted(len(e.rows) - MAX_ROWS, 'more row')} that the model read")
    for read, all_, unit in ((e.rows, e.alignment.rows, "row"), (e.columns, e.alignment.columns, "column")):
        if len(read) < all_:
            omitted.append(f"{counted(all_ - len(read), unit)} of the file that the model did not read")
    share = html.templates("parts.html").share
    order = np.argsort(-np.array(e.probabilities), kind="stable").tolist()
    classes = [[card.classes[i], share(e.probabilities[i])] for i in order[:_MAX_CLASSES]]
    rest = sum(e.probabilities[i] for i in order[_MAX_CLASSES:])
    classes += [["all others", share(rest)]] if len(order) > _MAX_CLASSES else []
    called = html.table(["class", "probability"], classes, caption="classes")
    ranks = Markup().join((called, *(_ranks(e, scores) for scores in e.scores)))
    return html.templates("alignments.html").alignment(e, alignment_panel(e, width), omitted, ranks)


def _ranks(e: AlignmentExplanation, scores: AlignmentScores) -> Markup:
    positions, letters = e.alignment.query_positions(), e.alignment.text(0)
    rows = []
    for rank, index in enumerate(ranking(scores.columns), start=1):
        column = int(e.columns[index])
        query, score = str(positions[column] + 1), html.number(float(scores.columns[index]))
        query = query if positions[column] >= 0 else "gap"  # without a letter of the query
        rows.append([str(rank), str(column + 1), query, letters[column], score])
    return html.table(["rank", "column", "query", "base", "score"], rows, caption=scores.method)
