"""Read FASTA as a stream of validated records, one in memory at a time.

Blocks of bytes are split at ``>`` here, rather than lines by Biopython's parser: that one stops at leading
comments, lets NUL bytes and text without a header pass or fail without naming the file, knows no
line ends of a lone CR, and takes three times as long on short records. Line ends are removed by
``bytes.translate`` in one go, so wrapped and single-line sequences cost the same.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from seqray.core import Alphabet, InputError, NoRecordsError, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.io.files import BLOCK, display_name, open_input
from seqray.io.sequences.identifiers import Duplicates, UniqueIds, describe_record
from seqray.io.sequences.sniff import BYTE_ORDER_MARK, FASTA, GENBANK, PREAMBLE, name_format

OnSkip = Callable[[SkippedRecord], None]
OnLetters = Callable[[str], None]

_WHITE_SPACE = b" \t\n\v\f"


def read_fasta(
    path: str | Path,
    alphabet: Alphabet,
    *,
    duplicates: Duplicates = "error",
    soft_masks: bool = False,
    on_skip: OnSkip | None = None,
    on_letters: OnLetters | None = None,
) -> Iterator[SequenceRecord]:
    """Read the records of a FASTA file in order.

    Plain or compressed, any line ends, wrapped or not; comment lines (``;`` or ``#``) and blank lines may
    come before the first header.

    Parameters
    ----------
    path
        The file; ``-`` is standard input.
    alphabet
        Validates and folds the letters.
    duplicates
        What to do with an id that occurs again: ``error``, ``rename`` (to ``id_2``) or ``keep``.
    soft_masks
        Whether to note the lower-case intervals of each record.
    on_skip
        Is told of each record without letters; where None, such a record is an error.
    on_letters
        Is told the letters of each record as they stand in the file, before case is folded.

    Raises
    ------
    InputError
        Where the file can't be read, isn't FASTA, holds no records (`NoRecordsError`) or NUL bytes, or
        where a record has no id, an id that occurred before, no letters or letters outside the alphabet.
    """
    with open_input(path) as handle:
        yield from parse_fasta(
            handle,
            alphabet,
            where=display_name(path),
            duplicates=duplicates,
            soft_masks=soft_masks,
            on_skip=on_skip,
            on_letters=on_letters,
        )


def parse_fasta(
    handle: io.BufferedReader,
    alphabet: Alphabet,
    *,
    where: str,
    duplicates: Duplicates = "error",
    soft_masks: bool = False,
    on_skip: OnSkip | None = None,
    on_letters: OnLetters | None = None,
) -> Iterator[SequenceRecord]:
    """`read_fasta` from an open binary stream; ``where`` is its name in errors."""
    ids = UniqueIds(duplicates, where)
    count = 0
    for header, letters in _split(_from_first_header(_blocks(handle, where), where)):
        count += 1
        words = header.split(None, 1)
        if not words:
            raise InputError(f"record {count} has no id", where=where, remedy="write a name after '>'")
        identifier = ids.resolve(words[0].decode("utf-8", "replace"))
        place = describe_record(where, identifier)
        if not letters:
            skip_record(identifier, "empty sequence", place, on_skip)
            continue
        folded = alphabet.normalize_bytes(letters, place)
        masks = find_soft_masks(letters) if soft_masks else ()
        if on_letters is not None:
            on_letters(letters.decode("ascii", "replace"))
        description = words[1].strip().decode("utf-8", "replace") if len(words) > 1 else ""
        del letters  # a chromosome lies in memory twice at most, and once while the caller works on it
        record = SequenceRecord(identifier, folded.decode("ascii"), description, masks)
        del folded
        yield record
    if count == 0:
        raise NoRecordsError("holds no records", where=where)


def skip_record(identifier: str, reason: str, place: str, on_skip: OnSkip | None) -> None:
    """Report a record that can't be used, or raise where nobody listens."""
    if on_skip is None:
        raise InputError(f"the record can't be used ({reason})", where=place, remedy="remove it")
    on_skip(SkippedRecord(identifier, reason))


def find_soft_masks(letters: bytes) -> tuple[tuple[int, int], ...]:
    """Half-open intervals of lower-case letters."""
    lower = np.frombuffer(letters, dtype=np.uint8) >= ord("a")
    edges = np.flatnonzero(lower[1:] != lower[:-1]) + 1
    first, last = [0] if lower[0] else [], [len(lower)] if lower[-1] else []
    bounds = first + edges.tolist() + last
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


def _blocks(handle: io.BufferedReader, where: str) -> Iterator[bytes]:
    """Blocks with LF as the only line end; none but the last ends in one."""
    held, at = b"", 0
    while block := handle.read(BLOCK):
        if b"\0" in block:
            nul = f"NUL byte at byte {at + block.index(0) + 1}, so binary or damaged"
            raise InputError(nul, where=where, remedy="give a text file")
        at += len(block)
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
    """Drop byte-order mark, comments and blank lines; the first block then begins behind its ``>``."""
    start = next(blocks, b"").removeprefix(BYTE_ORDER_MARK)
    while True:
        match = PREAMBLE.match(start)
        rest = start[match.end() :] if match else start
        if rest[:1] == b">":
            break
        if name_format(start) not in ("", FASTA) or rest.lstrip()[:1] not in (b"", b";", b"#"):
            raise _not_fasta(start, where)
        more = next(blocks, None)
        if more is None:
            return
        start = rest + more
    yield rest[1:]
    yield from blocks


def _not_fasta(start: bytes, where: str) -> InputError:
    name = name_format(start)
    if not name:
        return InputError("no FASTA header", where=where, remedy="the first line must start with '>'")
    remedy = "read it as GenBank" if name == GENBANK else "convert it to FASTA"
    return InputError(f"is {name}, not FASTA", where=where, remedy=remedy)


def _split(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Header (without ``>``) and letters (without white space) of each record."""
    pieces: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n>")
        pieces.append(first)
        for piece in others:
            yield _header_and_letters(pieces)
            pieces = [piece]
    if pieces:
        yield _header_and_letters(pieces)


def _header_and_letters(pieces: list[bytes]) -> tuple[bytes, bytes]:
    while b"\n" not in pieces[0] and len(pieces) > 1:
        pieces[:2] = [pieces[0] + pieces[1]]
    header, _, pieces[0] = pieces[0].partition(b"\n")
    for i, piece in enumerate(pieces):  # in place, to hold no third copy
        pieces[i] = piece.translate(None, _WHITE_SPACE)
    letters = b"".join(pieces)
    pieces.clear()
    return header, letters
