"""One strand of a contig in reading direction: letters, genes, sites, and what each position weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seqray.annotation import REACH, TRACKS, Gene, Tracks, gene_tracks, shift_gene
from seqray.core import DNA, Codes, Floats, Ints, cut_stretch

_WRAP = 20_000  # letters of a circle that are continued beyond its origin
MASKED, PLAIN, INSIDE, GAP = range(4)
"""Levels of a position: not learned from; background; inside a gene; where unmapped sites may lie."""


@dataclass(frozen=True, eq=False)
class Sites:
    """Sites of a strand, by rising position (N,), counted from the first letter of the strand.

    ``kind`` (N,) is the index of the class, ``weight`` (N,) is 0 or more.
    """

    position: Ints
    kind: Ints
    weight: Floats

    def __len__(self) -> int:
        return len(self.position)

    def take(self, chosen: np.ndarray) -> Sites:
        """Those of a mask, or of indices in rising order."""
        return Sites(self.position[chosen], self.kind[chosen], self.weight[chosen])

    def between(self, start: int, end: int) -> Sites:
        """Those in ``[start, end)``."""
        low, high = np.searchsorted(self.position, [start, end])
        return self.take(np.arange(low, high))

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, float]]) -> Sites:
        """Sort rows of position, class and weight."""
        table = np.array(sorted(rows), dtype=np.float64).reshape(-1, 3)
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


@dataclass(frozen=True, eq=False)
class LabeledStrand:
    """A strand of a contig.

    Attributes
    ----------
    codes
        (L,) letters in reading direction.
    sites
        In coordinates of the strand, as everything here.
    level
        (L,) uint8, what each position is, see `MASKED`.
    genes
        With ``+`` for this strand; None where the genes are not known.
    circular
        Whether the last letter is followed by the first.
    inside
        Weight of `INSIDE`.
    joined
        Whether it is made of short contigs end to end.
    """

    codes: Codes
    sites: Sites
    level: np.ndarray
    genes: tuple[Gene, ...] | None = None
    circular: bool = False
    inside: float = 1.0
    joined: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def _placed(self) -> tuple[list[Gene], Ints, Ints]:
        """Genes by start, those of a circle also around it; their starts, and the last end so far."""
        genes, length = list(self.genes or ()), len(self)
        if self.circular:
            turns = _WRAP // length + 2  # a gene across the origin ends up to a turn further
            around = [n * length for n in range(-turns, turns + 1) if n]
            copies = [shift_gene(gene, by) for gene in genes for by in around]
            genes += [gene for gene in copies if gene.end > -_WRAP and gene.start < length + _WRAP]
        genes.sort(key=lambda gene: gene.start)
        starts = np.array([gene.start for gene in genes], dtype=np.int64)
        ends = np.array([gene.end for gene in genes], dtype=np.int64)
        return genes, starts, np.maximum.accumulate(ends) if len(ends) else ends

    def letters(self, start: int, end: int) -> Codes:
        """Codes of ``[start, end)``; unknown beyond the ends of a linear contig."""
        return cut_stretch(self.codes, start, end, DNA.unknown, circular=self.circular)

    def tracks(self, start: int, end: int) -> Tracks:
        """Gene tracks (T, n) of ``[start, end)``: those of the whole contig; zero beyond its ends."""
        if self.genes is None:
            return np.zeros((len(TRACKS), end - start), dtype=np.uint8)
        genes, starts, last_ends = self._placed
        first = np.searchsorted(last_ends, start - REACH, "right")
        stop = np.searchsorted(starts, end + REACH, "left")
        near = [shift_gene(gene, -start) for gene in genes[first:stop] if gene.end > start - REACH]
        tracks = gene_tracks(near, end - start, "+")
        if not self.circular:
            tracks[:, : max(-start, 0)] = 0
            tracks[:, max(len(self) - start, 0) :] = 0
        return tracks
