"""Split GenBank files into records as a stream, one in memory at a time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from Bio import BiopythonParserWarning
from Bio.GenBank.Scanner import GenBankScanner
from Bio.Seq import UndefinedSequenceError
from Bio.SeqRecord import SeqRecord

from seqray.core import InputError, SeqrayError
from seqray.io.sequences.records import RawRecord
from seqray.io.sequences.sniff import GENBANK, detect_format

_CUT_OFF = "Premature end|Expected sequence length"  # of which Biopython only warns


def split_genbank(handle: io.BufferedReader, where: str) -> Iterator[RawRecord]:
    """Records of an open, buffered binary stream; ``where`` is its name in errors.

    Raises `InputError` for a file that is not GenBank, is cut off or can't be parsed.
    """
    other = detect_format(handle.peek(1))
    if other not in ("", GENBANK):
        raise InputError(f"is {other}, not GenBank", where=where)
    lines = _Lines(handle)
    count = 0
    # The scanner instead of SeqIO, because it can leave out the features: four times as fast.
    records = parse_genbank(lambda: iter(GenBankScanner().parse_records(lines, do_features=False)), where)
    for count, record in enumerate(records, start=1):  # noqa: B007
        circular = record.annotations.get("topology") == "circular"
        identifier = record.id or record.name
        yield RawRecord(identifier, _letters(record), record.description, circular, "no sequence in the file")
    if count < lines.loci:  # Biopython skips a LOCUS line that it can't read, with its record
        raise InputError(f"{lines.loci - count} of {lines.loci} LOCUS lines can't be parsed", where=where)


class _Lines(io.TextIOWrapper):
    """Text lines for the parser; counts those that begin a record."""

    def __init__(self, handle: io.BufferedReader) -> None:
        super().__init__(handle, encoding="utf-8", errors="replace")
        self.loci = 0

    def readline(self, *size: Any) -> str:
        line = super().readline(*size)
        self.loci += line.startswith("LOCUS")
        return line


def parse_genbank(parse: Callable[[], Iterator[SeqRecord]], where: str) -> Iterator[SeqRecord]:
    """Yield the records of a parser of Biopython.

    Raises `InputError` for a file that is cut off or can't be parsed. Of a damaged file the parser raises
    errors of any type, and of one that is cut off it only warns.

    Parameters
    ----------
    parse
        Opens the parser, which may already read.
    where
        Name of the file, for errors.
    """
    records = None
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BiopythonParserWarning)
            warnings.filterwarnings("error", _CUT_OFF, BiopythonParserWarning)
            try:
                records = records or parse()
                record = next(records, None)
                len(record or ())  # which fails for a length that Python can't hold
            except BiopythonParserWarning as warning:
                reason = str(warning).rstrip(".")
                raise InputError(f"the GenBank record is cut off ({reason})", where=where) from None
            except (SeqrayError, MemoryError):  # of reading, not of parsing
                raise
            except Exception as error:
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                raise InputError(f"the GenBank record can't be parsed ({reason})", where=where) from None
        if record is None:
            return
        yield record


def _letters(record: SeqRecord) -> bytes:
    try:
        return bytes(record.seq or b"")
    except UndefinedSequenceError:  # a CONTIG line instead of the letters
        return b""
