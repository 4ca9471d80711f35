"""Which calls of one scan another scan lacks."""

from prefilter import count_missing


def test_calls_within_ten_letters_on_the_same_strand_are_not_missing():
    wanted = [("+", 100), ("+", 200), ("-", 300), ("-", 400)]
    assert count_missing(wanted, wanted) == 0
    assert count_missing(wanted, [("+", 110), ("+", 211), ("+", 300), ("-", 390)]) == 2
    assert count_missing(wanted, []) == 4
    assert count_missing([], wanted) == 0
