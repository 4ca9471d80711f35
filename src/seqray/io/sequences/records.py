"""Validate records of any format: unique ids, known letters, empty records skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypedDict

import numpy as np

from seqray.core import Alphabet, InputError, NoRecordsError, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.io.files import BLOCK
from seqray.io.sequences.identifiers import Duplicates, UniqueIds, describe_record

MIN_UNREAD = 10  # records without letters that make a file an error, if they are more than half
# The last word of a header that is no word of a description: bases, or residues in capitals.
_LETTERS_ON_HEADER = re.compile(r"(?<!\S)(?:[ACGTUNacgtun]{20,}|[ACDEFGHIKLMNPQRSTVWXY]{20,})\s*$")

OnSkip = Callable[[SkippedRecord], None]
OnLetters = Callable[[str], None]


class ReadOptions(TypedDict, total=False):
    """What the caller of a reader decides, whatever the format.

    Attributes
    ----------
    duplicates
        What to do with an id that occurs again: ``error`` (default), ``rename`` (to ``id_2``) or ``keep``.
    soft_masks
        Whether to note the lower-case intervals of each record (default: False, of `read_fasta` True).
        GenBank has none: all its letters are lower case.
    on_skip
        Called with each record without letters; if None, such a record is an error.
    on_letters
        Called with the letters of each record as they are in the file, before case is folded.
    """

    duplicates: Duplicates
    soft_masks: bool
    on_skip: OnSkip | None
    on_letters: OnLetters | None


class RawRecord(NamedTuple):
    """One record as it is in the file: letters without white space, and why they are missing if they are."""

    id: str
    letters: bytes
    description: str
    circular: bool = False
    reason: str = "empty sequence"


def validate_records(
    raw: Iterable[RawRecord],
    alphabet: Alphabet,
    where: str,
    *,
    duplicates: Duplicates = "error",
    soft_masks: bool = False,
    on_skip: OnSkip | None = None,
    on_letters: OnLetters | None = None,
) -> Iterator[SequenceRecord]:
    """Validate the records of one file.

    Raises `InputError` for a record whose letters are on its header line; and at the end, if more than half
    of the records, and `MIN_UNREAD` or more, have no letters: the file is read wrongly.

    The other parameters are as in `ReadOptions`.
    """
    ids = UniqueIds(duplicates, where)
    count, unread = 0, Counter[str]()
    for record in raw:
        count += 1
        identifier, letters, description, circular, reason = record
        del record
        identifier = ids.resolve(identifier)
        place = describe_record(where, identifier)
        if not letters:
            unread[reason] += 1
            _refuse_letters_on_header(description or identifier, place)
            _skip(SkippedRecord(identifier, reason), place, on_skip)
            continue
        folded = alphabet.normalize_bytes(letters, place)
        masks = find_soft_masks(letters) if soft_masks else ()
        if on_letters is not None:
            on_letters(letters.decode("ascii", "replace"))
        del letters  # a chromosome is in memory twice at most, and once while the caller works on it
        validated = SequenceRecord(identifier, folded.decode("ascii"), description, masks, circular)
        del folded
        yield validated
        del validated  # else it is in memory while the next one is read
    if count == 0:
        raise NoRecordsError("contains no records", where=where)
    if unread.total() >= MIN_UNREAD and 2 * unread.total() > count:
        [(reason, _)] = unread.most_common(1)
        raise InputError(
            f"{unread.total()} of {count} records can't be used ({reason})",
            where=where,
            remedy="remove them if the others are what you want to read",
        )


def _refuse_letters_on_header(header: str, where: str) -> None:
    if found := _LETTERS_ON_HEADER.search(header):
        raise InputError(
            f"has no letters below its header, which ends in {found[0][:10]}...",
            where=where,
            remedy="begin a new line after the id and the description",
        )


def _skip(record: SkippedRecord, place: str, on_skip: OnSkip | None) -> None:
    if on_skip is None:
        raise InputError(f"the record can't be used ({record.reason})", where=place, remedy="remove it")
    on_skip(record)


def find_soft_masks(letters: bytes) -> tuple[tuple[int, int], ...]:
    """Half-open intervals of lower-case letters."""
    bounds: list[int] = []
    is_lower = False
    for first in range(0, len(letters), BLOCK):  # a chromosome is not in memory once more
        block = letters[first : first + BLOCK]
        lower = np.frombuffer(block, dtype=np.uint8) >= ord("a")
        bounds += (np.flatnonzero(np.diff(lower, prepend=is_lower)) + first).tolist()
        is_lower = bool(lower[-1])
    if is_lower:
        bounds.append(len(letters))
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


def note_soft_masks(record: SequenceRecord) -> SequenceRecord:
    """The record with the intervals of its lower-case letters, unless it has noted ones."""
    found = record.soft_masked or find_soft_masks(record.sequence.encode())
    return replace(record, soft_masked=found)
