"""What the site consists of besides the pages in ``docs/``: pages made from the package, pages from elsewhere
in the repository, and links between them all.

A page is written for readers of the repository, too, so its links are paths of files. Where such a file is on
the site, the link leads to its page there; otherwise the site shows the path.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

import cli_reference
import model_pages
import seqray

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
COPIES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"} | {
    page.relative_to(ROOT).as_posix(): page.parent.relative_to(ROOT).as_posix() + ".md"
    for pattern in (
        "data/README.md",
        "data/example/README.md",
        "workflows/*/README.md",
        "packaging/README.md",
    )
    for page in sorted(ROOT.glob(pattern))
}
# Modules whose parts are meant to be used one by one, besides the names of `import seqray`.
MODULES = {
    "Sequences": (
        "core.alphabet",
        "core.records",
        "models.tokenizers",
    ),
    "Genes": (
        "genome.genes",
        "genome.find",
    ),
    "Splits, figures, baselines": (
        "homology.kmers",
        "homology.split",
        "homology.similarity",
        "metrics.classification",
        "metrics.baselines",
    ),
    "Networks": (
        "core.run_config",
        "models.batches",
        "models.attention",
        "models.layers",
        "models.sequence",
    ),
    "Models as files": ("core.card", "modelfile.model", "modelfile.file", "modelfile.header"),
    "Probabilities": (
        "calibration.fit",
        "calibration.conformal",
        "calibration.domain",
    ),
    "Use": (
        "inference.sequences",
        "scanning.scan",
        "scanning.options",
        "scanning.scorers",
        "scanning.results",
        "explanations.sequences",
        "explanations.rollout",
    ),
}
LINK = re.compile(
    r"(?<!\!)\[([^\]\[]+(?:\[[^\]]*\])?[^\]\[]*)\]\((?!https?:|mailto:|#)([^)#\s]*)(#[^)\s]*)?\)"
)
FENCE = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)


def generated() -> dict[str, str]:
    """Address within the site and Markdown of every page that isn't a file in ``docs/``."""
    pages = {
        "reference/cli.md": cli_reference.page(),
        "reference/api.md": _api(),
        "reference/modules.md": _modules(),
    }
    pages |= model_pages.pages()
    pages["decisions/index.md"] = _decisions()
    for source, uri in COPIES.items():
        pages[uri] = (ROOT / source).read_text(encoding="utf-8")
    return pages


def _api() -> str:
    head = "# Python\n\nWhat `import seqray` offers. PyTorch is loaded when a name is first used.\n"
    return head + "".join(f"\n::: {module}.{name}\n" for name, module in _homes().items())


def _homes() -> dict[str, str]:
    """Public names of `import seqray`, with the module that defines each."""
    names = (name for name in dir(seqray) if name != "__version__")
    return {name: getattr(seqray, name).__module__ for name in names}


def _modules() -> str:
    head = "# Modules\n\nParts of use one by one; [architecture](../architecture.md) lists all of them.\n"
    groups = (f"\n## {title}\n" + "".join(map(_module, names)) for title, names in MODULES.items())
    return head + "".join(groups)


def _module(name: str) -> str:
    """A module with its public parts, but those that stand on the page of `import seqray`."""
    source = (ROOT / "src/seqray" / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
    defined = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    elsewhere = {part for part, module in _homes().items() if module == f"seqray.{name}"}
    members = [node.name for node in defined if node.name[0] != "_" and node.name not in elsewhere]
    return f"\n::: seqray.{name}\n    options:\n      heading_level: 3\n      members: {members}\n"


def _decisions() -> str:
    head = "# Decisions\n\nOne short record for each decision that somebody may want to undo.\n\n"
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    pages.append(DOCS / "decisions" / "tried.md")
    return head + "\n".join(f"- [{_title(page)}]({page.name})" for page in pages) + "\n"


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def source_of(uri: str) -> str:
    """The file of the repository that a page of the site is made from; made-up pages lie where they would."""
    return {target: source for source, target in COPIES.items()}.get(uri, f"docs/{uri}")


def for_site(text: str, uri: str, pages: set[str]) -> str:
    """Rewrite a page of the repository for the site: links, and the marks of blocks that are run.

    Parameters
    ----------
    text
        Markdown.
    uri
        Its address within the site.
    pages
        Addresses of all pages and images of the site.
    """
    folder = posixpath.dirname(source_of(uri))

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        place = COPIES.get(path) or path.removeprefix("docs/")
        for candidate in (place, f"{place}/index.md"):
            if candidate in pages and (candidate in COPIES.values() or path.startswith("docs/")):
                return f"[{words}]({posixpath.relpath(candidate, posixpath.dirname(uri) or '.')}{anchor})"
        return words if posixpath.basename(path) in words else f"{words} (`{path}`)"

    parts = FENCE.split(text)
    prose = [part if n % 2 else LINK.sub(link, part) for n, part in enumerate(parts)]
    return re.sub(r"^```console run$", "```console", "".join(prose), flags=re.MULTILINE)
