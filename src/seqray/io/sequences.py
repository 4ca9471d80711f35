"""Sequences from FASTA or GenBank, as the content of a file decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from seqray.core.alphabet import Alphabet
from seqray.core.records import SequenceRecord
from seqray.io.fasta import split_fasta
from seqray.io.files import display_name, open_input
from seqray.io.records import GENBANK, ReadOptions, detect_format, validate_records

if TYPE_CHECKING:
    from Bio.SeqRecord import SeqRecord


def read_sequences(
    path: str | Path,
    alphabet: Alphabet,
    *,
    on_genbank: Callable[[SeqRecord], None] | None = None,
    **options: Unpack[ReadOptions],
) -> Iterator[SequenceRecord]:
    """Read the records of a FASTA or GenBank file in order; the content decides on the format, not the name.

    Raises `InputError` if the file can't be read, has another format, is cut off, contains no records
    (`NoRecordsError`) or NUL bytes, or if a record has no id, an id that occurred before, no letters or
    letters outside the alphabet.
    """
    where = display_name(path)
    with open_input(path) as handle:
        split = split_fasta
        if detect_format(handle.peek(1)) == GENBANK:
            from seqray.io.genbank import split_genbank  # Biopython, which FASTA does without

            split = partial(split_genbank, on_record=on_genbank)
        yield from validate_records(split(handle, where), alphabet, where, **options)


def is_genbank(path: str | Path) -> bool:
    """Whether a file is GenBank, by its first block."""
    with open_input(path) as handle:
        return detect_format(handle.peek(1)) == GENBANK
