"""What every reader of alignments shares: lines of text, and rows that are checked once and made codes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqray.core import GAPS, MISSING, Alignment, Alphabet, InputError, encode_columns
from seqray.io.sequences import BYTE_ORDER_MARK, describe_record

_SHOWN = 60
_NO_LETTERS = GAPS + MISSING


@dataclass(slots=True)
class AlignedText:
    """One alignment as it stands in a file: names, rows of letters, and what is said of it."""

    names: list[str] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    ss_cons: str | None = None


def decode(data: bytes) -> str:
    """Text of a name or note: UTF-8, or Latin-1 where it isn't (older releases of Rfam and Pfam)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def numbered_lines(handle: io.BufferedReader, where: str) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends, counted from 1.

    Raises
    ------
    InputError
        For a NUL byte, which no text has.
    """
    number = 0
    for raw in handle:
        for line in raw.rstrip(b"\r\n").split(b"\r"):  # a lone CR ends a line in old files
            number += 1
            if b"\0" in line:
                raise InputError(
                    f"NUL byte in line {number}, so binary or damaged", where=where, remedy="give a text file"
                )
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def to_alignment(text: AlignedText, identifier: str, alphabet: Alphabet, where: str) -> Alignment:
    """Check an alignment and turn its rows into codes.

    Raises
    ------
    InputError
        Where it has no rows or no letters, where its rows differ in length, or as
        `seqray.core.encode_columns`.
    """
    place = describe_record(where, identifier)
    problem = what_is_missing(text)
    if problem:
        raise InputError(f"the alignment can't be used ({problem})", where=place, remedy="remove it")
    refuse_ragged(text, place)
    codes = encode_columns(text.rows, text.names, alphabet, place)
    if text.ss_cons is not None and len(text.ss_cons) != codes.shape[1]:
        raise InputError(
            f"SS_cons has {len(text.ss_cons)} signs, the rows have {codes.shape[1]} columns",
            where=place,
            remedy="fetch or make the file again",
        )
    return Alignment(
        identifier, tuple(text.names), codes, alphabet, ss_cons=text.ss_cons, metadata=text.metadata
    )


def what_is_missing(text: AlignedText) -> str:
    """Say why there is nothing to read in an alignment; an empty text where there is."""
    if not text.rows:
        return "no rows"
    return "" if any(row.translate(None, _NO_LETTERS) for row in text.rows) else "no letters"


def refuse_ragged(text: AlignedText, place: str) -> None:
    """Raise an `InputError` for the first row whose length is not that of the first."""
    width = len(text.rows[0])
    for name, row in zip(text.names, text.rows, strict=True):
        if len(row) != width:
            shown = name if len(name) <= _SHOWN else name[:_SHOWN] + "..."
            raise InputError(
                f"row {shown!r} has {len(row)} columns, the first row has {width}",
                where=place,
                remedy="align the sequences first, or fill the ends with '~' (unknown) or '-' (gap)",
            )
