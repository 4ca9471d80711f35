"""Targets of fuzzing: valid inputs are read, changed ones read or refused, and findings stay mended."""

import importlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import seqray.io
from fuzz import campaign
from fuzz.cases import all_cases
from fuzz.mutation import mutate_json, places_in
from fuzz.target import Target, examine
from seqray.core.errors import InputError

TARGETS = {
    target.name: target
    for file in campaign.FILES
    for target in importlib.import_module(f"fuzz.{file}").TARGETS
}
CASES = all_cases()


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_reads_its_seeds_and_refuses_what_is_changed(name, tmp_path):
    target, rng = TARGETS[name], random.Random(name)
    seeds, path = target.seeds(), tmp_path / f"input{target.suffix}"
    for seed in seeds:
        assert examine(target, seed, path) is None
    path.write_bytes(target.build(seeds[-1]))
    target.read(path)  # so the others, too, differ from a valid input by little
    for number in range(10):
        data = bytearray(rng.choice(seeds))
        if target.is_json:
            data = bytearray(mutate_json(bytes(data), number, 1 << 20))
        elif data:
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(4)] = rng.choice([*target.tokens, b"", b"\0", b"\xff", b"9" * 20])
        finding = examine(target, bytes(data), path)
        assert finding is None, finding.trace


@pytest.mark.parametrize(("name", "what", "data"), CASES, ids=[f"{name}: {what}" for name, what, _ in CASES])
def test_what_was_found_stays_mended(name, what, data, tmp_path):
    target = TARGETS[name]
    finding = examine(target, data, tmp_path / f"input{target.suffix}")
    assert finding is None, finding.trace


def test_every_reader_has_a_target():
    sources = "".join((campaign.Path(__file__).parent / f"{file}.py").read_text() for file in campaign.FILES)
    files = [path for folder in seqray.io.__path__ for path in Path(folder).glob("*.py")]
    readers = {
        name for path in files for name in re.findall(r"^def (read_\w+)", path.read_text(), re.MULTILINE)
    }
    # `read_rows` is that of every table, and the others read several files by what has a target.
    covered = set(re.findall(r"\bread_\w+", sources)) | {"read_rows", "read_labeled_fastas", "read_annotated"}
    assert readers <= covered


def fails(error: BaseException) -> Target:
    def read(path):
        raise error

    return Target("x", read, list)


def test_a_finding_is_what_is_not_refused_with_status_two(tmp_path, monkeypatch):
    path = tmp_path / "x"
    assert examine(fails(InputError("no")), b"", path) is None
    for error in (ValueError("no"), KeyError("x"), RecursionError(), MemoryError()):
        finding = examine(fails(error), b"", path)
        assert finding.what.startswith(type(error).__name__)
        assert finding.signature == examine(fails(error), b"", path).signature
    monkeypatch.setattr("fuzz.target.MEGABYTES", -1.0)
    assert "MB" in examine(Target("x", len_of, list), b"", path).what


ENDLESS = """
import sys
from pathlib import Path
from fuzz import target

def endless(path):
    while True:
        pass

target.SECONDS = 0.05
print(target.examine(target.Target("x", endless, list), b"", Path(sys.argv[1])).what)
"""


def test_a_reader_that_does_not_end_is_a_finding(tmp_path):
    """In a process of its own, as all tests of signals."""
    folders = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, str(tmp_path / "x")],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "hang" in done.stdout


def len_of(path):
    return len(path.read_bytes())


def test_mutated_json_is_json_and_repeats(tmp_path):
    data = json.dumps({"a": [1, "x", {"b": None}], "c": 0.5}).encode() + b"\nrest"
    made = [mutate_json(data, seed, 10_000) for seed in range(200)]
    assert made == [mutate_json(data, seed, 10_000) for seed in range(200)]
    assert len(set(made)) > 50
    for one in made:
        line, _, rest = one.partition(b"\n")
        assert rest == b"rest"
        json.loads(line)
    assert mutate_json(b"no json", 1, 100) == b"no json"
    assert len(list(places_in(json.loads(data.partition(b"\n")[0])))) == 6
