"""Hooks of MkDocs: pages made at build time, links of the repository, folders in the navigation, a check."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads a hook by its path
import site_pages

# What a browser fetches by itself; a link is only followed when somebody clicks it.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*?\ssrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\srel=["']?(?:stylesheet|preconnect|preload|icon|dns-prefetch))"""
    r"""[^>]*?\shref=["']?((?:https?:)?//[^"'\s>]+)"""
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write ``folder/*`` in the navigation out: the pages of the folder that it doesn't name itself."""
    pages = {page.relative_to(site_pages.DOCS).as_posix() for page in site_pages.DOCS.rglob("*.md")}
    pages |= set(site_pages.generated())
    config.nav = _expand(config.nav, pages - _named(config.nav))
    return config


def _named(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(_named, parts))


def _expand(nav: Any, pages: set[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _expand(part, pages) for title, part in nav.items()}
    if not isinstance(nav, list):
        return nav
    written = []
    for part in nav:
        if isinstance(part, str) and part.endswith("/*"):
            written += sorted(page for page in pages if page.rpartition("/")[0] == part[:-2])
        else:
            written.append(_expand(part, pages))
    return written


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the package and from elsewhere in the repository."""
    for uri, text in site_pages.generated().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make the links of the repository links of the site."""
    return site_pages.for_site(markdown, page.file.src_uri, {file.src_uri for file in files})


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would fetch something from elsewhere.

    Raises
    ------
    PluginError
        Naming the page and the address.
    """
    for page in Path(config.site_dir).rglob("*.html"):
        found = FETCHED.search(page.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{page.name} fetches {found[1] or found[2]}")
