"""Every verb that writes, stopped at any moment: all outputs or none, and the next run leaves no litter."""

import random
import signal

import pytest

from attack.arguments import arguments
from attack.victims import WRITING, Victim

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
