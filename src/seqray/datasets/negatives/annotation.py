"""Genes and known starts on a genome, by strand, in the coordinates of `Genome`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from seqray.core import InputError, Intervals
from seqray.datasets.negatives.genome import STRANDS, Genome, Pairs
from seqray.io.tracks import Feature

# The start of these is their 5' end, or near it; of all other features every letter counts.
STARTING_AT_5_PRIME = frozenset(
    (
        *("gene", "pseudogene", "CDS", "mRNA", "transcript", "primary_transcript", "exon"),
        *("tRNA", "rRNA", "ncRNA", "tmRNA", "misc_RNA", "operon"),
    )
)
GENES, CODING = ("gene", "pseudogene"), ("CDS",)


@dataclass(frozen=True)
class GeneIntervals:
    """Features on a genome by strand, in its coordinates; those without a strand have the key ``.``.

    Attributes
    ----------
    genes, coding
        Intervals of genes (of coding sequences if no gene is annotated), and of coding sequences. Those of
        pseudogenes, which no longer code, are left out.
    """

    genes: Mapping[str, Pairs]
    coding: Mapping[str, Pairs]

    @classmethod
    def of(cls, features: Iterable[Feature], genome: Genome, where: str = "") -> GeneIntervals:
        """Sort features by kind and strand.

        Parameters
        ----------
        features, genome, where
            See `to_genome_coordinates`, also for errors.
        """
        features = [f for f in features if f.kind in GENES + CODING]
        frames = [f for f in features if f.kind in CODING]
        genes = [f for f in features if f.kind in GENES] or frames
        coding = (f for f in frames if not f.pseudo)
        return cls(*(to_genome_coordinates(ones, genome, where) for ones in (genes, coding)))


def to_genome_coordinates(
    features: Iterable[Feature], genome: Genome, where: str = ""
) -> dict[str, list[tuple[int, int]]]:
    """Intervals of features in the coordinates of the genome, by strand.

    A feature that ends beyond its contig crosses the origin of a circle, as in GFF3, and is cut in two.

    Raises an InputError for a contig that is not in the genome, or a feature that begins beyond its end.
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
    features: Iterable[Feature],
    genome: Genome,
    distance: int,
    strands: Literal["both", "same"] = "both",
    where: str = "",
) -> dict[str, Intervals]:
    """Letters at most ``distance`` away from a start, for windows of each strand.

    Parameters
    ----------
    features
        Of genes and transcripts the first letter on their strand counts, of others (promoters, TSS, lines of
        a BED file) every letter.
    genome
        The genome that they belong to.
    distance
        In letters.
    strands
        ``same``: a start concerns windows of its own strand only; one without a strand always both.
    where
        Their file, for errors.
    """
    features = list(features)
    to_genome_coordinates(features, genome, where)  # also checks the ends of features
    points = to_genome_coordinates((_start_of(feature, genome) for feature in features), genome, where)
    both = points["+"] + points["-"]
    wanted = {s: (both if strands == "both" else points[s]) + points["."] for s in STRANDS}
    return {strand: _widened(pairs, genome, distance) for strand, pairs in wanted.items()}


def _start_of(feature: Feature, genome: Genome) -> Feature:
    if feature.kind not in STARTING_AT_5_PRIME or feature.strand == ".":
        return feature
    first = feature.start if feature.strand == "+" else feature.end - 1
    first %= int(genome.lengths[genome.index(feature.contig)])  # it may be behind the origin of a circle
    return Feature(feature.contig, first, first + 1, feature.name, feature.strand, feature.kind)


def _widened(pairs: Pairs, genome: Genome, distance: int) -> Intervals:
    merged = Intervals.merge(pairs)
    widened: list[tuple[int, int]] = []
    for (start, end), circular in zip(genome.contigs(), genome.circular, strict=True):
        inside = (merged.starts >= start) & (merged.starts < end)
        own = Intervals(merged.starts[inside] - start, merged.ends[inside] - start)
        wide = own.extended(distance, end - start, circular=circular)
        widened += [(start + a, start + b) for a, b in wide.pairs()]
    return Intervals.merge(widened)
