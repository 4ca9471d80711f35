"""Read the sequences of GenBank files as a stream of validated records."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from Bio import BiopythonParserWarning
from Bio.GenBank.Scanner import GenBankScanner
from Bio.Seq import UndefinedSequenceError
from Bio.SeqRecord import SeqRecord

from seqray.core import DNA, Alphabet, InputError, NoRecordsError, SequenceRecord
from seqray.io.files import display_name, open_input
from seqray.io.sequences.fasta import OnSkip, skip_record
from seqray.io.sequences.identifiers import Duplicates, UniqueIds, describe_record
from seqray.io.sequences.sniff import name_format

# Biopython only warns of what is a cut or damaged file.
_FATAL_WARNINGS = ("Premature end", "Expected sequence length")


def read_genbank(
    path: str | Path,
    alphabet: Alphabet = DNA,
    *,
    duplicates: Duplicates = "error",
    soft_masks: bool = False,
    on_skip: OnSkip | None = None,
) -> Iterator[SequenceRecord]:
    """Read the records of a GenBank flat file in order; annotated features are passed over.

    Parameters
    ----------
    path, alphabet, duplicates, on_skip
        As `seqray.io.sequences.read_fasta`. The id is that of the VERSION line (accession.version).
    soft_masks
        Without effect, for the format writes every letter in lower case; taken so that all readers can
        be called alike.

    Raises
    ------
    InputError
        Where the file can't be read, isn't GenBank, is cut off, holds no records (`NoRecordsError`), or
        where a record has an id that occurred before, no letters or letters outside the alphabet.
    """
    del soft_masks
    with open_input(path) as handle:
        yield from parse_genbank(
            handle, alphabet, where=display_name(path), duplicates=duplicates, on_skip=on_skip
        )


def parse_genbank(
    handle: io.BufferedReader,
    alphabet: Alphabet = DNA,
    *,
    where: str,
    duplicates: Duplicates = "error",
    on_skip: OnSkip | None = None,
) -> Iterator[SequenceRecord]:
    """`read_genbank` from an open, buffered binary stream; ``where`` is its name in errors."""
    other = name_format(handle.peek(1))
    if other not in ("", "GenBank"):
        raise InputError(f"is {other}, not GenBank", where=where)
    ids = UniqueIds(duplicates, where)
    lines = _Lines(handle)
    count = 0
    for record in _parsed(lines, where):
        count += 1
        identifier = ids.resolve(record.id or record.name)
        place = describe_record(where, identifier)
        letters = _letters(record)
        if not letters:
            skip_record(identifier, "no sequence in the file", place, on_skip)
            continue
        yield SequenceRecord(
            id=identifier,
            sequence=alphabet.normalize_bytes(letters, place).decode("ascii"),
            description=record.description,
            circular=record.annotations.get("topology") == "circular",
        )
    if count < lines.loci:  # Biopython passes over a LOCUS line that it can't read, with its record
        raise InputError(f"{lines.loci - count} of {lines.loci} LOCUS lines can't be parsed", where=where)
    if count == 0:
        raise NoRecordsError("holds no records", where=where)


class _Lines(io.TextIOWrapper):
    """Text lines for the parser; counts those that begin a record."""

    def __init__(self, handle: io.BufferedReader) -> None:
        super().__init__(handle, encoding="utf-8", errors="replace")
        self.loci = 0

    def readline(self, *size: Any) -> str:
        line = super().readline(*size)
        self.loci += line.startswith("LOCUS")
        return line


def _parsed(lines: _Lines, where: str) -> Iterator[SeqRecord]:
    # The scanner rather than SeqIO, because it can leave out the features: four times as fast.
    records = iter(GenBankScanner().parse_records(lines, do_features=False))
    while True:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BiopythonParserWarning)
            try:
                record = next(records, None)
            except ValueError as error:
                reason = str(error).splitlines()[0]
                raise InputError(f"the GenBank record can't be parsed ({reason})", where=where) from None
        for warning in caught:
            if str(warning.message).startswith(_FATAL_WARNINGS):
                reason = str(warning.message).rstrip(".")
                raise InputError(f"the GenBank record is cut off ({reason})", where=where)
        if record is None:
            return
        yield record


def _letters(record: SeqRecord) -> bytes:
    try:
        return bytes(record.seq or b"")
    except UndefinedSequenceError:  # a CONTIG line in place of the letters
        return b""
