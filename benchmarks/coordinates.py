"""Lift positions from older versions of a genome by its genes, and prove the lift.

Versions of one genome differ by a few insertions and deletions, so the new position of a letter is its
old one plus an offset that is constant between them. Genes whose length is the same in both versions give
that offset at known places; between two neighboring genes of different offsets the place of the change
is unknown, and a position there has two candidates.

All coordinates here are 1-based and closed, as in the tables that are lifted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class GenePair:
    """One gene in two versions of a genome: ``old`` and ``new`` are (start, end)."""

    old: tuple[int, int]
    new: tuple[int, int]
    name: str

    @property
    def offsets(self) -> tuple[int, int]:
        """Shift of the start and of the end."""
        return self.new[0] - self.old[0], self.new[1] - self.old[1]

    @property
    def constant(self) -> bool:
        """True where both ends moved by the same amount."""
        return self.offsets[0] == self.offsets[1]


@dataclass(frozen=True, slots=True)
class Segment:
    """Old positions ``first`` to ``last`` whose genes all moved by ``offset``."""

    first: int
    last: int
    offset: int
    genes: int


class OffsetMap:
    """Piecewise-constant shift from old to new positions.

    Parameters
    ----------
    pairs
        Genes in both versions. Those whose two ends moved differently (their annotation changed) are
        left out of the map, and so are runs of fewer than ``min_genes`` genes inside a longer run.
    min_genes
        Fewest genes that establish an offset.

    Raises
    ------
    ValueError
        No offset is established, or the order of the genes isn't the same in both versions.
    """

    def __init__(self, pairs: Iterable[GenePair], min_genes: int = 3) -> None:
        anchors = sorted({pair for pair in pairs if pair.constant})
        runs = [run for run in _runs(anchors) if run.genes >= min_genes]
        self.segments: tuple[Segment, ...] = tuple(_merge(runs))
        if not self.segments:
            raise ValueError("no offset is shared by enough genes")
        self._check_monotone()

    def _check_monotone(self) -> None:
        for left, right in zip(self.segments, self.segments[1:], strict=False):
            if left.last + left.offset >= right.first + right.offset:
                raise ValueError(f"the new positions fall back between {left} and {right}")

    def candidates(self, position: int) -> tuple[int, ...]:
        """Return the possible new positions of an old one: one, or two between segments.

        Positions before the first and after the last segment take that segment's offset.
        """
        for left, right in zip(self.segments, self.segments[1:], strict=False):
            if position <= left.last:
                return (position + left.offset,)
            if position < right.first:
                return position + left.offset, position + right.offset
        return (position + self.segments[-1].offset,)

    def lift(self, position: int) -> int | None:
        """Return the new position, or None where the map can't tell it."""
        found = self.candidates(position)
        return found[0] if len(found) == 1 else None


def _runs(anchors: Sequence[GenePair]) -> list[Segment]:
    """Join neighboring genes (sorted by old start) of equal offset."""
    runs: list[Segment] = []
    for pair in anchors:
        offset = pair.offsets[0]
        if runs and runs[-1].offset == offset:
            last = runs[-1]
            runs[-1] = Segment(last.first, max(last.last, pair.old[1]), offset, last.genes + 1)
        else:
            runs.append(Segment(pair.old[0], pair.old[1], offset, 1))
    return runs


def _merge(runs: Sequence[Segment]) -> list[Segment]:
    """Join runs of equal offset that became neighbors when a short run between them was dropped."""
    merged: list[Segment] = []
    for run in runs:
        if merged and merged[-1].offset == run.offset:
            last = merged[-1]
            merged[-1] = Segment(last.first, run.last, run.offset, last.genes + run.genes)
        else:
            merged.append(run)
    return merged
