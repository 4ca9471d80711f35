"""Logos: of the signed effects in one record, and of the aligned sites of a motif.

Letters are outlines, so that a logo needs no font: ``letters.json`` has them in a box of 100 by 100, y
pointing down, filled even-odd. Each is defined once in a page and stretched where it is used.
"""

from __future__ import annotations

import json

import numpy as np
from markupsafe import Markup

from seqray.core import Alphabet, Floats
from seqray.core.results import Motif
from seqray.report.html import compact, escape, number, resource
from seqray.report.palette import letter_color
from seqray.report.svg.levels import scaled
from seqray.report.svg.rows import definitions, tick_label

_WIDTH = 11  # of a letter in a logo, px
_BOX = "M0 0H100V100H0ZM14 14V86H86V14Z"  # for a letter without an outline
HALF = 50  # largest height of a letter of an effect logo, px: what is below 1 % of it is left out

_FLAT = 3  # a letter of this height cannot be read: it becomes a bar of its color, which takes fewer bytes
_COLUMN = 24  # of a motif logo, px
_TALL = 96
_LEFT = 46


def glyph_definitions(alphabet: Alphabet) -> Markup:
    """Define each letter twice, 1 high: ``gA`` stands on y = 0, ``ga`` hangs from it."""
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
    heights = "".join(f".h{height}{{transform:scale(1,{height})}}" for height in range(1, HALF + 1))
    bars = "".join(f".f{letter}{{stroke:{letter_color(letter, alphabet)}}}" for letter in alphabet.letters)
    return f"{heights}{bars}[class^=f]{{fill:none;stroke-width:{_WIDTH}}}"


def letter_effects(effects: Floats) -> Floats:
    """Score each letter by the mean effect of replacing it, with the opposite sign.

    Parameters
    ----------
    effects
        (n, A) change of the log-odds for each replacement; 0 for the letter itself.

    Returns
    -------
    array of float64, shape (n,)
        Above 0 where the letter supports the class explained; nan where no effect is known.
    """
    known = np.asarray(np.isfinite(effects).all(axis=1))
    others = max(1, effects.shape[1] - 1)
    return np.where(known, -np.where(known[:, None], effects, 0.0).sum(axis=1) / others, np.nan)


def effect_letters(sequence: str, scores: Floats, largest: float, slot: int) -> str:
    """Draw one line of an effect logo around y = 0.

    Parameters
    ----------
    sequence
        Letters of the line.
    scores
        (n,) of these letters; letters with nan or next to nothing are left out.
    largest
        Score that is drawn `HALF` high.
    slot
        Width of a letter.
    """
    glyphs: list[str] = []
    bars: dict[str, list[str]] = {}
    heights = scaled(scores, HALF, largest).tolist()
    for place, (letter, height) in enumerate(zip(sequence, heights, strict=True)):
        if abs(height) > _FLAT:
            glyph = letter.upper() if height > 0 else letter.lower()
            glyphs.append(f"<use href=#g{glyph} x={place * slot} class=h{abs(height)} />")
        elif height:
            bars.setdefault(letter, []).append(f"M{place * slot},0v{-height}")
    flat = "".join(f"<path class=f{letter} d={''.join(bars[letter])} />" for letter in sorted(bars))
    return flat + "".join(glyphs)


def motif_logo(motif: Motif) -> Markup:
    """Draw a motif: the height of a column is its information in bits, shared by letters as they occur."""
    places = len(motif.bits)
    most = float(np.log2(max(2, len(motif.letters))))
    width, height = _LEFT + _COLUMN * places + 8, _TALL + 46
    columns = "".join(_column(motif, place, _TALL / most) for place in range(places))
    numbers = "".join(
        tick_label(_LEFT + place * _COLUMN + _COLUMN // 2, _TALL + 24, place + 1) for place in range(places)
    )
    title = tick_label(_LEFT + places * _COLUMN // 2, _TALL + 42, "position in the motif")
    return Markup(
        f'<svg class=plot viewBox="0 0 {width} {height}" width={width} height={height} role=img '
        f'aria-label="Logo of {escape(motif.name)}: {escape(motif.consensus)}">'
        f"{_bits_axis(most)}{columns}{numbers}{title}</svg>"
    )


def _column(motif: Motif, place: int, scale: float) -> str:
    total = float(motif.counts[place].sum())
    bits = float(motif.bits[place])
    if not (total > 0 and np.isfinite(bits)):
        return ""
    glyphs, base = "", 10.0 + _TALL
    for column in np.argsort(motif.counts[place], kind="stable").tolist():
        height = max(0.0, bits) * scale * float(motif.counts[place][column]) / total
        if height >= 0.01 * _TALL:
            move = f"translate({_LEFT + place * _COLUMN + 1},{compact(base)})"
            stretch = f"scale({(_COLUMN - 2) / _WIDTH:.3g},{compact(height)})"
            glyphs += f'<use href=#g{motif.letters[column]} transform="{move}{stretch}"/>'
            base -= height
    return glyphs


def _bits_axis(most: float) -> str:
    ticks = {tick: 10 + _TALL * (1 - tick / most) for tick in (0.0, most / 2, most)}
    marks = "".join(f"M{_LEFT - 8} {compact(y)}h5" for y in ticks.values())
    texts = "".join(
        tick_label(_LEFT - 11, compact(y + 4), number(tick, 2), "end") for tick, y in ticks.items()
    )
    title = f'<text class="tick mid" transform="translate(11,{10 + _TALL // 2})rotate(-90)">bits</text>'
    return f'<path class=axis d="{marks}M{_LEFT - 3} 10v{_TALL}"/>{texts}{title}'
