"""Draw windows at random from where they may lie, each like its positive in length and in GC content.

The GC content of a sequence is the share of G and C among its unambiguous letters; [0, 1] is cut into
equal bins, and a window matches a positive of its own length and bin.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from seqray.core import Codes, Intervals, Ints, reverse_complement
from seqray.datasets.negatives.genome import Genome, window_starts
from seqray.datasets.negatives.sources import STRANDS, Source

CHUNK = 1 << 13
MOST_CANDIDATES = 1 << 24  # looked at for the windows of one length; all of them where there are no more
_ANY = -1


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of the genome: 0-based and half-open in its own coordinates, ``strand`` ``+`` or ``-``."""

    start: int
    end: int
    strand: str


@dataclass
class Taken:
    """What is in use: intervals that further windows must not share too many letters with, and sequences.

    Attributes
    ----------
    max_overlap
        Letters that two windows may share.
    sequences
        Letters of positives and negatives; a window that is one of them on either strand is passed over.
    """

    max_overlap: int = 0
    sequences: set[str] = field(default_factory=set)
    _starts: list[tuple[int, int]] = field(default_factory=list)
    _longest: int = 0

    def is_free(self, start: int, end: int) -> bool:
        """Whether no window in use shares more letters with this one than allowed."""
        place = bisect_left(self._starts, (start - self._longest, 0))
        while place < len(self._starts) and self._starts[place][0] < end:
            first, last = self._starts[place]
            if min(last, end) - max(first, start) > self.max_overlap:
                return False
            place += 1
        return True

    def take(self, start: int, end: int) -> None:
        """Put a window in use."""
        insort(self._starts, (start, end))
        self._longest = max(self._longest, end - start)


@dataclass(frozen=True, slots=True)
class GcBins:
    """Equal bins of GC content over [0, 1].

    Attributes
    ----------
    count
        Number of bins; 0 puts everything into one.
    """

    count: int = 20

    def of(self, codes: Codes, unknown: int) -> np.ndarray:
        """Bin of each row: codes (N, L) -> int64 (N,). C and G are codes 1 and 2 of DNA and RNA."""
        if not self.count:
            return np.full(len(codes), _ANY, dtype=np.int64)
        known = np.maximum((codes < unknown).sum(axis=1), 1)
        gc = ((codes == 1) | (codes == 2)).sum(axis=1)
        return np.minimum(gc * self.count // known, self.count - 1)  # in whole numbers, hence exact


def draw_windows(
    genome: Genome,
    sources: Mapping[str, Source],
    positives: Sequence[Codes],
    bins: GcBins,
    taken: Taken,
    rng: np.random.Generator,
) -> list[Window | None]:
    """Draw a window for each positive, None where there is none left.

    Parameters
    ----------
    genome
        Where windows are cut from.
    sources
        By strand, where windows may lie.
    positives
        (n,) codes of each.
    bins
        Of GC content.
    taken
        What is in use; the windows drawn are put in use.
    rng
        Source of randomness.

    Notes
    -----
    Long windows are drawn first. Windows hold no ambiguous letter, and none equals a sequence in use on
    either strand.
    """
    drawn: list[Window | None] = [None] * len(positives)
    lengths = np.array([len(codes) for codes in positives], dtype=np.int64)
    for length in sorted({len(codes) for codes in positives}, reverse=True):
        rows = np.flatnonzero(lengths == length).tolist()
        keys = bins.of(np.stack([positives[i] for i in rows]), genome.alphabet.unknown)
        found = _draw_of_length(genome, sources, length, Counter(keys.tolist()), bins, taken, rng)
        for i, key in zip(rows, keys.tolist(), strict=True):
            drawn[i] = found[key].pop() if found[key] else None
    return drawn


def _draw_of_length(
    genome: Genome,
    sources: Mapping[str, Source],
    length: int,
    wanted: Counter[int],
    bins: GcBins,
    taken: Taken,
    rng: np.random.Generator,
) -> dict[int, list[Window]]:
    """Draw as many windows of each bin as wanted, or as there are."""
    found: dict[int, list[Window]] = {key: [] for key in wanted}
    open_bins = np.array(sorted(wanted), dtype=np.int64)
    room = {s: window_starts(sources[s].parts, length, sources[s].forbidden) for s in STRANDS}
    for starts, minus in candidates(room, wanted.total(), rng):
        codes = genome.codes[starts[:, None] + np.arange(length)]  # (chunk, L)
        keys = bins.of(codes, genome.alphabet.unknown)
        good = (codes < genome.alphabet.unknown).all(axis=1) & np.isin(keys, open_bins)
        for start, is_minus, key in zip(
            starts[good].tolist(), minus[good].tolist(), keys[good].tolist(), strict=True
        ):
            window = Window(start, start + length, STRANDS[is_minus])
            if len(found[key]) < wanted[key] and _take(genome, window, taken):
                found[key].append(window)
        open_bins = np.array(sorted(k for k in wanted if len(found[k]) < wanted[k]), dtype=np.int64)
        if not len(open_bins):
            break
    return found


def _take(genome: Genome, window: Window, taken: Taken) -> bool:
    if not taken.is_free(window.start, window.end):
        return False
    letters = genome.letters(window.start, window.end, window.strand)
    if letters in taken.sequences or reverse_complement(letters, genome.alphabet) in taken.sequences:
        return False
    taken.take(window.start, window.end)
    taken.sequences.add(letters)
    return True


def candidates(
    room: Mapping[str, Intervals], wanted: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, np.ndarray]]:
    """Yield first letters and strands (True for minus) in chunks, in random order, every one as likely.

    First some are drawn with replacement, which is cheap and nearly always enough. Then all come
    in random order, or, where there are more than `MOST_CANDIDATES`, as many are drawn.
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
    if total <= MOST_CANDIDATES:
        order = rng.permutation(total)
        for begin in range(0, total, CHUNK):
            yield order[begin : begin + CHUNK]
        return
    for begin in range(0, MOST_CANDIDATES, CHUNK):
        yield rng.integers(0, total, min(CHUNK, MOST_CANDIDATES - begin))
