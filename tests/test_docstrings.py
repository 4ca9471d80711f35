"""The examples in docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
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
