"""Groups, best matches and identity against an alignment of every pair, written down as a recurrence."""

import random
from itertools import product

import numpy as np
import pytest
from Bio.Align import PairwiseAligner, substitution_matrices
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, RNA, reverse_complement
from seqray.core.errors import InputError
from seqray.homology import similarity, similarity as candidates
from seqray.homology.kmers import merge_groups
from seqray.homology.similarity import (
    SENSITIVITY,
    KmerBits,
    SeedIndex,
    best_matches,
    homology_groups,
    identity_function,
    make_plan,
    offsets,
    simulate,
)


def mutated(codes, changes, letters, rng):
    """Change ``changes`` places of a sequence of codes."""
    copy = codes.copy()
    places = rng.choice(len(codes), changes, replace=False)
    copy[places] = (copy[places] + rng.integers(1, letters, changes)) % letters
    return copy


def planted(families, relatives, changes, length=81, alphabet=DNA, seed=0, turn=True):
    """Sequences and the family of each: an ancestor and its relatives, some on the other strand."""
    rng, letters = np.random.default_rng(seed), len(alphabet.letters)
    sequences, owner = [], []
    for family in range(families):
        ancestor = rng.integers(0, letters, length)
        for member in range(relatives + 1):
            codes = mutated(ancestor, changes if member else 0, letters, rng)
            sequence = alphabet.decode(codes)
            if turn and alphabet.is_nucleotide and member % 3 == 2:
                sequence = reverse_complement(sequence, alphabet)
            sequences.append(sequence)
            owner.append(family)
    return sequences, np.array(owner)


def identities(ones, twos, alphabet=DNA, both_strands=True):
    """Identity of all pairs, on the better strand: (N, M)."""
    measure = identity_function(alphabet)
    strands = [twos]
    if both_strands and alphabet.is_nucleotide:
        strands.append([reverse_complement(s, alphabet) for s in twos])
    return np.max([[[measure(a, b) for b in side] for a in ones] for side in strands], axis=0)


def pairs(groups):
    groups = np.asarray(groups)
    return groups[:, None] == groups[None, :]


@pytest.fixture
def only_words(monkeypatch):
    """Let no task be small enough to align all pairs."""
    monkeypatch.setattr(similarity, "_MAX_EXHAUSTIVE_CELLS", 0)


# ------------------------------------------------------------------------------------------------ groups


@pytest.mark.parametrize(("alphabet", "threshold", "changes"), [(PROTEIN, 0.6, 40), (RNA, 0.8, 15)])
def test_planted_families_of_other_alphabets(alphabet, threshold, changes):
    sequences, owner = planted(25, 3, changes, length=120, alphabet=alphabet)
    assert homology_groups(sequences, threshold, alphabet).tolist() == owner.tolist()


def test_groups_are_the_single_linkage_of_all_alignments():
    """Families of many grades of likeness, so that some pairs fall short of the threshold."""
    sequences = [s for changes in (6, 12, 15, 17, 20) for s in planted(4, 2, changes, seed=changes)[0]]
    linked = identities(sequences, sequences) >= 0.8
    reached = linked
    while (further := reached @ reached).sum() > reached.sum():
        reached = further
    assert 0.3 < np.mean(reached.sum(axis=1) == 1) + 0.3 < 1  # both kinds occur
    assert (pairs(homology_groups(sequences, 0.8)) == reached).all()


def test_unknown_letters_join_nothing_and_copies_join_always():
    [first, second], _ = planted(2, 0, 0)
    masked = first[:30] + "N" * 20 + first[50:]
    assert homology_groups([first, masked, second, "N" * 81, "N" * 60, "ACG", "ACG"]).tolist() == [
        0, 0, 1, 2, 3, 4, 4,
    ]  # fmt: skip


def test_runs_of_one_letter_and_many_copies_cost_little_and_join_nothing_else():
    sequences, owner = planted(30, 2, 6)
    repeats = ["A" * (80 + i) for i in range(20)] + ["CA" * (40 + i) for i in range(20)]
    mixed = [s[:50] + "A" * 31 for s in sequences[::3]]  # a common run makes no relatives
    groups = homology_groups([*sequences, *repeats, *mixed], 0.9)
    n = len(sequences)
    assert groups[:n].tolist() == owner.tolist()
    assert len(set(groups[n : n + 20])) == 1
    assert len(set(groups[n + 20 : n + 40])) == 1
    assert len({*groups[n + 40 :].tolist()} - {*owner.tolist()}) == len(mixed)


@pytest.mark.parametrize("identity", [0, -0.1, 1.01, float("nan")])
def test_a_threshold_out_of_range_is_refused(identity):
    with pytest.raises(InputError, match="an identity of"):
        homology_groups(["ACGT"], identity)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_order_and_strand_do_not_matter(seed, random):
    sequences = [s for c in (8, 14, 17) for s in planted(3, 2, c, length=60, seed=seed + c)[0]]
    order = list(range(len(sequences)))
    random.shuffle(order)
    turned = [reverse_complement(sequences[i], DNA) if random.random() < 0.5 else sequences[i] for i in order]
    expected = homology_groups(sequences, 0.75)[order]
    assert (pairs(homology_groups(turned, 0.75)) == pairs(expected)).all()


# ----------------------------------------------------------------------------------------- best matches


def test_small_sets_are_compared_in_full():
    train, _ = planted(6, 2, 10, length=50)
    test = [*planted(4, 1, 25, length=50, seed=9)[0], *train[3:5]]
    identity, index = best_matches(train, test)
    expected = identities(test, train)
    assert identity == pytest.approx(expected.max(axis=1))
    assert (index == expected.argmax(axis=1)).all()


@pytest.mark.parametrize("alphabet", [DNA, PROTEIN])
def test_the_relative_is_found_among_many(only_words, alphabet):
    sequences, _ = planted(60, 2, 18, alphabet=alphabet, seed=4)
    train, test = sequences[0::3] + sequences[1::3], sequences[2::3]
    identity, index = best_matches(train, test, alphabet)
    expected = identities(test, train, alphabet)
    assert (identity <= expected.max(axis=1) + 1e-12).all()
    related = expected.max(axis=1) >= 0.6
    assert related.sum() > 50
    assert (identity[related] == expected.max(axis=1)[related]).mean() > 0.99
    assert identity == pytest.approx(expected[np.arange(len(test)), index])  # what is claimed is so


def test_copies_on_either_strand_are_identical(only_words):
    train, _ = planted(20, 0, 0)
    test = [train[7], reverse_complement(train[11], DNA)]
    identity, index = best_matches([*train, train[7]], test)
    assert (identity.tolist(), index.tolist()) == ([1, 1], [7, 11])
    identity, index = best_matches(train, test, both_strands=False)
    assert (identity[0], index[0]) == (1, 7)
    assert identity[1] < 0.5


def test_what_cannot_be_aligned_has_no_match(only_words):
    train, _ = planted(10, 0, 0)
    identity, index = best_matches([*train, "N" * 30], ["", "N" * 30, train[0]])
    assert (identity.tolist(), index.tolist()) == ([0, 0, 1], [-1, -1, 0])
    assert best_matches([], train[:2])[1].tolist() == [-1, -1]
    assert best_matches(train, [])[0].shape == (0,)


# ------------------------------------------------------------------------------------------------ merging


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20))
def test_merged_groups_are_the_finest_that_hold_both(rows):
    one, two = (np.array(column) for column in zip(*rows, strict=True))
    together = pairs(one) | pairs(two)
    while ((further := together @ together) != together).any():
        together = further
    assert (pairs(merge_groups(one, two)) == together).all()


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
