"""Windows drawn or derived."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from seqray.core.alphabet import Alphabet, reverse_complement
from seqray.core.arrays import Codes, Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.letters import dinucleotide_shuffle
from seqray.core.records import Intervals, LabeledSequence
from seqray.datasets.negatives.genome import STRANDS, Genome, NegativeOptions, find_occurrences, window_starts
from seqray.datasets.negatives.regions import (
    AllowedRegions,
    GenomeContext,
    allowed_regions,
    assign_blocks,
    clip,
)

# --- Sample windows of a genome at random, each with the length and GC content of its positive

CHUNK = 1 << 13
MAX_CANDIDATES = 1 << 24  # examined for the windows of one length; all of them if there are no more
_ANY = -1


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of the genome: 0-based and half-open in its own coordinates, ``strand`` ``+`` or ``-``."""

    start: int
    end: int
    strand: str


@dataclass
class OccupiedIntervals:
    """Windows and sequences in use, which further windows must not repeat.

    Two windows may share ``max_overlap`` letters. A window equal to one of the ``sequences`` on either strand
    is skipped.
    """

    max_overlap: int = 0
    sequences: set[str] = field(default_factory=set)
    _starts: list[tuple[int, int]] = field(default_factory=list)
    _longest: int = 0

    def is_free(self, start: int, end: int) -> bool:
        """Whether no window in use shares more letters with this one than allowed."""
        index = bisect_left(self._starts, (start - self._longest, 0))
        while index < len(self._starts) and self._starts[index][0] < end:
            first, last = self._starts[index]
            if min(last, end) - max(first, start) > self.max_overlap:
                return False
            index += 1
        return True

    def add(self, start: int, end: int) -> None:
        """Add a window."""
        insort(self._starts, (start, end))
        self._longest = max(self._longest, end - start)


@dataclass(frozen=True, slots=True)
class GcBins:
    """Equal bins of GC content over [0, 1]; a count of 0 puts everything into one."""

    count: int = 20

    def of(self, codes: Codes, unknown: int) -> Ints:
        """Bin of each row: codes (N, L) -> int64 (N,). C and G are codes 1 and 2 of DNA and RNA."""
        if not self.count:
            return np.full(len(codes), _ANY, dtype=np.int64)
        known = np.maximum((codes < unknown).sum(axis=1), 1)
        gc = ((codes == 1) | (codes == 2)).sum(axis=1)
        return np.minimum(gc * self.count // known, self.count - 1)  # in whole numbers, hence exact


def sample_windows(
    genome: Genome,
    regions: Mapping[str, AllowedRegions],
    positives: Sequence[Codes],
    bins: GcBins,
    occupied: OccupiedIntervals,
    rng: np.random.Generator,
) -> list[Window | None]:
    """Sample a window for each positive; None if there is none left.

    ``regions`` are by strand, the positives (n,) codes each. The sampled windows are added to ``occupied``.

    Notes
    -----
    Long windows are sampled first. Windows have no ambiguous letter, and none equals a sequence in use on
    either strand.
    """
    drawn: list[Window | None] = [None] * len(positives)
    lengths = np.array([len(codes) for codes in positives], dtype=np.int64)
    for length in sorted({len(codes) for codes in positives}, reverse=True):
        rows = np.flatnonzero(lengths == length).tolist()
        keys = bins.of(np.stack([positives[i] for i in rows]), genome.alphabet.unknown)
        found = _sample_of_length(genome, regions, length, Counter(keys.tolist()), bins, occupied, rng)
        for i, key in zip(rows, keys.tolist(), strict=True):
            drawn[i] = found[key].pop() if found[key] else None
    return drawn


def _sample_of_length(
    genome: Genome,
    regions: Mapping[str, AllowedRegions],
    length: int,
    wanted: Counter[int],
    bins: GcBins,
    occupied: OccupiedIntervals,
    rng: np.random.Generator,
) -> dict[int, list[Window]]:
    """Sample as many windows of each bin as requested, or as available."""
    found: dict[int, list[Window]] = {key: [] for key in wanted}
    open_bins = np.array(sorted(wanted), dtype=np.int64)
    room = {s: window_starts(regions[s].parts, length, regions[s].forbidden) for s in STRANDS}
    for starts, minus in candidates(room, wanted.total(), rng):
        codes = genome.codes[starts[:, None] + np.arange(length)]  # (chunk, L)
        keys = bins.of(codes, genome.alphabet.unknown)
        good = (codes < genome.alphabet.unknown).all(axis=1) & np.isin(keys, open_bins)
        for start, is_minus, key in zip(
            starts[good].tolist(), minus[good].tolist(), keys[good].tolist(), strict=True
        ):
            window = Window(start, start + length, STRANDS[is_minus])
            if len(found[key]) < wanted[key] and _accept(genome, window, occupied):
                found[key].append(window)
        open_bins = np.array(sorted(k for k in wanted if len(found[k]) < wanted[k]), dtype=np.int64)
        if not len(open_bins):
            break
    return found


def _accept(genome: Genome, window: Window, occupied: OccupiedIntervals) -> bool:
    if not occupied.is_free(window.start, window.end):
        return False
    letters = genome.letters(window.start, window.end, window.strand)
    if letters in occupied.sequences or reverse_complement(letters, genome.alphabet) in occupied.sequences:
        return False
    occupied.add(window.start, window.end)
    occupied.sequences.add(letters)
    return True


def candidates(
    room: Mapping[str, Intervals], wanted: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, np.ndarray]]:
    """Yield starts and strands (True for minus) of windows in chunks, uniformly at random.

    First some are drawn with replacement, which is cheap and nearly always enough. Then all follow in random
    order, or, if there are more than `MAX_CANDIDATES`, so many are drawn.

    ``room`` is where windows may begin, by strand.
    """
    sizes = np.concatenate([room[strand].ends - room[strand].starts for strand in STRANDS])
    first = np.concatenate([room[strand].starts for strand in STRANDS])
    n_plus, edges = len(room["+"].starts), np.cumsum(sizes)
    total = int(edges[-1]) if len(edges) else 0
    for rank in _ranks(total, wanted, rng):
        part = np.searchsorted(edges, rank, "right")
        yield first[part] + rank - (edges[part] - sizes[part]), part >= n_plus


def _ranks(total: int, wanted: int, rng: np.random.Generator) -> Iterator[Ints]:
    if not total:
        return
    quick = min(64 * wanted, total)
    for begin in range(0, quick, CHUNK):
        yield rng.integers(0, total, min(CHUNK, quick - begin))
    if total <= MAX_CANDIDATES:
        order = rng.permutation(total)
        for begin in range(0, total, CHUNK):
            yield order[begin : begin + CHUNK]
        return
    for begin in range(0, MAX_CANDIDATES, CHUNK):
        yield rng.integers(0, total, min(CHUNK, MAX_CANDIDATES - begin))


# --- Negatives that are windows of a genome, recipe by recipe


@dataclass(frozen=True)
class Negative:
    """A negative: its letters, the number of its positive, its name, and its position if it has one."""

    sequence: str
    positive: int
    name: str
    contig: str | None = None
    start: int = 0

    @property
    def recipe(self) -> str:
        """How it was made, the first word of its name."""
        return self.name.partition(":")[0]


class WindowSampler:
    """Samples windows that overlap neither a positive nor an earlier window."""

    def __init__(
        self,
        positives: Sequence[LabeledSequence],
        codes: Sequence[Codes],
        options: NegativeOptions,
        context: GenomeContext,
        occupied: OccupiedIntervals,
    ) -> None:
        self.occurrences = find_occurrences([example.sequence for example in positives], context.genome)
        self._codes, self._context, self._occupied = codes, context, occupied
        self._bins = GcBins(options.gc_bins)
        self._splits = [example.split for example in positives]
        self._blocks = self._assign_blocks(options)

    def _assign_blocks(self, options: NegativeOptions) -> dict[str, Intervals]:
        named = Counter(split for split in self._splits if split)
        shares = {split: Fraction(count, named.total()) for split, count in sorted(named.items())}
        rng = np.random.default_rng([options.seed, 0])
        return assign_blocks(self._context.genome, options.block, shares, rng) if named else {}

    def __call__(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[Negative]:
        """A window for each of the positives ``rows``, as far as available."""
        context = self._context
        near = context.near_starts if recipe in context.avoiding else {}
        covered = self.occurrences.covered.pairs()
        avoid = {s: Intervals.merge(covered + (near[s].pairs() if s in near else [])) for s in STRANDS}
        regions = allowed_regions(recipe, context.genome, avoid, context.annotation)
        made: list[Negative] = []
        for split in sorted({self._splits[row] or "" for row in rows}):
            own = [row for row in rows if (self._splits[row] or "") == split]
            drawn = sample_windows(
                context.genome,
                self._of_split(regions, split),
                [self._codes[row] for row in own],
                self._bins,
                self._occupied,
                rng,
            )
            made += [self._named(recipe, row, w) for row, w in zip(own, drawn, strict=True) if w]
        return sorted(made, key=lambda m: m.positive)

    def _of_split(self, regions: Mapping[str, AllowedRegions], split: str) -> Mapping[str, AllowedRegions]:
        if split not in self._blocks:
            return regions
        return {strand: clip(region, self._blocks[split]) for strand, region in regions.items()}

    def _named(self, recipe: str, row: int, window: Window) -> Negative:
        genome = self._context.genome
        contig, start = genome.locate(window.start)
        end = start + window.end - window.start
        letters = genome.letters(window.start, window.end, window.strand)
        name = f"{recipe}:{contig}:{start}-{end}:{window.strand}"
        return Negative(letters, row, name, contig, start)


# --- Negatives made from a positive: its letters shuffled, or most of its segments replaced


def shuffle_letters(codes: Codes, rng: np.random.Generator, words: int = 2) -> Codes:
    """Shuffle a sequence of codes (n,).

    ``words`` 1 keeps the count of each letter, 2 that of each dinucleotide.
    """
    if words not in (1, 2):
        raise ConfigError(f"shuffles that keep {words}-mers", remedy="give 1 or 2")
    return dinucleotide_shuffle(codes, rng) if words == 2 else rng.permutation(codes)


def segment_edges(length: int, segments: int) -> np.ndarray:
    """Borders of segments as even as possible: int64 (segments + 1,), from 0 to ``length``."""
    if not 1 <= segments <= length:
        raise ConfigError(
            f"{segments} segments of a sequence of {length} letters", remedy="give fewer segments"
        )
    return np.arange(segments + 1, dtype=np.int64) * length // segments


def substitute_segments(
    codes: Codes, rng: np.random.Generator, letters: int, segments: int = 20, keep: int = 8
) -> tuple[Codes, np.ndarray]:
    """Keep some segments of a sequence and fill the others with random letters.

    Raises a ConfigError for more segments than letters, or ``keep`` outside 0 to ``segments - 1``.

    Parameters
    ----------
    codes
        (n,) letter codes.
    letters
        Number of canonical letters, drawn with equal chances.
    segments, keep
        Number of segments, and how many of them stay where they are.

    Returns
    -------
    codes : uint8 (n,)
        The negative.
    kept : int64 (keep,)
        Numbers of the segments kept, ascending.

    References
    ----------
    Oubounyt et al. 2019, DeePromoter, Front. Genet. 10:286: 20 segments, 12 of them replaced, 8 kept.
    Segments there have ``n // 20`` letters and a remainder is one segment more; here they are as even as
    possible.
    """
    if not 0 <= keep < segments:
        raise ConfigError(f"{keep} of {segments} segments are kept", remedy="keep fewer than there are")
    edges = segment_edges(len(codes), segments)
    kept = np.sort(rng.choice(segments, keep, replace=False))
    fresh = rng.integers(0, letters, len(codes)).astype(np.uint8)
    stays = np.repeat(np.isin(np.arange(segments), kept), np.diff(edges))
    return np.where(stays, codes, fresh), kept


# --- Negatives that are made from the letters of a positive, recipe by recipe

MAX_SHUFFLES = 20  # of one positive before it is skipped: a run of one letter has no other order


@dataclass(frozen=True, eq=False)
class SequenceDeriver:
    """Changes positives to sequences that are neither a positive nor an earlier negative."""

    positives: Sequence[LabeledSequence]
    options: NegativeOptions
    alphabet: Alphabet
    occupied: OccupiedIntervals

    def __call__(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[Negative]:
        """A negative from each of the positives ``rows``, but for those without another order of letters."""
        change, every = self._change(recipe, rows, rng), _with_own_codes(self.alphabet)
        made: list[Negative] = []
        number: Counter[int] = Counter()
        for row in rows:
            codes = every.encode(self.positives[row].sequence)
            fresh = (every.decode(change(codes)) for _ in range(MAX_SHUFFLES))
            letters = next(filter(self._is_new, fresh), None)
            if letters is not None:
                self.occupied.sequences.add(letters)
                number[row] += 1
                made.append(Negative(letters, row, f"{recipe}:{self.positives[row].id}:{number[row]}"))
        return made

    def _change(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> Callable[[Codes], Codes]:
        """The function that a recipe applies to the codes of a positive."""
        options, nucleotides = self.options, self.alphabet.is_nucleotide
        if recipe == "substitution":
            self._check_lengths(rows)
            letters = len(self.alphabet.letters)
            return lambda codes: substitute_segments(codes, rng, letters, options.segments, options.keep)[0]
        words = options.shuffle_words or (2 if nucleotides else 1)
        return lambda codes: shuffle_letters(codes, rng, words)

    def _check_lengths(self, rows: Sequence[int]) -> None:
        for row in rows:
            length = len(self.positives[row].sequence)
            if length < self.options.segments:
                raise InputError(
                    f"has {length} letters, fewer than {self.options.segments} segments",
                    where=self.positives[row].where,
                    remedy="give fewer segments",
                )

    def _is_new(self, letters: str) -> bool:
        turned = reverse_complement(letters, self.alphabet) if self.alphabet.is_nucleotide else letters
        return not {letters, turned} & self.occupied.sequences


def _with_own_codes(alphabet: Alphabet) -> Alphabet:
    """The alphabet with a code for each ambiguity letter: if they became N or X, these would mark negatives.

    The codes of the others stay, so that the same seed gives the same negatives.
    """
    unknown = alphabet.unknown_letter
    others = alphabet.ambiguous.replace(unknown, "")
    return Alphabet(alphabet.name, alphabet.letters + unknown + others, "")
