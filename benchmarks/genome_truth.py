"""Mapped starts of several genomes, for a benchmark that leaves one genus out.

The tables are those that ``data/prepare_genomes.py`` writes. A genome of several contigs is laid end to end,
so that calls and starts have one coordinate and ``matching.py`` serves them, too.

Unlisted is not false: precision against these starts is a lower bound, and only as comparable between
species as their mapping was thorough.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import numpy as np

from ecoli_truth import merge_near
from loci import Finder
from machine import read_table
from matching import Calls, Starts, make_starts, rank_calls
from seqray.core.alphabet import DNA
from seqray.io.sequences import read_sequences

WINDOW_START = 39
"""Index of the transcription start in the 40-letter windows of Promotech's published scans."""


@dataclass(frozen=True, slots=True)
class KnownStart:
    """One mapped start: 0-based ``position`` on the contigs laid end to end.

    ``weight`` is that of its best source, in shares of the best source of the genome.
    """

    position: int
    strand: str
    site: str
    distance: int | None
    sources: frozenset[str]
    strong: bool
    weight: float = 1.0

    @property
    def upstream(self) -> bool:
        """True for a start at most 500 letters before a gene of its strand."""
        return self.distance is not None


@dataclass(frozen=True, slots=True)
class KnownGenome:
    """A genome with mapped starts that are good enough to judge calls by."""

    name: str
    species: str
    genus: str
    domain: str
    contigs: Mapping[str, str]
    starts: tuple[KnownStart, ...]
    regions: tuple[tuple[int, int], ...] = ()
    """What is measured, half-open, on the contigs laid end to end; empty for all."""

    @property
    def measured(self) -> tuple[tuple[int, int], ...]:
        """The regions that are measured, in their order."""
        return self.regions or ((0, sum(map(len, self.contigs.values()))),)

    def measured_contigs(self) -> list[str]:
        """Return the names of the contigs with measured letters."""
        return [
            name
            for name, offset in end_to_end(self.contigs).items()
            if any(
                first < offset + len(self.contigs[name]) and offset < last for first, last in self.measured
            )
        ]

    def place(self, position: np.ndarray) -> np.ndarray:
        """Return where positions lie when the measured regions are laid end to end; -1 outside of them."""
        first, last = np.array(self.measured).T
        region = np.searchsorted(first, position, side="right") - 1
        inside = (region >= 0) & (position < last[region])
        before = np.concatenate(([0], np.cumsum(last - first)[:-1]))
        return np.where(inside, position - first[region] + before[region], -1)

    def cut(self, calls: Calls) -> Calls:
        """Return the calls of the whole genome that lie in the measured regions, placed there."""
        placed = self.place(calls.position)
        return replace(calls.take(placed >= 0), position=placed[placed >= 0])

    def select(self, keep: Callable[[KnownStart], bool] = lambda _: True) -> Starts:
        """Return distinct starts, those within five letters of each other merged."""
        kept = [start for start in self.starts if keep(start)]
        starts = make_starts(
            {s: merge_near({start.position for start in kept if start.strand == s}) for s in "+-"}
        )
        placed = self.place(starts.position)
        return replace(starts.take(placed >= 0), position=placed[placed >= 0])


def read_genome(folder: Path, row: Mapping[str, str], part: str = "") -> KnownGenome:
    """Read one genome of a sheet, or a part of its split; starts of no weight are left out.

    Where nothing is named, all is measured but what the split masks, for its starts are not in the tables.
    """
    contigs = {r.id: r.sequence.upper() for r in read_sequences(folder / row["genome"], DNA)}
    sites = [site for site in read_table(folder / row["sites"]) if float(site["weight"]) > 0]
    offsets = end_to_end(contigs)
    starts = tuple(known_start(site, offsets[site["contig"]]) for site in sites)
    split = folder / f"{row['name']}.split.bed"
    rows = [line.split("\t") for line in split.read_text().splitlines()] if split.exists() else []
    named = [
        (offsets[contig] + int(start), offsets[contig] + int(end))
        for contig, start, end, name in rows
        if name == (part or "mask")
    ]
    regions = sorted(named) if part else outside(named, sum(map(len, contigs.values())))
    names = row["name"], row["species"], row["genus"], row["domain"]
    return KnownGenome(*names, contigs, starts, tuple(regions))


def outside(regions: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return what is left of a genome without some regions."""
    edges = [0, *(edge for region in sorted(regions) for edge in region), length]
    return [(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True) if first < last]


def end_to_end(contigs: Mapping[str, str]) -> dict[str, int]:
    """Return where each contig begins when they are laid end to end."""
    return dict(zip(contigs, accumulate(map(len, contigs.values()), initial=0), strict=False))


def known_start(site: Mapping[str, str], offset: int) -> KnownStart:
    """Make a start of a row of a sites table."""
    return KnownStart(
        position=offset + int(site["position"]) - 1,
        strand=site["strand"],
        site=site["site"],
        distance=int(site["distance"]) if site["distance"] else None,
        sources=frozenset(site["source"].split(";")),
        strong=site["strong"] == "1",
        weight=float(site["weight"]),
    )


def read_promotech(path: Path, genome: KnownGenome) -> Calls:
    """Read one of Promotech's published scans, placed by its letters (so that a relative's serves, too)."""
    rows = ((row["sequence"], float(row["score"])) for row in read_table(path))
    return place_calls(rows, genome)


def place_calls(rows: Iterable[tuple[str, float]], genome: KnownGenome) -> Calls:
    """Place windows of 40 letters with their scores; one that occurs several times is a call each time."""
    finder, offsets = Finder(genome.contigs), end_to_end(genome.contigs)
    placed = [
        (offsets[contig] + position, strand, score)
        for letters, score in dict(rows).items()
        for contig, position, strand in finder.find(letters, WINDOW_START)
    ]
    position, strand, score = zip(*placed, strict=True)
    return rank_calls(position, strand, score)
