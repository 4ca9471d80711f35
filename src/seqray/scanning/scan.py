"""Scans: contigs in pieces, scores along both strands, peaks, calls, and the same for shuffled sequence."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from seqray.core.alphabet import dinucleotide_shuffle
from seqray.core.arrays import Codes, Floats, Ints, local_maxima, suppress_neighbors
from seqray.core.errors import InputError, field_name, require_type
from seqray.core.host import as_guest
from seqray.core.records import Contig, Intervals, MissingContigs, RegionSet, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.genome.genes import Annotation, Gene, cut_genes, shift_gene
from seqray.inference.origin import Origin
from seqray.inference.sequences import BatchSize, Dtype
from seqray.io.records import note_soft_masks
from seqray.modelfile.model import TrainedModel
from seqray.scanning.contigs import Grid, OpenContig, ScoreProfile
from seqray.scanning.options import ScanCallbacks, ScanOptions, ShardNumber
from seqray.scanning.results import CallTable, ScanCounts, ScanResult, finish_scan
from seqray.scanning.scorers import Scorer, make_scorer
from seqray.scanning.words import genome_cautions, judge

# --- From scores to peaks: candidates of one piece of a strand, refinement, and suppression over all pieces


_MIN_PROBABILITY = 1e-9  # a threshold of 1 has no log-odds


class PiecePeaks(NamedTuple):
    """Peaks of one piece of one strand.

    ``first`` and ``last`` are the scores of the outermost windows of its grid, NaN if not scored; ``end`` is
    the index of the last one. The peaks (n,) were refined from windows of the grid, the ``candidates``.
    """

    first: float
    last: float
    end: int
    starts: Ints
    scores: Floats
    candidates: Ints
    letters: Codes


def floor_below(threshold: float, margin: float) -> float:
    """Probability that lies ``margin`` log-odds units below a threshold."""
    bounded = min(max(threshold, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    odds = bounded / (1 - bounded) * np.exp(-margin)
    return float(odds / (1 + odds))


def find_peaks(
    scorer: Scorer, contig: OpenContig, strand: str, piece: range, margin: float
) -> tuple[Ints, Floats, PiecePeaks]:
    """Score and refine a ``piece`` of the grid: its starts and scores (m,) by site, and its peaks.

    The windows within a stride of a local maximum are scored in rounds, each at half the spacing, as long as
    it may still reach the threshold: by ``margin`` log-odds units per letter of spacing.
    """
    stride, threshold = contig.stride, scorer.threshold
    starts = contig.starts(piece.start, piece.stop, strand)
    scores = scorer.score(contig, strand, starts)
    chosen = np.flatnonzero(local_maxima(scores) & (scores >= floor_below(threshold, margin * stride)))
    near, exists = contig.around(starts[chosen])  # (n, 2 stride - 1)
    refined = np.full(near.shape, np.nan)
    refined[:, stride - 1] = scores[chosen]
    reach, alive, spacing = np.arange(1 - stride, stride), np.arange(len(chosen)), stride // 2
    scored = reach == 0
    while spacing >= 1:
        new = (reach % spacing == 0) & ~scored
        place = np.ix_(alive, np.flatnonzero(new))
        block = np.full(near[place].shape, np.nan)
        block[exists[place]] = scorer.score(contig, strand, near[place][exists[place]])
        refined[place] = block
        highest = np.nanmax(refined[alive], axis=1, initial=-np.inf)
        alive = alive[highest >= floor_below(threshold, margin * spacing)]
        scored |= new
        spacing //= 2
    best, best_scores = best_of_each(near[alive], refined[alive])
    reached = best_scores >= threshold
    alive, best, best_scores = alive[reached], best[reached], best_scores[reached]
    letters = scorer.letters(contig, strand, contig.sites(best, strand))
    ends = float(scores[0]), float(scores[-1])
    return starts, scores, PiecePeaks(*ends, len(starts) - 1, best, best_scores, chosen[alive], letters)


def best_of_each(positions: Ints, scores: Floats) -> tuple[Ints, Floats]:
    """The best of every row (n, m), of equals the first; NaN is excluded, and no row has only that."""
    rows, best = np.arange(len(scores)), np.nanargmax(scores, axis=1)
    return positions[rows, best], scores[rows, best]


def join_pieces(
    grid: Grid, strand: str, pieces: Sequence[PiecePeaks], min_distance: int
) -> tuple[Ints, Floats, Codes]:
    """Join the peaks of all pieces of one strand, given in order: sites, scores and letters, by site."""
    around = grid.circular  # the neighbor of the first point is the last one
    joined = []
    for i, piece in enumerate(pieces):
        before = pieces[i - 1].last if i or around else np.nan
        after = pieces[(i + 1) % len(pieces)].first if i + 1 < len(pieces) or around else np.nan
        overtopped = (piece.candidates == 0) & (before > piece.first)
        overtopped |= (piece.candidates == piece.end) & (after > piece.last)
        joined.append([part[~overtopped] for part in (piece.starts, piece.scores, piece.letters)])
    starts, scores, letters = (np.concatenate(parts) for parts in zip(*joined, strict=True))
    sites = grid.sites(starts, strand)
    kept = suppress_neighbors(sites, scores, min_distance, grid.length if around else None)
    return sites[kept], scores[kept], letters[kept]


# --- Shuffled blocks of the input, in which all calls are false

BLOCK_LETTERS = 50_000
# A short input is shuffled several times over: with five copies the expected number is known better than
# the number of real calls, which scatters by its own square root.
MAX_COPIES = 5


class BlockSampler:
    """Draws blocks evenly from a stream of sequences, with at most so many ``letters`` in memory.

    Random keys decide. Blocks end with contigs and parts, and lack the letters of code ``unknown``.
    """

    def __init__(self, letters: int, window: int, unknown: int, seed: int) -> None:
        self._limit, self._window, self._unknown = letters, window, unknown
        self._rng, self._offered = np.random.default_rng(seed), 0
        # A heap: the highest key (negated) on top. Then the number of the block, its letters and its genes.
        self._held: list[tuple[float, int, Codes, tuple[Gene, ...] | None]] = []
        self.letters = 0

    def offer(
        self,
        codes: Codes,
        parts: Intervals,
        masked: Intervals | None = None,
        genes: tuple[Gene, ...] | None = None,
    ) -> None:
        """Cut blocks from the parts of a contig, without masked letters; with genes, these keep places."""
        if genes is not None:  # a gene that crosses the origin is also at the begin
            genes += tuple(shift_gene(gene, -len(codes)) for gene in genes if gene.end > len(codes))
        size = min(BLOCK_LETTERS, self._limit)
        for start, end in parts.pairs():
            for first in range(start, end, size):
                self._offer_block(codes, range(first, min(first + size, end)), masked, genes)

    def _offer_block(
        self, codes: Codes, places: range, masked: Intervals | None, genes: tuple[Gene, ...] | None
    ) -> None:
        key = -float(self._rng.random())
        self._offered += 1
        if self._held and key < self._held[0][0] and self.letters + len(places) > self._limit:
            return
        block, own = codes[places.start : places.stop], None
        if genes is not None:
            own = cut_genes(genes, places.start, places.stop)
            block = block.copy()  # a view would hold the letters of the whole contig
        else:
            keep = block != self._unknown
            if masked is not None:
                keep &= ~masked.contains(np.arange(places.start, places.stop))
            block = block[keep]
        if len(block) >= self._window:
            heapq.heappush(self._held, (key, self._offered, block, own))
            self.letters += len(block)
        while self.letters > self._limit:
            self.letters -= len(heapq.heappop(self._held)[2])

    @property
    def copies(self) -> int:
        """How often each block is shuffled: once, or up to `MAX_COPIES` times."""
        return min(MAX_COPIES, self._limit // self.letters) if self.letters else 0

    def shuffled(self) -> Iterator[tuple[Codes, tuple[Gene, ...] | None]]:
        """Yield each block shuffled, and its genes, in the order of the input, as often as `copies` says."""
        for _ in range(self.copies):
            for _, _, block, genes in sorted(self._held, key=lambda held: held[1]):
                yield self._shuffle(block, genes), genes

    def _shuffle(self, block: Codes, genes: tuple[Gene, ...] | None) -> Codes:
        if genes is None:
            return dinucleotide_shuffle(block, self._rng)
        shuffled = block.copy()
        places = np.flatnonzero(block == self._unknown).tolist()
        kept = Intervals.merge([*((g.start, g.end) for g in genes), *((i, i + 1) for i in places)])
        edges = [0, *(edge for pair in kept.pairs() for edge in pair), len(block)]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if start < end:
                shuffled[start:end] = dinucleotide_shuffle(block[start:end], self._rng)
        return shuffled


# --- The scan

# Windows per contig that are compared with the model's training data: their share is known to 2 % or better.
_WINDOWS_COMPARED = 500


class Scan:
    """The work of a scan in independent units, pieces of contigs and shuffled blocks, with its counts.

    With a shard number only the units of that shard are scored. A piece has ``piece_points`` of the grid.
    """

    def __init__(self, scorer: Scorer, callbacks: ScanCallbacks, shard: ShardNumber | None = None) -> None:
        self.scorer, self.options, self.callbacks = scorer, scorer.options, callbacks
        options = scorer.options
        self.piece_points = max(1, options.piece // scorer.stride)
        self.counts, self.contigs = ScanCounts(), list[Contig]()
        letters = int((scorer.null_mb if options.null_mb is None else options.null_mb) * 1e6)
        unknown = scorer.alphabet.unknown
        self._sampler = BlockSampler(letters, scorer.window, unknown, options.seed) if letters else None
        self._genes: dict[str, tuple[Gene, ...]] = {}
        self._shard, self._units = shard or ShardNumber(), 0
        self._done = 0.0  # letters, on all strands
        self._checksum = None if shard is None else hashlib.sha256()

    @property
    def checksum(self) -> str:
        """SHA-256 of the codes of all contigs, each followed by its masks if they are skipped."""
        return "" if self._checksum is None else self._checksum.hexdigest()

    @property
    def genes(self) -> Annotation | None:
        """The genes of the contigs so far; None where none are known."""
        annotation = self.scorer.annotation
        return (
            None
            if annotation is None
            else Annotation(self._genes, annotation.source, circular=annotation.circular)
        )

    def _is_ours(self) -> bool:
        """Count one more unit; returns whether it belongs to this shard."""
        self._units += 1
        return (self._units - 1) % self._shard.total == self._shard.number - 1

    def open(self, records: Iterable[SequenceRecord]) -> Iterator[tuple[Contig, OpenContig]]:
        """Yield each contig that is scanned, ready to be scored; errors as in `scan_sequences`."""
        regions = None if self.options.regions is None else RegionSet(self.options.regions)
        circles = MissingContigs((name, field_name("circular_ids")) for name in self.options.circular_ids)
        named = self.scorer.annotation.circular if self.scorer.annotation else ()
        for record in records:
            circles.see(record.id)
            parts = regions.parts_of(record.id, len(record)) if regions is not None else None
            if regions is not None and parts is None:
                continue
            if len(record) < self.scorer.window:
                reason = f"{len(record)} bases, shorter than the window of {self.scorer.window}"
                if self.callbacks.on_skip is None:
                    remedy = (
                        "remove it, or skip it by strict=False of seqray.scan or 'on_skip' of ScanCallbacks"
                    )
                    raise InputError(reason, where=f"record '{record.id}'", remedy=remedy)
                self.callbacks.on_skip(SkippedRecord(record.id, reason))
                continue
            circular = self.options.is_circular(record) or record.id in named
            contig = Contig(record.id, len(record), circular, parts)
            opened = self._open(contig, record)
            yield contig, opened
            self.counts.windows += opened.scored
            del record, opened  # else they are in memory while the next record is read
        circles.check()
        if regions is not None:
            regions.check()

    def _open(self, contig: Contig, record: SequenceRecord) -> OpenContig:
        """Count a contig, offer it to the sampler and compare it with the training data."""
        scorer, length, circular = self.scorer, contig.length, contig.circular
        codes = scorer.alphabet.encode(record.sequence)
        masked = Intervals.merge(record.soft_masked) if self.options.skip_soft_masked else None
        if self._checksum is not None:
            self._checksum.update(codes.data)
            if masked is not None:
                self._checksum.update(np.array(masked.pairs(), "<i8").data)
        # Peaks just outside the parts may suppress peaks within.
        halo = scorer.halo * (scorer.min_distance + scorer.stride)
        wanted = contig.scanned.extended(halo, length, circular=circular)
        genes = scorer.annotation.find(record, circular) if scorer.annotation else None
        if genes is not None:
            self._genes[contig.name] = genes
        opened = scorer.open(codes, genes, circular=circular, parts=wanted, masked=masked)
        self.contigs.append(contig)
        self.counts.contigs += 1
        self.counts.letters += length
        if self.callbacks.on_contig is not None:
            self.callbacks.on_contig(contig.name, length)
        if self._sampler is not None:
            around = wanted.extended(scorer.window, length, circular=circular)
            self._sampler.offer(codes, around, masked, genes)
        if scorer.out_of_domain is not None and self._shard.number == 1:
            compared = opened.at_sites(contig.scanned.sample_evenly(_WINDOWS_COMPARED))
            self.counts.compared += len(compared)
            self.counts.unlike += int(np.count_nonzero(scorer.out_of_domain(compared)))
        return opened

    def pieces(
        self, contig: Contig, opened: OpenContig, strand: str
    ) -> Iterator[tuple[int, PiecePeaks, ScoreProfile]]:
        """Yield first grid point, peaks and scores of each piece that is computed here."""
        firsts = range(0, opened.points, self.piece_points)
        for first in firsts:
            if self._is_ours():
                piece = range(first, first + self.piece_points)
                starts, scores, peaks = find_peaks(self.scorer, opened, strand, piece, self.options.margin)
                profile = ScoreProfile.of(contig, opened, strand, starts, scores)
                self.counts.positions += profile.count_positions(contig, scores)
                yield first, peaks, profile
            self._done += contig.length / (len(firsts) * len(self.options.strands))
            if self.callbacks.on_progress is not None:
                self.callbacks.on_progress(round(self._done), None, "scan")

    def null_scores(self) -> Floats:
        """Scan our part of the shuffled blocks in the same way; (n,) scores of the peaks in them."""
        scores = [np.empty(0)]
        if self._sampler is None:
            return scores[0]
        scorer, margin = self.scorer, self.options.margin
        done, total = 0, self._sampler.letters * self._sampler.copies
        for block, genes in self._sampler.shuffled():
            opened = scorer.open(block, genes)
            for strand in self.options.strands:
                if self._is_ours():
                    cut = [
                        range(i, i + self.piece_points) for i in range(0, opened.points, self.piece_points)
                    ]
                    pieces = [find_peaks(scorer, opened, strand, piece, margin)[2] for piece in cut]
                    scores.append(join_pieces(opened, strand, pieces, scorer.min_distance)[1])
            self.counts.windows += opened.scored
            self.counts.null_positions += len(block) - scorer.window + 1
            done += len(block)
            if self.callbacks.on_progress is not None:
                self.callbacks.on_progress(done, total, "scan shuffled sequence")
        return np.concatenate(scores)


def scan_sequences(
    scorer: Scorer, records: Iterable[SequenceRecord], callbacks: ScanCallbacks, origin: Origin | None = None
) -> ScanResult:
    """Scan sequences in one pass; any ``piece`` of the options gives the same. ``origin`` watches them."""
    scan, options = Scan(scorer, callbacks), scorer.options
    calls = CallTable(scorer.label, scorer.extent)
    with scorer.running():
        for contig, opened in scan.open(origin.watch(records) if origin else records):
            strands = []
            for strand in options.strands:
                pieces = []
                for _, peaks, profile in scan.pieces(contig, opened, strand):
                    pieces.append(peaks)
                    if callbacks.on_profile is not None:
                        callbacks.on_profile(profile)
                strands.append((strand, *join_pieces(opened, strand, pieces, scorer.min_distance)))
            calls.add(contig, strands)
            del opened  # else it is in memory while the next record is read
        null = scan.null_scores()
    result = finish_scan(
        calls,
        null,
        scan.counts,
        scan.contigs,
        options,
        scorer.threshold,
        from_positions=scorer.from_positions,
        genes=scan.genes,
        figures=scorer.figures,
        species=options.species or (origin.species if origin else None),
        foreign=options.species is None and origin is not None and origin.is_foreign,
    )
    judge(result, [*origin.findings(options.species), *scorer.limits] if origin is not None else [])
    return result


@as_guest
def scan_records(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    options: ScanOptions | None = None,
    callbacks: ScanCallbacks | None = None,
    *,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
    genes: Annotation | None = None,
    recognized: bool = False,
) -> ScanResult:
    """Find the sites of a model's positive class along sequences of any length.

    Parameters
    ----------
    model
        A locator, or a model of fixed windows over nucleotides.
    records
        Read once, one in memory at a time. Those shorter than a model's window are an error unless
        ``callbacks`` has an ``on_skip``.
    options, callbacks
        How to scan, and what is called while it runs.
    batch_size, dtype
        As in `seqray.inference.sequences.predict_records`.
    genes
        For a locator: of `seqray.genome.find.choose_genes`; None where they are not known.
    recognized
        Whether the context of the model was recognized by the records.

    Returns
    -------
    ScanResult
        Calls in the order of the input, the threshold in force and what to expect: false calls, or with a
        locator the precision.
    """
    require_type(model, TrainedModel, "load it by seqray.load_model")
    options = options or ScanOptions()
    other = "give other forms to seqray.predict, seqray.scan or seqray.explain"
    records = (require_type(record, SequenceRecord, other) for record in records)
    if options.skip_soft_masked:
        records = map(note_soft_masks, records)
    scorer = make_scorer(model, options, batch_size=batch_size, dtype=dtype, genes=genes)
    origin = Origin(model, recognized=recognized)
    result = scan_sequences(scorer, records, callbacks or ScanCallbacks(), origin)
    if options.regions is None:
        result.findings[:0] = genome_cautions(model.card.name, result.letters)
    return result
