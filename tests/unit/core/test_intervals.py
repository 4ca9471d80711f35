"""Regions as users write them."""

import pytest

from seqray.core.errors import InputError
from seqray.core.records import parse_region


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
