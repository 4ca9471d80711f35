"""Streams that are closed or full, limits, full disks: all outputs and 0, or none and one line."""

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attack.victims import WRITING, Victim
from forking import Ended, Forks

STREAMS = [
    (number, state) for number in "012" for state in ("closed", "full") if (number, state) != ("0", "full")
]
SPEAKS = {"audit", "evaluate"}  # whose summary goes to standard output


def assert_all_or_none(victim: Victim, ended: Ended) -> None:
    """Outputs are whole and the status is 0; or there are none, and one line says why."""
    found, litter = victim.outputs(), victim.litter()
    assert litter == []
    if ended.status == 0:
        assert found == victim.whole
        return
    assert (ended.status, found) == (2, {}), ended
    lines = ended.messages.splitlines()  # ONNX Runtime has some of its own where no file can be opened
    assert [line for line in lines if line.startswith("seqray: ")] == lines[-1:], ended
    assert lines[-1].startswith("seqray: error: "), ended
    assert "Traceback" not in ended.messages, ended


def verbs(fast: tuple[str, ...]) -> list[object]:
    """All verbs that write; those that are not ``fast`` in the long run only."""
    return [verb if verb in fast else pytest.param(verb, marks=pytest.mark.long) for verb in WRITING]


@pytest.mark.parametrize(("number", "state"), STREAMS)
@pytest.mark.parametrize("verb", verbs(("summary", "audit", "predict")))
def test_streams_that_are_closed_or_full(seqray_forks: Forks, inputs, verb, number, state, tally):
    victim = Victim(seqray_forks, verb, inputs / f"{verb}-{number}-{state}", quiet=False)
    victim.clear()
    ended = victim.run(streams={number: state})
    fails = number == "1" and verb in SPEAKS
    assert ended.status == (2 if fails else 0), ended
    if fails:
        assert ended.messages.splitlines()[-1].startswith("seqray: error: standard output: ")
        assert (victim.outputs(), victim.litter()) == ({}, [])
    else:
        assert (victim.outputs(), victim.litter()) == (victim.whole, [])
    tally(f"stream {number} {state}", not fails)


@pytest.mark.parametrize("count", [3, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("limit", ["FSIZE", "NOFILE", "AS"])
@pytest.mark.parametrize("verb", verbs(("summary", "predict")))
def test_limits_of_files_and_memory(seqray_forks: Forks, inputs, verb, limit, count, tally):
    rng = random.Random(f"{verb} {limit}")
    victim = Victim(seqray_forks, verb, inputs / f"{verb}-{limit}")
    largest = max(map(len, victim.whole.values()))
    for _ in range(count):
        victim.clear()
        # The message is written to a file, too, so a limit leaves room for it.
        bounds = {"FSIZE": (400, max(largest, 400) + 10), "NOFILE": (4, 40), "AS": (0, 60_000_000)}
        ended = victim.run(limits={limit: rng.randint(*bounds[limit])})
        assert_all_or_none(victim, ended)
        tally(f"limit {limit}", ended.status == 0)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[dict[str, int]]:
    """Mount a small disk on a folder, or where that is not allowed give a limit of the same effect."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield {"FSIZE": size}
        return
    try:
        yield {}
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("verb", verbs(("summary", "scan")))
def test_a_full_disk(seqray_forks: Forks, inputs, verb, tally):
    victim = Victim(seqray_forks, verb, inputs / f"{verb}-disk")
    victim.clear()
    with small_disk(inputs / f"{verb}-disk" / "out", 4096) as limits:  # one page
        ended = victim.run(limits=limits)
        assert_all_or_none(victim, ended)
        tally("full disk", ended.status == 0)
