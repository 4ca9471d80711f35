"""The page around all findings, filled from ``templates/page.html``, and tables in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seqray.core import counted
from seqray.report.html.text import escape, fixed, name, number, with_minus
from seqray.report.palette import palette_css

Sections = Mapping[str, tuple[str, str]]


def document(
    title: str,
    summary: Mapping[str, str],
    sections: Sections,
    provenance: Sequence[str],
    **parts: Any,
) -> str:
    """Write a page that refers to nothing outside itself and runs at most its own script.

    Parameters
    ----------
    title
        Heading of the page.
    summary
        Facts below the heading: name to value.
    sections
        Anchor of each section to its heading and body; one with an empty body is left out.
    provenance
        Lines that say how the page was made.
    **parts
        ``style`` (rules beyond those of ``style.css``), ``script``, ``notes`` (warnings below the facts),
        ``contents`` (below the list of contents) and ``definitions`` (of drawings).

    Returns
    -------
    str
        The same for the same input. Text is escaped, unless it is `Markup`.
    """
    lines = templates("parts.html").provenance(provenance)
    shown = {anchor: section for anchor, section in sections.items() if section[1].strip()}
    style = Markup(palette_css() + resource("style.css") + parts.pop("style", ""))
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            summary=summary,
            sections=shown | {"provenance": ("Provenance", lines)},
            style=style,
            **parts,
        )
    )


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
        "digest": _digest,
        "name": name,
        "number": number,
        "fixed": fixed,
        "minus": with_minus,
    }
    environment.globals |= {"table": table, "count": counted}
    return environment


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def table(head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "", caption: str = "") -> Markup:
    """Lay out a table; end tags that HTML implies are left out.

    Parameters
    ----------
    head, rows
        Text of the cells; a cell that is `Markup` may begin with its own ``<td>``.
    kind
        Class of the table.
    caption
        Text above it.
    """
    columns = "".join(f"<th scope=col>{escape(cell)}" for cell in head)
    body = "".join("<tr>" + "".join(map(_cell, row)) for row in rows)
    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    return Markup(f"<table{kind and f' class={kind}'}>{top}<thead><tr>{columns}<tbody>{body}</table>\n")


def wide_table(head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> Markup:
    """A table that scrolls where the window is narrower.

    Parameters
    ----------
    head, rows, kind
        As for `table`.
    """
    return Markup(f"<div class=scroll>{table(head, rows, kind)}</div>")


def _cell(cell: str) -> str:
    return cell if isinstance(cell, Markup) and cell.startswith("<td") else f"<td>{escape(cell)}"
