"""Transcription starts of published tables, placed on genomes.

Tables with coordinates on the genome at hand are read as they are; tables of letters (windows and contexts)
are placed by exact match, so that they may also come from a relative.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from loci import Finder, Place
from seqray.core.alphabet import reverse_complement

SITE = 60
"""Index of the start in the 81-bp windows of iPro-MP."""
CORE_BEFORE, CORE_AFTER = 50, 10
"""Letters before and after the start; a context is placed where a genome contains exactly these."""
PARTS = ("UP", "Minus35", "Spacer", "Minus10", "Dis", "Start", "ITR")
RELATIVES = {"Shigella": "Escherichia", "Mycolicibacterium": "Mycobacterium"}
"""Genera that share whole loci with another and count as that one."""

PLUS_IS_EARLY = "RHODOBACTER"
"""Files whose positions are one letter too far upstream on the plus strand, as the letters there show."""
ZERO_BASED = ("Neisseria gonorrhoeae MS11",)
"""Tables of contexts whose positions are 0-based, as the letters there show; the others are 1-based."""


@dataclass(frozen=True, slots=True)
class Start:
    """One transcription start as one source gives it.

    ``position`` is 0-based; ``part`` is "train" or "test" where the source has such parts; ``strong`` marks
    the well-established ones of RegulonDB.
    """

    contig: str
    position: int
    strand: str
    source: str
    part: str = ""
    strong: bool = False

    @property
    def place(self) -> Place:
        """Where the start lies."""
        return self.contig, self.position, self.strand


@dataclass(frozen=True, slots=True)
class Context:
    """Letters around a start upstream of a gene, 5' to 3' on the strand of the start.

    ``index`` is the start in ``letters``; ``coordinate`` is the 1-based position that the table states;
    ``distance`` is the number of letters from the start to the first letter of the gene, 0 without a leader.
    """

    species: str
    letters: str
    index: int
    type: str
    coordinate: int
    strand: str
    distance: int

    @property
    def genus(self) -> str:
        """The genus, relatives that share loci counted as one."""
        genus = self.species.split()[0]
        return RELATIVES.get(genus, genus)

    def around(self, before: int, after: int) -> str:
        """Return the letters around the start."""
        return self.letters[self.index - before : self.index + after + 1]

    @property
    def core(self) -> tuple[str, int]:
        """The letters that a genome must contain, and the index of the start in them."""
        first = max(0, self.index - CORE_BEFORE)
        return self.letters[first : self.index + CORE_AFTER + 1], self.index - first


def read_contexts(path: Path) -> list[Context]:
    """Read one table of Kuo et al.; the start is the middle letter of the three of ``Start``."""
    species = path.name.removesuffix(".tsv.gz").replace("_", " ")
    found = []
    with gzip.open(path, "rt", encoding="utf-8-sig") as handle:
        for row in csv.DictReader(handle, delimiter="\t"):
            late, forward = species in ZERO_BASED, row["Direction"] == "+"
            at = int(row["TSS_coordinate"])
            before = "".join(row[part] for part in PARTS[:5]).replace("*", "")
            if abs(at - int(row["Minus10_3end_coordinate"])) == 1:
                before = before[:-1]  # the last letter of the box is the first of the three of `Start`
            letters, index = (before + row["Start"] + row["ITR"]).upper(), len(before) + 1
            if late:
                at, index = at + 1, index + (1 if forward else -1)
            distance = int(row["Gene_start"]) - at if forward else at - int(row["Gene_end"])
            found.append(Context(species, letters, index, row["Type"], at, row["Direction"], distance))
    return found


def place_contexts(contexts: Iterable[Context], finder: Finder) -> Iterator[Start]:
    """Yield every place of each context."""
    for context in contexts:
        for place in finder.find(*context.core):
            yield Start(*place, "kuo")


def read_windows(path: Path) -> list[str]:
    """Read the promoters of an iPro-MP file; the other two kinds of window name their kind."""
    with gzip.open(path, "rt") as handle:
        lines = [line.strip() for line in handle]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [
        letters.upper()
        for header, letters in pairs
        if not {"CDS", "Convergent"} & set(header.replace("--", " ").split())
    ]


def place_windows(folder: Path, number: str, finder: Finder) -> Iterator[Start]:
    """Yield every place of the promoter windows of one iPro-MP species."""
    for part in ("train", "test"):
        for letters in read_windows(folder / f"{number}_{part}.txt.gz"):
            for place in finder.find(letters, SITE):
                yield Start(*place, "ipromp", part)


def read_bed(path: Path, source: str) -> list[Start]:
    """Read starts of a BED6 file: column 2 is the start, 0-based, but for files that are off by one."""
    shift = 1 if path.name.startswith(PLUS_IS_EARLY) else 0
    found = []
    with gzip.open(path, "rt") as handle:
        for line in handle:
            if line.strip():
                fields = line.split("\t")
                strand = fields[5].strip()
                found.append(Start(fields[0], int(fields[1]) + shift * (strand == "+"), strand, source))
    return found


def read_positions(path: Path, source: str) -> list[Start]:
    """Read starts of a TSV with the columns ``contig``, ``position`` (1-based) and ``strand``."""
    with gzip.open(path, "rt", newline="") as handle:
        rows = csv.DictReader(handle, delimiter="\t")
        return [Start(row["contig"], int(row["position"]) - 1, row["strand"], source) for row in rows]


def window_at(contigs: Mapping[str, str], place: Place, before: int, after: int) -> str:
    """Return the letters around a place, 5' to 3' on its strand; empty near the ends of a contig."""
    contig, position, strand = place
    low, high = (before, after) if strand == "+" else (after, before)
    if position < low or contig not in contigs:
        return ""
    letters = contigs[contig][position - low : position + high + 1]
    letters = letters if len(letters) == before + after + 1 else ""
    return letters if strand == "+" else reverse_complement(letters)
