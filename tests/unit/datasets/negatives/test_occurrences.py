"""Where positives stand, against a search letter by letter."""

from __future__ import annotations

import random

import pytest

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.records import SequenceRecord
from seqray.datasets.negatives import genome as occurrences
from seqray.datasets.negatives.genome import Genome, find_occurrences


def random_letters(n: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=n))


def brute_force(positives, text, k=24) -> set[int]:
    """Letters of the text that belong to a word of a positive, plain or reverse complement."""
    covered = set()
    for positive in positives:
        size = min(k, len(positive))
        for letters in (positive, reverse_complement(positive)):
            for i in range(len(letters) - size + 1):
                word = letters[i : i + size]
                at = -1 if "N" in word else text.find(word)
                while at >= 0:
                    covered |= set(range(at, at + size))
                    at = text.find(word, at + 1)
    return covered


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_every_letter_of_a_positive_is_found_on_both_strands(monkeypatch, block):
    monkeypatch.setattr(occurrences, "BLOCK", block)
    text = random_letters(2000, 1)
    changed = text[1300:1330] + ("A" if text[1330] != "A" else "C") + text[1331:1381]
    positives = [
        text[100:181],
        reverse_complement(text[400:481]),
        text[150:231],  # overlaps the first
        text[900:909],  # shorter than a word
        changed,  # one letter differs
        random_letters(81, 2),  # from elsewhere
        text[1500:1540] + "N" + text[1541:1581],
        text[1950:2000],  # the very end
        text[:30],  # the very beginning
    ]
    found = find_occurrences(positives, Genome.of([SequenceRecord("c", text)], DNA))
    covered = {i for start, end in found.covered.pairs() for i in range(start, end)}
    assert covered == brute_force(positives, text)
    assert set(range(100, 231)) | set(range(400, 481)) <= covered
    places = found.places.tolist()
    assert places[5] == -1
    for place, (start, end) in zip(
        places, [(100, 181), (400, 481), (150, 231), (900, 909), (1300, 1381)], strict=False
    ):
        assert start <= place < end


def test_a_positive_that_stands_twice_covers_both_places():
    unit = random_letters(50, 3)
    text = random_letters(100, 4) + unit + random_letters(100, 5) + reverse_complement(unit)
    found = find_occurrences([unit], Genome.of([SequenceRecord("c", text)], DNA))
    assert found.covered.pairs() == [(100, 150), (250, 300)]


def test_no_positive_has_words():
    found = find_occurrences(["NNNN", "N" * 50], Genome.of([SequenceRecord("c", "ACGT" * 10)], DNA))
    assert found.covered.pairs() == []
    assert found.places.tolist() == [-1, -1]
