"""How many calls would chance alone give? The same scan over shuffled blocks of the input."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.letters import dinucleotide_shuffle
from seqray.core.records import Intervals
from seqray.genome.genes import Gene, cut_genes, shift_gene

BLOCK_LETTERS = 50_000
# A short input is shuffled several times over: with five copies the expected number is known better than
# the number of real calls, which scatters by its own square root.
MAX_COPIES = 5
LETTERS_PER_MB = 1e6


def poisson_interval(count: int) -> tuple[float, float]:
    """Exact central 95 % interval of the mean of a Poisson variable of this value (Garwood 1936)."""
    from scipy.special import gammaincinv

    tail = (1 - 0.95) / 2
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1 - tail))


@dataclass(frozen=True, slots=True)
class FalseCalls:
    """Calls to expect by chance at one threshold.

    False calls ``per_mb`` are per million positions on the strands scanned, from ``low`` to ``high`` in a
    Poisson 95 % interval; ``scanned_mb`` are those of the input, and ``null_calls`` were counted in
    ``null_mb`` of shuffled sequence.
    """

    per_mb: float
    low: float
    high: float
    scanned_mb: float
    null_calls: int
    null_mb: float

    @property
    def expected(self) -> float:
        """False calls to expect in the user's sequence."""
        return self.per_mb * self.scanned_mb

    @property
    def expected_interval(self) -> tuple[float, float]:
        """Poisson 95 % interval of `expected`."""
        return self.low * self.scanned_mb, self.high * self.scanned_mb


class NullScores:
    """Scores of all peaks found in shuffled sequence.

    The scores (n,) come in any order; ``positions`` were scanned on each strand to find them, above 0.
    """

    def __init__(self, scores: Floats, positions: int) -> None:
        self._sorted = np.sort(scores)
        self.mb = positions / LETTERS_PER_MB

    def count(self, thresholds: Floats) -> Ints:
        """Peaks that reach each threshold."""
        return len(self._sorted) - np.searchsorted(self._sorted, thresholds, "left")

    def at(self, threshold: float, positions: int) -> FalseCalls:
        """Calls to expect at a threshold where ``positions`` were scanned."""
        count = int(self.count(np.array([threshold]))[0])
        low, high = poisson_interval(count)
        return FalseCalls(
            count / self.mb, low / self.mb, high / self.mb, positions / LETTERS_PER_MB, count, self.mb
        )

    def threshold_for(self, fdr: float, scores: Floats, positions: int) -> float | None:
        """Find the lowest threshold at which false calls make up at most ``fdr`` of all calls.

        The result is a score that occurs, or None if no threshold will do. ``scores`` (n,) are those of all
        peaks in the user's sequence, ``positions`` those scanned there on each strand. One is added to the
        count in shuffled sequence, as in target-decoy searches (He et al. 2015, arXiv:1501.00537): having met
        no false call above a threshold doesn't show that there are none.
        """
        thresholds = np.unique(scores)
        calls = len(scores) - np.searchsorted(np.sort(scores), thresholds, "left")
        scale = positions / LETTERS_PER_MB / self.mb
        good = np.flatnonzero((self.count(thresholds) + 1) * scale <= fdr * calls)
        return float(thresholds[good[0]]) if len(good) else None


class BlockSampler:
    """Draws blocks evenly from a stream of sequences, with a limit on the letters in memory.

    Every block gets a random key and those with the lowest keys stay, so that each letter of the input is as
    likely to be drawn as any other, wherever it lies. Blocks never join two contigs or two parts.

    At most ``letters`` letters are in memory. Blocks with fewer letters than a window are dropped. Ambiguous
    letters, of code ``unknown``, are left out, since they would be spread all over.
    """

    def __init__(self, letters: int, window: int, unknown: int, seed: int) -> None:
        self._limit, self._window, self._unknown = letters, window, unknown
        self._rng, self._offered = np.random.default_rng(seed), 0
        # A heap: the highest key (negated) on top. Then the number of the block, its letters and its genes.
        self._held: list[tuple[float, int, Codes, tuple[Gene, ...] | None]] = []
        self.letters = 0

    def offer(
        self,
        codes: Codes,
        parts: Intervals,
        masked: Intervals | None = None,
        genes: tuple[Gene, ...] | None = None,
    ) -> None:
        """Show the sampler a contig; blocks are cut from its parts.

        Masked letters are left out. With genes, all letters stay, and those of the genes keep their places;
        None if not known.
        """
        if genes is not None:  # a gene that crosses the origin is also at the begin
            genes += tuple(shift_gene(gene, -len(codes)) for gene in genes if gene.end > len(codes))
        size = min(BLOCK_LETTERS, self._limit)
        for start, end in parts.pairs():
            for first in range(start, end, size):
                self._offer_block(codes, range(first, min(first + size, end)), masked, genes)

    def _offer_block(
        self, codes: Codes, places: range, masked: Intervals | None, genes: tuple[Gene, ...] | None
    ) -> None:
        key = -float(self._rng.random())
        self._offered += 1
        if self._held and key < self._held[0][0] and self.letters + len(places) > self._limit:
            return
        block, own = codes[places.start : places.stop], None
        if genes is not None:
            own = cut_genes(genes, places.start, places.stop)
            block = block.copy()  # a view would hold the letters of the whole contig
        else:
            keep = block != self._unknown
            if masked is not None:
                keep &= ~masked.contains(np.arange(places.start, places.stop))
            block = block[keep]
        if len(block) >= self._window:
            heapq.heappush(self._held, (key, self._offered, block, own))
            self.letters += len(block)
        while self.letters > self._limit:
            self.letters -= len(heapq.heappop(self._held)[2])

    @property
    def copies(self) -> int:
        """How often each block is shuffled: once, or up to `MAX_COPIES` times."""
        return min(MAX_COPIES, self._limit // self.letters) if self.letters else 0

    def shuffled(self) -> Iterator[tuple[Codes, tuple[Gene, ...] | None]]:
        """Yield each block shuffled, and its genes, in the order of the input, as often as `copies` says."""
        for _ in range(self.copies):
            for _, _, block, genes in sorted(self._held, key=lambda held: held[1]):
                yield self._shuffle(block, genes), genes

    def _shuffle(self, block: Codes, genes: tuple[Gene, ...] | None) -> Codes:
        if genes is None:
            return dinucleotide_shuffle(block, self._rng)
        shuffled = block.copy()
        places = np.flatnonzero(block == self._unknown).tolist()
        kept = Intervals.merge([*((g.start, g.end) for g in genes), *((i, i + 1) for i in places)])
        edges = [0, *(edge for pair in kept.pairs() for edge in pair), len(block)]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if start < end:
                shuffled[start:end] = dinucleotide_shuffle(block[start:end], self._rng)
        return shuffled
