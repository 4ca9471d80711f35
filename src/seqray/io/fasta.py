"""FASTA: records as a stream, one in memory at a time."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from seqray.core.alphabet import DNA, Alphabet
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from seqray.io.files import BLOCK, display_name, open_input
from seqray.io.records import (
    BYTE_ORDER_MARK,
    FASTA,
    GENBANK,
    GFF,
    HTML,
    PIR,
    PREAMBLE,
    RawRecord,
    ReadOptions,
    detect_format,
    validate_records,
)

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
