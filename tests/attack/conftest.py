"""Files that attacks begin with, and the count of what was tried."""

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import machine
from seqray.cli.main import main
from tables import write


@pytest.fixture(scope="session")
def attack_files(input_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """`input_files` and the shards of a scan, by name."""
    folder = tmp_path_factory.mktemp("attack-files")
    for name in ("genome.fa", "tiny.safetensors"):
        write(folder / name, input_files[name])
    scan = f"scan {folder}/genome.fa --model {folder}/tiny.safetensors --null-mb 0 --quiet".split()
    shards = {}
    for number, name in ((1, "one.shard"), (2, "two.shard")):
        assert main([*scan, "--shard", f"{number}/2", "--out", str(folder / name)]) == 0
        shards[name] = (folder / name).read_bytes()
    return input_files | shards


@pytest.fixture(scope="module")
def inputs(attack_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `attack_files`."""
    folder = tmp_path_factory.mktemp("inputs")
    for name, data in attack_files.items():
        write(folder / name, data)
    return folder


Tally = Callable[[str, bool], None]
COLUMNS = ("attack", "tries", "done_nevertheless", "wrong", "commit")
_TRIED: Counter[str] = Counter()
_DONE: Counter[str] = Counter()
_WRONG: Counter[str] = Counter()


@pytest.fixture(scope="session")
def tally() -> Tally:
    """Count a try of an attack; the second argument says whether the verb did its work nevertheless."""

    def count(attack: str, done: bool) -> None:
        _TRIED[attack] += 1
        _DONE[attack] += done
        write_counts()

    return count


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count a test that failed as a wrong try, under its own name: the attack may be unknown yet."""
    if report.failed:
        name = report.nodeid.rpartition("::")[2].partition("[")[0]
        _TRIED[name] += 1
        _WRONG[name] += 1


def pytest_sessionfinish() -> None:
    write_counts()


@cache
def _head() -> tuple[str, list[str]]:
    """The commit, and the first lines of the table."""
    _, *about = machine.describe([])
    return machine.commit(), ["# command: make attack", *(f"# {line}" for line in about), "\t".join(COLUMNS)]


def write_counts() -> None:
    """Write what was counted so far to the file that SEQRAY_ATTACKS names, as `make attack` does.

    Rows of attacks that this run did not try stay as an earlier run wrote them.
    """
    if not (name := os.environ.get("SEQRAY_ATTACKS")):
        return
    path, (commit, head) = Path(name), _head()
    old = path.read_text().splitlines() if path.exists() else []
    rows = {line.partition("\t")[0]: line for line in old if line.count("\t") == len(COLUMNS) - 1}
    rows.pop(COLUMNS[0], None)
    for attack, tried in _TRIED.items():
        rows[attack] = "\t".join(map(str, (attack, tried, _DONE[attack], _WRONG[attack], commit)))
    path.write_text("\n".join([*head, *(rows[attack] for attack in sorted(rows))]) + "\n")
