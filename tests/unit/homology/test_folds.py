"""Groups, folds and leakage against brute force on small sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.core.errors import InputError
from seqray.homology import kmers as shared_kmers
from seqray.homology.kmers import kmer_groups, kmer_table, position_groups
from seqray.homology.split import deal_groups, grouped_folds, random_folds


def random_sequences(n, length, seed, letters="ACGT"):
    rng = np.random.default_rng(seed)
    return ["".join(row) for row in np.array(list(letters))[rng.integers(0, len(letters), (n, length))]]


def groups_by_brute_force(sequences, k, both_strands=True):
    """Merge until nothing changes; number by first appearance."""
    group = list(range(len(sequences)))
    found = [kmers_of(s, k, both_strands) for s in sequences]
    for a, b in itertools.combinations(range(len(sequences)), 2):
        if found[a] & found[b]:
            old, new = max(group[a], group[b]), min(group[a], group[b])
            group = [new if g == old else g for g in group]
    numbers = {g: i for i, g in enumerate(dict.fromkeys(group))}
    return [numbers[g] for g in group]


@pytest.mark.parametrize("both_strands", [True, False])
@pytest.mark.parametrize("k", [6, 7])
def test_groups_agree_with_brute_force(k, both_strands):
    sequences = random_sequences(60, 14, seed=k)  # short words are shared by chance
    expected = groups_by_brute_force(sequences, k, both_strands)
    assert kmer_groups(sequences, k, both_strands).tolist() == expected
    assert 1 < len(set(expected)) < 60


def test_sequences_shorter_than_the_word_join_their_copies():
    assert kmer_groups(["ACGTT", "AACGT", "ACGT", "ACGTT", ""], 10).tolist() == [0, 0, 1, 0, 2]


def test_random_folds_share_each_class_evenly():
    labels = ["promoter"] * 52 + ["other"] * 203
    folds = random_folds(labels, 5, seed=7)
    for name in ("promoter", "other"):
        sizes = np.bincount(folds[np.array(labels) == name], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert (folds == random_folds(labels, 5, seed=7)).all()
    assert (folds != random_folds(labels, 5, seed=8)).any()


def test_grouped_folds_keep_groups_whole_and_classes_even():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 80, 600)
    labels = rng.random(600) < 0.25
    folds = grouped_folds(labels, groups, 5, seed=3)
    assert all(len(set(folds[groups == g])) == 1 for g in range(80))
    assert set(folds) == set(range(5))
    shares = [labels[folds == f].mean() for f in range(5)]
    assert max(shares) - min(shares) < 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kmer_groups(["ACGT"], 0), "k is 0"),
        (lambda: position_groups(["a"], [1], 0), "a block of 0 letters"),
        (lambda: random_folds([0, 0, 0, 1], 2), "2 folds from 1 examples in the smallest class"),
        (lambda: grouped_folds([0, 1, 0, 1], [1, 1, 2, 2], 3), "3 folds from 2 groups"),
        (lambda: deal_groups([0, 1], [1, 2], (0, 0)), "shares of"),
        (lambda: deal_groups([0, 1], [1, 2], (-1, 2)), "shares of"),
        (lambda: deal_groups([0, 1], [1, 2], (float("nan"), 2)), "shares of"),
        (lambda: deal_groups([0, 1], [1, 1], (1, 1)), "1 group can't fill 2 parts"),
    ],
)
def test_what_cannot_be_split_is_an_error_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()


# ------------------------------------------------------------------------------------------------ dealing


@pytest.mark.parametrize("shares", [(0.8, 0.1, 0.1), (7, 2, 1), (0.5, 0, 0.5), (1, 1, 1, 1, 1)])
def test_dealt_parts_have_their_shares_of_each_class(shares):
    rng = np.random.default_rng(1)
    groups = np.concatenate((rng.integers(0, 200, 900), np.arange(200, 1300)))
    labels = rng.random(2000) < 0.2
    part = deal_groups(labels, groups, shares, seed=4)
    assert all(len(set(part[groups == g])) == 1 for g in np.unique(groups[:900]))
    for label in (False, True):
        found = np.bincount(part[labels == label], minlength=len(shares)) / (labels == label).sum()
        assert found == pytest.approx(np.array(shares) / sum(shares), abs=0.01)
    assert (part == deal_groups(labels, groups, shares, seed=4)).all()
    assert (part != deal_groups(labels, groups, shares, seed=5)).any()


def test_a_large_group_lies_where_most_is_lacking():
    part = deal_groups(["a"] * 100, [0] * 60 + list(range(1, 41)), (0.7, 0.3))
    assert set(part[:60]) == {0}
    assert np.bincount(part).tolist() == [70, 30]


def test_no_part_stays_empty_while_there_are_groups():
    part = deal_groups(["a"] * 24, np.arange(24) // 8, (0.98, 0.01, 0.01))
    assert sorted(np.bincount(part)) == [8, 8, 8]
    part = deal_groups(["a", "b"] * 12, np.arange(24) // 2, (0.8, 0.1, 0.1))
    assert np.bincount(part).tolist() == [20, 2, 2]


def kmers_of(sequence, k, both_strands):
    if len(sequence) < k:
        found = {sequence}
    else:
        found = {sequence[i : i + k] for i in range(len(sequence) - k + 1)}
        found = {word for word in found if not set(word) & set("NX")}
    return found | {reverse_complement(word, DNA) for word in found} if both_strands else found


DNA_SETS = st.lists(st.text("ACGTN", min_size=1, max_size=30), min_size=2, max_size=12)
PROTEIN_SETS = st.lists(st.text("ACDEX", min_size=1, max_size=20), min_size=2, max_size=12)


@given(DNA_SETS, st.integers(1, 6), st.data())
def test_relatives_in_dna_agree_with_brute_force(sequences, k, data):
    check(sequences, k, DNA, data.draw(st.integers(1, len(sequences) - 1)))


@given(PROTEIN_SETS, st.integers(1, 4), st.data())
def test_relatives_in_protein_agree_with_brute_force(sequences, k, data):
    check(sequences, k, PROTEIN, data.draw(st.integers(1, len(sequences) - 1)))


def check(sequences, k, alphabet, cut):
    table = kmer_table(sequences, k, alphabet)
    found = [kmers_of(s, k, alphabet is DNA) for s in sequences]
    rows, others = np.arange(cut), np.arange(cut, len(sequences))
    across = [any(found[i] & found[j] for j in others) for i in rows]
    within = [any(found[i] & found[j] for j in others if j != i) for i in others]
    labels = np.arange(len(sequences)) % 2
    alike = [any(found[i] & found[j] for j in others if j != i and labels[i] == labels[j]) for i in others]
    assert table.sharing_within(others, labels).tolist() == alike
    assert table.sharing_across(rows, others).tolist() == across
    assert table.sharing_within(others).tolist() == within


def test_long_words_are_hashed_in_pieces_that_differ_at_every_place():
    rng = np.random.default_rng(0)
    base = "".join(rng.choice(list("ACGT"), 70))
    changed = [base[:i] + ("A" if base[i] != "A" else "C") + base[i + 1 :] for i in range(70)]
    table = kmer_table([base, *changed], 70, DNA)
    assert not table.sharing_across(np.arange(1), np.arange(1, 71)).any()
    assert len(np.unique(table.keys)) == 71
    turned = kmer_table([base, reverse_complement(base, DNA)], 70, DNA)
    assert turned.sharing_within(np.arange(2)).all()


def test_chunks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(1)
    sequences = ["".join(rng.choice(list("ACGTN"), rng.integers(1, 60))) for _ in range(50)]
    whole = kmer_table(sequences, 8, DNA)
    monkeypatch.setattr(shared_kmers, "_CHUNK_LETTERS", 100)
    pieces = kmer_table(sequences, 8, DNA)
    assert np.array_equal(whole.keys, pieces.keys)
    assert np.array_equal(whole.owners, pieces.owners)


def test_a_sample_of_kmers_still_finds_what_overlaps():
    rng = np.random.default_rng(2)
    genome = "".join(rng.choice(list("ACGT"), 20_000))
    windows = [genome[i : i + 200] for i in range(0, 19_800, 100)]  # each shares half with its neighbor
    table = kmer_table(windows, 20, DNA, most=8_000)
    assert len(table.keys) < 15_000
    assert table.sharing_within(np.arange(len(windows))).mean() > 0.95
