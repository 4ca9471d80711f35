"""What a scan counts and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from seqray.annotation import Annotation
from seqray.calibration import Expectation
from seqray.core import Floats, Intervals, Ints
from seqray.scanning.calls import CallTable
from seqray.scanning.false_calls import LETTERS_PER_MB, FalseCalls
from seqray.scanning.windows import Grid


@dataclass(frozen=True, slots=True)
class Contig:
    """A sequence that is scanned, without its letters; sites are called in ``parts``, None for everywhere."""

    name: str
    length: int
    circular: bool
    parts: Intervals | None = None

    @property
    def scanned(self) -> Intervals:
        """Where sites are called."""
        return Intervals.merge([(0, self.length)]) if self.parts is None else self.parts


@dataclass(slots=True)
class ScanCounts:
    """Counts of a scan or of one shard.

    Contigs, letters and null positions are those of the whole scan, the same in every shard. The others are
    those of this shard: positions are summed over the strands; of the windows ``compared`` with the training
    data, so many were ``unlike`` them.
    """

    contigs: int = 0
    letters: int = 0
    null_positions: int = 0
    positions: int = 0
    windows: int = 0
    compared: int = 0
    unlike: int = 0


@dataclass(frozen=True, slots=True)
class ScoreProfile:
    """Scores along one strand of a contig, in ascending order of site, as a track shows them.

    Attributes
    ----------
    contig, length, strand
        Where.
    sites, gaps
        (n,) 0-based positions, and letters up to the next one.
    scores
        (n,) scores from 0 to 1; NaN for a window that wasn't scored.
    """

    contig: str
    length: int
    strand: str
    sites: Ints
    gaps: Ints
    scores: Floats

    @classmethod
    def of(cls, contig: Contig, grid: Grid, strand: str, starts: Ints, scores: Floats) -> ScoreProfile:
        """Make the profile of some windows; those outside the parts of the contig are not scored.

        Parameters
        ----------
        contig
            Contig with its parts.
        grid
            Positions of the windows.
        strand
            ``+`` or ``-``.
        starts, scores
            (n,) start and score of each window.
        """
        sites = grid.sites(starts, strand)
        if contig.parts is not None:
            scores = np.where(contig.parts.contains(sites), scores, np.nan)
        return cls(contig.name, contig.length, strand, sites, grid.gaps(starts), scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """The calls of a scan, and the figures about it.

    Attributes
    ----------
    calls
        In order of the input, then of start, then strand.
    threshold
        That was applied; None if no threshold achieves the requested FDR, and then there are no calls.
    false_calls
        Calls to expect by chance; None if not estimated.
    contigs, letters
        Contigs scanned and their total length.
    positions
        Positions searched on each strand.
    parts
        By contig, the parts that ``ScanOptions.regions`` selected; None if everything was searched.
    windows
        Windows scored, refinement and shuffled sequence included.
    strand
        ``both``, ``plus`` or ``minus``: which were searched.
    genes
        Of the contigs scanned; None where they are not known.
    from_positions
        Whether every position was scored, not windows.
    expectation
        What the card of a locator leads to expect at the threshold; None if nothing.
    lowest_measured
        Score below which the card knows no precision; None if it knows none at all.
    species
        The species of the card that the input is like; None if it is like none.
    unlike
        Share of the windows compared that differ from the model's training data; None if unknown.
    contigs_without_genes, letters_without_genes
        Contigs scanned whose genes are not known, and their letters.
    circular
        Contigs that were scanned as circles.
    mean_linear_length
        Mean letters of the contigs scanned that are not circular; None if all are.
    findings
        Lines on what the sequences are like, and on what speaks against the calls: these begin with
        ``caution:``.
    """

    calls: CallTable
    threshold: float | None
    false_calls: FalseCalls | None
    contigs: int
    letters: int
    positions: int
    windows: int
    unlike: float | None
    parts: Mapping[str, Intervals] | None = None
    strand: Literal["both", "plus", "minus"] = "both"
    genes: Annotation | None = None
    from_positions: bool = False
    expectation: Expectation | None = None
    lowest_measured: float | None = None
    species: str | None = None
    contigs_without_genes: int = 0
    letters_without_genes: int = 0
    circular: int = 0
    mean_linear_length: float | None = None
    findings: tuple[str, ...] = ()

    @property
    def calls_per_mb(self) -> float:
        """Calls per million positions scanned."""
        return len(self.calls) / (self.positions / LETTERS_PER_MB) if self.positions else 0.0

    @property
    def expected_precision(self) -> float | None:
        """Precision to expect: of the species, or the median over others; None if nothing is known."""
        if self.expectation is None:
            return None
        own = self.expectation.of(self.species)
        return own.precision if own else self.expectation.median

    @property
    def calls_per_gene(self) -> float | None:
        """Calls per gene; None of parts or one strand, or if over a tenth is not scanned or annotated."""
        least = 0.9 * self.letters
        whole = self.parts is None and self.strand == "both"
        whole = whole and min(self.positions, self.letters - self.letters_without_genes) >= least
        return len(self.calls) / self.genes.count if whole and self.genes and self.genes.count else None
