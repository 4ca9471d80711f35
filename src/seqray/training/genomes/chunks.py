"""From labeled genomes to strands, to what a run learns from, and to batches of chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Sampler

from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.arrays import Bools, Codes, Ints, mark_intervals, pick_evenly
from seqray.core.errors import InputError
from seqray.core.run_config import RunConfig
from seqray.core.text import nearest
from seqray.genome.genes import (
    TRACK_REACH,
    TRACKS,
    Gene,
    Tracks,
    cut_genes,
    flip_genes,
    gene_tracks,
    shift_gene,
    track_rows,
)
from seqray.homology.kmers import KmerSet
from seqray.training.data import BatchModule, FixedBatches
from seqray.training.genomes.sheet import DEV, MASK, REGION, SPECIES, TEST, LabeledContig, LabeledGenome

# --- A strand of a labeled contig: letters, genes, sites, and what each position weighs in the loss

SITES = np.dtype([("position", np.int64), ("kind", np.int64), ("weight", np.float64)])
"""Sites (N,) of a strand by rising position, counted from its first letter; the kind is a class index."""
MASKED, PLAIN, INSIDE, GAP = range(4)
"""Levels of a position: not learned from; background; inside a gene; where unmapped sites may lie."""
MAX_GENE_DISTANCE = 300  # letters before the start of a gene in which a site may be missing
SURROUNDINGS = 10  # letters on either side of a site that it says something about
_BEFORE, _AFTER = 150, 300  # of a known site: there the site of the gene is known
_WRAP = 20_000  # letters of a circle that are continued beyond its origin
_CODING = [TRACKS.index(name) for name in ("frame-1", "frame-2", "frame-3", "opposite")]
_AHEAD = TRACKS.index("to-start")

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LabeledStrand:
    """A strand of a contig in reading direction, or several of short contigs ``joined`` end to end.

    ``codes`` (L,), ``level`` (L,) uint8, see `MASKED`; ``genes`` have ``+`` for this strand, None if unknown.
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
        """Labels and weights (K, n) of ``[start, end)`` of the strand: a Gaussian around sites of a class."""
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


# --- What chunks are drawn from: the strands of a genome, or short contigs joined end to end

SHARED_KMER = 40  # letters of a k-mer that makes two loci one
SHORT_CONTIG_DIVISOR = 4  # contigs of less than a chunk divided by this are joined
BEFORE, AFTER = 45, 30
"""Letters around a site that a joined contig keeps."""
_MARGIN = 40  # letters around a shared k-mer that are the same locus
_MAX_TRIM = 70  # cut off one end of a joined contig
_MAX_MASKED_SHARE = 0.9  # of a chunk that is drawn
_ORDER, _PASS = 1, 2  # keep the random numbers of different purposes apart


class Chunk(NamedTuple):
    """A chunk: its strand, and its first letter there."""

    strand: LabeledStrand
    start: int


@dataclass(frozen=True, eq=False)
class Source:
    """Strands that chunks are drawn from: long contigs, or short ones ``joined`` anew in each pass."""

    strands: Sequence[LabeledStrand]
    joined: bool

    @property
    def letters(self) -> int:
        """Of all strands, without those that are masked."""
        return sum(int(np.count_nonzero(strand.level != MASKED)) for strand in self.strands)

    def chunks(self, size: int, rng: np.random.Generator) -> list[Chunk]:
        """Chunks of one pass over all letters, in an order and with an offset drawn at random."""
        strands = self.strands
        if self.joined:
            order = [strands[i] for i in rng.permutation(len(strands))]
            strands = [_join([_trim(strand, rng) for strand in order])]
        tiles = [chunk for strand in strands for chunk in _tiles(strand, size, rng)]
        return [tiles[i] for i in rng.permutation(len(tiles))]

    def stream(self, size: int, seed: tuple[int, ...]) -> Callable[[int], Chunk]:
        """A function from a number to the chunk that is drawn after so many others, pass after pass."""
        begin, number, chunks = 0, -1, list[Chunk]()

        def draw(count: int) -> Chunk:
            nonlocal begin, number, chunks
            if count < begin:
                begin, number, chunks = 0, -1, []
            while count >= begin + len(chunks):
                begin, number = begin + len(chunks), number + 1
                chunks = self.chunks(size, np.random.default_rng((*seed, _PASS, number)))
            return chunks[count - begin]

        return draw


def _tiles(strand: LabeledStrand, size: int, rng: np.random.Generator) -> Iterator[Chunk]:
    """Chunks end to end from a random offset, without those of which nearly all is masked, if not all."""
    starts = np.maximum(np.arange(-int(rng.integers(size)), len(strand), size), 0)
    ends = np.minimum(starts + size, len(strand))
    masked = np.concatenate(([0], np.cumsum(strand.level == MASKED)))
    share = (masked[ends] - masked[starts]) / (ends - starts)
    chosen = starts[share < (_MAX_MASKED_SHARE if (share < _MAX_MASKED_SHARE).any() else 1)]
    return (Chunk(strand, start) for start in chosen.tolist())


def _trim(strand: LabeledStrand, rng: np.random.Generator) -> LabeledStrand:
    """Cut both ends at random, but no site and not the letters around it."""
    at, length = strand.sites["position"], len(strand)
    room = [at[0] - BEFORE, length - 1 - AFTER - at[-1]] if len(at) else [length // 2, length // 2]
    low, cut = (int(rng.integers(0, min(max(int(most), 0), _MAX_TRIM) + 1)) for most in room)
    high = length - cut
    sites = strand.sites.copy()
    sites["position"] -= low
    genes = None if strand.genes is None else cut_genes(strand.genes, low, high)
    return replace(
        strand, codes=strand.codes[low:high], level=strand.level[low:high], sites=sites, genes=genes
    )


def _join(strands: Sequence[LabeledStrand]) -> LabeledStrand:
    offsets = np.cumsum([0, *map(len, strands)])[:-1].tolist()
    sites = np.concatenate([strand.sites for strand in strands])
    sites["position"] += np.repeat(offsets, [len(strand.sites) for strand in strands])
    codes, level = (np.concatenate([getattr(one, name) for one in strands]) for name in ("codes", "level"))
    genes = None
    if all(strand.genes is not None for strand in strands):
        pairs = zip(strands, offsets, strict=True)
        genes = tuple(shift_gene(gene, by) for strand, by in pairs for gene in strand.genes or ())
    return LabeledStrand(codes, sites, level, genes, joined=True)


def training_sources(genome: LabeledGenome, held_out: KmerSet, chunk: int) -> list[Source]:
    """Sources of a genome that is learned from, without what is held out or shares a k-mer with it."""
    short, whole = [], []
    for contig in genome.contigs:
        shared, held = held_out.marks(contig.codes), contig.covered(DEV, TEST, MASK)
        if SHORT_CONTIG_DIVISOR * len(contig.codes) < chunk:
            if not shared.any():
                names = contig.one_strand or "+-"
                short += [LabeledStrand.of(genome, contig, name, held) for name in names]
        else:
            at = np.flatnonzero(shared)
            masked = held | mark_intervals(at - _MARGIN, at + _MARGIN + 1, len(shared))
            whole += [LabeledStrand.of(genome, contig, name, masked) for name in "+-"]
    # The genes of joined contigs are known of all or of none.
    alike = [[one for one in short if (one.genes is not None) == known] for known in (True, False)]
    sources = [Source(whole, joined=False), *(Source(strands, joined=True) for strands in alike)]
    return [source for source in sources if source.letters]


# --- What a run learns from, what it is validated on, and what is measured at the end


@dataclass(frozen=True, eq=False)
class GenomeParts:
    """Genomes, divided: chunks are drawn from ``sources`` by ``shares``; the rest tells what is held out."""

    sources: list[Source]
    shares: list[float]
    validation: list[Chunk]
    counts: dict[str, int]
    measured: list[tuple[LabeledGenome, str]]

    def learned(self) -> list[LabeledGenome]:
        """Genomes of the species that are learned from."""
        return [genome for genome, held_out in self.measured if held_out == REGION]


def divide_genomes(
    genomes: Sequence[LabeledGenome], classes: Sequence[str], hold_out: Sequence[str], config: RunConfig
) -> GenomeParts:
    """Divide genomes into what is learned from and what is not, such as those of ``hold_out``."""
    names = {name for genome in genomes for name in (genome.row.species, genome.row.group) if name}
    for name in hold_out:
        if name not in names:
            near = nearest(name, names) or min(names)
            what = f"no genome has the species or group '{name}' to hold out"
            raise InputError(what, remedy=f"did you mean '{near}'?")
    out = [bool({genome.row.species, genome.row.group} & set(hold_out)) for genome in genomes]
    stretches = [
        contig.codes[start:end]
        for genome, is_out in zip(genomes, out, strict=True)
        for contig in genome.contigs
        for start, end, _ in ([(0, len(contig.codes), "")] if is_out else contig.regions)
    ]
    held_out = KmerSet(stretches, SHARED_KMER)
    measured = [(genome, SPECIES if is_out else REGION) for genome, is_out in zip(genomes, out, strict=True)]
    drawn = [genome for genome, held in measured if held == REGION and genome.row.weight]
    pairs = [(g, source) for g in drawn for source in training_sources(g, held_out, config.genomes.chunk)]
    shares = [genome.row.weight * source.letters for genome, source in pairs]
    sources = [source for _, source in pairs]
    counts = _count_sites(sources, classes)
    chunks = _validation_chunks(drawn, config)
    positive, name = classes.index(config.data.positive), config.data.positive
    size = config.genomes.chunk
    if config.stopping.monitor == "auprc" and not any(
        len(strand.free_sites(positive, start, start + size)) for strand, start in chunks
    ):
        raise InputError(
            f"no site of class {name} lies in the {len(chunks)} stretches that choose the epoch",
            remedy="give more sites or more 'genomes.validation_chunks', or --set stopping.monitor=loss",
        )
    if not any(
        kind == positive and weight > 0 and any(start <= at < end for start, end in contig.development)
        for genome in genomes
        for contig in genome.contigs
        for at, _, kind, weight in contig.sites
    ):
        raise InputError(
            f"no site of class {name} lies in a development region, to measure on",
            remedy="give more sites, or regions that have some (column 'held_out' of a --sheet)",
        )
    return GenomeParts(sources, [share / sum(shares) for share in shares], chunks, counts, measured)


def _count_sites(sources: Sequence[Source], classes: Sequence[str]) -> dict[str, int]:
    """Sites to learn from by class, and letters; a class without a site is refused."""
    counts = dict.fromkeys(classes, 0) | {"letters": sum(source.letters for source in sources)}
    for strand in (strand for source in sources for strand in source.strands):
        for kind, name in enumerate(classes):
            counts[name] += len(strand.free_sites(kind, 0, len(strand)))
    missing = [name for name in classes if not counts[name]]
    if len(missing) == len(classes):
        remedy = "hold out less, or give sites of weight above 0"
        raise InputError("no site is left to learn from", remedy=remedy)
    if missing:  # the model would state scores for what it has never seen
        raise InputError(
            f"no site of class '{missing[0]}' is left to learn from",
            remedy="hold out less, give its sites, or leave it out of 'genomes.classes'",
        )
    return counts


def _validation_chunks(genomes: Sequence[LabeledGenome], config: RunConfig) -> list[Chunk]:
    """Chunks of the development regions, spread evenly; as many of each species as there are."""
    by_species: dict[str, list[Chunk]] = defaultdict(list)
    for genome in genomes:
        for contig in genome.contigs:
            for name in "+-" if contig.development else "":
                strand = LabeledStrand.of(genome, contig, name, ~contig.covered(DEV))
                for start, end in contig.development:
                    low, high = (start, end) if name == "+" else (len(strand) - end, len(strand) - start)
                    starts = range(low, high, config.genomes.chunk)
                    by_species[genome.row.species] += [Chunk(strand, at) for at in starts]
    if not by_species:
        remedy = "give 'held_out', or a genome with longer contigs"
        raise InputError("no region is named 'dev' to validate on", remedy=remedy)
    most = max(1, config.genomes.validation_chunks // len(by_species))
    return [chunk for chunks in by_species.values() for chunk in pick_evenly(chunks, most)]


# --- Chunks to batches: letters, gene tracks, labels and weights, changed at random in training


class LocatorBatch(NamedTuple):
    """B chunks of C letters: tracks (B, T, C), labels and weights (B, C, K), and what is known (B,)."""

    letters: Tensor
    tracks: Tensor
    labels: Tensor
    weights: Tensor
    known: Tensor
    hidden: Tensor
    rows: Tensor


def read_chunks(
    chunks: Sequence[Chunk], rows: Sequence[int], config: RunConfig, rng: np.random.Generator | None = None
) -> LocatorBatch:
    """Read some chunks, numbered by ``rows``; without ``rng`` nothing is changed at random."""
    settings, classes, read = config.genomes, config.model.classes, track_rows(config.model.tracks)
    size, chunk = len(chunks), settings.chunk
    letters = np.full((size, chunk), DNA.unknown, dtype=np.uint8)
    tracks = np.zeros((size, len(read), chunk), dtype=np.uint8)
    labels, weights = np.zeros((2, size, classes, chunk), dtype=np.float32)
    for i, (strand, start) in enumerate(chunks):
        end = min(start + chunk, len(strand))
        n = end - start
        letters[i, :n] = strand.codes[start:end]
        if read and strand.genes is not None:
            tracks[i, :, :n] = strand.tracks(start, end)[read]
        labels[i, :, :n], weights[i, :, :n] = strand.targets(
            start, end, classes, settings.sigma, settings.gap
        )
    known = np.array([strand.genes is not None for strand, _ in chunks]) & bool(read)
    hidden = ~known
    if rng is not None:
        mutated = (rng.random(letters.shape) < settings.mutate) & (letters < DNA.unknown)
        letters[mutated] = rng.integers(0, len(DNA.letters), int(mutated.sum()), dtype=np.uint8)
        for i in np.flatnonzero(rng.random(size) < settings.cut).tolist():  # up to half of it, at one end
            cut = int(rng.integers(1, chunk // 2 + 1))
            gone = slice(0, cut) if rng.random() < 0.5 else slice(chunk - cut, chunk)
            letters[i, gone] = DNA.unknown
            tracks[i, :, gone] = 0
            weights[i, :, gone] = 0
        joined = np.array([strand.joined for strand, _ in chunks])
        hidden |= (rng.random(size) < settings.hide) & ~joined
    return LocatorBatch(
        torch.from_numpy(letters.astype(np.int64)),
        torch.from_numpy(tracks),
        torch.from_numpy(labels).transpose(1, 2),
        torch.from_numpy(weights).transpose(1, 2),
        *map(torch.from_numpy, (known, hidden, np.asarray(rows))),
    )


ChunkKey = tuple[int, int, list[tuple[int, int]]]
"""Epoch, batch within it, and for each chunk its source, and how many were drawn from that before."""


class ChunkOrder(Sampler[ChunkKey]):
    """Draws the sources of the chunks of an epoch by their shares (S,), the same after a resumption."""

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
            batches: list[list[tuple[int, int]]] = []
            for chosen in of_all.tolist():
                batches.append([])
                for source in chosen:
                    batches[-1].append((source, int(counts[source])))
                    counts[source] += 1
            yield self.epoch, number, batches[self.rank]


class GenomeData(BatchModule):
    """Training chunks of one member, drawn by shares, and validation chunks of the development regions."""

    def __init__(self, parts: GenomeParts, config: RunConfig, seed: int) -> None:
        super().__init__()
        self.parts, self.config, self.seed = parts, config, seed

    def training_batches(self, rank: int, world: int) -> tuple[Callable[[Any], LocatorBatch], Sampler[Any]]:
        """Random changes depend on (seed, epoch, batch, rank) alone."""
        parts, settings, size = self.parts, self.config.genomes, self.config.optimizer.batch_size
        streams = [source.stream(settings.chunk, (self.seed, i)) for i, source in enumerate(parts.sources)]

        def read(key: ChunkKey) -> LocatorBatch:
            epoch, number, drawn = key
            rng = np.random.default_rng((self.seed, epoch, number, rank))
            return read_chunks([streams[s](n) for s, n in drawn], range(len(drawn)), self.config, rng)

        return read, ChunkOrder(parts.shares, settings.steps_per_epoch, size, self.seed, rank, world)

    def validation_batches(self, rank: int, world: int) -> tuple[Callable[[Any], LocatorBatch], Sampler[Any]]:
        """The same chunks each time, unchanged, with their genes where these are known."""
        chunks = self.parts.validation
        rows, size = range(len(chunks)), self.config.optimizer.batch_size
        batches = [rows[i : i + size] for i in rows[::size]]
        return (
            lambda rows: read_chunks([chunks[row] for row in rows], rows, self.config),
            FixedBatches(batches, rank, world),
        )
