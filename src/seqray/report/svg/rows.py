"""Rows of letters and cells, logos, and arrays as pictures."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats
from seqray.core.explanation import Motif
from seqray.report.html import compact, escape, number, offset, offset_ticks, resource, tick_label
from seqray.report.palette import OPPOSE, SUPPORT, Color, components, letter_color, tint
from seqray.report.svg.charts import Frame

# --- Scores as one of a few shades, one character a letter; ``script.js`` reads the same characters

STEPS = 6
_SHARES = "0123456"
_FOR = "0ABCDEF"
_AGAINST = "0abcdef"


def reach(values: Floats) -> float:
    """Largest size of a finite value, 0 if there is none."""
    sizes = np.abs(values[np.isfinite(values)])
    return float(sizes.max(initial=0.0))


def scaled(values: Floats, height: int, largest: float | None = None) -> np.ndarray:
    """Whole numbers from ``-height`` to ``height``, that of ``largest`` or the largest; 0 if not finite."""
    top = reach(values) if largest is None else largest
    if not top > 0:
        return np.zeros(values.shape, dtype=np.int64)
    share = np.nan_to_num(values / top, nan=0.0, posinf=0.0, neginf=0.0)
    return np.rint(np.clip(share, -1, 1) * height).astype(np.int64)


def write_levels(values: Floats, signed: bool, largest: float | None = None) -> str:
    """Write the level of each score (n,), relative to the largest; signed ones below 0 oppose the class."""
    steps = scaled(values, STEPS, largest)
    above = _FOR if signed else _SHARES
    return "".join(above[step] if step >= 0 else _AGAINST[-step] for step in steps.tolist())


def draw_levels(text: str, slot: int) -> str:
    """Draw stretches of one level as thick strokes along the x axis, one path a level."""
    strokes: dict[str, list[str]] = {}
    start = 0
    for shade, run in groupby(text):
        length = len(list(run))
        if shade != "0":
            strokes.setdefault(shade, []).append(f"M{start * slot} 0h{length * slot}")
        start += length
    return "".join(f'<path class=l{shade} d="{"".join(strokes[shade])}"/>' for shade in sorted(strokes))


# --- Rows of a wrapped record: its axis, its letters on shades of a score, bars of scores

SLOT = 12
GUTTER = 156
MARGIN = 8
_MAX_TICKS = 12  # of a map of attention
_SHARE_HEIGHT, _SIGNED_HEIGHT = 26, 18  # of bars, px; signed ones on each side of zero


def definitions(body: str) -> Markup:
    """Drawings that others on the page use."""
    return Markup(f"<svg class=defs width=0 height=0 aria-hidden=true><defs>{body}</defs></svg>\n")


# Signed bars are one outline; its part above the axis has one color, the part below another.
BAR_DEFINITIONS = definitions(
    "<linearGradient id=sign gradientUnits=userSpaceOnUse x1=0 x2=0 "
    f"y1=-{_SIGNED_HEIGHT} y2={_SIGNED_HEIGHT}>"
    f'<stop offset=".5" stop-color="{SUPPORT}"/><stop offset=".5" stop-color="{OPPOSE}"/></linearGradient>'
)


@dataclass(frozen=True, slots=True)
class Line:
    """Letters ``start`` to ``end`` of a record with a ``site``, on a page of ``width`` letters a line."""

    start: int
    end: int
    width: int
    site: int | None

    def row(self, body: str, top: int, height: int, kind: str) -> str:
        """Put a drawing that begins at y = ``top``, in px, into a row of a class, and mark the site."""
        total = GUTTER + self.width * SLOT + MARGIN
        mark = ""
        if self.site is not None and self.start <= self.site < self.end:
            mark = f"<path class=site d=M{center(self.site - self.start)},{top}v{height} />"
        return f'<svg class="row {kind}" viewBox="{-GUTTER} {top} {total} {height}">{mark}{body}</svg>\n'

    @property
    def axis(self) -> str:
        """Anchor of its axis."""
        return f"x{self.start}-{self.end}-{self.site}"


def center(index: int) -> int:
    """Middle of a slot, px."""
    return index * SLOT + SLOT // 2


def lines_of(length: int, width: int, site: int | None) -> list[Line]:
    """Wrap a record; at least one line."""
    starts = range(0, max(1, length), width)
    return [Line(start, min(length, start + width), width, site) for start in starts]


def line_width(longest: int, least: int = 60, most: int = 100) -> int:
    """Letters or columns of a line: as many as fill the lines of the longest record evenly."""
    lines = max(1, math.ceil(longest / most))
    return min(most, max(least, math.ceil(longest / lines / 10) * 10))


def site_within(length: int, site: int | None) -> int | None:
    """Index of the site; None if the record is too short."""
    return site if site is not None and 0 <= site < length else None


def label(title: str, below: str = "", y: int = 0) -> str:
    """Name a row in the gutter at some height, px, with a smaller line below; text, not HTML."""
    text = f'<text class="lab end" x=-12 y={y}>{escape(title)}</text>'
    return text + (tick_label(-12, y + 13, escape(below), "end") if below else "")


# --- Axes: records of one length share them, so each is defined once


def axis_definitions(lengths: Iterable[int], width: int, site: int | None) -> Markup:
    """Define the axes of records of these lengths: of each line, counted from a site, and of each map."""

    def position(index: int, inside: int | None) -> str:
        return str(index) if inside is None else offset(index - inside)

    axes: dict[str, str] = {}
    for length in dict.fromkeys(lengths):
        inside = site_within(length, site)
        for line in lines_of(length, width, inside):
            ticks = _ticks(line.start, line.end, 10, inside) or [line.start]
            marks = "".join(f"M{center(i - line.start)} 0v-4" for i in ticks)
            texts = "".join(tick_label(center(i - line.start), -8, position(i, inside)) for i in ticks)
            title = tick_label(-26, -8, "index from 0" if inside is None else "relative to the site", "end")
            axes[line.axis] = f'{title}<path class=axis d="{marks}"/>{texts}'
        slot = width * SLOT / max(1, length)
        step = 10 * max(1, -(-length // (10 * _MAX_TICKS)))
        axes[f"y{length}-{inside}"] = "".join(
            tick_label(round((i + 0.5) * slot), -6, position(i, inside))
            for i in _ticks(0, length, step, inside)
        )
    return definitions("".join(f"<g id={key}>{drawing}</g>" for key, drawing in axes.items()))


def _ticks(start: int, end: int, step: int, site: int | None) -> list[int]:
    if site is None:
        return [i for i in range(start, end) if i % step == 0]
    return [i + site for i in offset_ticks(start - site, end - site, step)]


# --- Letters and bars


def sequence_row(line: Line, letters: str, first: int, shade_texts: list[str]) -> str:
    """Write letters on shades of the first score; ``script.js`` reads those of the others in ``data-l``."""
    shown = next((text for text in shade_texts if text != "-"), "")
    span = f"index {first + line.start}\N{EN DASH}{first + line.end - 1}" if letters else ""
    other = f'<g data-l="{" ".join(shade_texts)}">{draw_levels(shown, SLOT)}</g>'
    return line.row(f"{label('sequence', span, y=-2)}{other}{letters_at(letters, 4, 'seq')}", -13, 27, "sq")


def letters_at(text: str, y: int, kind: str) -> str:
    """Write a letter for each slot, in a class of text; spaces are left out."""
    shown = [(center(i), letter) for i, letter in enumerate(text) if letter != " "]
    if not shown:
        return ""
    spots, letters = zip(*shown, strict=True)
    return f'<text class={kind} x="{" ".join(map(str, spots))}" y={y}>{escape("".join(letters))}</text>'


def bar_extent(signed: bool) -> tuple[int, int]:
    """Height of the bars of scores above and below their axis, px."""
    return (_SIGNED_HEIGHT, _SIGNED_HEIGHT) if signed else (_SHARE_HEIGHT, 0)


def score_bars(scores: Floats, signed: bool, title: str, largest: float, first: bool) -> str:
    """Draw the scores (n,) of a line as bars around y = 0; the ``first`` line states what ``largest`` is."""
    heights = scaled(scores, bar_extent(signed)[0], largest).tolist()
    scale = f"largest ±{number(largest)}" if signed else f"highest {number(largest)}"
    text = label(title, scale if first else "", y=-1 if signed else 1 - _SHARE_HEIGHT // 2)
    outline, level = "M0,0", 0  # of bars 1 wide, which ``style.css`` stretches
    for height, run in groupby(heights):
        outline += (f"v{level - height}" if height != level else "") + f"h{len(list(run))}"
        level = height
    bars = f"<path class={'bs' if signed else 'bu'} d={outline}V0 />"
    return f"{text}{bars}<path class=axis d=M0,0h{len(heights) * SLOT} />"


# --- Arrays as PNG pictures inside a drawing, a pixel a cell; ``style.css`` keeps the edges of cells sharp

_SHADES = 15
_ROW = 14  # of a map of attention, px
_TOP, _BOTTOM = 22, 26


def picture(cells: npt.NDArray[np.uint8], colors: Sequence[str], width: int, height: int) -> str:
    """Draw numbers (rows, columns) of at most 256 colors as an image, px; 16 take half a byte a cell."""
    image, buffer = Image.fromarray(cells), io.BytesIO()
    image.putpalette([part for color in colors for part in components(color)])
    image.save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    size = f"width={width} height={height} preserveAspectRatio=none"
    return f'<image href="data:image/png;base64,{data}" {size} />'


def attention_map(attention: Floats, width: int, site: int | None) -> str:
    """Draw the attention of CLS to each letter, (layers, heads, n), a row a head; the largest is darkest."""
    layers, heads, letters = attention.shape
    high, wide = layers * heads * _ROW, width * SLOT
    steps = scaled(attention, _SHADES).clip(min=0).astype(np.uint8).reshape(-1, letters)
    colors = [tint(Color.DEEP_VIOLET, shade / _SHADES) for shade in range(_SHADES + 1)]
    named = f"heads 1\N{EN DASH}{heads}" if heads > 1 else "head 1"
    labels = ""
    for layer in range(layers):
        top, middle = layer * heads * _ROW, layer * heads * _ROW + heads * _ROW // 2 + 4
        labels += f'<text class="lab end" x=-12 y={middle}>layer {layer + 1}, {named}</text>'
        labels += f'<path class=rule d="M-140 {top}H0"/>' if layer else ""
    box = f"{-GUTTER} {-_TOP} {GUTTER + wide + MARGIN} {_TOP + high + _BOTTOM}"
    mark = "" if site is None else f'<path class=site d="M{(site + 0.5) * wide / letters:.0f} 0v{high}"/>'
    return (
        f'<svg class="row map" viewBox="{box}" role=img '
        'aria-label="Attention of CLS to each position, a row for each layer and head">'
        f"{picture(steps, colors, wide, high)}{labels}<use href=#y{letters}-{site} />{mark}"
        f"<text class=tick x=0 y={high + 20}>white 0, darkest {number(reach(attention))}; share of the "
        "attention of CLS, mean over networks; heads from top to bottom</text></svg>\n"
    )


# --- Logos: of the signed effects in one record, and of the aligned sites of a motif

_WIDTH = 11  # of a letter in a logo, px
_BOX = "M0 0H100V100H0ZM14 14V86H86V14Z"  # for a letter without an outline
MAX_LETTER_HEIGHT = 50  # of an effect logo, px: what is below 1 % of it is left out

_MAX_BAR_HEIGHT = 3  # such a letter cannot be read: it becomes a bar of its color, which takes fewer bytes
_COLUMN, _LOGO_HEIGHT = 24, 96  # width of a column and height of a motif logo, px


def glyph_definitions(alphabet: Alphabet) -> Markup:
    """Define each letter twice, 1 high: ``gA`` rises from y = 0, ``ga`` hangs from it."""
    outlines = json.loads(resource("letters.json"))
    glyphs = ""
    for letter in alphabet.letters:
        color = letter_color(letter, alphabet)
        path = f'<path fill="{color}" fill-rule=evenodd d="{outlines.get(letter, _BOX)}"'
        size = f"scale({_WIDTH / 100:g},.01)"
        glyphs += f'<g id=g{letter}>{path} transform="{size}translate(0,-100)"/></g>'
        glyphs += f'<g id=g{letter.lower()}>{path} transform="{size}"/></g>'
    return definitions(glyphs)


def logo_style(alphabet: Alphabet) -> str:
    """CSS rules: class ``h7`` stretches a letter to a height of 7, ``fA`` is a bar in the color of A."""
    heights = "".join(
        f".h{height}{{transform:scale(1,{height})}}" for height in range(1, MAX_LETTER_HEIGHT + 1)
    )
    bars = "".join(f".f{letter}{{stroke:{letter_color(letter, alphabet)}}}" for letter in alphabet.letters)
    return f"{heights}{bars}[class^=f]{{fill:none;stroke-width:{_WIDTH}}}"


def letter_effects(effects: Floats) -> Floats:
    """Contribution (n,) of each letter: minus its mean effect, of (n, A), 0 for itself; nan if unknown."""
    known = np.asarray(np.isfinite(effects).all(axis=1))
    others = max(1, effects.shape[1] - 1)
    return np.where(known, -np.where(known[:, None], effects, 0.0).sum(axis=1) / others, np.nan)


def effect_letters(sequence: str, scores: Floats, largest: float) -> str:
    """Draw a line of an effect logo around y = 0; letters whose score (n,) is nan or tiny are left out."""
    glyphs: list[str] = []
    bars: dict[str, list[str]] = {}
    heights = scaled(scores, MAX_LETTER_HEIGHT, largest).tolist()
    for place, (letter, height) in enumerate(zip(sequence, heights, strict=True)):
        if abs(height) > _MAX_BAR_HEIGHT:
            glyph = letter.upper() if height > 0 else letter.lower()
            glyphs.append(f"<use href=#g{glyph} x={place * SLOT} class=h{abs(height)} />")
        elif height:
            bars.setdefault(letter, []).append(f"M{place * SLOT},0v{-height}")
    flat = "".join(f"<path class=f{letter} d={''.join(bars[letter])} />" for letter in sorted(bars))
    return flat + "".join(glyphs)


def motif_logo(motif: Motif) -> Markup:
    """Draw a motif: the height of a column is its information in bits, shared by letters as they occur."""
    places = len(motif.bits)
    most = float(np.log2(max(2, len(motif.letters))))
    frame = Frame.of_size(_COLUMN * places, _LOGO_HEIGHT, (0.0, float(places)), (0.0, most))
    body = frame.ticks_y({tick: number(tick, 2) for tick in (0.0, most / 2, most)})
    for place, counts in enumerate(motif.counts):
        total, bits, base = float(counts.sum()), float(motif.bits[place]), 0.0
        if not (total > 0 and np.isfinite(bits)):
            continue
        for column in np.argsort(counts, kind="stable").tolist():
            share = max(0.0, bits) * float(counts[column]) / total
            height = frame.y(base) - frame.y(base + share)
            if height >= 0.01 * _LOGO_HEIGHT:
                move = f"translate({compact(frame.x(place) + 1)},{compact(frame.y(base))})"
                stretch = f"scale({(_COLUMN - 2) / _WIDTH:.3g},{compact(height)})"
                body += f'<use href=#g{motif.letters[column]} transform="{move}{stretch}"/>'
                base += share
    body += frame.ticks_x({place + 0.5: str(place + 1) for place in range(places)})
    return frame.drawing(body, "position in the motif", "bits", f"Logo of {motif.name}: {motif.consensus}")
