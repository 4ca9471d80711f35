"""The shell of a page without scripts: head with its policy, contents, header, sections, provenance."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from seqray.report.html.text import escape


def document(
    title: str,
    style: str,
    sections: Mapping[str, tuple[str, str]],
    summary: Mapping[str, str],
    provenance: Sequence[str],
) -> str:
    """Write a page of HTML that refers to nothing outside itself and runs nothing.

    Parameters
    ----------
    title
        Heading of the page; escaped here.
    style
        Rules beyond those of ``page.css``.
    sections
        Anchor of each section to its title and body, HTML already.
    summary
        Facts below the heading: name to HTML.
    provenance
        Lines that say how the page came about; escaped here.
    """
    lines = "".join(f"<li>{escape(line)}" for line in provenance)
    shown = dict(sections) | {
        "provenance": ("Provenance", f"<ul class=lines>{lines or '<li>none given'}</ul>")
    }
    links = "".join(f"<li><a href=#{anchor}>{heading}</a>" for anchor, (heading, _) in shown.items())
    facts = "".join(f"<div><dt>{name}<dd>{value}</div>" for name, value in summary.items())
    return (
        _head(title, files("seqray.report").joinpath("page.css").read_text(encoding="utf-8") + style)
        + f"<body><a class=skip href=#{next(iter(shown))}>Skip to the findings</a>\n"
        + "<nav aria-label=Contents><details open><summary>Contents</summary>"
        + f"<ul>{links}</ul></details></nav>\n"
        + f"<main><header class=top><h1>{escape(title)}</h1><dl class=summary>{facts}</dl></header>\n"
        + "".join(_section(anchor, heading, body) for anchor, (heading, body) in shown.items())
        + "</main></body></html>\n"
    )


def _head(title: str, style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n"
    )


def _section(anchor: str, heading: str, body: str) -> str:
    return (
        f"<section id={anchor} aria-labelledby={anchor}-title>"
        f"<h2 id={anchor}-title>{heading}</h2>{body}</section>\n"
    )
