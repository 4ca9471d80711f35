"""Records of sequences from any reader: formats by their content, unique ids, known letters, skips."""

from __future__ import annotations

import io
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np

from seqray.core.alphabet import DNA, Alphabet
from seqray.core.errors import InputError, NoRecordsError, setting
from seqray.core.records import SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.io.files import BLOCK, display_name, open_input

# ----------------------------------------------------------------------------------- formats by content

FASTA, GENBANK, GFF = "FASTA", "GenBank", "GFF"
HTML = "HTML or XML (a failed download?)"
PIR = "PIR/NBRF"  # the line below each header is a title, which would be read as letters

# The first line of a Clustal alignment; other programs than Clustal write their own name there.
CLUSTAL = re.compile(
    rb"(?:CLUSTAL\w*|T-COFFEE|PROBCONS|MUSCLE|MSAPROBS|Kalign|Biopython)(?=[\s(,]|\Z)"
    rb"|[^>#;\s][^\t\r\n]*\bmultiple sequence alignment\b",
    re.IGNORECASE,
)
# The first line of a release file of NCBI, whose records come after a page of text.
RELEASE = re.compile(rb"\S+\.\S+[ \t]+Genetic Sequence Data Bank", re.IGNORECASE)

_BEGINNINGS = (
    (re.compile(rb"# STOCKHOLM"), "a Stockholm alignment"),
    (re.compile(rb"##gff-version"), GFF),
    (re.compile(rb"##fileformat=VCF"), "VCF"),
    (CLUSTAL, "a Clustal alignment"),
    (re.compile(rb"ID   \S+; "), "EMBL"),
    (re.compile(rb"<"), HTML),
    (re.compile(rb"@[^\n]*\n[^\n]*\n\+"), "FASTQ"),
    (re.compile(rb"LOCUS[ \t]+\S"), GENBANK),
    (RELEASE, GENBANK),
    (re.compile(rb">(?:P1|F1|DL|DC|RL|RC|N1|N3|XX);"), PIR),
    (re.compile(rb">"), FASTA),
)
PREAMBLE = re.compile(rb"(?:[ \t\r]*(?:[;#][^\n]*)?\n)*")  # comments and blank lines
_BLANK_LINES = re.compile(rb"(?:[ \t\r]*\n)*")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def detect_format(head: bytes) -> str:
    """Name the format of a file by its first block, behind comments and blank lines; empty if unknown."""
    text = head.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    skipped = [match.end() for pattern in (_BLANK_LINES, PREAMBLE) if (match := pattern.match(text))]
    return next((name for at in (0, *skipped) for start, name in _BEGINNINGS if start.match(text, at)), "")


# ------------------------------------------------------------------------------------------- unique ids

Duplicates = Literal["error", "rename", "keep"]

_MAX_SHOWN_LENGTH = 60


def shorten(name: str) -> str:
    """A name for a message, cut if it is overlong."""
    return name if len(name) <= _MAX_SHOWN_LENGTH else name[:_MAX_SHOWN_LENGTH] + "..."


def describe_record(where: str, identifier: str) -> str:
    """``where`` of an error: the file, if known, and the record."""
    record = f"record {shorten(identifier)!r}"
    return f"{where}: {record}" if where else record


class _SeenTexts:
    """The 64-bit hashes of texts: a sorted array of most, and a set of those that came since.

    So ten million ids fit in 300 MB. Among as many two collide with a chance of 3 in a million.
    """

    def __init__(self) -> None:
        self._sorted = np.empty(0, dtype=np.uint64).data
        self._recent: set[int] = set()
        self._room = 1 << 15  # of the set

    def add(self, text: str) -> bool:
        """Add a text; False if it was there before."""
        # Not hash(): Python salts it per process, and the same file must always be read the same way.
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
        value = int.from_bytes(digest, "little")
        if value in self._recent:
            return False
        place = bisect_left(self._sorted, value)
        if place < len(self._sorted) and self._sorted[place] == value:
            return False
        self._recent.add(value)
        if len(self._recent) > self._room:
            merged = np.concatenate((self._sorted, np.fromiter(self._recent, np.uint64, len(self._recent))))
            merged.sort()
            self._sorted, self._room = merged.data, max(self._room, len(merged) // 16)
            self._recent.clear()
        return True


class UniqueIds:
    """Apply the user's policy to ids that occur again: ``error``, ``rename`` (to ``x_2``) or ``keep``."""

    def __init__(self, duplicates: Duplicates, where: str) -> None:
        if duplicates not in get_args(Duplicates):
            raise InputError(f"duplicates={duplicates!r}", remedy="choose 'error', 'rename' or 'keep'")
        self._policy = duplicates
        self._where = where
        self._seen = _SeenTexts()
        self._occurrences: dict[str, int] = {}

    def resolve(
        self, identifier: str, where: str | None = None, source: str = SequenceRecord.ID_SOURCE
    ) -> str:
        """The id of the next record, perhaps of a file ``where``; ``source`` says where files state ids."""
        if self._policy == "keep" or self._seen.add(identifier):
            return identifier
        if self._policy == "error":
            raise InputError(
                "the id occurs more than once",
                where=describe_record(self._where if where is None else where, identifier),
                remedy=f"give each its own id ({source}), or read the file with "
                f"{setting('duplicates', 'rename')}",
            )
        number = self._occurrences.get(identifier, 1) + 1
        while not self._seen.add(f"{identifier}_{number}"):  # a record of that name was there already
            number += 1
        self._occurrences[identifier] = number
        return f"{identifier}_{number}"


# ------------------------------------------------------------------------------------------- validation

_MIN_UNREAD = 10  # records without letters that make a file an error, if they are more than half
# The last word of a header that is no word of a description: bases, or residues in capitals.
_LETTERS_ON_HEADER = re.compile(r"(?<!\S)(?:[ACGTUNacgtun]{20,}|[ACDEFGHIKLMNPQRSTVWXY]{20,})\s*$")

OnSkip = Callable[[SkippedRecord], None]
OnLetters = Callable[[str], None]


class ReadOptions(TypedDict, total=False):
    """What the caller of a reader decides, whatever the format."""

    duplicates: Duplicates
    soft_masks: bool
    on_skip: OnSkip | None
    skip_unusable: bool | None  # None: the caller offers no such choice
    on_letters: OnLetters | None


def skip_or_raise(
    error: InputError, identifier: str, on_skip: OnSkip | None, skip_unusable: bool | None
) -> None:
    """Skip a record that can't be read, or raise the error, with the choice to skip if there is one."""
    if on_skip is not None and skip_unusable:
        on_skip(SkippedRecord(identifier, error.what))
    elif skip_unusable is False and type(error) is InputError:  # not where the whole file has other letters
        choice = f"{setting('skip_unusable', True)} leaves out all such records"
        remedy = f"{error.remedy}; {choice}" if error.remedy else choice
        raise InputError(error.what, where=error.where, remedy=remedy) from None
    else:
        raise error


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
    skip_unusable: bool | None = None,
    on_letters: OnLetters | None = None,
) -> Iterator[SequenceRecord]:
    """Validate the records of one file; for the options see `ReadOptions`."""
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
            if shown := _LETTERS_ON_HEADER.search(description or identifier):
                what = f"has no letters below its header, which ends in {shown[0][:10]}..."
                raise InputError(
                    what, where=place, remedy="begin a new line after the id and the description"
                )
            if on_skip is None:
                raise InputError(f"the record can't be used ({reason})", where=place, remedy="remove it")
            on_skip(SkippedRecord(identifier, reason))
            continue
        try:
            folded = alphabet.normalize_bytes(letters, place)
        except InputError as error:
            skip_or_raise(error, identifier, on_skip, skip_unusable)
            continue
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
    if unread.total() >= _MIN_UNREAD and 2 * unread.total() > count:
        [(reason, _)] = unread.most_common(1)
        what = f"{unread.total()} of {count} records can't be used ({reason})"
        raise InputError(what, where=where, remedy="remove them if the others are what you want to read")


def find_soft_masks(letters: bytes) -> tuple[tuple[int, int], ...]:
    """Half-open intervals of lower-case letters."""
    bounds: list[int] = []
    is_lower = False
    for first in range(0, len(letters), BLOCK):  # a chromosome is not in memory once more
        lower = np.frombuffer(letters[first : first + BLOCK], dtype=np.uint8) >= ord("a")
        bounds += (np.flatnonzero(np.diff(lower, prepend=is_lower)) + first).tolist()
        is_lower = bool(lower[-1])
    if is_lower:
        bounds.append(len(letters))
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


def note_soft_masks(record: SequenceRecord) -> SequenceRecord:
    """The record with the intervals of its lower-case letters, unless it has noted ones."""
    return replace(record, soft_masked=record.soft_masked or find_soft_masks(record.sequence.encode()))


# ---------------------------------------------------------------------- FASTA, one record in memory at a time


_WHITE_SPACE = b" \t\n\v\f"
# As files for submission to NCBI write it, and assemblers such as Unicycler.
_CIRCULAR = re.compile(
    r"(?<![^\s\[])(?:topology *= *circular|(?:suggest)?circular *= *(?:true|yes|y))(?![^\s\]])", re.IGNORECASE
)


def read_fasta(
    path: str | Path, alphabet: Alphabet = DNA, **options: Unpack[ReadOptions]
) -> Iterator[SequenceRecord]:
    """Read the records of a FASTA file in order, with their lower-case intervals.

    Parameters
    ----------
    path, alphabet, **options
        As in `read_sequences`, but ``soft_masks`` is True by default: records in Python can be scanned with
        ``skip_soft_masked`` long after the case of their letters was folded.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.fa")
    ...     _ = path.write_text(">a first\\nACgt\\n>b\\nNNA\\n")
    ...     for record in read_fasta(path):
    ...         print(record.id, record.sequence, record.soft_masked)
    a ACGT ((2, 4),)
    b NNA ()
    """
    options.setdefault("soft_masks", True)
    where = display_name(path)
    with open_input(path) as handle:
        yield from validate_records(split_fasta(handle, where), alphabet, where, **options)


def split_fasta(handle: io.BufferedReader, where: str) -> Iterator[RawRecord]:
    """Records of an open binary stream; ``where`` is its name in errors."""
    pieces: list[bytes] = []
    count = 0
    for block in _from_first_header(_blocks(handle), where):
        first, *others = block.split(b"\n>")
        pieces.append(first)
        for piece in others:
            count += 1
            yield _record(pieces, count, where)
            pieces = [piece]
    if pieces:
        yield _record(pieces, count + 1, where)


def _blocks(handle: io.BufferedReader) -> Iterator[bytes]:
    """Blocks with LF as the only line end; none but the last ends in one."""
    held = b""
    while block := handle.read(BLOCK):
        block = held + block
        # A line end at the border is held back: CR LF may be cut in two, and so may LF '>'.
        held = block[len(block.rstrip(b"\r\n")) :]
        block = block[: len(block) - len(held)]
        if block:
            yield _unix(block)
    if held:
        yield _unix(held)


def _unix(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block


def _from_first_header(blocks: Iterator[bytes], where: str) -> Iterator[bytes]:
    """Drop byte-order mark, comments and blank lines; the first block then begins after its ``>``."""
    start = next(blocks, b"").removeprefix(BYTE_ORDER_MARK)
    while True:
        match = PREAMBLE.match(start)
        rest = start[match.end() :] if match else start
        if rest[:1] == b">":
            if detect_format(rest) == PIR:
                raise _not_fasta(rest, where)
            break
        if detect_format(start) not in ("", FASTA) or rest.lstrip()[:1] not in (b"", b";", b"#"):
            raise _not_fasta(start, where)
        more = next(blocks, None)
        if more is None:
            return
        # Of a comment that has not ended its first sign is enough, however long it is.
        start = (rest[:1] if rest[:1] in (b";", b"#") else rest) + more
    yield rest[1:]
    yield from blocks


def _not_fasta(start: bytes, where: str) -> InputError:
    name = detect_format(start)
    if not name:
        remedy = "the first line must start with '>'"
        if {*start.split(b"\n", 1)[0]} & {*b"\t,"}:
            remedy = (
                "tables are read by predict, explain, train, evaluate, calibrate, audit, split and negatives"
            )
        return InputError("no FASTA header", where=where, remedy=remedy)
    remedies = {
        GENBANK: "read it as GenBank, or convert it to FASTA",
        HTML: "fetch the file again",
        GFF: "give its sequences in FASTA; 'seqray scan' reads its genes by --genes",
    }
    return InputError(f"is {name}, not FASTA", where=where, remedy=remedies.get(name, "convert it to FASTA"))


def _record(pieces: list[bytes], number: int, where: str) -> RawRecord:
    """Join the pieces of a record, which begin after its ``>``, and empty the list."""
    end = next((i for i, piece in enumerate(pieces) if b"\n" in piece), len(pieces) - 1)
    pieces[: end + 1] = [b"".join(pieces[: end + 1])]
    header, _, pieces[0] = pieces[0].partition(b"\n")
    for i, piece in enumerate(pieces):  # in place, to avoid a third copy
        pieces[i] = piece.translate(None, _WHITE_SPACE)
    letters = b"".join(pieces)
    pieces.clear()
    words = header.split(None, 1)
    if not words:
        raise InputError(f"record {number} has no id", where=where, remedy="write a name after '>'")
    try:
        identifier = words[0].decode()
    except UnicodeDecodeError:  # replaced letters would make two names one
        what = f"the id of record {number} is not UTF-8"
        raise InputError(what, where=where, remedy="save the file as UTF-8") from None
    description = b" ".join(words[1:]).decode("utf-8", "replace").strip()
    return RawRecord(identifier, letters, description, bool(_CIRCULAR.search(description)))
