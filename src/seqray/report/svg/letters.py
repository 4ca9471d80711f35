"""Letters as outlines, so that a logo needs no font: defined once in a page, stretched where used."""

from __future__ import annotations

from markupsafe import Markup

from seqray.core import Alphabet
from seqray.report.palette import letter_color

WIDTH = 11  # of a letter in a logo, px

# In a box of 100 by 100, y pointing down, filled even-odd.
_OUTLINES = {
    "A": "M0 100L38 0H62L100 100H79L71 77H29L21 100ZM35 60H65L50 17Z",
    "C": "M100 66C96 88 78 100 53 100C20 100 0 80 0 50C0 20 20 0 53 0C78 0 95 12 99 33H78C74 22 66 17 53 17"
    "C33 17 21 29 21 50C21 71 33 83 53 83C67 83 75 77 79 66Z",
    "D": "M0 0H45C80 0 100 18 100 50C100 82 80 100 45 100H0ZM21 17V83H44C67 83 79 72 79 50C79 28 67 17 44"
    " 17Z",
    "E": "M0 0H96V17H22V41H90V58H22V83H100V100H0Z",
    "F": "M0 0H100V17H22V42H92V59H22V100H0Z",
    "G": "M100 46V100H84L82 88C75 96 65 100 52 100C20 100 0 80 0 50C0 20 20 0 53 0C78 0 95 11 99 31H78"
    "C74 22 66 17 53 17C33 17 21 29 21 50C21 71 33 83 53 83C67 83 76 76 79 63H54V46Z",
    "H": "M0 0H22V40H78V0H100V100H78V58H22V100H0Z",
    "I": "M14 0H86V16H61V84H86V100H14V84H39V16H14Z",
    "K": "M0 0H22V40L70 0H99L47 43L100 100H72L31 57L22 65V100H0Z",
    "L": "M6 0H28V82H100V100H6Z",
    "M": "M0 0H25L50 55L75 0H100V100H80V32L58 82H42L20 32V100H0Z",
    "N": "M0 0H22L78 68V0H100V100H79L21 32V100H0Z",
    "P": "M0 0H58C86 0 100 12 100 33C100 54 86 66 58 66H22V100H0ZM22 17V49H56"
    "C71 49 78 44 78 33C78 22 71 17 56 17Z",
    "Q": "M50 0C82 0 100 18 100 47C100 61 96 72 88 80L100 90L87 100L73 90C66 93 59 94 50 94C18 94 0 76 0 47"
    "C0 18 18 0 50 0ZM50 17C31 17 21 28 21 47C21 66 31 77 50 77L58 76L47 68L58 56L73 67C77 62 79 55 79 47"
    "C79 28 69 17 50 17Z",
    "R": "M0 0H58C86 0 99 11 99 31C99 46 91 56 77 60L100 100H75L54 62H22V100H0ZM22 17V46H56C71 46 77 41 77 31"
    "C77 22 71 17 56 17Z",
    "S": "M95 30H74C72 21 64 16 50 16C36 16 28 20 28 28C28 35 33 38 48 41L60 43C86 48 98 57 98 72"
    "C98 90 80 100 51 100C21 100 3 88 1 67H22C24 78 33 84 51 84C67 84 76 80 76 73C76 66 71 63 55 60L43 58"
    "C18 53 6 44 6 29C6 11 22 0 49 0C77 0 94 11 95 30Z",
    "T": "M0 0H100V18H61V100H39V18H0Z",
    "U": "M0 0H22V58C22 75 31 83 50 83C69 83 78 75 78 58V0H100V60C100 86 82 100 50 100C18 100 0 86 0 60Z",
    "V": "M0 0H23L50 76L77 0H100L61 100H39Z",
    "W": "M0 0H19L30 68L42 10H58L70 68L81 0H100L82 100H61L50 44L39 100H18Z",
    "Y": "M0 0H25L50 42L75 0H100L61 60V100H39V60Z",
}
_BOX = "M0 0H100V100H0ZM14 14V86H86V14Z"  # for a letter that is not drawn above


def glyph_definitions(alphabet: Alphabet) -> Markup:
    """Define each letter twice, `WIDTH` wide and 1 high: ``gA`` stands on y = 0, ``ga`` hangs from it."""
    drawn = "".join(_pair(letter, letter_color(letter, alphabet)) for letter in alphabet.letters)
    return Markup(f"<svg class=defs width=0 height=0 aria-hidden=true><defs>{drawn}</defs></svg>")


def _pair(letter: str, color: str) -> str:
    outline = f'<path fill="{color}" fill-rule=evenodd d="{_OUTLINES.get(letter, _BOX)}"'
    size = f"scale({WIDTH / 100:g},.01)"
    return (
        f'<g id=g{letter}>{outline} transform="{size}translate(0,-100)"/></g>'
        f'<g id=g{letter.lower()}>{outline} transform="{size}"/></g>'
    )
