"""The hashes behind the check for duplicate ids, against a plain set."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from seqray.core.errors import InputError
from seqray.io.records import UniqueIds


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


def test_a_long_file_of_unique_ids_passes_and_the_first_repeat_does_not():
    ids = UniqueIds("error", "x.fa")
    for i in range(50_000):
        assert ids.resolve(f"{i}") == f"{i}"
    with pytest.raises(InputError, match=r"x\.fa: record '0': the id occurs more than once"):
        ids.resolve("0")


def test_most_ids_take_eight_bytes_each():
    tracemalloc.start()
    try:
        ids = UniqueIds("error", "x.fa")
        for i in range(200_000):
            ids.resolve(str(i))
        assert tracemalloc.get_traced_memory()[0] < 200_000 * 8 + (1 << 15) * 120
    finally:
        tracemalloc.stop()
