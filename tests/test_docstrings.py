"""The examples in docstrings print what they say, and the names that they and the pages give exist."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import seqray

SOURCE = Path(seqray.__file__).parent
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_print_what_they_say(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted
    assert not found.failed


def test_names_of_the_package_in_docstrings_and_pages_exist():
    root = Path(__file__).parents[1]
    texts = [
        path for folder in ("src", "docs", "benchmarks", "data") for path in (root / folder).rglob("*.*")
    ]
    texts = [path for path in [*texts, *root.glob("*.md")] if path.suffix in (".py", ".pyi", ".md")]
    missing = []
    for path in texts:
        for name in re.findall(r"`(seqray(?:\.[A-Za-z_]\w*)+)[`(]", path.read_text(encoding="utf-8")):
            try:
                pkgutil.resolve_name(name)
            except (ImportError, AttributeError):
                missing.append(f"{path.relative_to(root)}: {name}")
    assert missing == []
