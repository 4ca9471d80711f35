"""A sample of the training sequences on the card: what it recognizes, and how much it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seqray.calibration.signature import SAMPLE, TrainingSketch
from seqray.core.errors import ModelFileError


def words(first: int, last: int) -> list[str]:
    return [f"sequence {i}" for i in range(first, last)]


def on_card(model, facts):
    return TrainingSketch.of(replace(model.card, domain=model.card.domain | {"learned": facts}))


def test_of_few_training_sequences_every_one_is_recognized(tiny_model):
    sample = on_card(tiny_model, TrainingSketch.fit(words(0, SAMPLE) * 2).to_mapping())
    count = sample.count(words(SAMPLE - 60, SAMPLE + 140))
    assert (count.known, count.checked) == (60, 200)


def test_of_many_a_tenth_shows_the_share_of_them(tiny_model):
    facts = TrainingSketch.fit(words(0, 10 * SAMPLE)).to_mapping()
    assert len(facts["hashes"]) < 6000
    sample = on_card(tiny_model, facts)
    count = sample.count(words(8 * SAMPLE, 14 * SAMPLE))  # a third of them are training sequences
    assert abs(count.checked - 600) < 5 * 600**0.5
    assert abs(count.known - 200) < 5 * 200**0.5
    assert sample.count(words(10 * SAMPLE, 14 * SAMPLE)).known == 0
    whole = sample.count(words(0, 10 * SAMPLE))
    assert whole.known == whole.checked == SAMPLE


def test_a_card_without_a_sample_tells_nothing(tiny_model):
    assert TrainingSketch.of(tiny_model.card) is None


@pytest.mark.parametrize(
    "facts",
    [
        [],
        {},
        {"limit": 3, "hashes": "?"},
        {"limit": 3, "hashes": "AAA="},
        {"limit": 3, "hashes": "AwAAAA=="},
        {"limit": "3", "hashes": ""},
    ],
)
def test_a_damaged_sample_is_refused(tiny_model, facts):
    with pytest.raises(ModelFileError, match="'domain' can't be read"):
        on_card(tiny_model, facts)
