"""Numbers as text."""

import math

from seqray.core.text import format_interval, format_number, round_number


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
