"""Split GenBank files into records as a stream, one in memory at a time."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from Bio import BiopythonParserWarning, SeqIO
from Bio.GenBank.Scanner import GenBankScanner
from Bio.Seq import UndefinedSequenceError
from Bio.SeqRecord import SeqRecord

from seqray.core.errors import InputError, SeqrayError
from seqray.io.records import GENBANK, RawRecord, detect_format

_LOCUS = "shorten the name in the LOCUS line and take blanks out of it, or give FASTA and GFF3"
_NO_LETTERS = "no sequence in the file, fetch it with its letters as 'GenBank (full)'"
_FEATURE = re.compile(r" {5}(?=\S*[A-Za-z])\S+ +(\S.*)")  # its first line: kind and location
# Of what locations consist: positions, other records, and these words.
_LOCATION = re.compile(r"(?:(?:complement|join|order|bond|gap|one-of)\(|[A-Za-z_][\w.|-]*:|[\d.^<>,() ])*")
_LENGTHS = re.compile(r"Expected sequence length (\d+), found (\d+) \((.*)\)")
_CUT_OFF = "Premature end|Expected sequence length"  # of which Biopython only warns


def split_genbank(handle: io.BufferedReader, where: str) -> Iterator[RawRecord]:
    """Records of an open, buffered binary stream; ``where`` is its name in errors.

    Raises `InputError` for a file that is not GenBank, is cut off or can't be parsed.
    """
    other = detect_format(handle.peek(1))
    if other not in ("", GENBANK):
        raise InputError(f"is {other}, not GenBank", where=where)
    for record in parse_genbank(handle, where, features=False):
        circular = record.annotations.get("topology") == "circular"
        identifier = record.id or record.name
        yield RawRecord(identifier, _letters(record), record.description, circular, _NO_LETTERS)


class _Lines(io.TextIOWrapper):
    """Text lines for the parser, which skips what lies between records: also one without its first line.

    Counts the lines that begin a record, keeps the first location that makes no sense, and raises
    `InputError` for text after the end of a record.
    """

    def __init__(self, handle: BinaryIO, where: str) -> None:
        super().__init__(handle, encoding="utf-8-sig", errors="replace")
        self.loci, self._where, self._ended = 0, where, False
        self._record, self._odd = "", ""

    def readline(self, *size: Any) -> str:
        line = super().readline(*size)
        if line.startswith("LOCUS"):
            self.loci, self._ended = self.loci + 1, False
            self._record, self._odd = line[12:].partition(" ")[0].strip(), ""
        elif not self._odd and (found := _FEATURE.match(line)):
            location = found[1].strip()
            if not _LOCATION.fullmatch(location):
                self._odd = f"the location '{location}' can't be read"
        elif self._ended and line.strip():
            what = f"text after the end of GenBank record {self.loci}, where a line LOCUS must follow"
            raise InputError(f"{what} ({line.strip()[:40]!r})", where=self._where)
        self._ended |= line.startswith("//")
        return line

    def error(self, what: str, remedy: str) -> InputError:
        """The error for the record that was read last: of its odd location, if it has one, else as given."""
        where = f"{self._where}: record '{self._record}'" if self._record else self._where
        return InputError(self._odd or what, where=where, remedy="correct it" if self._odd else remedy)


def parse_genbank(handle: BinaryIO, where: str, *, features: bool) -> Iterator[SeqRecord]:
    """Yield the records of an open file, as Biopython reads them.

    Raises `InputError` for a file that is cut off or can't be parsed, and for a record without a first line.

    Parameters
    ----------
    handle, where
        Of bytes, and its name for errors.
    features
        Whether to read the features, too, which takes four times as long.
    """
    lines, count = _Lines(handle, where), 0

    def parse() -> Iterator[SeqRecord]:
        if features:
            return SeqIO.parse(lines, "genbank")
        return iter(GenBankScanner().parse_records(lines, do_features=False))

    for count, record in enumerate(_parsed(parse, lines), start=1):  # noqa: B007
        yield record
    if count < lines.loci:  # Biopython skips a LOCUS line that it can't read, with its record
        what = f"{lines.loci - count} of {lines.loci} LOCUS lines can't be parsed"
        raise InputError(what, where=where, remedy=_LOCUS)


def _parsed(parse: Callable[[], Iterator[SeqRecord]], lines: _Lines) -> Iterator[SeqRecord]:
    """Yield the records of a parser, which is opened here, for it may already read.

    Of a damaged file the parser raises errors of any type, and of one that is cut off it only warns.
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
                raise lines.error(*_cut_off(str(warning).rstrip("."))) from None
            except (SeqrayError, MemoryError):  # of reading, not of parsing
                raise
            except Exception as error:
                reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(":")
                what = f"the GenBank record can't be parsed ({reason})"
                raise lines.error(what, _LOCUS if "LOCUS" in reason else "") from None
        if record is None:
            return
        yield record


def _cut_off(reason: str) -> tuple[str, str]:
    """What is wrong with a record of which Biopython warns, and the remedy."""
    lengths = _LENGTHS.fullmatch(reason)
    if lengths is None:
        return f"the GenBank record is cut off ({reason})", "fetch it again"
    more = int(lengths[2]) > int(lengths[1])
    remedy = "" if more else ", or fetch the record again if it is cut off"
    what = f"the LOCUS line states {lengths[1]} letters, and the record has {lengths[2]}"
    return what, f"correct the LOCUS line{remedy}"


def _letters(record: SeqRecord) -> bytes:
    try:
        return bytes(record.seq or b"")
    except UndefinedSequenceError:  # a CONTIG line instead of the letters
        return b""
