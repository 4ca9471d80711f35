"""Strands and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import DNA
from seqray.core.arrays import Bools, Codes, Floats, Ints, cut_stretch, mark_intervals
from seqray.genome.genes import Gene, shift_gene
from seqray.genome.tracks import REACH, TRACKS, Tracks, gene_tracks

# --- One strand of a contig in reading direction: letters, genes, sites, and what each position weighs

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


# --- What a position weighs where no site is mapped: by the genes around it, and by what is held out

MAX_GENE_DISTANCE = 300
"""Letters before the start of a gene in which a site may be missing."""
_BEFORE, _AFTER = 150, 300  # of a known site: there the site of the gene is known

_CODING = [TRACKS.index(name) for name in ("frame-1", "frame-2", "frame-3", "opposite")]
_AHEAD = TRACKS.index("to-start")


def levels(tracks: Tracks | None, length: int, sites: Sites, masked: Bools) -> np.ndarray:
    """Level of each position: uint8 (L,), see `seqray.training.genomes.strands.MASKED`.

    The (T, L) tracks are those of the strand, None where its genes are not known. The sites are all of the
    strand, those of weight 0 too; ``masked`` (L,) marks what is not learned from.
    """
    result = np.full(length, PLAIN, dtype=np.uint8)
    if tracks is not None:
        coding = tracks[_CODING].any(axis=0)
        result[coding] = INSIDE
        near_gene = tracks[_AHEAD] > 255 * (1 - MAX_GENE_DISTANCE / REACH)
        result[~coding & near_gene & ~_explained(sites, length)] = GAP
    result[masked] = MASKED
    return result


def _explained(sites: Sites, length: int) -> Bools:
    """Positions with a known site near."""
    return mark_intervals(sites.position - _BEFORE, sites.position + _AFTER, length)


# --- Soft labels of a stretch, and the weight of each position in the loss

SURROUNDINGS = 10
"""Letters on either side of a site that it says something about."""

Singles = npt.NDArray[np.float32]


def kernel(sigma: float) -> Singles:
    """Target around a site, (21,): 1 at the site, falling as a Gaussian of this width in letters."""
    distance = np.arange(-SURROUNDINGS, SURROUNDINGS + 1)
    return np.exp(-0.5 * (distance / sigma) ** 2).astype(np.float32)


def targets(
    strand: LabeledStrand, start: int, end: int, classes: int, shape: Singles, gap: float
) -> tuple[Singles, Singles]:
    """Labels and weights (K, n) of ``[start, end)``, which lies within the strand.

    Around a site the label of its class is the kernel (the highest of several), the weight that of the site;
    other classes have no weight there, unless a site of their own is near. Elsewhere the label is 0, and the
    weight follows from the level of the position. What is masked has weight 0 in all classes.

    The ``shape`` is as `kernel` gives it; ``gap`` is the weight of positions where unmapped sites may lie.
    """
    level = strand.level[start:end]
    table = np.ones(4, dtype=np.float32)
    table[MASKED], table[INSIDE], table[GAP] = 0, strand.inside, gap
    labels = np.zeros((classes, end - start), dtype=np.float32)
    weights = np.repeat(table[level][None], classes, axis=0)
    near = strand.sites.between(start - SURROUNDINGS, end + SURROUNDINGS)
    spans = []
    for position, kind, weight in zip(
        near.position.tolist(), near.kind.tolist(), near.weight.tolist(), strict=True
    ):
        place = position - start
        low, high = max(place - SURROUNDINGS, 0), min(place + SURROUNDINGS + 1, end - start)
        if low < high:
            values = shape[low - place + SURROUNDINGS : high - place + SURROUNDINGS]
            spans.append((low, high, kind, weight, values))
            weights[:, low:high] = 0  # of the other classes; that of its own follows
    for low, high, kind, weight, values in spans:
        highest = values >= labels[kind, low:high]
        labels[kind, low:high][highest] = values[highest]
        weights[kind, low:high][highest] = weight
    weights[:, level == MASKED] = 0
    return labels, weights
