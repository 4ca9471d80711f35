"""Identity against an alignment written down as a recurrence, and against counting by eye."""

import random
from itertools import product

import pytest
from Bio.Align import PairwiseAligner, substitution_matrices

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.homology.alignment import identity_function


def recurrence(one, two, unknown="N"):
    """Best (score, identical letters) of an alignment with free ends: +2, -3, and -6 a gap letter."""
    cell = dict.fromkeys(product(range(len(one) + 1), range(len(two) + 1)), (0, 0))
    for i, j in product(range(1, len(one) + 1), range(1, len(two) + 1)):
        a, b = one[i - 1], two[j - 1]
        pair = (0, 0) if unknown in (a, b) else (2, 1) if a == b else (-3, 0)
        down, right = (0 if j == len(two) else -6), (0 if i == len(one) else -6)
        steps = [(cell[i - 1, j - 1], pair), (cell[i - 1, j], (down, 0)), (cell[i, j - 1], (right, 0))]
        cell[i, j] = max((s + ds, m + dm) for (s, m), (ds, dm) in steps)
    return cell[len(one), len(two)]


@pytest.mark.parametrize("letters", ["ACGT", "ACGTN", "AC"])
def test_identity_agrees_with_the_recurrence(letters):
    rng, identity = random.Random(1), identity_function(DNA)
    for _ in range(120):
        one, two = ("".join(rng.choices(letters, k=rng.randint(1, 16))) for _ in range(2))
        known = min(len(s) - s.count("N") for s in (one, two))
        expected = recurrence(one, two)[1] / known if known else 0.0
        assert identity(one, two) == pytest.approx(expected), (one, two)
        assert identity(two, one) == pytest.approx(expected)


def test_identity_by_eye():
    identity = identity_function(DNA)
    word = "ACGTTGCAAGGCTTACCATG"  # 20 letters
    assert identity(word, word) == 1
    assert identity(word, word[5:15]) == 1  # a fragment
    assert identity(word, "T" + word[1:]) == 19 / 20  # the first letter differs
    assert identity(word, word[:10] + word[11:]) == 1  # one letter lost: nothing of the shorter is unmatched
    assert identity(word[:15] + "AAAAA", "CCCCC" + word[:15]) == 15 / 20  # windows that overlap
    assert identity(word, word[:4] + "N" * 4 + word[8:]) == 1  # unknown letters are not held against it
    assert identity(word, "N" * 20) == 0
    assert identity("", word) == 0
    assert identity_function(RNA)("ACGU", "ACGU") == 1


def test_protein_counts_what_blosum62_aligns():
    """Score and identical pairs of the alignment that Biopython writes down."""
    plain = PairwiseAligner(
        mode="global",
        substitution_matrix=substitution_matrices.load("BLOSUM62"),
        open_gap_score=-12,
        extend_gap_score=-1,
    )
    plain.end_gap_score = 0
    rng, identity = random.Random(2), identity_function(PROTEIN)
    for _ in range(30):
        one = "".join(rng.choices(PROTEIN.letters, k=30))
        two = "".join(rng.choice(PROTEIN.letters) if rng.random() < 0.4 else a for a in one)
        two = two[: rng.randint(12, 20)] + two[22:]
        best = []
        for found in plain.align(one, two):  # all of the best score
            pairs = zip(*(str(row) for row in (found[0], found[1])), strict=True)
            best.append(sum(a == b for a, b in pairs))
        assert identity(one, two) == pytest.approx(max(best) / min(len(one), len(two)))
