"""What is measured of the data, on made-up data sets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seqray.core.alphabet import DNA
from seqray.core.records import LabeledSequence
from seqray.training.data_facts import data_cautions, has_site, measure_data


def random_windows(count: int, length: int, seed: int, letters: str = "ACGT") -> list[str]:
    codes = np.random.default_rng(seed).integers(len(letters), size=(count, length))
    return ["".join(letters[code] for code in row) for row in codes]


def test_windows_around_a_site_are_told_by_their_letters():
    background, others = random_windows(200, 30, 1), random_windows(200, 30, 2)
    sites = [window[:12] + "TATAAT" + window[18:] for window in others]
    assert has_site([background, sites], DNA)
    assert not has_site([background, others], DNA)
    moved = [window[i % 24 :] + window[: i % 24] for i, window in enumerate(sites)]
    assert not has_site([background, moved], DNA)  # the same letters in all windows, at any place
    # Other shares of letters are no site.
    assert not has_site([background, random_windows(200, 30, 3, "AACGT")], DNA)


def test_too_few_windows_show_no_site():
    assert not has_site([["ACGT"], ["TTTT"]], DNA)


def examples(*rows: tuple[str, str], **more: Any) -> list[LabeledSequence]:
    return [LabeledSequence(sequence, label, f"s{i}", **more) for i, (sequence, label) in enumerate(rows)]


def test_data_are_measured_without_their_test_part():
    data = examples(("ACGT", "a"), ("ACG", "b"), ("ACG", "b"))
    data += examples(("ACGTACGT", "a"), ("A", "c"), split="test", context="yeast")
    found = measure_data(data, DNA)
    assert (found.counts, found.shortest, found.longest, found.site) == ({"a": 1, "b": 2}, 3, 4, False)
    assert (found.total, found.one_length, found.contexts) == (3, False, ("yeast",))


def test_places_count_where_nine_in_ten_lengths_are_alike():
    rows = [(window, "a") for window in random_windows(200, 30, 1)]
    rows += [
        (window[:12] + "TATAAT" + window[18:] + "A" * (i % 5), "b") for i, (window, _) in enumerate(rows)
    ]
    found = measure_data(examples(*rows, ("ACG", "a")), DNA)
    assert (found.site, found.placed, found.longest) == (False, True, 34)
    unlike = [("A" * (i % 20) + sequence, label) for i, (sequence, label) in enumerate(rows)]
    assert not measure_data(examples(*unlike), DNA).placed


def test_copies_do_not_make_a_site():
    data = examples(*[("ACGTTGCA" * 4, "a"), ("TTGACCGA" * 4, "b")] * 100)
    assert not measure_data(data, DNA).site


def test_no_data_are_no_example():
    assert measure_data(examples(("ACGT", "a"), split="test"), DNA).total == 0


@pytest.mark.parametrize(("odd", "told"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_few_sequences_of_another_length_are_told(odd, told):
    data = [
        LabeledSequence(f"{i:07b}".replace("0", "A").replace("1", "C"), "ab"[i % 2], f"r{i}")
        for i in range(100)
    ]
    data[:odd] = [replace(one, sequence=one.sequence[:3], label="a") for one in data[:odd]]
    said = [text for text in data_cautions(data) if "another length" in text]
    what = f"{odd} sequence{'s' * (odd > 1)} of another length than the 7 letters of all others"
    assert [text.partition(":")[0] for text in said] == [f"{what}, such as 'r0' (3)"] * told


ROWS = [LabeledSequence(letters, "a", letters) for letters in ("ACGT", "AAAA", "CCCC")]
COPIES = [
    replace(row, id=f"t{i}", split="test", context="x" if i == 2 else None) for i, row in enumerate(ROWS)
]


def labels(*names):
    return [replace(ROWS[i], label=name) for i, name in enumerate(names)]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([*ROWS, *ROWS[:2]], "2 rows with the id, letters and label of an earlier one"),
        ([*ROWS, replace(ROWS[0], id="another")], None),
        (labels("nan", "none", "nan"), "the label 'nan' is a class like the others; if it stands for"),
        ([*ROWS, *COPIES], "2 test sequences of 3, such as 't0', with the letters of one that is learned"),
        ([ROWS[0], replace(ROWS[0], id="x", label="b")], "1 sequence with several labels, such as that of"),
        ([replace(ROWS[0], context="y"), replace(ROWS[0], label="b", context="x")], None),
    ],
)
def test_what_looks_like_a_mistake_is_told_and_nothing_else(data, told):
    said = list(data_cautions(data))
    assert len(said) == (told is not None)
    assert not said or told in said[0]
