"""Where on a genome the windows of each recipe may lie, strand by strand, and what they must not touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from seqray.core import InputError, Intervals
from seqray.datasets.negatives.genome import Genome, Pairs
from seqray.datasets.negatives.recipes import allot
from seqray.io.tracks import Feature

Strands = Literal["both", "same"]
STRANDS = ("+", "-")
OTHER = {"+": "-", "-": "+"}
NOTHING = Intervals.merge(())

# Of these the 5' end is the start, or lies near it; of all others every letter is kept away from.
STARTING_AT_5_PRIME = frozenset(
    (
        *("gene", "pseudogene", "CDS", "mRNA", "transcript", "primary_transcript", "exon"),
        *("tRNA", "rRNA", "ncRNA", "tmRNA", "misc_RNA", "operon"),
    )
)
GENES, CODING = ("gene", "pseudogene"), ("CDS",)


@dataclass(frozen=True)
class Source:
    """Where windows of one strand may lie.

    Attributes
    ----------
    parts
        Intervals that may overlap; a window lies within one of them.
    forbidden
        What it must not touch.
    """

    parts: Pairs
    forbidden: Intervals


@dataclass(frozen=True)
class Annotation:
    """Features on a genome by strand, in its coordinates; those without a strand stand under ``.``.

    Attributes
    ----------
    genes, coding
        Intervals of genes (where none is annotated, of coding sequences) and of coding sequences.
    """

    genes: Mapping[str, Pairs]
    coding: Mapping[str, Pairs]

    @classmethod
    def of(cls, features: Iterable[Feature], genome: Genome, where: str = "") -> Annotation:
        """Sort features by kind and strand.

        Raises
        ------
        InputError
            For a feature on a contig that the genome lacks, or beyond its end.
        """
        features = [f for f in features if f.kind in GENES + CODING]
        coding = on_genome((f for f in features if f.kind in CODING), genome, where)
        genes = on_genome((f for f in features if f.kind in GENES), genome, where)
        return cls(genes if any(genes.values()) else coding, coding)


def on_genome(
    features: Iterable[Feature], genome: Genome, where: str = ""
) -> dict[str, list[tuple[int, int]]]:
    """Give features the coordinates of the genome, by strand.

    One that ends beyond its contig runs across the origin of a circle, as in GFF3, and is cut in two.

    Raises
    ------
    InputError
        For a feature on a contig that the genome lacks, or one that begins beyond its end.
    """
    placed: dict[str, list[tuple[int, int]]] = {"+": [], "-": [], ".": []}
    contigs: dict[str, int] = {}
    for feature in features:
        if feature.contig not in contigs:
            contigs[feature.contig] = genome.index(feature.contig, where)
        number = contigs[feature.contig]
        offset, length = int(genome.offsets[number]), int(genome.lengths[number])
        over = max(feature.end - length, 0)
        if over > feature.start or feature.start >= length:
            span = f"{feature.start + 1}-{feature.end}"
            raise InputError(
                f"has a feature at {span} of '{feature.contig}', which has {length} letters",
                where=where,
                remedy="check that it belongs to this assembly",
            )
        placed[feature.strand].append((offset + feature.start, offset + feature.end - over))
        if over:
            placed[feature.strand].append((offset, offset + over))
    return placed


def near_starts(
    features: Iterable[Feature], genome: Genome, distance: int, strands: Strands = "both", where: str = ""
) -> dict[str, Intervals]:
    """Letters at most ``distance`` away from a start, for windows of each strand.

    Parameters
    ----------
    features
        Of genes and transcripts the first letter on their strand counts, of others (promoters, TSS, lines of
        a BED file) every letter.
    genome
        That they lie on.
    distance
        Letters.
    strands
        ``same``: a start is avoided by windows of its own strand only; one without a strand always by both.
    """
    features = list(features)
    on_genome(features, genome, where)  # a feature whose end lies beyond the contig is an error, too
    points = on_genome((_start_of(feature, genome) for feature in features), genome, where)
    both = points["+"] + points["-"]
    wanted = {s: (both if strands == "both" else points[s]) + points["."] for s in STRANDS}
    return {strand: _widen(pairs, genome, distance) for strand, pairs in wanted.items()}


def _start_of(feature: Feature, genome: Genome) -> Feature:
    if feature.kind not in STARTING_AT_5_PRIME or feature.strand == ".":
        return feature
    first = feature.start if feature.strand == "+" else feature.end - 1
    first %= int(genome.lengths[genome.index(feature.contig)])  # it may lie behind the origin of a circle
    return Feature(feature.contig, first, first + 1, feature.name, feature.strand, feature.kind)


def _widen(pairs: Pairs, genome: Genome, distance: int) -> Intervals:
    merged = Intervals.merge(pairs)
    widened: list[tuple[int, int]] = []
    for (start, end), circular in zip(genome.contigs(), genome.circular, strict=True):
        inside = (merged.starts >= start) & (merged.starts < end)
        own = Intervals(merged.starts[inside] - start, merged.ends[inside] - start)
        wide = own.extended(distance, end - start, circular=circular)
        widened += [(start + a, start + b) for a, b in wide.pairs()]
    return Intervals.merge(widened)


def convergent_gaps(genes: Mapping[str, Pairs]) -> list[tuple[int, int]]:
    """Intervals between neighbours of which the left one is read to the right and the right one to the left.

    Genes that overlap leave no gap; the gene that ends last and the one that begins first count. A gap
    across the origin of a circle is left out.
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


def sources_of(
    recipe: str, genome: Genome, avoid: Mapping[str, Intervals], annotation: Annotation | None
) -> dict[str, Source]:
    """Where the windows of a recipe may lie.

    Parameters
    ----------
    recipe
        One that cuts windows from a genome.
    avoid
        What windows of each strand must not touch: positives, letters near starts.
    annotation
        Needed by all recipes but ``genome``.
    """
    if recipe == "genome" or annotation is None:
        return {strand: Source(genome.contigs(), avoid[strand]) for strand in STRANDS}
    if recipe == "convergent":
        gaps = _within_contigs(convergent_gaps(annotation.genes), genome)
        return {strand: Source(gaps, avoid[strand]) for strand in STRANDS}
    coding: Mapping[str, Sequence[tuple[int, int]]] = annotation.coding
    sources = {}
    for strand in STRANDS:
        gene_strand = strand if recipe == "coding" else OTHER[strand]
        both = avoid[strand].pairs() + list(
            coding[OTHER[gene_strand]]
        )  # where both strands code, neither counts
        sources[strand] = Source(coding[gene_strand], Intervals.merge(both))
    return sources


def _within_contigs(gaps: Pairs, genome: Genome) -> list[tuple[int, int]]:
    """Leave out gaps that reach from one contig into the next."""
    contig = np.searchsorted(genome.offsets, np.array(gaps, dtype=np.int64).reshape(-1, 2), "right")
    return [gap for gap, (first, last) in zip(gaps, contig.tolist(), strict=True) if first == last]


def clip(source: Source, allowed: Intervals) -> Source:
    """Keep what lies in ``allowed``."""
    first = np.searchsorted(allowed.ends, [start for start, _ in source.parts], "right").tolist()
    parts: list[tuple[int, int]] = []
    for (start, end), place in zip(source.parts, first, strict=True):
        while place < len(allowed.starts) and allowed.starts[place] < end:
            parts.append((max(start, int(allowed.starts[place])), min(end, int(allowed.ends[place]))))
            place += 1
    return Source(parts, source.forbidden)


def deal_blocks(
    genome: Genome, block: int, shares: Mapping[str, Fraction], rng: np.random.Generator
) -> dict[str, Intervals]:
    """Deal the blocks of a genome to the splits of the positives, in proportion and at random."""
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
