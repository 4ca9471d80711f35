"""Features of a genome, the lines of text that they are read from, and what a header states of a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from seqray.core.errors import InputError
from seqray.io.files import display_name, open_input

# --------------------------------------------------------------------------------------------- features


@dataclass(frozen=True, slots=True)
class Feature:
    """An interval on a contig: 0-based, half-open, on the plus strand; the strand is ``+``, ``-`` or ``.``.

    ``kind`` is its type (``gene``, ``CDS``), empty for a line of a BED file; ``pseudo`` says whether the file
    calls it a pseudogene.
    """

    contig: str
    start: int
    end: int
    name: str = ""
    strand: str = "."
    kind: str = ""
    pseudo: bool = False


class Part(NamedTuple):
    """An interval, 0-based and half-open; the strand is ``+``, ``-``, ``.`` or, in GFF3, ``?``."""

    start: int
    end: int
    strand: str


@dataclass(frozen=True, slots=True)
class AnnotatedFeature:
    """A feature of a genome, of a kind such as ``CDS``; ``where`` is the file and line or record, for errors.

    The parts are in the order of transcription, also of a feature across the origin whose file sorts them by
    position; the attributes are those of GFF3 or qualifiers of GenBank, the first value of each.
    ``partial_start`` and ``partial_end`` say whether the file says that the 5' or 3' end lies elsewhere, and
    ``offset`` how many letters come before the first whole codon.
    """

    contig: str
    kind: str
    parts: tuple[Part, ...]
    attributes: Mapping[str, str]
    where: str
    partial_start: bool = False
    partial_end: bool = False
    offset: int = 0


class AnnotatedFile(NamedTuple):
    """Features of a file in its order, and what it says of its contigs.

    ``format`` is ``GenBank`` or ``GFF3``, ``lengths`` those of the contigs where they are stated, and
    ``others`` the kinds of the features that were not wanted.
    """

    format: str
    features: list[AnnotatedFeature]
    lengths: dict[str, int]
    circular: frozenset[str]
    others: Sequence[str]


def turn_at_origin(parts: Sequence[Part], length: int | None) -> int:
    """Count the parts that a file sorted by position put before those which they follow across the origin.

    ``length`` is that of the contig if it is circular, else None.
    """
    if len(parts) < 2:
        return 0
    forward = all(part.strand == "+" for part in parts)
    first, last = (parts[0], parts[-1]) if forward else (parts[-1], parts[0])
    starts = [part.start for part in parts]
    if starts != sorted(starts, reverse=not forward) or (first.start, last.end) != (0, length):
        return 0
    gaps = [max(a.start - b.end, b.start - a.end) for a, b in pairwise(parts)]
    return gaps.index(max(gaps)) + 1


def is_pseudo(kind: str, attributes: Mapping[str, str]) -> bool:
    """Whether a feature is that of a pseudogene, by its qualifiers (GenBank) or attributes (GFF3)."""
    stated = "pseudogene" in attributes or attributes.get("pseudo", "false").lower() != "false"
    return stated or kind == "pseudogene" or attributes.get("gene_biotype") == "pseudogene"


# ------------------------------------------------------------------------------------------------ lines


def check_line_start(contig: str) -> None:
    """Raise `InputError` for a name that would make a comment of a line of BED or bedGraph."""
    if contig.startswith("#"):
        raise InputError(
            f"the id '{contig}' would make comments of lines of BED and bedGraph",
            remedy="rename the record, or write GFF3, TSV or bigWig",
        )


def numbered_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """`data_lines` of a file."""
    with open_input(path) as handle:
        yield from data_lines(handle, display_name(path))


def data_lines(handle: Iterable[bytes], name: str) -> Iterator[tuple[str, str]]:
    """Place (``file: line 3``) and text of each line that contains data, up to a ``##FASTA`` section."""
    return ((where, line) for where, line in decoded_lines(handle, name) if not line.startswith("#"))


def decoded_lines(handle: Iterable[bytes], name: str) -> Iterator[tuple[str, str]]:
    """`data_lines`, with the lines that begin with ``#``; blank ones are left out."""
    lines = (line for block in handle for line in block.splitlines())  # a block may end lines with \r alone
    for number, raw in enumerate(lines, start=1):
        where = f"{name}: line {number}"
        try:
            line = raw.decode("utf-8").removeprefix("\ufeff")  # a byte-order mark
        except UnicodeDecodeError:
            raise InputError("is not text in UTF-8", where=where) from None
        if line.startswith("##FASTA"):
            return
        if line.strip():
            yield where, line


def is_position(text: str) -> bool:
    """Whether a text is a whole number of at most 18 digits, of ASCII."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def parse_position(text: str, where: str) -> int:
    """The number that `is_position` tells; raises `InputError` for any other text."""
    if not is_position(text):
        raise InputError(f"has '{text}' instead of a position", where=where)
    return int(text)


def parse_strand(text: str, where: str) -> str:
    """``+``, ``-`` or ``.``."""
    if text not in ("+", "-", "."):
        raise InputError(f"has the strand '{text}'", where=where, remedy="use +, - or .")
    return text


# ----------------------------------- the header of a file of calls: its threshold, and how many are right

EXPECTED = ("expected precision", "expected false calls")
_STATED = ("model", "parts", "scanned", "calls", "threshold", *EXPECTED, "evidence from letters")


@dataclass(frozen=True, slots=True)
class ScanStatement:
    """What a scan states of its calls: the name of the file without its folder, and facts.

    The facts are those that the header has, in a fixed order: the threshold, what was scanned, how many calls
    there are, and the precision or the false calls to expect.
    """

    file: str
    facts: Mapping[str, str]

    @classmethod
    def of(cls, path: str | Path, comments: Iterable[str]) -> ScanStatement:
        """Read the ``# key: value`` lines above the first call; GFF3, TSV and BED have the same."""
        facts: dict[str, str] = {}
        for line in comments:
            key, colon, text = line.removeprefix("# ").partition(": ")
            if colon:
                facts.setdefault(key, text)
        return cls(Path(display_name(path)).name, {key: facts[key] for key in _STATED if key in facts})

    @property
    def lacks(self) -> list[str]:
        """What the header does not state, of what is needed to judge the calls."""
        lacking = [] if "threshold" in self.facts else ["the threshold"]
        if self.facts.keys().isdisjoint(EXPECTED):
            lacking.append("the precision or the false calls to expect")
        return lacking

    def made_by(self, checksum: str) -> bool:
        """Whether the model of this SHA-256 made the calls, as far as the header says."""
        return self.facts.get("model", checksum).endswith(checksum)
