"""Types of arguments: what each refuses."""

from __future__ import annotations

import pytest

from seqray.cli.verbs import parse
from seqray.core.errors import ConfigError


@pytest.mark.parametrize("option", ["--label-positive", "--label-negative"])
@pytest.mark.parametrize(
    ("label", "words"),
    [("", "'' is empty"), ("a\tb", r"'a\\tb' holds a tab"), ("#a", "'#a' begins with #")],
)
def test_a_label_can_be_written_to_a_table(option, label, words):
    with pytest.raises(ConfigError, match=f"{option}: {words}"):
        parse("negatives", ["p.fa", option, label])
