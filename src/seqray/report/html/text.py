"""Words and numbers as they stand on the page. Whatever comes from a file goes through `escape`."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from unicodedata import category

MINUS = "\N{MINUS SIGN}"
MISSING = "n/a"
_UNSEEN = ("Cc", "Cf", "Cs")


def escape(text: object) -> str:
    """Make text safe between tags and within quoted attributes.

    Control characters, halves of surrogate pairs and what turns the direction of writing become the
    replacement character.
    """
    plain = "".join(
        "\N{REPLACEMENT CHARACTER}" if category(letter) in _UNSEEN and letter not in "\n\t" else letter
        for letter in str(text)
    )
    return html.escape(plain, quote=True)


def name(text: object) -> str:
    """Escape a name from a file; letters written right to left don't reorder what stands around it."""
    return f"<bdi>{escape(text)}</bdi>"


def number(value: float, digits: int = 3) -> str:
    """Round to significant digits; nan is ``n/a``."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:.{digits}g}".replace("-", MINUS).replace(f"e{MINUS}0", f"e{MINUS}").replace("e+0", "e")


def decimals_for(largest: float) -> int:
    """Decimals that show three digits of the largest of a column."""
    if not (math.isfinite(largest) and largest > 0):
        return 2
    return min(9, max(0, 2 - math.floor(math.log10(largest))))


def fixed(value: float, decimals: int) -> str:
    """Round to some decimals, so that a column lines up; nan is ``n/a``."""
    return f"{value:.{decimals}f}".replace("-", MINUS) if math.isfinite(value) else MISSING


def offset(value: int) -> str:
    """Write a position relative to the site: ``-10``, ``0``, ``+5``."""
    return f"{value:+d}".replace("-", MINUS) if value else "0"


def count(items: int, one: str, many: str = "") -> str:
    """Write ``1 record``, ``2 records``."""
    return f"{items} {one if items == 1 else many or one + 's'}"


def compact(value: float) -> str:
    """Write a coordinate of a drawing with as few characters as a tenth of a pixel takes."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def table(head: Iterable[str], rows: Iterable[Iterable[str]], attributes: str = "", caption: str = "") -> str:
    """Lay out a table; its cells are HTML already. End tags that HTML implies are left out."""
    top = f"<caption>{caption}</caption>" if caption else ""
    columns = "".join(f"<th scope=col>{cell}" for cell in head)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) for row in rows)
    return f"<table{attributes}>{top}<thead><tr>{columns}<tbody>{body}</table>\n"


def _cell(cell: str) -> str:
    return cell if cell.startswith("<td") else f"<td>{cell}"
