"""Identity against an alignment written down as a recurrence, and against counting by eye."""

import random
from itertools import product

import numpy as np
import pytest
from Bio.Align import PairwiseAligner, substitution_matrices

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.homology import similarity as candidates
from seqray.homology.similarity import (
    SENSITIVITY,
    KmerBits,
    SeedIndex,
    identity_function,
    make_plan,
    offsets,
    simulate,
)


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


PATTERNS = (offsets("1101"), offsets("10011"))


def random_sequences(n, shortest, longest, seed, letters="ACGTN"):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), rng.integers(shortest, longest + 1))) for _ in range(n)]


def spaced_words(sequence, places, unknown="N"):
    """Words of one pattern, whose window holds no unknown letter."""
    windows = (sequence[i : i + places[-1] + 1] for i in range(len(sequence) - places[-1]))
    return {"".join(w[p] for p in places) for w in windows if unknown not in w}


@pytest.mark.parametrize("identity", [0.6, 0.8, 1.0])
def test_the_mean_of_shared_words_is_its_closed_form(identity):
    """A word is shared where all its letters lie on the kept ones: drawing without replacement."""
    length, places = 60, offsets("110101")
    shared, words = simulate((places,), length, identity)
    kept = round(identity * length)
    chance = np.prod([(kept - i) / (length - i) for i in range(len(places))])
    assert words == length - 5
    assert shared.mean() == pytest.approx(words * chance, rel=0.05)


@pytest.mark.parametrize("alphabet", [DNA, PROTEIN])
def test_a_plan_finds_what_it_says(alphabet):
    lengths = np.full(500, 81)
    plan = make_plan(lengths, lengths, 0.8, alphabet)
    assert plan.sensitivity >= SENSITIVITY
    rng = np.random.default_rng(5)
    found = []
    for _ in range(400):  # pairs of its own, as strings
        one = rng.integers(0, len(alphabet.letters), 81)
        two = one.copy()
        changed = rng.choice(81, 16, replace=False)
        two[changed] = (two[changed] + 1) % len(alphabet.letters)
        a, b = (alphabet.decode(codes) for codes in (one, two))
        pairs = [(spaced_words(a, p, "X"), spaced_words(b, p, "X")) for p in plan.patterns]
        shared, words = sum(len(x & y) for x, y in pairs), sum(min(len(x), len(y)) for x, y in pairs)
        found.append(shared >= plan.share * words - 1e-9)
    assert np.mean(found) >= plan.sensitivity - 0.02


@pytest.mark.parametrize("turned", [False, True])
def test_shared_words_agree_with_sets(turned, monkeypatch):
    monkeypatch.setattr(candidates, "_CHUNK_LETTERS", 100)
    monkeypatch.setattr(candidates, "_BLOCK_PRODUCTS", 50)
    targets, queries = random_sequences(40, 0, 30, 1), random_sequences(30, 0, 30, 2)
    index = SeedIndex(targets, PATTERNS, DNA)
    found = {}
    for block in index.shared(queries, reverse=turned):
        for query, target, shared, words in zip(*(column.tolist() for column in block), strict=True):
            found[query, target] = shared, words
    expected = {}
    for q, query in enumerate(queries):
        letters = reverse_complement(query, DNA) if turned else query
        own = [spaced_words(letters, p) for p in PATTERNS]
        for t, target in enumerate(targets):
            shared = sum(len(a & spaced_words(target, p)) for a, p in zip(own, PATTERNS, strict=True))
            if shared:
                expected[q, t] = shared, sum(map(len, own))
    assert len(expected) > 100
    assert found == expected
    assert index.counts.tolist() == [sum(len(spaced_words(t, p)) for p in PATTERNS) for t in targets]


def test_a_crowded_word_is_looked_up_in_its_first_holders(monkeypatch):
    monkeypatch.setattr(candidates, "MAX_OWNERS", 3)
    index = SeedIndex(["ACGT"] * 5 + ["CCCC"], (offsets("1111"),), DNA)
    pairs = [
        (q, t) for block in index.shared(["ACGT", "CCCC"]) for q, t in zip(block[0], block[1], strict=True)
    ]
    assert sorted(pairs) == [(0, 0), (0, 1), (0, 2), (1, 5)]


@pytest.mark.parametrize("turned", [False, True])
def test_short_words_agree_with_sets(turned, monkeypatch):
    monkeypatch.setattr("seqray.homology.similarity._ROWS_AT_ONCE", 7)
    monkeypatch.setattr("seqray.homology.similarity._PAIRS_AT_ONCE", 11)
    sequences = random_sequences(25, 0, 60, 3)
    short = KmerBits(sequences, 3, DNA, both_strands=True)
    one, two = (side.ravel() for side in np.meshgrid(np.arange(25), np.arange(25)))
    places = (0, 1, 2)
    for a, b, value in zip(one, two, short.shared_fraction(one, two, turned), strict=True):
        x = spaced_words(sequences[a], places)
        y = spaced_words(reverse_complement(sequences[b], DNA) if turned else sequences[b], places)
        assert value == pytest.approx(
            len(x & y) / max(min(len(x), len(spaced_words(sequences[b], places))), 1)
        )
