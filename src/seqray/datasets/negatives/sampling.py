"""Sample windows of a genome at random, each with the length and GC content of its positive.

The GC content of a sequence is the share of G and C among its unambiguous letters; [0, 1] is divided into
equal bins, and a window matches a positive of the same length and bin.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seqray.core import Codes, Intervals, Ints, reverse_complement
from seqray.datasets.negatives.genome import STRANDS, Genome, window_starts
from seqray.datasets.negatives.regions import AllowedRegions

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
