"""The set of hashes behind the check for duplicate ids, against a plain set."""

from __future__ import annotations

import random

import pytest

from seqray.core.errors import InputError
from seqray.io.records import UniqueIds, _HashSet


def test_every_repeat_and_nothing_else_is_found_while_the_table_grows():
    draw = random.Random(6)
    names = [f"read_{draw.randrange(60_000)}" for _ in range(100_000)]
    ids, seen, renamed = UniqueIds("rename", "x"), set(), 0
    for name in names:
        result = ids.resolve(name)
        renamed += result != name
        assert result not in seen
        seen.add(result)
    assert renamed == len(names) - len(set(names))


def test_one_name_repeated_many_times_is_counted_up():
    ids = UniqueIds("rename", "x")
    assert [ids.resolve("a") for _ in range(20_000)] == ["a", *(f"a_{i}" for i in range(2, 20_001))]


def test_a_long_file_of_unique_ids_passes_and_the_first_repeat_does_not():
    ids = UniqueIds("error", "x.fa")
    for i in range(50_000):
        assert ids.resolve(f"{i}") == f"{i}"
    with pytest.raises(InputError, match=r"x\.fa: record '0': the id occurs more than once"):
        ids.resolve("0")


def test_the_table_of_ids_takes_at_most_twenty_two_bytes_for_each():
    known = _HashSet()
    for i in range(100_000):
        known.add(str(i))
    taken = sum(len(table._slots) - table._MAX_RUN for table in known._tables) * 8
    assert 8 / 0.75 * 100_000 <= taken <= 2.1 * 8 / 0.75 * 100_000


def test_ids_whose_hashes_are_made_to_crowd_are_still_told_apart(monkeypatch):
    crowd = [f"{i:016x}" for i in range((1 << 64) - 192_000, 1 << 64, 64)]  # all have the last home slot
    crowd += [f"{i:016x}" for i in range(7, 1 << 40, 1 << 27)]  # and these the first, until the table grows
    monkeypatch.setattr(_HashSet, "_digest", staticmethod(lambda text: bytes.fromhex(text)[::-1]))
    known = _HashSet()
    assert all(known.add(text) for text in crowd)
    assert not any(known.add(text) for text in crowd)
