"""Text and numbers of a page. Whatever comes from a file goes through `escape`."""

from __future__ import annotations

import math
import re
from unicodedata import category

import markupsafe
from markupsafe import Markup

from seqray.core import format_interval, format_number

MINUS = "\N{MINUS SIGN}"
MISSING = "n/a"
_INVISIBLE = ("Cc", "Cf", "Cs")


def clean(text: str) -> str:
    """Replace control characters, halves of surrogate pairs, and what turns the direction of writing."""
    if text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if category(letter) in _INVISIBLE and letter not in "\n\t" else letter
        for letter in text
    )


def escape(text: object) -> Markup:
    """Make text safe between tags and within quoted attributes; what is HTML already stays as it is.

    Control characters, halves of surrogate pairs and characters that turn the direction of writing become
    the replacement character.
    """
    if isinstance(text, Markup):
        return text
    return markupsafe.escape(clean(str(text)))


def name(text: object) -> Markup:
    """Escape a name from a file; letters written right to left do not reorder the text around it."""
    return Markup(f"<bdi>{escape(text)}</bdi>")


def number(value: float, digits: int = 3) -> str:
    """Round to significant digits; nan is ``n/a``."""
    if not math.isfinite(value):
        return MISSING
    text = format_number(value, digits).replace("-", MINUS)
    return text.replace(f"e{MINUS}0", f"e{MINUS}").replace("e+0", "e")


def with_minus(text: str) -> str:
    """Write the hyphen before each number of a sentence as a minus sign, as `number` does."""
    return re.sub(r"(?<=[ (])-(?=[\d.])", MINUS, text)


def decimals_for(largest: float) -> int:
    """Decimals that show three digits of the largest of a column."""
    if not (math.isfinite(largest) and largest > 0):
        return 2
    return min(9, max(0, 2 - math.floor(math.log10(largest))))


def fixed(value: float, decimals: int = 3) -> str:
    """Round to some decimals, so that a column lines up; nan is ``n/a``."""
    return f"{value:.{decimals}f}".replace("-", MINUS) if math.isfinite(value) else MISSING


def interval(low: float, high: float, decimals: int = 3) -> str:
    """Write an interval behind its value, in parentheses; empty where there is none.

    Parameters
    ----------
    low, high
        Bounds; nan where there are none.
    decimals
        Of both.
    """
    return format_interval(low, high, f".{decimals}f").replace("-", MINUS)


def offset(index: int) -> str:
    """Write an index relative to the site, as biologists count: ``-1`` lies before ``+1``, the site."""
    return f"{index + (index >= 0):+d}".replace("-", MINUS)


def offset_ticks(low: int, high: int, step: int) -> list[int]:
    """Indices from ``low`` up to ``high`` that `offset` writes as ``+1`` or as a multiple of a step."""
    return [index for index in range(low, high) if index == 0 or (index + (index > 0)) % step == 0]


def compact(value: float) -> str:
    """Write a coordinate of a drawing to a tenth of a pixel, with as few characters as possible."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
