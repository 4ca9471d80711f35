"""The same bytes, whatever the threads, compression, line ends, case, locale, time zone and hash seed."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attack.victims import WRITING
from seqray.cli.main import main
from tables import bgzip

VERBS = ("predict", "scan", "explain", "split", "audit", "negatives")


def lower_case(data: bytes) -> bytes:
    """Letters of FASTA, not its headers."""
    return b"".join(line if line[:1] == b">" else line.lower() for line in data.splitlines(keepends=True))


WRITTEN: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bgzip": bgzip,
    "Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "old Mac": lambda data: data.replace(b"\n", b"\r"),
    "no last line end": lambda data: data.rstrip(b"\n"),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "lower case": lower_case,
}
SEQUENCES = ("promoter.fa", "genome.fa", "table.tsv")
COMPUTED = {
    "predict": ["--threads 2", "--threads 3 --batch-size 1", "--batch-size 7"],
    "scan": ["--threads 2", "--threads 3 --batch-size 1", "--batch-size 7"],
    "explain": ["--threads 2", "--threads 3"],
}


@pytest.fixture(scope="module")
def run(attack_files, tmp_path_factory) -> Callable[..., dict[str, bytes]]:
    """Run a verb in a new folder, with other bytes of its inputs and more options; gives its outputs."""

    def call(verb: str, change: Callable[[bytes], bytes] | None = None, more: str = "") -> dict[str, bytes]:
        folder = tmp_path_factory.mktemp(verb)
        for name, data in attack_files.items():
            (folder / name).write_bytes(change(data) if change and name in SEQUENCES else data)
        (folder / "work" / "out").mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder / "work")
            assert main([verb, *WRITING[verb].split(), *more.split(), "--quiet"]) == 0
        return outputs(folder / "work" / "out")

    return call


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def expected(run) -> dict[str, dict[str, bytes]]:
    return {verb: run(verb) for verb in VERBS}


CASES = [(verb, written) for verb in VERBS for written in WRITTEN]
CASES.remove(("audit", "lower case"))  # which an audit reports


@pytest.mark.parametrize(("verb", "written"), CASES)
def test_how_the_input_is_written_changes_no_byte(run, expected, verb, written, tally):
    assert run(verb, WRITTEN[written]) == expected[verb]
    tally(f"determinism: {written}", True)


def without_command(files: dict[str, bytes]) -> dict[str, list[bytes]]:
    """Text outputs without the line that names the command."""
    texts = {name: data for name, data in files.items() if name.endswith((".tsv", ".gff3"))}
    return {name: [s for s in data.splitlines() if b"command" not in s] for name, data in texts.items()}


@pytest.mark.parametrize(("verb", "more"), [(verb, more) for verb, all_ in COMPUTED.items() for more in all_])
def test_threads_and_batches_change_no_byte(run, expected, verb, more, tally):
    assert without_command(run(verb, more=more)) == without_command(expected[verb])
    tally("determinism: threads and batches", True)


PROGRAM = """
import json, os, sys
from seqray.cli.main import main
from tables import bgzip
for folder, words in json.loads(sys.argv[1]):
    os.chdir(folder)
    assert main(words) == 0
"""
SURROUNDINGS = [
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Kathmandu", "PYTHONUTF8": "0", "COLUMNS": "20"},
    {
        "PYTHONHASHSEED": "4294967295",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "America/St_Johns",
        "PYTHONIOENCODING": "ascii",
    },
    {"PYTHONHASHSEED": "7", "LANG": "de_DE@euro", "TZ": "", "PYTHONUTF8": "1", "HOME": "/nonexistent"},
]


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(SURROUNDINGS)))
def test_the_surroundings_change_no_byte(attack_files, expected, tmp_path, number, tally):
    for name, data in attack_files.items():
        (tmp_path / name).write_bytes(data)
    jobs = []
    for verb in VERBS:
        (tmp_path / verb / "out").mkdir(parents=True)
        jobs.append((str(tmp_path / verb), [verb, *WRITING[verb].split(), "--quiet"]))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LC_")}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)} | SURROUNDINGS[number]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(jobs)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    for verb in VERBS:
        assert outputs(tmp_path / verb / "out") == expected[verb]
        tally("determinism: locale, time zone, hash seed", True)
