"""What the types of arguments take and refuse; a word of thousands of digits costs nothing."""

from __future__ import annotations

import argparse

import pytest

from seqray.cli.main import parse
from seqray.cli.options import whole_number
from seqray.core.errors import ConfigError


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("007", 7), ("2147483647", 2147483647)])
def test_whole_numbers(text, number):
    assert whole_number(1)(text) == number
    assert whole_number(0)("0") == 0
    assert whole_number(1, 10)("10") == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "'0' is not a whole number of 1 or more"),
        ("-1", "'-1' is not a whole number"),
        ("1.0", "'1.0' is not a whole number"),
        ("\u0663", "is not a whole number"),
        ("2147483648", "is above 2147483647"),
        ("9" * 5000, "a number of 5000 digits is above 2147483647"),
    ],
)
def test_other_words(text, message):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        whole_number(1)(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text", ["", " ", "nan", "inf", "-inf", "1e400", "0x1", "1_0", "\u0663", "0,5", "9" * 5000]
)
@pytest.mark.parametrize("option", ["--per-kb", "--threshold"])
def test_numbers_are_finite_and_written_plainly(option, text):
    with pytest.raises(ConfigError, match=f"argument {option}"):
        parse("scan", ["g.fa", "--model", "m", f"{option}={text}"])


@pytest.mark.parametrize("option", ["--label-positive", "--label-negative"])
@pytest.mark.parametrize(
    ("label", "words"),
    [("", "'' is empty"), ("a\tb", r"'a\\tb' holds a tab"), ("#a", "'#a' begins with #")],
)
def test_a_label_can_be_written_to_a_table(option, label, words):
    with pytest.raises(ConfigError, match=f"{option}: {words}"):
        parse("negatives", ["p.fa", option, label])
