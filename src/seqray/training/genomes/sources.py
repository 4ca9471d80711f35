"""What chunks are drawn from: the strands of a genome, or short contigs joined end to end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqray.annotation import cut_genes, flip_genes, gene_tracks, shift_gene
from seqray.core import Bools, mark_intervals, reverse_complement_codes
from seqray.homology import KmerSet
from seqray.training.genomes.genome import DEV, MASK, TEST, LabeledContig, LabeledGenome
from seqray.training.genomes.levels import levels
from seqray.training.genomes.strands import MASKED, LabeledStrand, Sites

SHARED_KMER = 40
"""Letters of a k-mer that makes two loci one."""
_MARGIN = 40  # letters around a shared k-mer that are the same locus
SHORT_CONTIG_DIVISOR = 4
"""Contigs of less than a chunk divided by this are joined."""
BEFORE, AFTER = 45, 30
"""Letters around a site that a joined contig keeps."""
_MAX_TRIM = 70  # cut off one of its ends
_MAX_MASKED_SHARE = 0.9  # of a chunk that is drawn


class Chunk(NamedTuple):
    """A chunk: its strand, and its first letter there."""

    strand: LabeledStrand
    start: int


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """Strands that passes over letters are drawn from."""

    strands: Sequence[LabeledStrand]

    @property
    def letters(self) -> int:
        """Of all strands, without those that are masked."""
        return sum(int(np.count_nonzero(strand.level != MASKED)) for strand in self.strands)

    @abstractmethod
    def chunks(self, chunk: int, rng: np.random.Generator) -> list[Chunk]:
        """The chunks of one pass over all letters, in an order and with an offset drawn at random.

        ``chunk`` is in letters.
        """


class WholeContigs(Source):
    """Long contigs, one strand at a time."""

    def chunks(self, chunk: int, rng: np.random.Generator) -> list[Chunk]:
        found = [one for strand in self.strands for one in _tiles(strand, chunk, rng)]
        return [found[i] for i in rng.permutation(len(found))]


class JoinedContigs(Source):
    """Short contigs, each the strand with its sites, joined in a new order in each pass.

    The ends of each are cut at random, so that the distance of a site to the end of its contig says nothing.
    Their genes, if known, are never hidden: sites are far denser here than in a genome, and a model without
    genes would come to expect them everywhere.
    """

    def chunks(self, chunk: int, rng: np.random.Generator) -> list[Chunk]:
        order = [self.strands[i] for i in rng.permutation(len(self.strands))]
        joined = _join([_trim(strand, rng) for strand in order])
        found = list(_tiles(joined, chunk, rng))
        return [found[i] for i in rng.permutation(len(found))]


def _tiles(strand: LabeledStrand, chunk: int, rng: np.random.Generator) -> Iterator[Chunk]:
    """Chunks end to end from a random offset, without those of which nearly all is masked, if not all."""
    starts = np.maximum(np.arange(-int(rng.integers(chunk)), len(strand), chunk), 0)
    ends = np.minimum(starts + chunk, len(strand))
    masked = np.concatenate(([0], np.cumsum(strand.level == MASKED)))
    share = (masked[ends] - masked[starts]) / (ends - starts)
    kept = starts[share < (_MAX_MASKED_SHARE if (share < _MAX_MASKED_SHARE).any() else 1)]
    return (Chunk(strand, int(start)) for start in kept)


def _trim(strand: LabeledStrand, rng: np.random.Generator) -> LabeledStrand:
    """Cut both ends at random, but no site and not the letters around it."""
    room = [len(strand) // 2, len(strand) // 2]
    if len(strand.sites):
        room = [int(strand.sites.position[0]) - BEFORE, len(strand) - 1 - AFTER]
        room[1] -= int(strand.sites.position[-1])
    low, cut = (int(rng.integers(0, min(max(most, 0), _MAX_TRIM) + 1)) for most in room)
    high = len(strand) - cut
    sites = replace(strand.sites, position=strand.sites.position - low)
    genes = None if strand.genes is None else cut_genes(strand.genes, low, high)
    return replace(
        strand, codes=strand.codes[low:high], level=strand.level[low:high], sites=sites, genes=genes
    )


def _join(strands: Sequence[LabeledStrand]) -> LabeledStrand:
    offsets = np.cumsum([0, *map(len, strands)])[:-1]
    positions = [one.sites.position + offset for one, offset in zip(strands, offsets, strict=True)]
    sites = Sites(
        np.concatenate(positions),
        np.concatenate([one.sites.kind for one in strands]),
        np.concatenate([one.sites.weight for one in strands]),
    )
    codes, level = (np.concatenate([getattr(one, name) for one in strands]) for name in ("codes", "level"))
    genes = None
    if all(one.genes is not None for one in strands):
        genes = tuple(
            shift_gene(gene, int(offset))
            for one, offset in zip(strands, offsets, strict=True)
            for gene in one.genes or ()
        )
    return LabeledStrand(codes, sites, level, genes, joined=True)


# --------------------------------------------------------------------------------------- from genomes


def held_out_kmers(genomes: Sequence[LabeledGenome], left_out: Sequence[bool]) -> KmerSet:
    """K-mers of all regions that are held out, and of genomes of which nothing is learned."""
    stretches = [
        contig.codes[start:end]
        for genome, out in zip(genomes, left_out, strict=True)
        for contig in genome.contigs
        for start, end, _ in ([(0, len(contig.codes), "")] if out else contig.regions)
    ]
    return KmerSet(stretches, SHARED_KMER)


def training_source(genome: LabeledGenome, held_out: KmerSet, chunk: int) -> list[Source]:
    """Sources of one genome, without what is held out or shares a k-mer with it.

    The genome is not one that is left out; ``chunk`` is in letters.
    """
    short, whole = [], []
    for contig in genome.contigs:
        shared, held = held_out.marks(contig.codes), contig.covered(DEV, TEST, MASK)
        if is_short(contig, chunk):
            if not shared.any():
                read = contig.one_strand or "+-"
                short += [make_strand(genome, contig, strand, held) for strand in read]
        else:
            whole += [make_strand(genome, contig, strand, held | _widen(shared)) for strand in "+-"]
    sources: list[Source] = []
    if whole:
        sources.append(WholeContigs(whole))
    for known in (True, False):  # the genes of joined contigs are known of all or of none
        if alike := [strand for strand in short if (strand.genes is not None) == known]:
            sources.append(JoinedContigs(alike))
    return [source for source in sources if source.letters]


def is_short(contig: LabeledContig, chunk: int) -> bool:
    """Whether a contig is joined with others."""
    return SHORT_CONTIG_DIVISOR * len(contig.codes) < chunk


def _widen(marks: Bools) -> Bools:
    """Mark letters near marked ones, too."""
    at = np.flatnonzero(marks)
    return mark_intervals(at - _MARGIN, at + _MARGIN + 1, len(marks))


def make_strand(genome: LabeledGenome, contig: LabeledContig, strand: str, masked: Bools) -> LabeledStrand:
    """One strand with its genes, sites and levels.

    The mask (L,) is that of the contig's plus strand.
    """
    forward, length = strand == "+", len(contig.codes)
    sites = Sites.of(
        [
            (at if forward else length - 1 - at, kind, weight)
            for at, own, kind, weight in contig.sites
            if own == strand
        ]
    )
    genes = tracks = None
    known = genome.genes_of(contig)
    if known is not None:
        genes = known if forward else flip_genes(known, length)
        tracks = gene_tracks(known, length, strand, circular=contig.circular)
    return LabeledStrand(
        codes=contig.codes if forward else reverse_complement_codes(contig.codes),
        sites=sites,
        level=levels(tracks, length, sites, masked if forward else masked[::-1]),
        genes=genes,
        circular=contig.circular,
        inside=genome.row.inside,
    )
