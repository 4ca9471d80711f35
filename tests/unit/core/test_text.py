"""Numbers as text, and where long sequences are cut."""

import math

import pytest

from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError, ModelFileError
from seqray.core.model_config import ModelConfig
from seqray.core.run_config import DataConfig
from seqray.core.text import class_counts, format_interval, format_number, round_number, truncate


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
