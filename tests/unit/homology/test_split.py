"""Groups, folds and divisions that keep relatives together; the proof and leakage against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.homology import kmers as shared_kmers
from seqray.homology.kmers import kmer_groups, kmer_table, named_groups, position_groups, positions_from_ids
from seqray.homology.options import RelationOptions, SplitOptions
from seqray.homology.similarity import Related, find_relatives, identity_function
from seqray.homology.split import (
    QUANTILES,
    assign_parts,
    deal_groups,
    grouped_folds,
    leaking_pairs,
    measure_boundaries,
    proof_lines,
    random_folds,
    split_data,
)

RELATION = RelationOptions(0.8, 20)


def family_data(families=12, relatives=2, length=50, changes=4, seed=0):
    """Labeled families: an ancestor and relatives with so many letters changed."""
    rng = np.random.default_rng(seed)
    data = []
    for family in range(families):
        ancestor = rng.integers(0, 4, length)
        for member in range(relatives + 1):
            codes = ancestor.copy()
            places = rng.choice(length, changes if member else 0, replace=False)
            codes[places] = (codes[places] + 1) % 4
            data.append(LabeledSequence(DNA.decode(codes), "ab"[family % 2], f"{family}.{member}"))
    return data


def singles(labels):
    return [LabeledSequence("A", label, str(i)) for i, label in enumerate(labels)]


def parts_of(division):
    return [split or fold for split, fold in zip(division.split, division.fold, strict=True)]


cases = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), min_size=12, max_size=60)


@settings(max_examples=60)
@given(cases, st.integers(0, 5), st.sampled_from([0, 2, 3]))
def test_no_group_is_divided_and_every_example_is_placed(rows, seed, folds):
    groups, labels = zip(*rows, strict=True)
    groups = find_relatives(["A"] * len(rows), DNA, RelationOptions(0, 0), {"g": np.array(groups)}).groups
    if len(set(groups.tolist())) < 3:
        return
    division = assign_parts(singles(labels), groups, SplitOptions(folds=folds, seed=seed, shares=(1, 1, 1)))
    placed = parts_of(division)
    assert None not in placed
    for group in set(groups.tolist()):
        assert len({placed[i] for i in np.flatnonzero(groups == group)}) == 1
    assert set(placed) == (set(range(1, folds + 1)) if folds else {"train", "validation", "test"})


@settings(max_examples=60)
@given(cases, st.sampled_from(["drop", "join"]), st.integers(0, 3))
def test_kept_examples_stay_and_their_relatives_never_face_them(rows, relatives, seed):
    groups, labels = zip(*rows, strict=True)
    data = [
        LabeledSequence("A", label, "x", split="test" if i < 4 else None) for i, label in enumerate(labels)
    ]
    options = SplitOptions(keep=("test",), relatives=relatives, seed=seed, shares=(1, 0, 1))
    division = assign_parts(data, np.array(groups), options)
    assert division.split[:4] == ["test"] * 4
    near = [group in groups[:4] for group in groups[4:]]
    if relatives == "drop":
        assert division.dropped[4:].tolist() == near
        assert "test" not in division.split[4:]
    else:
        assert not division.dropped.any()
        assert [split == "test" for split in division.split[4:]] == near


def test_the_proof_equals_brute_force():
    data = family_data(changes=14)  # related, but not so much as to be grouped
    division = assign_parts(data, np.arange(len(data)), SplitOptions(shares=(0.5, 0.2, 0.3)))
    boundaries = measure_boundaries(data, division, DNA, SplitOptions(), RELATION)
    assert [b.name for b in boundaries] == ["test", "validation"]
    measure = identity_function(DNA)
    for boundary, others in zip(boundaries, [("train", "validation"), ("train",)], strict=True):
        rows = [i for i, split in enumerate(division.split) if split == boundary.name]
        rest = [i for i, split in enumerate(division.split) if split in others]
        assert (boundary.rows.tolist(), boundary.others.tolist()) == (rows, rest)
        table = np.array(
            [
                [
                    max(
                        measure(data[i].sequence, data[j].sequence),
                        measure(reverse_complement(data[i].sequence, DNA), data[j].sequence),
                    )
                    for j in rest
                ]
                for i in rows
            ]
        )
        assert boundary.identity == pytest.approx(table.max(axis=1))
        words = [{data[j].sequence[k : k + 20] for k in range(31)} for j in range(len(data))]
        words = [found | {reverse_complement(word, DNA) for word in found} for found in words]
        assert boundary.shared.tolist() == [any(words[i] & words[j] for j in rest) for i in rows]
        labels = [example.label for example in data]
        lines = list(proof_lines(boundary, labels, 0.7))
        assert [line.label for line in lines] == ["all", "a", "b"]
        assert lines[0].highest == pytest.approx(table.max())
        assert table[rows.index(lines[0].row), rest.index(lines[0].nearest)] == pytest.approx(table.max())
        assert lines[0].quantiles == pytest.approx(np.quantile(table.max(axis=1), QUANTILES))
        assert lines[0].above == (table.max(axis=1) >= 0.7 - 1e-9).sum()
        for line in lines[1:]:
            own = [r for r, i in enumerate(rows) if labels[i] == line.label]
            assert (line.sequences, line.highest) == (len(own), pytest.approx(table[own].max()))
            assert line.shared == boundary.shared[own].sum()


def test_what_the_groups_missed_is_found_by_the_proof_and_moved():
    """Groups that know of no relative, as if the search had missed them all."""
    data = family_data(families=20)
    blind = Related(np.arange(len(data)))
    before = assign_parts(data, blind.groups, SplitOptions())
    assert any(
        len(leaking_pairs(b, 0.8)[0]) for b in measure_boundaries(data, before, DNA, SplitOptions(), RELATION)
    )
    division = split_data(data, blind, DNA, SplitOptions(), RELATION)
    assert division.mended > 0
    assert not any(len(leaking_pairs(boundary, 0.8)[0]) for boundary in division.boundaries)
    anew = measure_boundaries(data, division, DNA, SplitOptions(), RELATION)
    assert [b.name for b in anew] == [b.name for b in division.boundaries]
    for fresh, kept in zip(anew, division.boundaries, strict=True):
        assert (fresh.rows == kept.rows).all()
        assert (fresh.others == kept.others).all()
        assert kept.identity == pytest.approx(fresh.identity)
        assert (kept.shared == fresh.shared).all()


def test_relatives_of_kept_training_examples_are_learned_from_too():
    data = [LabeledSequence("A", "a", "x", split="train" if i < 2 else None) for i in range(20)]
    groups = np.array([0, 1, 0, 0, *range(2, 18)])
    division = assign_parts(data, groups, SplitOptions(keep=("train",)))
    assert division.split[:4] == ["train"] * 4
    assert "train" not in division.split[4:]
    assert not division.dropped.any()


def test_kept_test_with_folds_is_measured_against_all_folds():
    data = [
        LabeledSequence(e.sequence, e.label, e.id, split="test" if i < 9 else None)
        for i, e in enumerate(family_data())
    ]
    related = find_relatives([example.sequence for example in data], DNA, RELATION)
    division = split_data(data, related, DNA, SplitOptions(folds=3, keep=("test",)), RELATION)
    assert [boundary.name for boundary in division.boundaries] == ["fold 1", "fold 2", "fold 3", "test"]
    assert division.fold[:9] == [None] * 9
    assert division.boundaries[-1].others.tolist() == list(range(9, 36))


# ---------------------------------------------------------------------------------------------- relations


def test_relations_are_joined_and_counted():
    one, two, three = (e.sequence for e in family_data(families=3, relatives=0))
    sequences = [one, two[:30] + one[:20], three, "T" * 50]
    found = find_relatives(sequences, DNA, RELATION, {"the same gene": named_groups(["", "x", None, "x"])})
    assert found.groups.tolist() == [0, 0, 1, 0]
    assert np.bincount(found.groups).tolist() == [3, 1]
    assert list(found.reasons.values()) == [
        "joins 2 examples in 1 groups, the largest of 2",
        "joins 0 examples in 0 groups, the largest of 1",
        "joins 2 examples in 1 groups, the largest of 2",
    ]
    assert find_relatives(sequences, DNA, RelationOptions(0, 0)).groups.tolist() == [0, 1, 2, 3]


def test_places_in_ids():
    ids = ["chr1:1234", "NC_000913.3:77:+", "chr2:10-91(-)", "a:b:5:-", "chrX:3-9:+:promoter"]
    contigs, positions = positions_from_ids([LabeledSequence("A", "x", name) for name in ids])
    assert contigs == ["chr1", "NC_000913.3", "chr2", "a:b", "chrX"]
    assert positions.tolist() == [1234, 77, 10, 5, 3]
    with pytest.raises(InputError, match="record 'gene7': the id is not a position"):
        positions_from_ids([LabeledSequence("A", "x", name) for name in ("chr1:5", "gene7")])


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


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize(
    ("shares", "groups", "held"),
    [
        ((0.8, 0.1, 0.1), 1, {0}),
        ((0.8, 0.1, 0.1), 2, {0, 2}),  # learned and tested
        ((0.8, 0.1, 0.1), 3, {0, 1, 2}),
        ((0.8, 0.1, 0.1), 5, {0, 1, 2}),
        ((0.9, 0, 0.1), 2, {0, 2}),
        ((1, 1, 1, 1), 4, {0, 1, 2, 3}),
    ],
)
def test_a_class_of_few_groups_is_in_as_many_parts_as_it_can(shares, groups, held, size):
    labels = np.repeat(["a", "b"], [100, groups * size])
    of = np.concatenate([np.arange(100), 100 + np.arange(groups * size) // size])
    for seed in range(5):
        part = deal_groups(labels, of, shares, seed=seed)
        assert set(part[100:]) == held
        assert all(len(set(part[of == group])) == 1 for group in np.unique(of))
        assert set(part[:100]) == set(np.flatnonzero(shares))


def test_a_group_of_two_classes_leaves_no_part_without_one_of_them():
    labels = ["a"] * 4 + ["a", "b"] * 2 + ["a"] * 8  # b in two groups that hold a, too
    part = deal_groups(labels, [0, 1, 2, 3, 4, 4, 5, 5, *range(6, 14)], (0.8, 0.2))
    by_class = [{p for p, label in zip(part, labels, strict=True) if label == name} for name in "ab"]
    assert by_class == [{0, 1}, {0, 1}]


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
