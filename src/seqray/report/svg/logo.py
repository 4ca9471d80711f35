"""Logos and pictures."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Floats
from seqray.core.explanation import Motif
from seqray.report.html import compact, number, resource
from seqray.report.palette import Color, components, letter_color, tint
from seqray.report.svg.charts import Frame
from seqray.report.svg.rows import GUTTER, MARGIN, SLOT, definitions, reach, scaled

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
