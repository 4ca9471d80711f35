"""Negatives that `data/published_sets.py` adds: of what, how many, and on which side of a split."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from published_sets import BACKGROUND, PROMOTER, with_made_negatives
from seqray.core.records import LabeledSequence

RNG = np.random.default_rng(7)


def rows(splits: list[str | None]) -> list[LabeledSequence]:
    """A promoter and a background of each split, of 60 letters, each in a group of its own."""
    return [
        LabeledSequence("".join(RNG.choice(list("ACGT"), 60)), label, f"{label}{n}", f"{label}{n}", split)
        for n, split in enumerate(splits)
        for label in (PROMOTER, BACKGROUND)
    ]


def test_made_negatives_are_of_training_promoters_alone():
    given = rows(["train"] * 30 + ["validation"] * 5 + ["test"] * 5)
    found = with_made_negatives(given, Fraction(3, 5))
    assert found[: len(given)] == given
    made = found[len(given) :]
    assert Counter(e.subclass for e in made) == {"substitution": 12, "shuffle": 6}
    assert {(e.label, e.split) for e in made} == {(BACKGROUND, "train")}
    parents = {e.id: e for e in given if e.label == PROMOTER and e.split == "train"}
    for e in made:
        parent = parents[e.id.split(":")[1]]
        assert e.group == parent.group
        if e.subclass == "shuffle":
            assert Counter(e.sequence) == Counter(parent.sequence)
            assert e.sequence != parent.sequence


def test_without_a_split_some_groups_are_held_out_and_make_nothing():
    found = with_made_negatives(rows([None] * 100), Fraction(1))
    given, made = found[:200], found[200:]
    parts = Counter(e.split for e in given)
    assert parts["train"] + parts["validation"] == 200
    assert 24 <= parts["validation"] <= 25  # .12 of 200 groups, and the one that exceeds it
    held_out = {e.group for e in given if e.split == "validation"}
    assert held_out.isdisjoint(e.group for e in made)
