"""Features of a genome, the lines of text that they are read from, and what a header states of a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from seqray.core.errors import InputError
from seqray.core.text import counted
from seqray.io.files import display_name, open_input

# --------------------------------------------------------------------------------------------- features


class Part(NamedTuple):
    """An interval, 0-based and half-open; the strand is ``+``, ``-``, ``.`` or, in GFF3, ``?``."""

    start: int
    end: int
    strand: str


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a genome, of a kind such as ``CDS``; parts are in the order of transcription.

    ``partial_start``: the 5' end lies elsewhere; ``offset``: letters before the first whole codon.
    """

    contig: str
    kind: str
    parts: tuple[Part, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    partial_start: bool = False
    partial_end: bool = False
    offset: int = 0
    site: int | None = None

    @property
    def name(self) -> str:
        """ID, locus tag or name of the gene; empty without any."""
        return next((v for key in ("ID", "locus_tag", "gene") if (v := self.attributes.get(key))), "")

    @property
    def strand(self) -> str:
        """That of the first part: ``+``, ``-`` or ``.``."""
        return self.parts[0].strand

    @property
    def start(self) -> int:
        """Position of the leftmost letter."""
        return min(part.start for part in self.parts)

    @property
    def end(self) -> int:
        """The position behind the rightmost letter."""
        return max(part.end for part in self.parts)

    @property
    def first(self) -> int:
        """The first letter in reading direction, or the site that a call states."""
        start, end, strand = self.parts[0]
        return self.site if self.site is not None else end - 1 if strand == "-" else start

    @property
    def pseudo(self) -> bool:
        """Whether the file calls it that of a pseudogene."""
        return is_pseudo(self.kind, self.attributes)


# Why features are left out, or parts of them.
ELSEWHERE = "with parts on other records"
UNREADABLE = "whose location can't be read"
WITHOUT_LETTERS = "between two letters, or at an unknown place"
WITHOUT_START = "whose start lies elsewhere"


class AnnotatedFile(NamedTuple):
    """Features of a file in its order, and what it says of its contigs; ``left_out`` counts by reason."""

    format: str
    features: list[Feature]
    lengths: Mapping[str, int] = {}
    circular: frozenset[str] = frozenset()
    others: Sequence[str] = ()
    left_out: Mapping[str, int] = {}
    names: Mapping[str, Sequence[str]] = {}

    @property
    def note(self) -> str:
        """What was left out, for the user; empty if nothing was."""
        texts = [f"{counted(count, 'feature')} {reason}" for reason, count in self.left_out.items()]
        return f"left out: {' and '.join(texts)}" if texts else ""


def turn_at_origin(parts: Sequence[Part], length: int | None) -> int:
    """Count the parts that a file sorted by position put before those which they follow across the origin."""
    if len(parts) < 2 or length is None:
        return 0
    forward = all(part.strand == "+" for part in parts)
    first, last = (parts[0], parts[-1]) if forward else (parts[-1], parts[0])
    starts = [part.start for part in parts]
    if starts != sorted(starts, reverse=not forward):
        return 0
    if last.end <= length and (first.start, last.end) != (0, length):
        return 0
    gaps = [max(a.start - b.end, b.start - a.end) for a, b in pairwise(parts)]
    return gaps.index(max(gaps)) + 1


def is_pseudo(kind: str, attributes: Mapping[str, str]) -> bool:
    """Whether a feature is that of a pseudogene, by its qualifiers (GenBank) or attributes (GFF3)."""
    stated = "pseudogene" in attributes or attributes.get("pseudo", "false").lower() != "false"
    return stated or kind == "pseudogene" or attributes.get("gene_biotype") == "pseudogene"


# ------------------------------------------------------------------------------------------------ lines


HEADER_WORDS = ("track", "browser")  # with which lines for a genome browser begin, in BED and bedGraph


def check_line_start(contig: str) -> None:
    """Raise `InputError` for a name that would make comments of lines of BED or bedGraph."""
    if contig.startswith("#"):
        raise InputError(
            f"the id '{contig}' would make comments of lines of BED and bedGraph",
            remedy="rename the record, or write GFF3, TSV or bigWig",
        )


def decoded_lines(handle: Iterable[bytes], name: str) -> Iterator[tuple[str, str]]:
    """Place (``file: line 3``) and text of each line that is not blank."""
    lines = (line for block in handle for line in block.splitlines())  # a block may end lines with \r alone
    for number, raw in enumerate(lines, start=1):
        where = f"{name}: line {number}"
        try:
            line = raw.decode("utf-8").removeprefix("\ufeff")  # a byte-order mark
        except UnicodeDecodeError:
            raise InputError("is not text in UTF-8", where=where, remedy="save the file as UTF-8") from None
        if line.strip():
            yield where, line


def numbered_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """`decoded_lines` of a file."""
    with open_input(path) as handle:
        yield from decoded_lines(handle, display_name(path))


def is_position(text: str) -> bool:
    """Whether a text is a whole number of at most 18 digits, of ASCII."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def parse_position(text: str, where: str) -> int:
    """The number that `is_position` tells; raises `InputError` for any other text."""
    if not is_position(text):
        what = f"has '{text}' instead of a position"
        raise InputError(what, where=where, remedy="give a whole number, 0 or more")
    return int(text)


def parse_strand(text: str, where: str) -> str:
    """``+``, ``-`` or ``.``."""
    if text not in ("+", "-", "."):
        raise InputError(f"has the strand '{text}'", where=where, remedy="use +, - or .")
    return text


# ------------------------------------------------------------------------------------------------- BED


def read_regions(path: str | Path) -> list[Feature]:
    """Read the regions of a BED file, whatever their strands; those without a letter are left out."""
    regions = parse_bed(numbered_lines(path), with_strand=False)
    return [region for region in regions if region.start < region.end]


def parse_bed(lines: Iterable[tuple[str, str]], *, with_strand: bool = True) -> Iterator[Feature]:
    """Features of lines of BED, but not of a browser; a header of seqray names the column of the site."""
    at_site = None
    for where, line in lines:
        cells = line.split("\t") if "\t" in line else line.split()
        if line.startswith("#"):
            at_site = (
                cells.index("site")
                if cells[:3] == ["#chrom", "chromStart", "chromEnd"] and "site" in cells
                else at_site
            )
            continue
        is_row = len(cells) > 2 and is_position(cells[1]) and is_position(cells[2])
        if line.split(maxsplit=1)[0] in HEADER_WORDS and not is_row:
            continue
        if len(cells) < 3:
            what = f"has {counted(len(cells), 'column')}"
            raise InputError(what, where=where, remedy="BED needs contig, start and end")
        start, end = parse_position(cells[1], where), parse_position(cells[2], where)
        if start > end or (with_strand and start == end):
            what = "empty interval" if start == end else "interval"
            remedy = "write the smaller position first; the end is not part of it"
            raise InputError(f"has the {what} {start}-{end}", where=where, remedy=remedy)
        strand = cells[5] if with_strand and len(cells) > 5 else "."
        yield Feature(
            contig=cells[0],
            kind="",
            parts=(Part(start, end, parse_strand(strand, where)),),
            attributes={"ID": cells[3]} if len(cells) > 3 else {},
            where=where,
            site=parse_position(cells[at_site], where) if at_site and len(cells) > at_site else None,
        )


# ----------------------------------- the header of a file of calls: its threshold, and how many are right

EXPECTED = ("expected precision", "expected false calls")
_STATED = ("model", "parts", "scanned", "calls", "threshold", *EXPECTED, "evidence from letters")


@dataclass(frozen=True, slots=True)
class ScanStatement:
    """What a scan states of its calls: the file's name without its folder, and the facts of its header."""

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
