"""Shared by all readers of alignments: lines of text, and rows that are validated and encoded."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqray.core import GAPS, MISSING, Alignment, Alphabet, InputError, encode_columns
from seqray.io.sequences import BYTE_ORDER_MARK, describe_record

_MAX_SHOWN_LENGTH = 60
_NO_LETTERS = GAPS + MISSING


@dataclass(slots=True)
class AlignedText:
    """One alignment as it is in a file: names, rows of letters, and annotations."""

    names: list[str] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    ss_cons: str | None = None


def decode(data: bytes) -> str:
    """Decode a name or note: UTF-8, otherwise Latin-1 (older releases of Rfam and Pfam)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def numbered_lines(handle: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends, counted from 1."""
    number = 0
    for raw in handle:
        for line in raw.rstrip(b"\r\n").split(b"\r"):  # a lone CR ends a line in old files
            number += 1
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def to_alignment(text: AlignedText, identifier: str, alphabet: Alphabet, where: str) -> Alignment:
    """Validate an alignment and encode its rows.

    Raises `InputError` if it has no rows or no letters, if its rows differ in length, or as
    `seqray.core.encode_columns`.

    Parameters
    ----------
    text
        The alignment as it is in the file.
    identifier
        Its id.
    alphabet
        Validates and folds the letters.
    where
        Name of the file, for errors.
    """
    place = describe_record(where, identifier)
    problem = reason_empty(text)
    if problem:
        raise InputError(f"the alignment can't be used ({problem})", where=place, remedy="remove it")
    _check_widths(text, place)
    codes = encode_columns(text.rows, text.names, alphabet, place)
    if text.ss_cons is not None and len(text.ss_cons) != codes.shape[1]:
        raise InputError(
            f"SS_cons has {len(text.ss_cons)} characters, the rows have {codes.shape[1]} columns",
            where=place,
            remedy="fetch or make the file again",
        )
    return Alignment(
        identifier, tuple(text.names), codes, alphabet, ss_cons=text.ss_cons, metadata=text.metadata
    )


def reason_empty(text: AlignedText) -> str:
    """Why an alignment is empty; an empty text if it is not."""
    if not text.rows:
        return "no rows"
    return "" if any(row.translate(None, _NO_LETTERS) for row in text.rows) else "no letters"


def _check_widths(text: AlignedText, place: str) -> None:
    width = len(text.rows[0])
    for name, row in zip(text.names, text.rows, strict=True):
        if len(row) != width:
            shown = name if len(name) <= _MAX_SHOWN_LENGTH else name[:_MAX_SHOWN_LENGTH] + "..."
            raise InputError(
                f"row {shown!r} has {len(row)} columns, the first row has {width}",
                where=place,
                remedy="align the sequences first, or fill the ends with '~' (unknown) or '-' (gap)",
            )
