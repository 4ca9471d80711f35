"""An alignment as a coloured grid in lines, with profiles of its columns above and of its rows beside.

Letters have the colours of the logos, the stronger the more relevance their cell has; gaps are strokes on
white, missing data stand on grey. Only columns that the model has read are drawn; places in the query are
written above, and where columns were passed over a mark stands between their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet, Floats
from seqray.core.msa import conservation, occupancy
from seqray.core.results import AlignmentExplanation, AlignmentScores
from seqray.report.html import compact, escape, number
from seqray.report.svg import (
    GUTTER,
    SLOT,
    Colour,
    bars_path,
    centre,
    colour_of,
    colour_of_hex,
    label,
    mixed,
    picture,
    reach,
    scaled,
)

MOST_ROWS = 30
LONGEST_LINE, SHORTEST_LINE = 80, 40  # columns
STYLE = (
    ".gaps { fill: none; stroke: #aab2bc; } .hover rect { fill: transparent; } "
    ".hover rect:hover { fill: #10161d; fill-opacity: .12; } .skipped { fill: none; stroke: #aab2bc; } "
    ".ss { font-size: 13px; text-anchor: middle; fill: #1d4f91; "
    'font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; } '
    ".share { fill: #6a4fb3; } .support { fill: #2166ac; } .oppose { fill: #d97706; } "
    ".ranks { align-items: flex-start; } .swatch td { border: 0; padding: 1px 12px; }"
)
_STEPS = 7  # of relevance
_PALEST, _STRONGEST = 0.10, 0.72
_MISSING: Colour = (0xE2, 0xE6, 0xEB)
_OTHER: Colour = (0x8A, 0x94, 0xA0)
_ROW = 15  # px, as all below
_AXIS, _STRUCTURE, _SPACE = 22, 18, 6
_SHARES_HIGH, _SIGNED_HIGH = 26, 18
_ROW_BARS = 78  # width of the bars of rows
_LONGEST_NAME = 21


def line_width(columns: int) -> int:
    """Columns of a line: as many as fill the lines of the widest alignment evenly."""
    lines = max(1, -(-columns // LONGEST_LINE))
    even = -(-columns // lines // 10) * 10
    return min(LONGEST_LINE, max(SHORTEST_LINE, even))


def cell_relevance(explanation: AlignmentExplanation) -> Floats:
    """Relevance of each cell that was read, from 0 to 1: (R', C').

    That of the first method which scores cells, as the square root of its share of the largest; where none
    does, the size of each column's score.
    """
    found = next((s for s in explanation.scores if s.grid is not None), None)
    if found is not None and found.grid is not None:
        grid = np.abs(found.grid)
    else:
        grid = np.tile(np.abs(explanation.scores[0].columns), (len(explanation.rows), 1))
    top = float(grid.max(initial=0.0))
    return np.sqrt(grid / top) if top > 0 else np.zeros(grid.shape)


def alignment_panel(explanation: AlignmentExplanation, width: int) -> str:
    """Draw an alignment with the profiles of its columns and rows.

    Parameters
    ----------
    explanation
        Of one alignment.
    width
        Columns of a line.
    """
    drawing = _Drawing.of(explanation, width)
    lines = (drawing.line(start) for start in range(0, len(explanation.columns), width))
    return f"<div class=scroll><div class=panel>{''.join(lines)}</div></div>\n"


@dataclass(frozen=True, slots=True, eq=False)
class _Drawing:
    """What all lines of one alignment have in common."""

    explanation: AlignmentExplanation
    width: int
    rows: int  # shown, the first ones
    codes: np.ndarray  # (rows, C')
    relevance: Floats  # (rows, C')
    places: np.ndarray  # (C',) 0-based position in the query, -1 for none
    titles: list[str]  # (C',) what is told of each column

    @classmethod
    def of(cls, e: AlignmentExplanation, width: int) -> _Drawing:
        rows = min(MOST_ROWS, len(e.rows))
        codes = e.alignment.codes[np.ix_(e.rows[:rows], e.columns)]
        places = e.alignment.query_positions()[e.columns]
        return cls(e, width, rows, codes, cell_relevance(e)[:rows], places, _titles(e, places))

    def line(self, start: int) -> str:
        """Columns from ``start`` on: axis, profiles, structure, grid, and for the first line the rows."""
        e = self.explanation
        part = slice(start, min(start + self.width, len(e.columns)))
        body, y = self._axis(part), _AXIS
        for found in e.scores:
            drawn, high = _profile(found, part, first=start == 0)
            body += f"<g transform=translate(0,{y})>{drawn}</g>"
            y += high + _SPACE
        if e.alignment.ss_cons is not None:
            signs = "".join(e.alignment.ss_cons[c] for c in e.columns[part])
            body += f"{label('SS_cons', y=y + 12)}{_letters(signs, y + 12, 'ss')}"
            y += _STRUCTURE
        body += f"<g transform=translate(0,{y})>{self._grid(part)}</g>"
        if start == 0:
            body += f"<g transform=translate({self.width * SLOT},{y})>{self._row_bars()}</g>"
        high = y + self.rows * _ROW + 4
        total = GUTTER + self.width * SLOT + 16 + len(e.scores) * (_ROW_BARS + 14)
        spoken = f"Columns {e.columns[part][0] + 1} to {e.columns[part][-1] + 1} with their scores"
        return (
            f'<div class=line><svg class=row viewBox="{-GUTTER} 0 {total} {high}" role=img '
            f'aria-label="{spoken}">{body}{self._hover(part, high)}</svg></div>\n'
        )

    def _axis(self, part: slice) -> str:
        """Positions of the query, every tenth, and marks where columns were passed over."""
        places, columns = self.places[part], self.explanation.columns[part]
        ticks = [(i, p + 1) for i, p in enumerate(places.tolist()) if p >= 0 and (p + 1) % 10 == 0]
        texts = "".join(f'<text class="tick mid" x={centre(i)} y=11>{p}</text>' for i, p in ticks)
        marks = "".join(f"M{centre(i)} 19v-4" for i, _ in ticks)
        gaps = np.flatnonzero(np.diff(columns) > 1).tolist()
        passed = "".join(f"M{(i + 1) * SLOT} 20v-5" for i in gaps)
        title = '<text class="tick end" x=-12 y=12>position in the query</text>'
        return f'{title}{texts}<path class=axis d="{marks}"/><path class=skipped d="{passed}"/>'

    def _grid(self, part: slice) -> str:
        codes, relevance = self.codes[:, part], self.relevance[:, part]
        alphabet, high = self.explanation.alignment.alphabet, self.rows * _ROW
        cells, palette = _colours(codes, relevance, alphabet)
        image = (
            f'<image href="{picture(cells, palette)}" width={codes.shape[1] * SLOT} height={high} '
            "preserveAspectRatio=none />"
        )
        gaps = np.argwhere(codes == alphabet.unknown + 1).tolist()
        strokes = "".join(f"M{c * SLOT + 4} {r * _ROW + 8}h4" for r, c in gaps)
        table = alphabet.letters + alphabet.unknown_letter + " ~"
        texts = "".join(
            _letters("".join(table[code] for code in row.tolist()), r * _ROW + 12, "seq")
            for r, row in enumerate(codes)
        )
        return f'{self._names()}{image}<path class=gaps d="{strokes}"/>{texts}'

    def _names(self) -> str:
        e = self.explanation
        named = [(r, " ".join(e.alignment.names[row].split())) for r, row in enumerate(e.rows[: self.rows])]
        return "".join(
            f'<text class="tick end" x=-12 y={r * _ROW + 12}>{escape(_short(text))}'
            f"<title>row {e.rows[r] + 1}{' (the query)' if r == 0 else ''}: {escape(text)}</title></text>"
            for r, text in named
        )

    def _row_bars(self) -> str:
        """Bars of the rows, a group for each method; a row without a score has none."""
        return "".join(
            f"<g transform=translate({12 + place * (_ROW_BARS + 14)},0)>{self._bars_of(found)}</g>"
            for place, found in enumerate(self.explanation.scores)
        )

    def _bars_of(self, found: AlignmentScores) -> str:
        scores, largest = found.rows[: self.rows], reach(found.rows)
        zero = _ROW_BARS // 2 if found.signed else 0
        title = f"<text class=tick x=0 y=-6>{escape(found.method)}</text>"
        bars = ""
        for r, score in enumerate(scores.tolist()):
            if np.isfinite(score):
                long = abs(score) / largest * (_ROW_BARS - zero) if largest > 0 else 0.0
                kind = ("oppose" if score < 0 else "support") if found.signed else "share"
                left = zero - long if score < 0 else zero
                bars += (
                    f"<rect class={kind} x={compact(left)} y={r * _ROW + 3} width={compact(max(long, 0.5))} "
                    f"height=9><title>row {self.explanation.rows[r] + 1}: {number(score)}</title></rect>"
                )
        return f'{title}{bars}<path class=axis d="M{zero} 0v{self.rows * _ROW}"/>'

    def _hover(self, part: slice, high: int) -> str:
        """A strip over each column that tells what is known of it."""
        strips = "".join(
            f"<rect x={i * SLOT} y=0 width={SLOT} height={high}><title>{text}</title></rect>"
            for i, text in enumerate(self.titles[part])
        )
        return f"<g class=hover>{strips}</g>"


def _titles(e: AlignmentExplanation, places: np.ndarray) -> list[str]:
    alphabet, codes = e.alignment.alphabet, e.alignment.codes[:, e.columns]
    full, kept = occupancy(codes, alphabet), conservation(codes, alphabet)
    letters = e.alignment.text(0)
    titles = []
    for i, column in enumerate(e.columns.tolist()):
        query = f"query {places[i] + 1} {letters[column]}" if places[i] >= 0 else "no letter in the query"
        scores = "; ".join(f"{found.method} {number(float(found.columns[i]))}" for found in e.scores)
        known = f"occupancy {number(float(full[i]), 2)}, conservation {number(float(kept[i]), 2)}"
        titles.append(escape(f"column {column + 1}; {query}; {scores}; {known}"))
    return titles


def _profile(found: AlignmentScores, part: slice, *, first: bool) -> tuple[str, int]:
    """Bars of the scores of a line's columns, and the height that they take."""
    high = _SIGNED_HIGH if found.signed else _SHARES_HIGH
    base, total = high + 2, (2 * high if found.signed else high) + 4
    largest = reach(found.columns)
    heights = scaled(found.columns[part], high, largest).tolist()
    bars = f"<path class={'bs' if found.signed else 'bu'} d={bars_path(heights)} />"
    scale = f"largest ±{number(largest)}" if found.signed else f"highest {number(largest)}"
    axis = f"<path class=axis d=M0,0h{len(heights) * SLOT} />"
    text = label(found.method, scale if first else "", y=total // 2 - 2)
    return f"{text}<g transform=translate(0,{base})>{bars}{axis}</g>", total


def _letters(text: str, y: int, kind: str) -> str:
    """Letters in their slots; spaces are left out."""
    spots = [(centre(i), sign) for i, sign in enumerate(text) if sign != " "]
    if not spots:
        return ""
    x = " ".join(str(place) for place, _ in spots)
    return f'<text class={kind} x="{x}" y={y}>{escape("".join(sign for _, sign in spots))}</text>'


def _colours(codes: np.ndarray, relevance: Floats, alphabet: Alphabet) -> tuple[np.ndarray, list[Colour]]:
    """Number of each cell's colour, and the colours: white, missing, then shades of each kind of letter."""
    kinds = [_OTHER if letter is None else colour_of_hex(letter) for letter in _letter_colours(alphabet)]
    distinct = list(dict.fromkeys(kinds))
    shares = [_PALEST + (_STRONGEST - _PALEST) * step / _STEPS for step in range(_STEPS + 1)]
    palette = [(255, 255, 255), _MISSING, *(mixed(kind, share) for kind in distinct for share in shares)]
    first = np.array([2 + distinct.index(kind) * len(shares) for kind in kinds])
    steps = scaled(relevance, _STEPS, 1.0)
    letter = codes <= alphabet.unknown
    cells = np.where(codes == alphabet.unknown + 2, 1, 0)
    cells[letter] = first[codes[letter]] + steps[letter]
    return cells.astype(np.uint8), palette


def _letter_colours(alphabet: Alphabet) -> list[str | None]:
    """Colour of each letter by its code; None for an ambiguous one."""
    return [*(colour_of(letter, alphabet) for letter in alphabet.letters), None]


def colour_key(alphabet: Alphabet) -> str:
    """A table that tells the colours of the letters."""
    groups: dict[str, str] = {}
    for letter in alphabet.letters:
        colour = colour_of(letter, alphabet)
        groups[colour] = groups.get(colour, "") + letter

    def swatch(colour: Colour, text: str) -> str:
        cell = picture(np.zeros((1, 1), dtype=np.uint8), [colour])
        image = f'<svg width=15 height=15 aria-hidden=true><image href="{cell}" width=15 height=15 /></svg>'
        return f"<td>{image} {escape(text)}"

    cells = "".join(swatch(mixed(colour_of_hex(c), _STRONGEST), text) for c, text in groups.items())
    cells += swatch(_MISSING, "~ missing") + "<td>- gap"
    return f"<table class=swatch><tr>{cells}</table>"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
