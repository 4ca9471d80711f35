"""Windows of a contig on a grid, its letters while they are scored, and the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.records import Contig, Intervals
from seqray.genome.genes import Gene
from seqray.inference.locators import Strand


class Grid:
    """Positions of the windows of a contig, by the index ``site`` in a window, and ``stride``."""

    def __init__(self, length: int, window: int, site: int, stride: int, *, circular: bool = False) -> None:
        self.length, self.window, self.stride, self.circular = length, window, stride, circular
        self._offsets = {"+": site, "-": window - 1 - site}  # from a start to the site on the plus strand
        self.last = length - 1 if circular else length - window
        self.points = -(-length // stride) if circular else -(-self.last // stride) + 1

    def starts(self, first: int, stop: int, strand: str) -> Ints:
        """Starts of windows from ``first`` up to ``stop``, by site; past the origin of a circle first."""
        index = np.arange(first, min(stop, self.points), dtype=np.int64)
        if self.circular:
            wrapped = -(-(self.length - self._offsets[strand]) // self.stride)
            index = (index + wrapped) % self.points
        return np.minimum(index * self.stride, self.last)

    def sites(self, starts: Ints, strand: str) -> Ints:
        """Positions of the sites of windows within the contig."""
        sites = starts + self._offsets[strand]
        return sites % self.length if self.circular else sites

    def around(self, starts: Ints) -> tuple[Ints, Bools]:
        """Starts and existence of windows (n, 2 stride - 1) between each and its neighbors on the grid."""
        near = starts[:, None] + np.arange(1 - self.stride, self.stride, dtype=np.int64)
        if self.circular:
            return near % self.length, np.ones(near.shape, dtype=bool)
        return np.clip(near, 0, self.last), (near >= 0) & (near <= self.last)


class OpenContig(Grid):
    """The same with its letters (L,) and, where they are known, its genes, while it is scored.

    Windows with their site in ``parts`` and not in ``masked``, and few letters ``unknown``, are scored.
    """

    def __init__(
        self,
        codes: Codes,
        grid: tuple[int, int, int],
        unknown: int,
        max_ambiguous: float = 0.0,
        *,
        genes: tuple[Gene, ...] | None = None,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> None:
        super().__init__(len(codes), *grid, circular=circular)
        self.codes, self.genes, self.scored = codes, genes, 0
        self._unknown, self._max_ambiguous, self._parts, self._masked = unknown, max_ambiguous, parts, masked
        turned = circular and self.window > 1
        self.unrolled = np.concatenate((codes, codes[: self.window - 1])) if turned else codes
        self.windows = np.lib.stride_tricks.sliding_window_view(self.unrolled, self.window)
        self.strands: dict[str, Strand] = {}  # that a locator reads: the one it read last

    def choose(self, starts: Ints, strand: str) -> Ints:
        """Indices of the windows that are to be scored."""
        sites = self.sites(starts, strand)
        wanted = np.ones(len(sites), dtype=bool) if self._parts is None else self._parts.contains(sites)
        if self._masked is not None:
            wanted &= ~self._masked.contains(sites)
        chosen = np.flatnonzero(wanted)
        return chosen[self._clear(starts[chosen])]

    def at_sites(self, sites: Ints) -> Codes:
        """Windows (n, W) of the plus strand at sites, or near, without those of many ambiguous letters."""
        starts = sites - self._offsets["+"]
        starts = starts % self.length if self.circular else np.clip(starts, 0, self.last)
        return self.windows[starts[self._clear(starts)]]

    def _clear(self, starts: Ints) -> Bools:
        """Which windows have no more ambiguous letters than allowed."""
        if not len(starts):
            return np.zeros(0, dtype=bool)
        if self.window == 1 and not self._max_ambiguous:
            return self.codes[starts] != self._unknown
        first = starts.min()
        unknown = self.unrolled[first : starts.max() + self.window] == self._unknown
        before = np.concatenate(([0], np.cumsum(unknown, dtype=np.int32)))
        counts = before[starts - first + self.window] - before[starts - first]
        return counts / self.window <= self._max_ambiguous


@dataclass(frozen=True, slots=True)
class ScoreProfile:
    """Scores (n,) along one strand by site, 0-based; NaN if not scored. ``gaps`` lead to the next one."""

    contig: str
    length: int
    strand: str
    sites: Ints
    gaps: Ints
    scores: Floats

    @classmethod
    def of(cls, contig: Contig, grid: Grid, strand: str, starts: Ints, scores: Floats) -> ScoreProfile:
        """Make the profile of the windows that begin at ``starts``."""
        sites = grid.sites(starts, strand)
        if contig.parts is not None:
            scores = np.where(contig.parts.contains(sites), scores, np.nan)
        end = grid.length if grid.circular else grid.last  # 1 letter for the last of a linear contig
        gaps = np.maximum(np.minimum(starts + grid.stride, end) - starts, 1)
        return cls(contig.name, contig.length, strand, sites, gaps, scores)

    def count_positions(self, contig: Contig, scores: Floats) -> int:
        """Count the positions within the parts that the scored windows, also those outside, represent."""
        known, length = ~np.isnan(scores), contig.length
        if contig.parts is None:
            return int(self.gaps[known].sum())
        first, last = self.sites[known], self.sites[known] + self.gaps[known]
        beyond = np.maximum(last - length, 0)  # across the origin of a circular contig
        covered = contig.parts.count_covered
        return int((covered(np.minimum(last, length)) + covered(beyond) - covered(first)).sum())
