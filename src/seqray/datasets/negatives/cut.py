"""Cut the windows of one recipe after the other from a genome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from seqray.core import Codes, Intervals, LabelledSequence
from seqray.datasets.negatives.draw import GcBins, Taken, Window, draw_windows
from seqray.datasets.negatives.occurrences import find_occurrences
from seqray.datasets.negatives.options import NegativeOptions
from seqray.datasets.negatives.settings import Ground
from seqray.datasets.negatives.sources import STRANDS, Source, clip, deal_blocks, sources_of


@dataclass(frozen=True)
class Made:
    """A negative: its letters, the number of its positive, its name, and its place where it has one."""

    sequence: str
    positive: int
    name: str
    contig: str | None = None
    start: int = 0


class Cutter:
    """Cuts windows of which none overlaps a positive or one that was cut before."""

    def __init__(
        self,
        positives: Sequence[LabelledSequence],
        codes: Sequence[Codes],
        options: NegativeOptions,
        ground: Ground,
        taken: Taken,
    ) -> None:
        self.occurrences = find_occurrences([example.sequence for example in positives], ground.genome)
        self._codes, self._ground, self._taken = codes, ground, taken
        self._bins = GcBins(options.gc_bins)
        self._splits = [example.split for example in positives]
        self._blocks = self._deal_blocks(options)

    def _deal_blocks(self, options: NegativeOptions) -> dict[str, Intervals]:
        named = Counter(split for split in self._splits if split)
        shares = {split: Fraction(count, named.total()) for split, count in sorted(named.items())}
        rng = np.random.default_rng([options.seed, 0])
        return deal_blocks(self._ground.genome, options.block, shares, rng) if named else {}

    def __call__(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[Made]:
        """A window for each of the positives ``rows``, as far as there are any."""
        ground = self._ground
        near = ground.near_starts if recipe in ground.avoiding else {}
        covered = self.occurrences.covered.pairs()
        avoid = {s: Intervals.merge(covered + (near[s].pairs() if s in near else [])) for s in STRANDS}
        sources = sources_of(recipe, ground.genome, avoid, ground.annotation)
        made: list[Made] = []
        for split in sorted({self._splits[row] or "" for row in rows}):
            own = [row for row in rows if (self._splits[row] or "") == split]
            drawn = draw_windows(
                ground.genome,
                self._of_split(sources, split),
                [self._codes[row] for row in own],
                self._bins,
                self._taken,
                rng,
            )
            made += [self._named(recipe, row, w) for row, w in zip(own, drawn, strict=True) if w]
        return sorted(made, key=lambda m: m.positive)

    def _of_split(self, sources: Mapping[str, Source], split: str) -> Mapping[str, Source]:
        if split not in self._blocks:
            return sources
        return {strand: clip(source, self._blocks[split]) for strand, source in sources.items()}

    def _named(self, recipe: str, row: int, window: Window) -> Made:
        genome = self._ground.genome
        contig, start = genome.locate(window.start)
        end = start + window.end - window.start
        letters = genome.letters(window.start, window.end, window.strand)
        name = f"{recipe}:{contig}:{start}-{end}:{window.strand}"
        return Made(letters, row, name, contig, start)
