"""Keep record ids unique over a whole file, in eleven to twenty-two bytes per record."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, get_args

import numpy as np

from seqray.core import InputError, SequenceRecord

Duplicates = Literal["error", "rename", "keep"]

_MAX_SHOWN_LENGTH = 60


def describe_record(where: str, identifier: str) -> str:
    """``where`` of an error: the file, if known, and the record, an overlong id cut."""
    shown = identifier if len(identifier) <= _MAX_SHOWN_LENGTH else identifier[:_MAX_SHOWN_LENGTH] + "..."
    return f"{where}: record {shown!r}" if where else f"record {shown!r}"


class _HashTable:
    """A set of 64-bit hashes with open addressing: a tenth of the memory of a set of strings.

    The leading bits of a hash give its home slot. In a table at most three quarters full, as this one is,
    runs of slots are some tens long; hashes that find none within `_MAX_RUN`, as in files made for that, go
    to a set.
    """

    _MAX_RUN = 1 << 10

    def __init__(self) -> None:
        self._bits = 8
        self._count = 0
        self._slots = np.zeros((1 << self._bits) + self._MAX_RUN, dtype=np.uint64).data
        self._far: set[int] = set()

    def add(self, value: int) -> bool:
        """Add a hash above 0; False if it was there before."""
        if value in self._far:
            return False
        slots, home = self._slots, value >> (64 - self._bits)
        for place in range(home, home + self._MAX_RUN):
            if slots[place] == value:
                return False
            if not slots[place]:
                slots[place] = value
                break
        else:
            self._far.add(value)
        self._count += 1
        if self._count > 3 << (self._bits - 2):
            self._grow()
        return True

    def _grow(self) -> None:
        values = np.asarray(self._slots)
        values = np.sort(np.append(values[values != 0], np.fromiter(self._far, np.uint64)))
        self._far = set()
        self._bits += 1
        # Linear probing in sorted order: each value goes to its home slot, or one behind the value before.
        home = (values >> np.uint64(64 - self._bits)).astype(np.int64)
        rank = np.arange(len(values))
        place = np.maximum.accumulate(home - rank) + rank
        slots = np.zeros((1 << self._bits) + self._MAX_RUN, dtype=np.uint64)
        if np.all(place - home < self._MAX_RUN):
            slots[place] = values
        else:
            self._far = set(values.tolist())
        self._slots = slots.data  # a memoryview gives single elements three times as fast


class _HashSet:
    """The 64-bit hashes of texts, in many tables: while one grows it takes memory twice, the others don't.

    Among 10 million ids two collide with a chance of 3 in a million.
    """

    _TABLES = 64

    def __init__(self) -> None:
        self._tables = [_HashTable() for _ in range(self._TABLES)]

    def add(self, text: str) -> bool:
        """Add a text; False if it was there before."""
        # Not hash(): Python salts it per process, and the same file must always be read the same way.
        value = int.from_bytes(self._digest(text), "little") or 1
        return self._tables[value % self._TABLES].add(value)

    @staticmethod
    def _digest(text: str) -> bytes:
        return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


class UniqueIds:
    """Apply the user's policy to ids that occur more than once.

    Parameters
    ----------
    duplicates
        ``error`` refuses them, ``rename`` writes the second ``x`` as ``x_2``, ``keep`` lets them be.
    where
        The file, for the error.
    """

    def __init__(self, duplicates: Duplicates, where: str) -> None:
        if duplicates not in get_args(Duplicates):
            raise InputError(f"duplicates={duplicates!r}", remedy="choose 'error', 'rename' or 'keep'")
        self._policy = duplicates
        self._where = where
        self._seen = _HashSet()
        self._occurrences: dict[str, int] = {}

    def resolve(
        self, identifier: str, where: str | None = None, source: str = SequenceRecord.ID_SOURCE
    ) -> str:
        """The id to use for the next record, of another file than before where ``where`` names one.

        ``source`` says where the file states ids. Raises `InputError` under ``error``, for an id that
        occurred before.
        """
        if self._policy == "keep" or self._seen.add(identifier):
            return identifier
        if self._policy == "error":
            raise InputError(
                "the id occurs more than once",
                where=describe_record(self._where if where is None else where, identifier),
                remedy=f"give each its own id ({source}), or read the file with duplicates='rename'",
            )
        return self._rename(identifier)

    def _rename(self, identifier: str) -> str:
        number = self._occurrences.get(identifier, 1) + 1
        while not self._seen.add(f"{identifier}_{number}"):  # a record of that name was there already
            number += 1
        self._occurrences[identifier] = number
        return f"{identifier}_{number}"
