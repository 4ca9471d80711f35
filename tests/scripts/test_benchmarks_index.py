"""The index of the benchmarks names every script and every table of results."""

import re
from fnmatch import fnmatch
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAMED = set(re.findall(r"`([\w*.-]+\.(?:py|tsv|card\.json|json))`", (BENCHMARKS / "README.md").read_text()))


def test_every_script_is_named_and_exists():
    assert {name for name in NAMED if name.endswith(".py")} == {path.name for path in BENCHMARKS.glob("*.py")}


def test_every_table_of_results_is_named():
    patterns = [name for name in NAMED if not name.endswith(".py")]
    results = [path.name for path in (BENCHMARKS / "results").iterdir()]
    assert [name for name in results if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    unused = [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in results)]
    assert unused == []
