"""Texts: numbers, names, settings in messages, labels, intervals."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit

from seqray.core.arrays import logistic, mark_intervals, pick_evenly
from seqray.core.card import Card
from seqray.core.errors import (
    ConfigError,
    InputError,
    ModelFileError,
    field_name,
    require,
    setting,
    settings_as_options,
)
from seqray.core.explanation import AlignmentScores, Curve, Motif
from seqray.core.labels import choose_positive, known_positive, label_faults, refuse_joined_labels
from seqray.core.model_config import ModelConfig
from seqray.core.records import LabeledSequence, SequenceRecord, parse_region
from seqray.core.results import Answers
from seqray.core.run_config import DataConfig
from seqray.core.text import class_counts, format_interval, format_number, round_number, truncate
from seqray.inference.origin import Reservoir


@pytest.mark.parametrize(
    "result",
    [
        SequenceRecord("chr1", "ACGT" * 100_000),
        LabeledSequence("ACGT" * 1000, "site", "a"),
        Curve("ism", "deletion", *(np.zeros(11) for _ in range(4))),
        Answers("model", "the model", np.random.default_rng(0).random((500, 2)), np.zeros(500, int)),
        AlignmentScores("rollout", False, np.zeros(90), np.zeros(20), np.zeros((20, 90))),
        Motif("motif_1", "ACGT", np.ones((6, 4)), np.ones(6), 9, np.zeros(9, int), "TATAAT"),
    ],
)
def test_a_result_shows_itself_in_a_line(result):
    shown = repr(result)
    assert shown.startswith(f"{type(result).__name__}(")
    assert len(shown) < 400
    assert "\n" not in shown


def test_numbers_have_six_significant_digits():
    assert [format_number(v) for v in (0.123456789, 1e-9, 2.0, 1234567.0)] == [
        "0.123457",
        "1e-09",
        "2",
        "1.23457e+06",
    ]
    assert format_number(0.5555, 2) == "0.56"
    assert round_number(0.123456789) == 0.123457
    assert round_number(0.123456789, 8) == 0.12345679


def test_intervals_are_written_where_they_are_known():
    assert format_interval(0.1, 0.25) == " (0.100 to 0.250)"
    assert format_interval(0.1, 0.25, ".2g") == " (0.1 to 0.25)"
    assert format_interval(math.nan, math.nan) == ""


@pytest.mark.parametrize(
    ("window", "rule", "kept"),
    [
        (4, "ends", "abhi"),
        (5, "ends", "abchi"),  # of an odd number the first half is the larger one
        (1, "ends", "a"),
        (4, "start", "abcd"),
        (9, "none", "abcdefghi"),
        (9, "ends", "abcdefghi"),
    ],
)
def test_kept_letters(window, rule, kept):
    assert truncate("abcdefghi", window, rule) == kept


def test_longer_ones_are_refused_without_a_rule():
    with pytest.raises(InputError, match="has 9 letters, more than 8; give truncate='ends'"):
        truncate("abcdefghi", 8, "none")


def test_windows_around_a_site_are_not_cut():
    with pytest.raises(ConfigError, match=r"'data.truncate' must be none where 'data.site' or 'flank'"):
        DataConfig(window=81, site=60, truncate="ends")
    names = {"name": "m", "classes": ("a", "b"), "positive": "a"}
    with pytest.raises(ModelFileError, match="'truncate' is not none beside a site"):
        Card(**names, window=9, site=3, truncate="ends", model=ModelConfig())


def test_classes_that_are_numbers_are_told_from_counts():
    assert class_counts({"background": 6, "promoter": 19}) == "6 background, 19 promoter"
    assert class_counts({"0": 6, "1": 19}) == "6 of class 0, 19 of class 1"


PAIRS = "yes no, y n, true false, t f, p n, pos neg, positive negative, + -, 1 0, 1.0 0.0, 1 -1, case control"
PAIRS += ", promoter background, site none, TATA nonTATA, bound un-bound, toxic not_toxic, amp other"


@pytest.mark.parametrize("pair", PAIRS.split(", "))
@pytest.mark.parametrize("written", [str, str.upper, str.title, " {} ".format])
def test_the_positive_class_of_a_usual_pair_is_known_in_any_order(pair, written):
    positive, negative = map(written, pair.split())
    for names in ([positive, negative], [negative, positive]):
        assert known_positive(names) == positive
        assert choose_positive(dict(zip(names, (1, 9), strict=True))) == positive


@pytest.mark.parametrize("pair", ["a b", "cytosol nucleus", "1 2", "p q", "missense nonsense", "Yes yes"])
def test_other_names_do_not_tell(pair):
    names = pair.split()
    assert known_positive(names) is None
    assert choose_positive({names[0]: 1, names[1]: 9}) is None


@pytest.mark.parametrize(
    ("counts", "positive"),
    [
        ({"background": 2, "sigma24": 5, "sigma70": 9}, "sigma24"),
        ({"0": 9, "1": 8, "2": 7}, "2"),  # of several classes 1 is a number like the others
        ({"only": 3}, "only"),
        ({}, None),
    ],
)
def test_the_positive_class_of_another_number_of_classes(counts, positive):
    assert choose_positive(counts) == positive


def faults(*names, split=None):
    return [
        fault.what for fault in label_faults([LabeledSequence("ACGT", n, "r", split=split) for n in names])
    ]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["site", "Site"], "the labels 'Site' and 'site' differ only in case, and are two classes"),
        (["1", "1.0"], "the labels '1' and '1.0' differ only by '.0'"),
        (["non-amp", "non amp"], "the labels 'non amp' and 'non-amp' differ only in spaces or signs"),
        (["caf\u00e9", "cafe\u0301"], "differ only in how their letters are encoded"),
        (["amp", "amp;"], "the labels 'amp' and 'amp;' differ only in spaces or signs"),
        (["NA", "x"], "the label 'NA' is a class like the others"),
        (["x", "n/a"], "the label 'n/a' is a class like the others"),
        (["a", "b", "a;b"], "the label 'a;b' names several classes"),
        (["a", "b", "none"], None),
        (["+", "-"], None),
    ],
)
def test_labels_that_look_like_a_mistake_are_told(names, told):
    said = faults(*names)
    assert len(said) == (told is not None)
    assert not said or told in said[0]


def test_a_label_of_the_test_part_alone_is_told():
    data = [LabeledSequence("ACGT", n, n, split="test" if n == "c" else None) for n in "abcc"]
    [fault] = label_faults(data)
    assert fault.what == "only the test part has the label 'c' (2 examples); the model can't predict it"
    assert faults("a", "b", split="test") == []  # nothing is learned from these data


@pytest.mark.parametrize("label", ["a;b", "a; b", "a|b", "a,b", "a/b", "a & b", "a+b"])
def test_several_labels_of_a_sequence_are_refused(label):
    with pytest.raises(InputError, match="names several classes; seqray learns one label a sequence"):
        refuse_joined_labels(Counter([label, "a", "b"]))


@pytest.mark.parametrize("names", [("a,b", "a"), ("AT/GC", "other"), ("gram+", "gram-"), ("x;", "y")])
def test_a_sign_in_the_name_of_a_class_is_no_list(names):
    refuse_joined_labels(names)


@pytest.mark.parametrize("part", ["0", "5-4", "1-" + "9" * 5000, "9" * 5000, "1-" + "9" * 19, ",-,"])
def test_an_impossible_region_is_refused(part):
    with pytest.raises(InputError, match="is no region"):
        parse_region(f"chr1:{part}")


def test_a_region_may_end_far_beyond_any_sequence():
    assert parse_region("chr1:1-" + "9" * 18).end == 10**18 - 1
    assert parse_region("chr1:0,010-0,020").start == 9


@pytest.mark.parametrize(
    ("text", "written"), [("c:11-1,020", "c:11-1020"), ("c:11", "c:11"), ("c", "c"), ("c:1", "c")]
)
def test_a_region_is_written_as_it_is_read(text, written):
    assert str(parse_region(text)) == written


@given(st.floats(-1e6, 1e6))
def test_the_logistic_function_is_that_of_scipy(log_odds):
    assert logistic(np.array([log_odds]))[0] == pytest.approx(expit(log_odds), rel=1e-12, abs=1e-200)


@given(st.integers(0, 50), st.integers(2, 60))
def test_items_are_picked_from_the_first_to_the_last(count, most):
    picked = pick_evenly(range(count), most)
    assert len(picked) == len(set(picked)) == min(count, most)
    assert picked == sorted(picked)
    if count:
        assert (picked[0], picked[-1]) == (0, count - 1)
        steps = np.diff(picked)
        assert not len(steps) or steps.max() - steps.min() <= 1


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(-10, 40), st.integers(0, 20)), max_size=5))
def test_positions_in_intervals_are_marked(length, intervals):
    starts = np.array([start for start, _ in intervals], dtype=np.int64)
    ends = np.array([start + size for start, size in intervals], dtype=np.int64)
    expected = [any(a <= i < b for a, b in zip(starts, ends, strict=True)) for i in range(length)]
    assert mark_intervals(starts, ends, length).tolist() == expected


def drawn(size, count, seed=0):
    reservoir = Reservoir(size, seed)
    for i in range(count):
        reservoir.offer(i)
    return reservoir.kept


def test_all_of_few_and_a_sorted_draw_of_many():
    assert drawn(5, 3) == [0, 1, 2]
    kept = drawn(5, 100)
    assert len(kept) == 5 == len(set(kept))
    assert kept == sorted(kept) == drawn(5, 100)


def test_every_thing_has_the_same_chance():
    counts = np.bincount(np.concatenate([drawn(5, 20, seed) for seed in range(2000)]), minlength=20)
    assert abs(counts - 500).max() < 5 * np.sqrt(500 * 0.75)


@pytest.mark.parametrize(
    ("arguments", "in_python", "as_option"),
    [
        (("duplicates", "rename"), "duplicates='rename'", "--duplicates rename"),
        (("genes", None), "genes=None", "--genes none"),
        (("species", "E. coli"), "species='E. coli'", "--species 'E. coli'"),
        (("prior", 0.7, ".2f"), "prior=0.70", "--prior 0.70"),
        (("codon_table", 4), "codon_table=4", "--codon-table 4"),
        (("threshold",), "threshold=...", "--threshold"),
    ],
)
def test_settings_are_written_as_their_user_knows_them(arguments, in_python, as_option):
    assert setting(*arguments) == in_python
    with settings_as_options({}):
        assert setting(*arguments) == as_option
    assert setting(*arguments) == in_python


def test_a_setting_whose_option_has_another_name():
    with settings_as_options({"circular_ids": "--circular-id"}):
        assert field_name("circular_ids") == "--circular-id"
    with pytest.raises(ConfigError, match="'circular_ids' must be"):
        require(False, "circular_ids", "must be")
