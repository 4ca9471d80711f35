"""A genome that windows are cut from: its letters, its genes and starts, and where windows may lie on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from seqray.core.alphabet import (
    Alphabet,
    CodeStack,
    kmer_indices,
    kmer_starts,
    reverse_complement,
    reverse_complement_codes,
    stack_sequences,
)
from seqray.core.arrays import Codes, Ints
from seqray.core.errors import ConfigError, InputError, setting
from seqray.core.records import Intervals, SequenceRecord, unknown_contig
from seqray.datasets.negatives.recipes import RECIPES, GenomeSource, allot
from seqray.io.features import read_features, select_features
from seqray.io.lines import AnnotatedFile, Feature, Part
from seqray.io.sequences import is_genbank, read_sequences

Pairs = Sequence[tuple[int, int]]
OPPOSITE = {"+": "-", "-": "+"}
STRANDS = tuple(OPPOSITE)


@dataclass(frozen=True)
class JoinedGenome:
    """Contigs joined end to end, an unknown letter after each: (contigs,) values, and codes (T,)."""

    names: tuple[str, ...]
    circular: tuple[bool, ...]
    offsets: Ints
    lengths: Ints
    codes: Codes
    alphabet: Alphabet

    @classmethod
    def of(cls, records: Iterable[SequenceRecord], alphabet: Alphabet) -> JoinedGenome:
        """Lay records end to end."""
        border = np.array([alphabet.unknown], dtype=np.uint8)
        names, circular, pieces = [], [], []
        for record in records:
            names.append(record.id)
            circular.append(record.circular)
            pieces += [alphabet.encode(record.sequence), border]
        lengths = np.array([len(piece) for piece in pieces[::2]], dtype=np.int64)
        offsets = np.cumsum(lengths + 1) - lengths - 1
        codes = np.concatenate(pieces) if pieces else border
        return cls(tuple(names), tuple(circular), offsets, lengths, codes, alphabet)

    def index(self, name: str, where: str = "") -> int:
        """Number of a contig; an InputError if there is none of this name."""
        if name not in self.names:
            raise unknown_contig("names the contig", name, self.names, where)
        return self.names.index(name)

    def locate(self, position: int) -> tuple[str, int]:
        """Contig of a letter, and its position there."""
        contig = int(np.searchsorted(self.offsets, position, "right")) - 1
        return self.names[contig], position - int(self.offsets[contig])

    def letters(self, start: int, end: int, strand: str) -> str:
        """Letters of a half-open interval, 5' to 3' on its strand."""
        codes = self.codes[start:end]
        return self.alphabet.decode(reverse_complement_codes(codes) if strand == "-" else codes)

    def contigs(self) -> list[tuple[int, int]]:
        """Start and end of each contig."""
        return [(int(o), int(o + n)) for o, n in zip(self.offsets, self.lengths, strict=True)]


# --- Where windows may lie


def subtract(intervals: Intervals, others: Intervals) -> Intervals:
    """The parts of ``intervals`` that are not in ``others``."""
    ends = (intervals.starts, intervals.ends, others.starts, others.ends)
    place, step = np.concatenate(ends), np.repeat(np.array([1, -1, -2, 2]), [len(e) for e in ends])
    order = np.argsort(place, kind="stable")
    place, level = place[order], np.cumsum(step[order])  # level 1: in the first and not in the second
    inside = np.flatnonzero((level[:-1] == 1) & (place[1:] > place[:-1]))
    return Intervals.merge(zip(place[inside].tolist(), place[inside + 1].tolist(), strict=True))


class AllowedRegions(NamedTuple):
    """Where windows of one strand may lie: within one of the parts, which may overlap, off the forbidden."""

    parts: Pairs
    forbidden: Intervals

    def window_starts(self, length: int) -> Intervals:
        """Intervals of letters where a window may begin."""
        room = Intervals.merge((start, end - length + 1) for start, end in self.parts)
        return subtract(
            room, Intervals.merge((start - length + 1, end) for start, end in self.forbidden.pairs())
        )

    def clipped(self, allowed: Intervals) -> AllowedRegions:
        """Restrict the parts to ``allowed``."""
        first = np.searchsorted(allowed.ends, [start for start, _ in self.parts], "right").tolist()
        parts: list[tuple[int, int]] = []
        for (start, end), place in zip(self.parts, first, strict=True):
            while place < len(allowed.starts) and allowed.starts[place] < end:
                parts.append((max(start, int(allowed.starts[place])), min(end, int(allowed.ends[place]))))
                place += 1
        return AllowedRegions(parts, self.forbidden)


def assign_blocks(
    genome: JoinedGenome, block: int, shares: Mapping[str, Fraction], rng: np.random.Generator
) -> dict[str, Intervals]:
    """Assign the blocks of a genome to the splits of the positives, by shares that sum to 1 and at random."""
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


# --- Genes and known starts on a genome, by strand, in the coordinates of `JoinedGenome`

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
    """Genes, or else coding sequences, and coding sequences without pseudogenes, by strand or ``.``."""

    genes: Mapping[str, Pairs]
    coding: Mapping[str, Pairs]

    @classmethod
    def of(cls, features: Iterable[Feature], genome: JoinedGenome, where: str = "") -> GeneIntervals:
        """Sort features by kind and strand; for errors see `to_genome_coordinates`."""
        features = [f for f in features if f.kind in GENES + CODING]
        frames = [f for f in features if f.kind in CODING]
        genes = [f for f in features if f.kind in GENES] or frames
        coding = (f for f in frames if not f.pseudo)
        return cls(*(to_genome_coordinates(chosen, genome, where) for chosen in (genes, coding)))


def to_genome_coordinates(
    features: Iterable[Feature], genome: JoinedGenome, where: str = ""
) -> dict[str, list[tuple[int, int]]]:
    """Intervals of features on the genome, by strand; one across the origin of a circle is cut in two."""
    placed: dict[str, list[tuple[int, int]]] = {"+": [], "-": [], ".": []}
    contigs: dict[str, int] = {}
    for feature in features:
        if feature.contig not in contigs:
            contigs[feature.contig] = genome.index(feature.contig, where)
        number = contigs[feature.contig]
        offset, length = int(genome.offsets[number]), int(genome.lengths[number])
        for start, end, strand in feature.parts:
            over = max(end - length, 0)
            if over > start or start >= length:
                what = f"has a feature at {start + 1}-{end} of '{feature.contig}', which has {length} bases"
                raise InputError(what, where=where, remedy="check that it belongs to this assembly")
            own = placed[strand if strand in placed else "."]
            own.append((offset + start, offset + end - over))
            if over:
                own.append((offset, offset + over))
    return placed


def has_start(feature: Feature) -> bool:
    """Whether the 5' end of a feature that starts there is on its contig; all letters of others count."""
    return feature.kind not in STARTING_AT_5_PRIME or not feature.partial_start


def near_starts(
    features: Iterable[Feature], genome: JoinedGenome, distance: int, where: str = ""
) -> Intervals:
    """Letters near a start on either strand: the first letter of genes, every one of other features."""
    features = list(features)
    to_genome_coordinates(features, genome, where)  # also checks the ends of features
    starts = []
    for f in features:
        if f.kind in STARTING_AT_5_PRIME and f.strand in STRANDS:
            if not has_start(f):
                continue
            # It may be behind the origin of a circle.
            first = f.first % int(genome.lengths[genome.index(f.contig)])
            f = replace(f, parts=(Part(first, first + 1, f.strand),))
        starts.append(f)
    points = to_genome_coordinates(starts, genome, where)
    merged, wide = Intervals.merge(points["+"] + points["-"] + points["."]), []
    for (start, end), circular in zip(genome.contigs(), genome.circular, strict=True):
        inside = (merged.starts >= start) & (merged.starts < end)
        on_contig = Intervals(merged.starts[inside] - start, merged.ends[inside] - start)
        extended = on_contig.extended(distance, end - start, circular=circular)
        wide += [(start + a, start + b) for a, b in extended.pairs()]
    return Intervals.merge(wide)


@dataclass(frozen=True)
class GenomeContext:
    """The genome with its genes and the letters near starts, which the recipes ``avoiding`` avoid."""

    genome: JoinedGenome
    annotation: GeneIntervals | None = None
    near_starts: Intervals | None = None
    avoiding: frozenset[str] = frozenset(("genome",))


def convergent_gaps(genes: Mapping[str, Pairs]) -> list[tuple[int, int]]:
    """Intervals between neighboring genes that point at each other, but none across an origin."""
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
    recipe: str, genome: JoinedGenome, avoid: Intervals, annotation: GeneIntervals | None
) -> dict[str, AllowedRegions]:
    """Where windows of a recipe may lie, by strand, and not overlap ``avoid``; most need the annotation."""
    if recipe == "genome" or annotation is None:
        return dict.fromkeys(STRANDS, AllowedRegions(genome.contigs(), avoid))
    if recipe == "convergent":
        gaps = convergent_gaps(annotation.genes)
        contig = np.searchsorted(genome.offsets, np.array(gaps, dtype=np.int64).reshape(-1, 2), "right")
        within = [gap for gap, (first, last) in zip(gaps, contig.tolist(), strict=True) if first == last]
        return dict.fromkeys(STRANDS, AllowedRegions(within, avoid))
    regions = {}
    for strand in STRANDS:
        gene_strand = strand if recipe == "coding" else OPPOSITE[strand]
        other = annotation.coding[OPPOSITE[gene_strand]]  # where both strands code, neither counts
        forbidden = Intervals.merge([*avoid.pairs(), *other])
        regions[strand] = AllowedRegions(annotation.coding[gene_strand], forbidden)
    return regions


# --- Positions of the positives in a genome, by the k-mers that they share with it on either strand

K = 24  # 4**24 k-mers: in a genome of a billion letters one occurs by chance about once in 140,000
BLOCK = 1 << 20


def find_occurrences(positives: Sequence[str], genome: JoinedGenome) -> tuple[Intervals, Ints]:
    """Letters of a genome in k-mers of N positives, on either strand, and each one's median place, or -1."""
    places = np.full(len(positives), -1, dtype=np.int64)
    pieces: list[tuple[int, int]] = []
    letters = len(genome.alphabet.letters)
    sizes = np.array([min(len(sequence), K) for sequence in positives], dtype=np.int64)
    for k in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == k)
        plain = [positives[i] for i in rows.tolist()]
        both = [*plain, *(reverse_complement(sequence, genome.alphabet) for sequence in plain)]
        stack = stack_sequences(both, genome.alphabet)
        start, owner, _ = kmer_starts(stack, k, letters)
        kmers = kmer_indices(stack, start, k, letters)
        order = np.argsort(kmers, kind="stable")
        kmers, owner = kmers[order], owner[order] % len(plain)
        hits, which = _kmer_hits(kmers, genome, k)
        if not len(hits):
            continue
        breaks = np.flatnonzero(np.diff(hits) > k)
        first, last = np.append(0, breaks + 1), np.append(breaks, len(hits) - 1)
        pieces += zip(hits[first].tolist(), (hits[last] + k).tolist(), strict=True)
        met, where = np.unique(which, return_index=True)  # of a repeated k-mer the first place counts
        at = np.minimum(np.searchsorted(met, kmers), len(met) - 1)
        is_met = met[at] == kmers
        place, owner = hits[where][at[is_met]], owner[is_met]
        order = np.lexsort((place, owner))
        who, begin, count = np.unique(owner[order], return_index=True, return_counts=True)
        places[rows[who]] = place[order][begin + count // 2]
    return Intervals.merge(pieces), places


def _kmer_hits(kmers: Ints, genome: JoinedGenome, k: int) -> tuple[Ints, Ints]:
    """Positions in the genome of the sorted k-mers, and the k-mer at each."""
    letters = len(genome.alphabet.letters)
    hits, which = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for first in range(0, len(genome.codes) if len(kmers) else 0, BLOCK):
        codes = genome.codes[first : first + BLOCK + k - 1]
        stack = CodeStack(codes, np.array([len(codes)], dtype=np.int64))
        start, _, _ = kmer_starts(stack, k, letters)
        kmer = kmer_indices(stack, start, k, letters)
        is_met = kmers[np.minimum(np.searchsorted(kmers, kmer), len(kmers) - 1)] == kmer
        hits.append(start[is_met] + first)
        which.append(kmer[is_met])
    return np.concatenate(hits), np.concatenate(which)


def read_genome_context(
    options: GenomeSource, alphabet: Alphabet, mix: Mapping[str, Fraction], note: Callable[[str], None]
) -> tuple[GenomeContext | None, dict[str, object]]:
    """Read the genome, genes and starts that the recipes need, or None; and lines for the header."""
    needed = [name for name in mix if RECIPES[name].genome]
    if not needed or options.genome is None or not alphabet.is_nucleotide:
        return None, {}
    genome = JoinedGenome.of(read_sequences(options.genome, alphabet), alphabet)
    source = options.annotation or (options.genome if is_genbank(options.genome) else None)
    file = read_features(source) if source else AnnotatedFile("", [])
    features = file.features
    annotation = None
    if source and any(RECIPES[name].annotation for name in needed):
        annotation = GeneIntervals.of(features, genome, source)
        if not any(annotation.coding.values()):
            raise InputError(
                "has no coding sequence (CDS)", where=source, remedy=f"give another {setting('annotation')}"
            )
    if options.starts == "none":
        return GenomeContext(genome, annotation), {"starts": "none known"}
    avoiding = frozenset(needed if options.starts else {"genome"} & set(needed))
    if not avoiding:
        return GenomeContext(genome, annotation, avoiding=avoiding), {}
    where = options.starts or source
    if not where:
        raise ConfigError(
            "recipe 'genome' requires the starts",
            remedy=f"give {setting('starts')} or {setting('annotation')}, or {setting('starts', 'none')}",
        )
    kinds = tuple(kind for kind in options.feature.split(",") if kind)
    others = read_features(options.starts) if options.starts else file
    for path, read in {source: file, options.starts or source: others}.items():
        if read.note:
            note(f"{path}: {read.note}")
    starts = list(filter(has_start, select_features(others.features, kinds, where)))
    near = near_starts(starts, genome, options.distance, where)
    recipes = "" if avoiding == set(needed) else f" of recipe {' and '.join(sorted(avoiding))}"
    kinds = ", ".join(sorted({start.kind or "BED" for start in starts}))
    text = f"{len(starts)} ({kinds}); windows{recipes} keep {options.distance} bases away from those"
    return GenomeContext(genome, annotation, near, avoiding), {"starts": f"{text} of both strands"}
