"""Records of sequences from any reader: ids, duplicates, skips."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Literal, NamedTuple, TypedDict, get_args

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.errors import InputError, NoRecordsError
from seqray.core.records import SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.io.files import BLOCK

# --- Recognize a file's format by its content, so that an error can name the format of a wrong file

FASTA, GENBANK, GFF = "FASTA", "GenBank", "GFF"
HTML = "HTML or XML (a failed download?)"
PIR = "PIR/NBRF"  # the line below each header is a title, which would be read as letters

_BEGINNINGS = (
    (re.compile(rb"# STOCKHOLM"), "a Stockholm alignment"),
    (re.compile(rb"##gff-version"), GFF),
    (re.compile(rb"##fileformat=VCF"), "VCF"),
    (re.compile(rb"CLUSTAL"), "a Clustal alignment"),
    (re.compile(rb"ID   \S+; "), "EMBL"),
    (re.compile(rb"<"), HTML),
    (re.compile(rb"@[^\n]*\n[^\n]*\n\+"), "FASTQ"),
    (re.compile(rb"LOCUS +\S"), GENBANK),
    (re.compile(rb">(?:P1|F1|DL|DC|RL|RC|N1|N3|XX);"), PIR),
    (re.compile(rb">"), FASTA),
)
PREAMBLE = re.compile(rb"(?:[ \t\r]*(?:[;#][^\n]*)?\n)*")
BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def detect_format(head: bytes) -> str:
    """Name the format of a file from its first block; an empty text if it is unknown.

    Comment lines (``;`` or ``#``) and blank lines at the beginning are ignored, unless they name the
    format themselves.
    """
    text = head.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for start in (0, _length(BLANK_LINES, text), _length(PREAMBLE, text)):
        for beginning, name in _BEGINNINGS:
            if beginning.match(text, start):
                return name
    return ""


def _length(pattern: re.Pattern[bytes], text: bytes) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


# --- Keep record ids unique over a whole file, in eleven to twenty-two bytes per record

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


# --- Validate records of any format: unique ids, known letters, empty records skipped

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
