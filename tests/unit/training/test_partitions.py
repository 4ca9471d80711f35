"""Checks of the data, and a validation part that shares nothing with training."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.training.partitions import count_related, data_sha256, hold_out, partition, related_groups


def example(sequence: str, label: str = "promoter", **fields) -> LabeledSequence:
    return LabeledSequence(sequence, label, **({"id": "x"} | fields))


def test_classes_are_sorted_with_the_positive_last(motif_task, make_config):
    data = [replace(e, label={"background": "zebra"}.get(e.label, e.label)) for e in motif_task(40)]
    parts = partition(data, make_config())
    assert parts.classes == ("zebra", "promoter")
    assert [parts.classes[k] for k in parts.labels] == [e.label for e in data]
    assert partition(data, make_config(), ["promoter", "zebra"]).classes == ("promoter", "zebra")


def test_about_the_share_of_each_class_is_held_out_and_the_seed_decides(motif_task, make_config):
    data = motif_task(400)
    parts = partition(data, make_config(data={"validation": 0.2}))
    assert parts.counts() == {
        "train": {"background": 160, "promoter": 160},
        "validation": {"background": 40, "promoter": 40},
    }
    assert sorted([*parts.train, *parts.validation]) == list(range(400))
    assert count_related(data, parts, DNA) == 0
    assert set(partition(data, make_config(data={"validation": 0.2}, seed=2)).validation) != set(
        parts.validation
    )


def test_relatives_stay_on_one_side(motif_task, make_config):
    """Copies, copies on the other strand and groups, chained: each chain lies wholly on one side."""
    data = []
    for i, e in enumerate(motif_task(200)):
        data.append(replace(e, group=f"g{i}" if i % 3 == 0 else None))
        if i % 2:
            data.append(replace(e, sequence=reverse_complement(e.sequence), group=f"g{i + 2}"))
        if i % 5 == 0:
            data.append(replace(e))
    parts = partition(data, make_config())
    sides = [{}, {}]
    for side, rows in zip(sides, (parts.train, parts.validation), strict=True):
        for row in rows:
            letters = min(data[row].sequence, reverse_complement(data[row].sequence))
            side[letters] = side[data[row].group or letters] = True
    assert not set(sides[0]) & set(sides[1])
    assert count_related(data, parts, DNA) == 0
    assert 0.08 < len(parts.validation) / len(data) < 0.25


def test_an_empty_name_is_no_group():
    data = [example(letters, group="") for letters in ("AAAA", "ACGT", "TTTT")]
    assert related_groups(data, DNA).tolist() == [0, 1, 0]  # AAAA and TTTT are strands of one sequence


def test_relatives_are_chained_and_only_nucleotides_pair():
    data = [
        example("AACC", group="a"),
        example("GGTT"),
        example("CCCC", group="a"),
        example("ACAC"),
        example("GGGG", group="b"),
    ]
    groups = related_groups(data, DNA)
    assert len({*groups[[0, 1, 2, 4]]}) == 1  # copy on the other strand, group, and again
    assert groups[3] not in groups[[0, 1, 2, 4]]
    assert len({*related_groups(data, PROTEIN)}) == 4


@settings(deadline=None, max_examples=40)
@given(st.integers(20, 200), st.integers(1, 60), st.sampled_from([0.1, 0.3, 0.6]), st.integers(0, 5))
def test_groups_are_held_out_whole(count, n_groups, share, seed):
    rng = np.random.default_rng(seed)
    groups, labels = rng.integers(0, n_groups, count), rng.integers(0, 2, count)
    held = hold_out(labels, groups, share, seed)
    assert not set(groups[held]) & set(groups[~held])


@pytest.mark.parametrize("share", [0.1, 0.15, 0.3, 0.35, 0.45, 0.8])
def test_the_share_that_is_held_out_is_the_one_asked_for(share):
    groups, labels = np.arange(900) // 3, np.arange(900) % 3 == 0
    assert hold_out(labels, groups, share, 2).mean() == pytest.approx(share, abs=0.01)


def test_two_examples_of_a_class_go_one_to_each_part(motif_task, make_config):
    data = [e for e in motif_task(40) if e.label == "background"]
    data += [e for e in motif_task(4, seed=9) if e.label == "promoter"]
    counts = partition(data, make_config()).counts()
    assert counts["train"]["promoter"] == counts["validation"]["promoter"] == 1


def test_a_split_in_the_data_is_taken_and_test_is_left_alone(motif_task, make_config):
    names = ["train", None, "validation", "test"]
    data = [replace(e, split=names[i // 2 % 4]) for i, e in enumerate(motif_task(80))]
    parts = partition(data, make_config())
    assert {data[i].split for i in parts.train} == {"train", None}
    assert {data[i].split for i in parts.validation} == {"validation"}
    assert Counter(len(rows) for rows in (parts.train, parts.validation)) == {40: 1, 20: 1}
    only_test = [replace(e, split="test" if i < 20 else "train") for i, e in enumerate(motif_task(80))]
    held = partition(only_test, make_config())
    assert min(*held.train, *held.validation) == 20


def test_relatives_across_a_given_split_are_counted(motif_task, make_config):
    data = [replace(e, split="train") for e in motif_task(20)]
    data += [replace(e, split="validation") for e in motif_task(10, seed=5)]
    data += [replace(e, sequence=reverse_complement(e.sequence), split="validation") for e in data[:3]]
    assert count_related(data, partition(data, make_config()), DNA) == 3


def test_what_cannot_be_trained_on_is_refused(motif_task, make_config):
    data, config = motif_task(40), make_config()
    one_label = [e for e in data if e.label == "promoter"]
    cases = [
        ([], "no example to train on"),
        ([replace(e, split="test") for e in data], "no example to train on"),
        (one_label, "all examples have the label 'promoter'"),
        ([*one_label, example("A" * 40, "background")], "label 'background' has one example; give two"),
        ([replace(e, file="a.tsv") for e in one_label], "a.tsv: all examples have the label 'promoter'"),
        ([*one_label, *[example("A" * 40, "a\tb")] * 2], r"the label 'a\tb' holds a tab, a line break"),
        ([replace(e, split="dev") for e in data], "unknown split 'dev'; give train, validation, test"),
        ([e for e in data if e.label == "background"], "no example has the positive class 'promoter'; set"),
        ([*data, example("A" * 41, id="long")], "record 'long': holds 41 letters, more than 'data.window'"),
        (
            [*data, example("A" * 41, id="long"), example("A" * 99), example("A" * 42)],
            "record 'long': holds 41 letters, more than 'data.window' (40), and so do 2 others",
        ),
        ([*data, example("", id="none")], "record 'none': holds no letters"),
        ([replace(e, sequence="N" * 40) for e in data], "no training sequence holds an unambiguous letter"),
        ([replace(e, group="one") for e in data], "copies and examples of one group stay together, and"),
        (
            [replace(e, split="validation" if e.label == "promoter" else "train") for e in data],
            "the train part holds no example of class 'promoter'; name some in the column 'split'",
        ),
    ]
    for bad, message in cases:
        with pytest.raises(InputError) as error:
            partition(bad, config)
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a b", "a_b"), "labels 'a b' and 'a_b' would share the column p_a_b of predictions"),
        (("other", "all"), "label 'all' is what 'seqray evaluate' calls the figures over all classes"),
        (("macro", "other"), "label 'macro' is what"),
        (("a|", "other"), "label 'a|' can't be named in a set (--coverage)"),
        (("a|b", "other"), "label 'a|b' names several classes"),
    ],
)
def test_names_that_tables_cannot_keep_apart_are_refused(motif_task, make_config, names, message):
    data = [*motif_task(20), *(example("ACGT" * 10, name) for name in names for _ in range(4))]
    with pytest.raises(InputError) as error:
        partition(data, make_config(model={"classes": 4}))
    assert message in str(error.value)


def test_the_content_hash_sees_everything_but_identifiers():
    data = [example("ACGT"), example("GGTT", "background", group="a", split="train")]
    same = [replace(e, id="other") for e in data]
    others = [
        data[::-1],
        [data[0], replace(data[1], group="b")],
        [data[0], replace(data[1], split=None)],
        [data[0], replace(data[1], label="promoter")],
        [replace(data[0], sequence="ACGA"), data[1]],
    ]
    assert data_sha256(data) == data_sha256(same)
    assert len({data_sha256(d) for d in (data, *others)}) == 6


@pytest.mark.parametrize("families", [1, 40])
def test_sequences_that_share_words_are_held_out_together_where_groups_are_enough(families, make_config):
    """Each sequence of a family is one of its windows of 40 letters, moved by one letter."""
    rng = np.random.default_rng(5)
    ancestors = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(families)]
    data = [
        example(ancestors[i % families][i // families % 20 :][:40], ("background", "promoter")[i // 40 % 2])
        for i in range(160)
    ]
    data = [replace(one, id=str(i)) for i, one in enumerate(data)]
    parts = partition(data, make_config(data={"validation": 0.25}))
    together = {i % families for i in parts.train} & {i % families for i in parts.validation}
    assert len(together) == (families == 1)
    assert (count_related(data, parts, DNA) == 0) == (families == 40)
