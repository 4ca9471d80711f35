"""Logos: of the signed effects in one record, and of the aligned sites of a motif."""

from __future__ import annotations

import numpy as np

from seqray.core import Alphabet, Floats
from seqray.core.results import Motif
from seqray.report.html import compact, escape, number
from seqray.report.svg.color_levels import scaled
from seqray.report.svg.glyphs import WIDTH, colour_of

HALF = 50  # largest height of a letter of an effect logo, px: what is below 1 % of it is left out

_FLAT = 3  # a letter of this height can't be read: it becomes a bar of its colour, which takes less room
_COLUMN = 24  # of a motif logo, px
_TALL = 96
_LEFT = 46


def logo_rules(alphabet: Alphabet) -> str:
    """Style rules: class ``h7`` stretches a letter to a height of 7, ``fA`` is a bar in the colour of A."""
    heights = "".join(f".h{height}{{transform:scale(1,{height})}}" for height in range(1, HALF + 1))
    bars = "".join(f".f{letter}{{stroke:{colour_of(letter, alphabet)}}}" for letter in alphabet.letters)
    return f"{heights}{bars}[class^=f]{{fill:none;stroke-width:{WIDTH}}}"


def letter_effects(effects: Floats) -> Floats:
    """Score each letter by what the others would change: minus the mean over them.

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


def motif_logo(motif: Motif) -> str:
    """Draw a motif: the height of a column is its information in bits, shared by letters as they occur."""
    most = np.log2(max(2, len(motif.letters)))
    width = _LEFT + _COLUMN * len(motif.bits) + 8
    columns = "".join(_column(motif, place, _TALL / most) for place in range(len(motif.bits)))
    return (
        f'<svg class=plot viewBox="0 0 {width} {_TALL + 46}" width={width} height={_TALL + 46} role=img '
        f'aria-label="Logo of {escape(motif.name)}: {escape(motif.consensus)}">'
        f"{_bits_axis(float(most))}{columns}{_place_axis(len(motif.bits))}</svg>"
    )


def _column(motif: Motif, place: int, scale: float) -> str:
    total = float(motif.counts[place].sum())
    bits = float(motif.bits[place])
    if not (total > 0 and np.isfinite(bits)):
        return ""
    drawn, base = [], 10.0 + _TALL
    for column in np.argsort(motif.counts[place], kind="stable").tolist():
        height = max(0.0, bits) * scale * float(motif.counts[place][column]) / total
        if height >= 0.01 * _TALL:
            move = f"{_LEFT + place * _COLUMN + 1},{compact(base)}"
            stretch = f"{(_COLUMN - 2) / WIDTH:.3g},{compact(height)}"
            drawn.append(
                f'<use href=#g{motif.letters[column]} transform="translate({move})scale({stretch})"/>'
            )
            base -= height
    return "".join(drawn)


def _bits_axis(most: float) -> str:
    ticks = [0.0, most / 2, most]
    marks = "".join(
        f'<path class=axis d="M{_LEFT - 8} {compact(10 + _TALL * (1 - tick / most))}h5"/>'
        f'<text class="tick end" x={_LEFT - 11} y={compact(14 + _TALL * (1 - tick / most))}>'
        f"{number(tick, 2)}</text>"
        for tick in ticks
    )
    title = f'<text class="tick mid" transform="translate(11,{10 + _TALL // 2})rotate(-90)">bits</text>'
    return f'{marks}<path class=axis d="M{_LEFT - 3} 10v{_TALL}"/>{title}'


def _place_axis(places: int) -> str:
    labels = "".join(
        f'<text class="tick mid" x={_LEFT + place * _COLUMN + _COLUMN // 2} y={_TALL + 24}>{place + 1}</text>'
        for place in range(places)
    )
    middle = _LEFT + places * _COLUMN // 2
    return f'{labels}<text class="tick mid" x={middle} y={_TALL + 42}>place in the motif</text>'
