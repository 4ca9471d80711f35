"""Sequences from FASTA, GenBank or a table, as the content of a file decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Unpack

from seqray.core.alphabet import Alphabet
from seqray.core.records import MISSING_TEXTS, SequenceRecord
from seqray.io.fasta import split_fasta
from seqray.io.files import display_name, open_input
from seqray.io.records import (
    BYTE_ORDER_MARK,
    GENBANK,
    RawRecord,
    ReadOptions,
    detect_format,
    validate_records,
)
from seqray.io.tables import Columns, parse_rows

if TYPE_CHECKING:
    from Bio.SeqRecord import SeqRecord


def read_sequences(
    path: str | Path,
    alphabet: Alphabet,
    *,
    on_genbank: Callable[[SeqRecord], None] | None = None,
    columns: Columns | None = None,
    **options: Unpack[ReadOptions],
) -> Iterator[SequenceRecord]:
    """Read the records of a FASTA or GenBank file in order; the content decides on the format, not the name.

    With ``columns``, which may be empty, it may also be a TSV or CSV with a column ``sequence`` and perhaps
    ``id``, else ``row<N>``; see `seqray.io.tables.Columns`.
    """
    where = display_name(path)
    with open_input(path) as handle:
        split, head = split_fasta, handle.peek(1)
        if columns is not None and _is_table(head, columns):
            split = partial(split_table, columns=columns)
        elif detect_format(head) == GENBANK:
            from seqray.io.genbank import split_genbank  # Biopython, which FASTA does without

            split = partial(split_genbank, on_record=on_genbank)
        yield from validate_records(split(handle, where), alphabet, where, **options)


def _is_table(head: bytes, columns: Columns) -> bool:
    """Whether the first line that is no comment is a header of several columns, or of sequences alone."""
    if detect_format(head):
        return False
    lines = head.removeprefix(BYTE_ORDER_MARK).splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith((b"#", b";"))), b"").lower()
    alone = {name.lower().encode() for name in ("sequence", *columns.values())}
    return bool({*first} & {*b"\t,"}) or first.strip() in alone


def split_table(handle: BinaryIO, where: str, columns: Columns) -> Iterator[RawRecord]:
    """Records of a table."""
    remedy = "name the columns sequence[,id], or give FASTA"
    rows = parse_rows(handle, where, ("sequence",), remedy, columns=columns)
    for number, (_, row) in enumerate(rows, start=1):
        letters, reason = row["sequence"], "empty sequence"
        if letters.lower() in MISSING_TEXTS:
            letters, reason = "", f"the sequence is '{letters}', which is the text of a missing value"
        name = row.get("id") or f"row{number}"
        yield RawRecord(name, letters.encode(), row.get("description", ""), reason=reason)


def is_genbank(path: str | Path) -> bool:
    """Whether a file is GenBank, by its first block."""
    with open_input(path) as handle:
        return detect_format(handle.peek(1)) == GENBANK
