"""Every verb that writes, stopped at any moment: all outputs or none, and the next run leaves no litter."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from attack.arguments import arguments
from attack.victims import WRITING, Victim
from seqray.modelfile.file import load_model_file

STATUS = {signal.SIGTERM: (143, -15), signal.SIGINT: (130, -2), signal.SIGKILL: (-9,)}


def test_every_verb_that_writes_is_killed():
    assert {a.verb for a in arguments() if a.takes == "output" and a.name == "--out"} == set(WRITING)


TRIES = [
    pytest.param(verb, count, marks=pytest.mark.long if count > 1 else ())
    for verb in WRITING
    for count in (1, 40)
]


@pytest.mark.parametrize(("verb", "count"), TRIES)
def test_a_killed_verb_leaves_all_outputs_or_none(seqray_forks, inputs, verb, count, tally):
    rng = random.Random(f"{verb} {count}")
    victim = Victim(seqray_forks, verb, inputs / verb)
    assert victim.litter() == []
    for _ in range(count):
        number = rng.choice(list(STATUS))
        old = dict.fromkeys(victim.whole, b"old") if rng.random() < 0.5 else {}
        victim.clear()
        victim.put(old)
        share = rng.choice([rng.random(), rng.uniform(0.8, 1.05)])  # often when outputs appear
        ended = victim.run(signal=number, delay=share * victim.seconds)
        found = victim.outputs()
        assert ended.status in (0, *STATUS[number]), (number, ended)
        assert ended.messages.count("\n") <= 1, ended
        if number is signal.SIGKILL and victim.litter():  # it may be between two outputs, and says so
            assert victim.run().status == 0
            assert victim.outputs() == victim.whole
        elif ended.status == 0:
            assert found == victim.whole
        else:
            assert found in (old, victim.whole), ended
        assert victim.litter() == []
        tally(f"kills of {verb} by {number.name}", ended.status == 0)


def whole_search(folder: Path) -> bool:
    """Whether a model lies there with the table of the search that ended with it, and its settings."""
    table = (folder / "a.safetensors.search.tsv").read_text().splitlines()
    header, *rows = [line.split("\t") for line in table if not line.startswith("#")]
    states = [row[header.index("state")] for row in rows]
    trainings = load_model_file(folder / "a.safetensors").card.training["search"]["trainings"]
    return states.count("chosen") == 1 and len(rows) == trainings and (folder / "b.yaml").exists()


@pytest.mark.parametrize("count", [1, pytest.param(40, marks=pytest.mark.long)])
def test_a_killed_search_leaves_its_best_or_nothing(seqray_forks, inputs, count, tally):
    rng, folder = random.Random(count), inputs / "search"
    victim = Victim(seqray_forks, "train", folder, "--budget 8steps")
    names = set(victim.whole)
    for _ in range(count):
        number = rng.choice(list(STATUS))
        old = dict.fromkeys(names, b"old") if rng.random() < 0.5 else {}
        victim.clear()
        victim.put(old)
        ended = victim.run(signal=number, delay=rng.uniform(0, 1.05) * victim.seconds)
        assert ended.status in (0, *STATUS[number]), (number, ended)
        if number is signal.SIGKILL and victim.litter():
            assert victim.run().status == 0
        found = victim.outputs()
        assert found == old or (set(found) == names and whole_search(folder / "out")), ended
        assert victim.litter() == []
        tally(f"kills of train --budget by {number.name}", ended.status == 0)
