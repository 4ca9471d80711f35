"""Groups and best matches against alignment of every pair, on planted families."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, RNA, reverse_complement
from seqray.core.errors import InputError
from seqray.homology import similarity
from seqray.homology.kmers import merge_groups
from seqray.homology.similarity import best_matches, homology_groups, identity_function


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
