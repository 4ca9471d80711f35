"""Negatives that are windows of a genome, recipe by recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from seqray.core import Codes, Intervals, LabeledSequence
from seqray.datasets.negatives.genome import STRANDS
from seqray.datasets.negatives.occurrences import find_occurrences
from seqray.datasets.negatives.options import NegativeOptions
from seqray.datasets.negatives.regions import (
    AllowedRegions,
    GenomeContext,
    allowed_regions,
    assign_blocks,
    clip,
)
from seqray.datasets.negatives.sampling import GcBins, OccupiedIntervals, Window, sample_windows


@dataclass(frozen=True)
class Negative:
    """A negative: its letters, the number of its positive, its name, and its position if it has one."""

    sequence: str
    positive: int
    name: str
    contig: str | None = None
    start: int = 0

    @property
    def recipe(self) -> str:
        """How it was made, the first word of its name."""
        return self.name.partition(":")[0]


class WindowSampler:
    """Samples windows that overlap neither a positive nor an earlier window."""

    def __init__(
        self,
        positives: Sequence[LabeledSequence],
        codes: Sequence[Codes],
        options: NegativeOptions,
        context: GenomeContext,
        occupied: OccupiedIntervals,
    ) -> None:
        self.occurrences = find_occurrences([example.sequence for example in positives], context.genome)
        self._codes, self._context, self._occupied = codes, context, occupied
        self._bins = GcBins(options.gc_bins)
        self._splits = [example.split for example in positives]
        self._blocks = self._assign_blocks(options)

    def _assign_blocks(self, options: NegativeOptions) -> dict[str, Intervals]:
        named = Counter(split for split in self._splits if split)
        shares = {split: Fraction(count, named.total()) for split, count in sorted(named.items())}
        rng = np.random.default_rng([options.seed, 0])
        return assign_blocks(self._context.genome, options.block, shares, rng) if named else {}

    def __call__(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[Negative]:
        """A window for each of the positives ``rows``, as far as available."""
        context = self._context
        near = context.near_starts if recipe in context.avoiding else {}
        covered = self.occurrences.covered.pairs()
        avoid = {s: Intervals.merge(covered + (near[s].pairs() if s in near else [])) for s in STRANDS}
        regions = allowed_regions(recipe, context.genome, avoid, context.annotation)
        made: list[Negative] = []
        for split in sorted({self._splits[row] or "" for row in rows}):
            own = [row for row in rows if (self._splits[row] or "") == split]
            drawn = sample_windows(
                context.genome,
                self._of_split(regions, split),
                [self._codes[row] for row in own],
                self._bins,
                self._occupied,
                rng,
            )
            made += [self._named(recipe, row, w) for row, w in zip(own, drawn, strict=True) if w]
        return sorted(made, key=lambda m: m.positive)

    def _of_split(self, regions: Mapping[str, AllowedRegions], split: str) -> Mapping[str, AllowedRegions]:
        if split not in self._blocks:
            return regions
        return {strand: clip(region, self._blocks[split]) for strand, region in regions.items()}

    def _named(self, recipe: str, row: int, window: Window) -> Negative:
        genome = self._context.genome
        contig, start = genome.locate(window.start)
        end = start + window.end - window.start
        letters = genome.letters(window.start, window.end, window.strand)
        name = f"{recipe}:{contig}:{start}-{end}:{window.strand}"
        return Negative(letters, row, name, contig, start)
