"""Divisions that keep relatives together, and a proof that equals brute force."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.homology.kmers import named_groups, positions_from_ids
from seqray.homology.options import RelationOptions, SplitOptions
from seqray.homology.similarity import Related, find_relatives, identity_function
from seqray.homology.split import (
    QUANTILES,
    assign_parts,
    leaking_pairs,
    measure_boundaries,
    proof_lines,
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
        lines = proof_lines(boundary, labels, 0.7)
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
