"""Groups: what is tied to what, by hand."""

from __future__ import annotations

import random

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.datasets.negatives.make import Member, assign_groups


def random_letters(n: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=n))


def test_children_blocks_and_shared_words_are_tied():
    text = random_letters(1000, 0)
    members = [
        Member(text[:81]),
        Member(random_letters(81, 1), parent=0),
        Member(reverse_complement(text[40:121])),  # 41 letters in common with the first
        Member(random_letters(81, 2)),
        Member(random_letters(81, 3), contig="a", position=10),
        Member(random_letters(81, 4), contig="a", position=900),
        Member(random_letters(81, 5), contig="a", position=1100),
        Member(random_letters(81, 6), contig="b", position=10),
    ]
    assert assign_groups(members, 1000, DNA) == ["g1", "g1", "g1", "g2", "g3", "g3", "g4", "g5"]


def test_windows_that_overlap_across_a_border_stay_together():
    members = [Member(random_letters(81, i), contig="a", position=p) for i, p in enumerate((960, 1030, 2100))]
    assert assign_groups(members, 1000, DNA) == ["g1", "g1", "g2"]


def test_given_groups_stay_and_pass_to_children():
    text = random_letters(81, 0)
    members = [
        Member(text, given="x"),
        Member(text, given="y"),  # the user knows better
        Member(random_letters(81, 1), parent=1),
        Member(random_letters(81, 2)),
        Member(random_letters(81, 3), given="g1"),
    ]
    assert assign_groups(members, 1000, DNA) == ["x", "y", "y", "g2", "g1"]


def test_protein_and_nothing():
    assert assign_groups([], 1000, DNA) == []
    members = [Member("MKLV"), Member("VLKM", parent=0), Member("MKLV"), Member("MMMM")]
    assert assign_groups(members, 1000, PROTEIN) == ["g1", "g1", "g1", "g2"]
