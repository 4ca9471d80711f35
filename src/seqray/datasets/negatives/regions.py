"""Where on a genome the windows of each recipe may lie, strand by strand, and what they must not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from seqray.core import Intervals
from seqray.datasets.negatives.annotation import GeneIntervals
from seqray.datasets.negatives.genome import STRANDS, Genome, Pairs
from seqray.datasets.negatives.recipes import allot

OPPOSITE = {"+": "-", "-": "+"}


@dataclass(frozen=True)
class GenomeContext:
    """The genome that windows are taken from, with its genes and starts.

    Attributes
    ----------
    genome, annotation
        Its letters, and its genes; None if no recipe needs them.
    near_starts
        By strand, letters near known starts.
    avoiding
        Recipes whose windows avoid these; all avoid positives.
    """

    genome: Genome
    annotation: GeneIntervals | None = None
    near_starts: Mapping[str, Intervals] = field(default_factory=dict)
    avoiding: frozenset[str] = frozenset(("genome",))


@dataclass(frozen=True)
class AllowedRegions:
    """Where windows of one strand may lie.

    A window lies within one of the parts, which may overlap, and overlaps nothing forbidden.
    """

    parts: Pairs
    forbidden: Intervals


def convergent_gaps(genes: Mapping[str, Pairs]) -> list[tuple[int, int]]:
    """Intervals between neighboring genes that point at each other.

    Overlapping genes leave no gap; the gene that ends last and the one that begins first count. A gap across
    the origin of a circle is left out.
    """
    ordered = sorted((start, end, strand) for strand, pairs in genes.items() for start, end in pairs)
    gaps: list[tuple[int, int]] = []
    last_end, last_strand = -1, "."
    for start, end, strand in ordered:
        if start > last_end and last_strand == "+" and strand == "-":
            gaps.append((last_end, start))
        if end >= last_end:
            last_end, last_strand = end, strand
    return gaps


def allowed_regions(
    recipe: str, genome: Genome, avoid: Mapping[str, Intervals], annotation: GeneIntervals | None
) -> dict[str, AllowedRegions]:
    """Where the windows of a recipe that takes them from a genome may lie.

    ``avoid`` is what windows of each strand must not overlap: positives, letters near starts. All recipes but
    ``genome`` need the annotation.
    """
    if recipe == "genome" or annotation is None:
        return {strand: AllowedRegions(genome.contigs(), avoid[strand]) for strand in STRANDS}
    if recipe == "convergent":
        gaps = _within_contigs(convergent_gaps(annotation.genes), genome)
        return {strand: AllowedRegions(gaps, avoid[strand]) for strand in STRANDS}
    coding: Mapping[str, Sequence[tuple[int, int]]] = annotation.coding
    regions = {}
    for strand in STRANDS:
        gene_strand = strand if recipe == "coding" else OPPOSITE[strand]
        other = coding[OPPOSITE[gene_strand]]  # where both strands code, neither counts
        regions[strand] = AllowedRegions(
            coding[gene_strand], Intervals.merge([*avoid[strand].pairs(), *other])
        )
    return regions


def _within_contigs(gaps: Pairs, genome: Genome) -> list[tuple[int, int]]:
    """Leave out gaps that span two contigs."""
    contig = np.searchsorted(genome.offsets, np.array(gaps, dtype=np.int64).reshape(-1, 2), "right")
    return [gap for gap, (first, last) in zip(gaps, contig.tolist(), strict=True) if first == last]


def clip(regions: AllowedRegions, allowed: Intervals) -> AllowedRegions:
    """Restrict regions to ``allowed``."""
    first = np.searchsorted(allowed.ends, [start for start, _ in regions.parts], "right").tolist()
    parts: list[tuple[int, int]] = []
    for (start, end), place in zip(regions.parts, first, strict=True):
        while place < len(allowed.starts) and allowed.starts[place] < end:
            parts.append((max(start, int(allowed.starts[place])), min(end, int(allowed.ends[place]))))
            place += 1
    return AllowedRegions(parts, regions.forbidden)


def assign_blocks(
    genome: Genome, block: int, shares: Mapping[str, Fraction], rng: np.random.Generator
) -> dict[str, Intervals]:
    """Assign the blocks of a genome to the splits of the positives, in proportion and at random.

    The shares sum to 1.
    """
    blocks = [
        (first, min(first + block, end))
        for start, end in genome.contigs()
        for first in range(start, end, block)
    ]
    counts = allot(len(blocks), shares)
    owners = rng.permutation(np.repeat(np.arange(len(counts)), list(counts.values()))).tolist()
    return {
        split: Intervals.merge(b for b, owner in zip(blocks, owners, strict=True) if owner == number)
        for number, split in enumerate(counts)
    }
