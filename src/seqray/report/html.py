"""Text and frame of HTML pages."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from unicodedata import category

import markupsafe
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seqray.core.card import Card, describe_card
from seqray.core.results import AuditFigure, Figure
from seqray.core.text import counted, format_number
from seqray.report.palette import palette_css

# --- Text and numbers of a page

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
    """Make text `clean`, and safe between tags and in quoted attributes; HTML already stays as it is."""
    return text if isinstance(text, Markup) else markupsafe.escape(clean(str(text)))


def name(text: object) -> Markup:
    """Escape a name from a file; letters written right to left do not reorder the text around it."""
    return Markup(f"<bdi>{escape(text)}</bdi>")


def number(value: float, digits: int = 3) -> str:
    """Round to significant digits; nan is ``n/a``."""
    if not math.isfinite(value):
        return MISSING
    text = format_number(value, digits).replace("-", MINUS)
    return text.replace(f"e{MINUS}0", f"e{MINUS}").replace("e+0", "e")


def decimals_for(largest: float) -> int:
    """Decimals that show three digits of the largest of a column."""
    if not (math.isfinite(largest) and largest > 0):
        return 2
    return min(9, max(0, 2 - math.floor(math.log10(largest))))


def fixed(value: float, decimals: int = 3) -> str:
    """Round to some decimals, so that a column lines up; nan is ``n/a``."""
    return f"{value:.{decimals}f}".replace("-", MINUS) if math.isfinite(value) else MISSING


def shown_value(figure: Figure | AuditFigure | None, decimals: int = 3) -> Markup:
    """Write a figure, and its interval below it in a table; ``n/a`` for none, and for nan."""
    if figure is None:
        return Markup(MISSING)
    value, low, high = (fixed(number, decimals) for number in (figure.value, figure.low, figure.high))
    return Markup(value if MISSING in (low, high) else f"{value} <small>{low} to {high}</small>")


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


def tick_label(x: float | str, y: float | str, text: object, anchor: str = "mid") -> str:
    """Write a small label, HTML already, whose middle (``mid``) or ``end`` is at a place, px."""
    return f'<text class="tick {anchor}" x={x} y={y}>{text}</text>'


# --- The page around all findings, filled from ``templates/page.html``, and tables in it

Sections = Mapping[str, tuple[str, str]]


def document(
    title: str, summary: Mapping[str, str], sections: Sections, provenance: Sequence[str], **parts: Any
) -> str:
    """Write a page that refers to nothing outside itself and runs at most its own script."""
    shown = {anchor: section for anchor, section in sections.items() if section[1].strip()}
    shown["provenance"] = ("Provenance", templates("parts.html").provenance(provenance))
    style = Markup(palette_css() + resource("style.css") + parts.pop("style", ""))
    page = _environment().get_template("page.html")
    return page.render(title=title, summary=summary, sections=shown, style=style, **parts)


def templates(file: str) -> Any:
    """The macros of a template, as functions that return `Markup`."""
    return _environment().get_template(file).module


def resource(file: str) -> Markup:
    """A file beside the templates, as it is."""
    return Markup(files("seqray.report").joinpath("templates", file).read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("seqray.report"),
        autoescape=True,
        finalize=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "digest": lambda text: f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}",
        "name": name,
        "number": number,
        "fixed": fixed,
        # the hyphen before each number of a sentence becomes a minus sign, as in `number`
        "minus": lambda text: re.sub(r"(?<![^ (])-(?=[\d.])", MINUS, text),
    }
    environment.globals |= {"table": table, "count": counted}
    return environment


def table(head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "", caption: str = "") -> Markup:
    """Lay out a table; end tags are implied, and a `Markup` cell may begin with its own ``<td>``."""

    def cell(text: str) -> str:
        return text if isinstance(text, Markup) and text.startswith("<td") else f"<td>{escape(text)}"

    columns = "".join(f"<th scope=col>{escape(text)}" for text in head)
    body = "".join("<tr>" + "".join(map(cell, row)) for row in rows)
    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    return Markup(f"<table{kind and f' class={kind}'}>{top}<thead><tr>{columns}<tbody>{body}</table>\n")


def wide_table(head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> Markup:
    """A table that scrolls where the window is narrower."""
    return Markup(f"<div class=scroll>{table(head, rows, kind)}</div>")


@dataclass(frozen=True, slots=True)
class ModelText:
    """What a page says of a model: its name, the summary and the lines that describe it."""

    name: str
    summary: str = ""
    lines: Sequence[str] = ()

    @classmethod
    def of(cls, card: Card) -> ModelText:
        """Describe a card."""
        return cls(card.name, card.summary, describe_card(card))


def card_section(model: ModelText) -> tuple[str, Markup]:
    """Show what the model is, and its limits."""
    return "Model description", templates("parts.html").card(model)
