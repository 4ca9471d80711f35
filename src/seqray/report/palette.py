"""All colors of the pages and figures: CSS, SVG and matplotlib take theirs from here.

The hues differ in lightness too, so that people who cannot tell red from green can tell them apart.
"""

from __future__ import annotations

from enum import StrEnum

from seqray.core.alphabet import Alphabet


class Color(StrEnum):
    """Named colors; ``style.css`` has each as a custom property, such as ``--ink``."""

    PAPER = "#ffffff"
    WASH = "#f5f7f9"
    PALE = "#eceff3"
    FAINT = "#dfe4ea"
    BORDER = "#b8c0ca"
    EDGE = "#8a94a0"
    SOFT = "#55606e"
    DIM = "#3c4653"
    INK = "#1b2430"
    NAVY = "#1d4f91"
    BLUE = "#1f5fb0"
    TEAL = "#0f7f86"
    VIOLET = "#6a4fb3"
    DEEP_VIOLET = "#2b1b5a"
    PURPLE = "#8e3b86"
    ORANGE = "#d97706"
    VERMILION = "#c2410c"
    BROWN = "#7a5b2e"


# What the hues mean on every page and in every figure.
SUPPORT, OPPOSE, SHARE = Color.BLUE, Color.ORANGE, Color.VIOLET

_BASES = {"A": Color.TEAL, "C": Color.NAVY, "G": Color.ORANGE, "T": Color.PURPLE, "U": Color.PURPLE}
_RESIDUES = {
    "DE": Color.VERMILION,  # acidic
    "KRH": Color.NAVY,  # basic
    "STNQ": Color.TEAL,  # polar
    "GPC": Color.ORANGE,  # special
    "FWY": Color.PURPLE,  # aromatic
    "AVLIM": Color.DIM,  # aliphatic
}
_STEP = 0.12  # share of color in the palest level; the darkest of six has six times as much
_LEVELS = {"123456": SHARE, "ABCDEF": SUPPORT, "abcdef": OPPOSE}


def letter_color(letter: str, alphabet: Alphabet) -> Color:
    """Color of a base, or of an amino acid by its chemistry."""
    if alphabet.is_nucleotide:
        return _BASES.get(letter, Color.DIM)
    return next((color for group, color in _RESIDUES.items() if letter in group), Color.DIM)


def components(color: str) -> tuple[int, int, int]:
    """``#1d4f91`` as numbers."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def tint(color: str, share: float) -> str:
    """Mix a share of a color with white."""
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in components(color))


def level_colors() -> dict[str, str]:
    """Background of the letters of each level, see `write_levels`."""
    return {
        character: tint(color, _STEP * step)
        for characters, color in _LEVELS.items()
        for step, character in enumerate(characters, start=1)
    }


def palette_css() -> str:
    """Custom properties for ``style.css``, and a rule for each level."""
    colors = {color.name: color.value for color in Color}
    colors |= {"support": SUPPORT, "oppose": OPPOSE, "share": SHARE}
    colors |= {"support-tint": tint(SUPPORT, 0.15), "oppose-tint": tint(OPPOSE, 0.15)}
    properties = "".join(f"--{name.lower().replace('_', '-')}:{value};" for name, value in colors.items())
    levels = "".join(f".l{key}{{--s:{value}}}" for key, value in level_colors().items())
    return f":root{{{properties}}}\n{levels}\n"
