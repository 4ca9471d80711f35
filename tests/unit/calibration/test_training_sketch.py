"""A sample of the training sequences on the card: what it recognizes, and how much it takes."""

from __future__ import annotations

import pytest

from seqray.calibration.signature import SAMPLE, count_in_sketch, make_sketch
from seqray.core.card_parts import Sketch
from seqray.core.errors import ConfigError
from seqray.core.serialization import from_mapping


def words(first: int, last: int) -> list[str]:
    return [f"sequence {i}" for i in range(first, last)]


def test_of_few_training_sequences_every_one_is_recognized():
    count = count_in_sketch(make_sketch(words(0, SAMPLE) * 2), words(SAMPLE - 60, SAMPLE + 140))
    assert (count.known, count.checked) == (60, 200)


def test_of_many_a_tenth_shows_the_share_of_them():
    sample = make_sketch(words(0, 10 * SAMPLE))
    assert len(sample.hashes) < 6000
    count = count_in_sketch(sample, words(8 * SAMPLE, 14 * SAMPLE))  # a third of them are training sequences
    assert abs(count.checked - 600) < 5 * 600**0.5
    assert abs(count.known - 200) < 5 * 200**0.5
    assert count_in_sketch(sample, words(10 * SAMPLE, 14 * SAMPLE)).known == 0
    whole = count_in_sketch(sample, words(0, 10 * SAMPLE))
    assert whole.known == whole.checked == SAMPLE


@pytest.mark.parametrize(
    "facts",
    [
        {"limit": 3, "hashes": "?"},
        {"limit": 3, "hashes": "AAA="},
        {"limit": 3, "hashes": "AwAAAA=="},
        {"limit": "3", "hashes": ""},
    ],
)
def test_a_damaged_sample_is_refused(facts):
    with pytest.raises(ConfigError):
        from_mapping(Sketch, facts)
