"""Chunks drawn from genomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from seqray.calibration.domain import Domain
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.arrays import Bools, Codes, mark_intervals, pick_evenly
from seqray.core.run_config import GenomesConfig, RunConfig
from seqray.genome.genes import cut_genes, flip_genes, shift_gene
from seqray.genome.tracks import gene_tracks, track_rows
from seqray.homology.relatives import KmerSet
from seqray.training.data import BatchModule, FixedBatches
from seqray.training.genomes.sheet import DEV, MASK, TEST, LabeledContig, LabeledGenome
from seqray.training.genomes.strands import MASKED, LabeledStrand, Sites, kernel, levels, targets

# --- What chunks are drawn from: the strands of a genome, or short contigs joined end to end

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


# --- Which chunks make which batch: drawn from the sources by their share, the same after a resumption

_ORDER, _PASS = 1, 2  # keep the random numbers of different purposes apart


class Drawn(NamedTuple):
    """A chunk of a batch: the number of its source, and how many were drawn from it before."""

    source: int
    number: int


ChunkKey = tuple[int, int, list[Drawn]]
"""Epoch, number of the batch within it, and its chunks."""


class Stream:
    """Chunks of one source, pass after pass; the same number gives the same chunk."""

    def __init__(self, source: Source, chunk: int, seed: tuple[int, ...]) -> None:
        self._source, self._chunk, self._seed = source, chunk, seed
        self._begin, self._pass, self._chunks = 0, 0, self._draw(0)

    def _draw(self, number: int) -> list[Chunk]:
        return self._source.chunks(self._chunk, np.random.default_rng((*self._seed, _PASS, number)))

    def __getitem__(self, count: int) -> Chunk:
        if count < self._begin:
            self._begin, self._pass, self._chunks = 0, 0, self._draw(0)
        while count >= self._begin + len(self._chunks):
            self._begin += len(self._chunks)
            self._pass += 1
            self._chunks = self._draw(self._pass)
        return self._chunks[count - self._begin]


class ChunkOrder(Sampler[ChunkKey]):
    """Draws the sources of the chunks of an epoch.

    The (S,) shares have sum 1. ``steps`` counts the batches of an epoch and a process, ``batch_size`` the
    chunks of a batch.
    """

    def __init__(
        self, shares: Sequence[float], steps: int, batch_size: int, seed: int, rank: int = 0, world: int = 1
    ) -> None:
        self.shares, self.steps, self.batch_size, self.seed = np.asarray(shares), steps, batch_size, seed
        self.rank, self.world, self.epoch = rank, world, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning when an epoch begins, and after a resumption."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.steps

    def _sources(self, epoch: int) -> np.ndarray:
        """Source of each chunk of an epoch, of all processes: (steps, world, batch_size)."""
        rng = np.random.default_rng((self.seed, _ORDER, epoch))
        return rng.choice(len(self.shares), (self.steps, self.world, self.batch_size), p=self.shares)

    def __iter__(self) -> Iterator[ChunkKey]:
        counts = np.zeros(len(self.shares), dtype=np.int64)
        for epoch in range(self.epoch):
            counts += np.bincount(self._sources(epoch).ravel(), minlength=len(counts))
        for number, of_all in enumerate(self._sources(self.epoch)):
            batches = []
            for chosen in of_all.tolist():
                batches.append([])
                for source in chosen:
                    batches[-1].append(Drawn(source, int(counts[source])))
                    counts[source] += 1
            yield self.epoch, number, batches[self.rank]


# --- Chunks to batches: letters, gene tracks, labels and weights, changed at random in training


class LocatorBatch(NamedTuple):
    """B chunks of C letters.

    Attributes
    ----------
    letters, tracks
        Codes (B, C) int64, and gene tracks (B, T, C) uint8.
    labels, weights
        (B, C, K) float32.
    known
        (B,) bool, whether the genes are known.
    hidden
        (B,) bool, whether the model gets no genes.
    rows
        (B,) number of each chunk, for validation.
    """

    letters: Tensor
    tracks: Tensor
    labels: Tensor
    weights: Tensor
    known: Tensor
    hidden: Tensor
    rows: Tensor


class ChunkReader:
    """Reads chunks for a model."""

    def __init__(self, config: RunConfig) -> None:
        self.config: GenomesConfig = config.genomes
        self.classes, self._kernel = config.model.classes, kernel(config.genomes.sigma)
        self._rows = track_rows(config.model.tracks)

    def batch(
        self, chunks: Sequence[Chunk], rows: Sequence[int], rng: np.random.Generator | None = None
    ) -> LocatorBatch:
        """Read some chunks, numbered by ``rows``; without ``rng`` nothing is changed at random."""
        size, chunk = len(chunks), self.config.chunk
        letters = np.full((size, chunk), DNA.unknown, dtype=np.uint8)
        tracks = np.zeros((size, len(self._rows), chunk), dtype=np.uint8)
        labels, weights = (np.zeros((size, self.classes, chunk), dtype=np.float32) for _ in range(2))
        for i, (strand, start) in enumerate(chunks):
            end = min(start + chunk, len(strand))
            n = end - start
            letters[i, :n] = strand.codes[start:end]
            if self._rows and strand.genes is not None:
                tracks[i, :, :n] = strand.tracks(start, end)[self._rows]
            labels[i, :, :n], weights[i, :, :n] = targets(
                strand, start, end, self.classes, self._kernel, self.config.gap
            )
        known = np.array([strand.genes is not None for strand, _ in chunks]) & bool(self._rows)
        hidden = ~known
        if rng is not None:
            self._mutate(letters, rng)
            self._cut(letters, tracks, weights, rng)
            joined = np.array([strand.joined for strand, _ in chunks])
            hidden |= (rng.random(size) < self.config.hide) & ~joined
        return LocatorBatch(
            torch.from_numpy(letters.astype(np.int64)),
            torch.from_numpy(tracks),
            torch.from_numpy(labels).transpose(1, 2),
            torch.from_numpy(weights).transpose(1, 2),
            *map(torch.from_numpy, (known, hidden, np.asarray(rows))),
        )

    def _mutate(self, letters: np.ndarray, rng: np.random.Generator) -> None:
        chosen = (rng.random(letters.shape) < self.config.mutate) & (letters < DNA.unknown)
        letters[chosen] = rng.integers(0, len(DNA.letters), int(chosen.sum()), dtype=np.uint8)

    def _cut(
        self, letters: np.ndarray, tracks: np.ndarray, weights: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Take letters and genes away from one end of some chunks, up to half of it."""
        chunk = letters.shape[1]
        for i in np.flatnonzero(rng.random(len(letters)) < self.config.cut).tolist():
            size = int(rng.integers(1, chunk // 2 + 1))
            gone = slice(0, size) if rng.random() < 0.5 else slice(chunk - size, chunk)
            letters[i, gone] = DNA.unknown
            tracks[i, :, gone] = 0
            weights[i, :, gone] = 0


class TrainingChunks(Dataset[LocatorBatch]):
    """Training batches by their key; random changes depend on (seed, epoch, batch, rank) alone."""

    def __init__(self, sources: Sequence[Source], config: RunConfig, seed: int, rank: int) -> None:
        self._reader, self._seed, self._rank = ChunkReader(config), seed, rank
        self._streams = [
            Stream(source, config.genomes.chunk, (seed, number)) for number, source in enumerate(sources)
        ]

    def __getitem__(self, key: ChunkKey) -> LocatorBatch:
        epoch, number, drawn = key
        rng = np.random.default_rng((self._seed, epoch, number, self._rank))
        chunks = [self._streams[one.source][one.number] for one in drawn]
        return self._reader.batch(chunks, range(len(chunks)), rng)


class ValidationChunks(Dataset[LocatorBatch]):
    """The same chunks each time, unchanged, with their genes where these are known."""

    def __init__(self, chunks: Sequence[Chunk], config: RunConfig) -> None:
        self._reader, self._chunks = ChunkReader(config), chunks

    def __getitem__(self, rows: Sequence[int]) -> LocatorBatch:
        return self._reader.batch([self._chunks[row] for row in rows], rows)


class GenomeData(BatchModule):
    """Training chunks of one member, drawn by shares, and validation chunks of the development regions."""

    def __init__(
        self,
        sources: Sequence[Source],
        shares: Sequence[float],
        validation: Sequence[Chunk],
        config: RunConfig,
        seed: int,
    ) -> None:
        super().__init__()
        self.sources, self.shares, self.validation = sources, shares, validation
        self.config, self.seed = config, seed

    def training_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        steps, size = self.config.genomes.steps_per_epoch, self.config.optimizer.batch_size
        order = ChunkOrder(self.shares, steps, size, self.seed, rank, world)
        return TrainingChunks(self.sources, self.config, self.seed, rank), order

    def validation_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        rows, size = range(len(self.validation)), self.config.optimizer.batch_size
        batches = [rows[i : i + size] for i in rows[::size]]
        return ValidationChunks(self.validation, self.config), FixedBatches(batches, rank, world)


# --- What the genomes of a run are made of, so that a scan can tell whether its genome is like one of the

PIECE = 1000
"""Letters of a piece."""
PIECES = 300
"""Most pieces of a species: 300,000 words of four letters give their shares to within a few percent."""


def species_domain(genomes: Sequence[LabeledGenome]) -> Domain | None:
    """Words of four letters of each species, from pieces spread evenly over its contigs.

    Species of which only short contigs are known are left out, because those lie around the sites, and
    other parts of the genome are made of other words. None where that leaves nothing.
    """
    pieces: list[Codes] = []
    species: list[str] = []
    for name in sorted({genome.row.species for genome in genomes}):
        of_species = [p for genome in genomes if genome.row.species == name for p in _pieces(genome)]
        chosen = pick_evenly(of_species, PIECES)
        pieces += chosen
        species += [name] * len(chosen)
    return Domain.fit(pieces, DNA, contexts=species) if pieces else None


def _pieces(genome: LabeledGenome) -> list[Codes]:
    return [
        contig.codes[start : start + PIECE]
        for contig in genome.contigs
        for start in range(0, len(contig.codes) - PIECE + 1, PIECE)
    ]
