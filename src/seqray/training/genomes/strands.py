"""One strand of a labeled contig: letters, genes, sites, and what each position weighs in the loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import reverse_complement_codes
from seqray.core.arrays import Bools, Codes, Ints, mark_intervals
from seqray.genome.genes import TRACK_REACH, TRACKS, Gene, Tracks, flip_genes, gene_tracks, shift_gene
from seqray.training.genomes.sheet import LabeledContig, LabeledGenome

SITES = np.dtype([("position", np.int64), ("kind", np.int64), ("weight", np.float64)])
"""Sites (N,) of a strand by rising position, counted from its first letter; the kind is a class index."""
MASKED, PLAIN, INSIDE, GAP = range(4)
"""Levels of a position: not learned from; background; inside a gene; where unmapped sites may lie."""
MAX_GENE_DISTANCE = 300
"""Letters before the start of a gene in which a site may be missing."""
SURROUNDINGS = 10
"""Letters on either side of a site that it says something about."""
_BEFORE, _AFTER = 150, 300  # of a known site: there the site of the gene is known
_WRAP = 20_000  # letters of a circle that are continued beyond its origin
_CODING = [TRACKS.index(name) for name in ("frame-1", "frame-2", "frame-3", "opposite")]
_AHEAD = TRACKS.index("to-start")

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LabeledStrand:
    """A strand of a contig in reading direction, or several of short contigs ``joined`` end to end.

    ``codes`` (L,) are its letters, ``sites`` as `SITES`, ``level`` (L,) uint8 what each position is, see
    `MASKED`. ``genes`` have ``+`` for this strand, and are None where they are not known; ``inside`` is the
    weight of `INSIDE`.
    """

    codes: Codes
    sites: np.ndarray
    level: np.ndarray
    genes: tuple[Gene, ...] | None = None
    circular: bool = False
    inside: float = 1.0
    joined: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, genome: LabeledGenome, contig: LabeledContig, strand: str, masked: Bools) -> LabeledStrand:
        """Strand ``+`` or ``-``; the mask (L,) of what is not learned from is that of the plus strand."""
        forward, length = strand == "+", len(contig.codes)
        rows = [
            (at if forward else length - 1 - at, kind, weight)
            for at, own, kind, weight in contig.sites
            if own == strand
        ]
        sites = np.array(sorted(rows), dtype=SITES)
        level = np.full(length, PLAIN, dtype=np.uint8)
        genes = known = genome.genes_of(contig)
        if known is not None:
            genes = known if forward else flip_genes(known, length)
            tracks = gene_tracks(known, length, strand, circular=contig.circular)
            coding = tracks[_CODING].any(axis=0)
            near_gene = tracks[_AHEAD] > 255 * (1 - MAX_GENE_DISTANCE / TRACK_REACH)
            at = sites["position"]
            explained = mark_intervals(at - _BEFORE, at + _AFTER, length)
            level[coding] = INSIDE
            level[~coding & near_gene & ~explained] = GAP
        level[masked if forward else masked[::-1]] = MASKED
        codes = contig.codes if forward else reverse_complement_codes(contig.codes)
        return cls(codes, sites, level, genes, contig.circular, genome.row.inside)

    def sites_between(self, start: int, end: int) -> np.ndarray:
        """Sites in ``[start, end)``."""
        low, high = np.searchsorted(self.sites["position"], [start, end])
        return self.sites[low:high]

    def free_sites(self, positive: int, start: int, end: int) -> Ints:
        """Positions of sites of a class in ``[start, end)`` that have weight and are not masked."""
        sites = self.sites_between(start, end)
        at = sites["position"]
        return at[(sites["kind"] == positive) & (sites["weight"] > 0) & (self.level[at] != MASKED)]

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

    def tracks(self, start: int, end: int) -> Tracks:
        """Gene tracks (T, n) of ``[start, end)``: those of the whole contig; zero beyond its ends."""
        if self.genes is None:
            return np.zeros((len(TRACKS), end - start), dtype=np.uint8)
        genes, starts, last_ends = self._placed
        first = np.searchsorted(last_ends, start - TRACK_REACH, "right")
        stop = np.searchsorted(starts, end + TRACK_REACH, "left")
        near = [shift_gene(gene, -start) for gene in genes[first:stop] if gene.end > start - TRACK_REACH]
        tracks = gene_tracks(near, end - start, "+")
        if not self.circular:
            tracks[:, : max(-start, 0)] = 0
            tracks[:, max(len(self) - start, 0) :] = 0
        return tracks

    def targets(
        self, start: int, end: int, classes: int, sigma: float, gap: float
    ) -> tuple[Singles, Singles]:
        """Labels and weights (K, n) of ``[start, end)``, which lies within the strand.

        Around a site the label of its class is a Gaussian of width ``sigma`` (the highest of several), the
        weight that of the site; other classes have no weight there, unless a site of their own is near.
        Elsewhere the label is 0, and the weight follows from the level, ``gap`` that of `GAP`. What is masked
        has weight 0 in all classes.
        """
        distance = np.arange(-SURROUNDINGS, SURROUNDINGS + 1)
        bell = np.exp(-0.5 * (distance / sigma) ** 2).astype(np.float32)
        level = self.level[start:end]
        weight_of = np.ones(4, dtype=np.float32)
        weight_of[MASKED], weight_of[INSIDE], weight_of[GAP] = 0, self.inside, gap
        labels = np.zeros((classes, end - start), dtype=np.float32)
        weights = np.repeat(weight_of[level][None], classes, axis=0)
        spans = []
        for position, kind, weight in self.sites_between(start - SURROUNDINGS, end + SURROUNDINGS).tolist():
            place = position - start
            low, high = max(place - SURROUNDINGS, 0), min(place + SURROUNDINGS + 1, end - start)
            if low < high:
                spans.append((low, high, kind, weight, bell[low - place + SURROUNDINGS :][: high - low]))
                weights[:, low:high] = 0  # of the other classes; that of its own follows
        for low, high, kind, weight, values in spans:
            highest = values >= labels[kind, low:high]
            labels[kind, low:high][highest] = values[highest]
            weights[kind, low:high][highest] = weight
        weights[:, level == MASKED] = 0
        return labels, weights
