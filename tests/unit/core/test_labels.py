"""Which of two labels is positive, and which labels look like a mistake."""

from collections import Counter

import pytest

from seqray.core.errors import InputError
from seqray.core.labels import choose_positive, known_positive, label_faults, refuse_joined_labels
from seqray.core.records import LabeledSequence

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
