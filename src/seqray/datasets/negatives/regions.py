"""Regions by annotation."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np

from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Intervals
from seqray.datasets.negatives.genome import STRANDS, Genome, Pairs
from seqray.io.lines import Feature

# --- The recipes by name: what each needs, what a model learns from it, and how many negatives each makes


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to make negatives.

    ``teaches`` says what a model can learn from the negatives besides the signal. With ``genome`` they are
    windows of a genome (else made from positives), with ``annotation`` the recipe needs the genes.
    """

    makes: str
    teaches: str
    genome: bool = False
    annotation: bool = False


RECIPES: Mapping[str, Recipe] = {
    "shuffle": Recipe(
        "positives with their letters shuffled, counts of k-mers kept (by default pairs; protein: letters)",
        "real sequence against shuffled, as well as the signal: longer k-mers can differ, too",
    ),
    "genome": Recipe(
        "windows of the genome away from known starts",
        "the signal against the rest of the genome, which for bacteria is mostly coding; unknown starts "
        "among them count as errors",
        genome=True,
    ),
    "antisense": Recipe(
        "fragments of coding sequence read on the other strand",
        "not coding against coding: codon periodicity, and GC content unless it is matched",
        genome=True,
        annotation=True,
    ),
    "convergent": Recipe(
        "windows between two genes that point at each other",
        "start against end of transcription: terminators, and intergenic on both sides",
        genome=True,
        annotation=True,
    ),
    "coding": Recipe(
        "fragments of coding sequence on the sense strand",
        "not coding against coding: codon periodicity, and GC content unless it is matched",
        genome=True,
        annotation=True,
    ),
    "substitution": Recipe(
        "positives with most segments replaced by random letters",
        "random letters against real ones: GC content near one half, and the borders of segments; those "
        "kept may hold the signal",
    ),
}


def parse_mix(words: Sequence[str]) -> dict[str, Fraction]:
    """Read ``NAME`` or ``NAME=SHARE`` words into shares that sum to 1, in the order given.

    Parameters
    ----------
    words
        Either all of them name a share or none does. Shares are relative: 1 and 3 are 25 % and 75 %.

    Raises
    ------
    ConfigError
        For an unknown or repeated name, a share that is no positive number, or shares for some only.
    """
    parts = [word.partition("=") for word in words]
    weights: dict[str, Fraction] = {}
    for name, _, text in parts:
        if name not in RECIPES:
            near = difflib.get_close_matches(name, RECIPES, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(RECIPES)}"
            raise ConfigError(f"unknown recipe '{name}'", remedy=remedy)
        if name in weights:
            raise ConfigError(f"recipe '{name}' is given twice", remedy="add its shares up")
        weights[name] = _weight(name, text)
    if len({bool(equals) for _, equals, _ in parts}) > 1:
        raise ConfigError("some recipes have a share and some have none", remedy="write NAME=SHARE for each")
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _weight(name: str, text: str) -> Fraction:
    try:
        weight = Fraction(text or "1")
    except (ValueError, ZeroDivisionError):
        weight = Fraction(0)
    if weight <= 0:
        raise ConfigError(f"the share of '{name}' is '{text}'", remedy="give a number above 0")
    return weight


def allot(total: int, shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Divide ``total`` by shares that sum to 1, none more than one off; largest remainders are rounded up."""
    exact = {name: total * share for name, share in shares.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])  # stable: ties in order given
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


# --- Genes and known starts on a genome, by strand, in the coordinates of `Genome`

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


# --- Where on a genome the windows of each recipe may lie, strand by strand, and what they must not overl

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
