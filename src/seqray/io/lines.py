"""Lines of tracks, and the statement in their header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from seqray.core.errors import InputError
from seqray.io.files import display_name, open_input

# --- Features, and the lines of text that they are read from


@dataclass(frozen=True, slots=True)
class Feature:
    """An interval on a contig: 0-based, half-open, on the plus strand.

    Attributes
    ----------
    contig, start, end, strand
        Where it lies; the strand is ``+``, ``-`` or ``.``.
    name
        Empty if there is none.
    kind
        Type of the feature (``gene``, ``CDS``); empty for a line of a BED file.
    pseudo
        Whether the file says that it is a pseudogene.
    """

    contig: str
    start: int
    end: int
    name: str = ""
    strand: str = "."
    kind: str = ""
    pseudo: bool = False


def is_pseudo(kind: str, attributes: Mapping[str, str]) -> bool:
    """Whether a feature is that of a pseudogene, by its qualifiers (GenBank) or attributes (GFF3)."""
    stated = "pseudogene" in attributes or attributes.get("pseudo", "false").lower() != "false"
    return stated or kind == "pseudogene" or attributes.get("gene_biotype") == "pseudogene"


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
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("is not text in UTF-8", where=where) from None
        line = line.removeprefix("\ufeff")  # a byte-order mark
        if line.startswith("##FASTA"):
            return
        if line.strip():
            yield where, line


def is_position(text: str) -> bool:
    """Whether a text is a whole number of at most 18 digits, which are not those of any script."""
    return re.fullmatch(r"[0-9]{1,18}", text) is not None


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


# --- What the header of a file of calls states about the scan: its threshold, and how many are right

EXPECTED = ("expected precision", "expected false calls")
_STATED = ("model", "parts", "scanned", "calls", "threshold", *EXPECTED, "evidence from letters")


@dataclass(frozen=True, slots=True)
class ScanStatement:
    """What a scan states of its calls.

    Attributes
    ----------
    file
        Name of the file of calls, without its folder.
    facts
        Key to text, of those that the header has, in a fixed order: the threshold, what was scanned, how
        many calls there are, and the precision or the false calls to expect.
    """

    file: str
    facts: Mapping[str, str]

    @property
    def lacks(self) -> list[str]:
        """What the header does not state, of what is needed to judge the calls."""
        known = self.facts.keys()
        lacking = [] if "threshold" in known else ["the threshold"]
        return lacking + ([] if known & set(EXPECTED) else ["the precision or the false calls to expect"])

    def made_by(self, checksum: str) -> bool:
        """Whether the model of this SHA-256 made the calls, as far as the header says."""
        return self.facts.get("model", checksum).endswith(checksum)


def read_scan_statement(path: str | Path) -> ScanStatement:
    """Read the ``# key: value`` lines above the first call; GFF3, TSV and BED have the same."""
    name = display_name(path)
    found: dict[str, str] = {}
    with open_input(path) as handle:
        for _, line in decoded_lines(handle, name):
            if not line.startswith("#"):
                break
            key, colon, text = line.removeprefix("# ").partition(": ")
            if colon and key in _STATED:
                found.setdefault(key, text)
    return ScanStatement(Path(name).name, {key: found[key] for key in _STATED if key in found})
