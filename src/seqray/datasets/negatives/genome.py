"""Genomes that negatives are cut from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from seqray.core.alphabet import Alphabet, reverse_complement, reverse_complement_codes
from seqray.core.arrays import Codes, Ints
from seqray.core.errors import InputError
from seqray.core.letters import CodeStack, kmer_indices, kmer_starts, stack_sequences
from seqray.core.records import Intervals, SequenceRecord

# --- Options of negatives and their defaults; loads nothing heavy


@dataclass(frozen=True)
class NegativeOptions:
    """What to make.

    Attributes
    ----------
    mix
        Share of each recipe, see `seqray.datasets.negatives.parse_mix`.
    ratio
        Negatives per positive.
    seed
        Of all that is drawn.
    label
        Of the negatives.
    shuffle_words
        2: shuffles keep dinucleotide counts, 1: letter counts; None: 2 for nucleotides, 1 for protein.
    segments, keep
        Of a substitution: segments of a positive, and how many of them stay.
    gc_bins
        Bins of GC content in which windows match positives; 0: they match in length alone.
    max_overlap
        Letters that two windows may share.
    block
        Letters of the genome that stay in one group.
    """

    mix: Mapping[str, Fraction]
    ratio: Fraction = Fraction(1)
    seed: int = 0
    label: str = "background"
    shuffle_words: int | None = None
    segments: int = 20
    keep: int = 8
    gc_bins: int = 20
    max_overlap: int = 0
    block: int = 10_000


# --- A genome as one array of codes, and where windows may begin on it

Pairs = Sequence[tuple[int, int]]
STRANDS = ("+", "-")


@dataclass(frozen=True)
class Genome:
    """Contigs joined end to end.

    Attributes
    ----------
    names, circular
        Of the contigs.
    offsets, lengths : int64 (contigs,)
        Start and length of each contig.
    codes : uint8 (T,)
        Letter codes of all contigs, the code of an unknown letter between two.
    alphabet
        DNA or RNA.
    """

    names: tuple[str, ...]
    circular: tuple[bool, ...]
    offsets: Ints
    lengths: Ints
    codes: Codes
    alphabet: Alphabet

    @classmethod
    def of(cls, records: Iterable[SequenceRecord], alphabet: Alphabet) -> Genome:
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
        """Number of a contig.

        Raises an InputError if there is none of this name.
        """
        try:
            return self.names.index(name)
        except ValueError:
            known = f"'{self.names[0]}'" if self.names else "nothing"
            raise InputError(
                f"names the contig '{name}', which is not in the genome",
                where=where,
                remedy=f"the genome begins with {known}",
            ) from None

    def locate(self, position: int) -> tuple[str, int]:
        """Contig of a letter, and its position there."""
        contig = int(np.searchsorted(self.offsets, position, "right")) - 1
        return self.names[contig], position - int(self.offsets[contig])

    def letters(self, start: int, end: int, strand: str) -> str:
        """Letters of an interval, 5' to 3' on its strand.

        Parameters
        ----------
        start, end
            Half-open interval of the genome, 0-based, in letters.
        strand
            ``+`` or ``-``.
        """
        codes = self.codes[start:end]
        return self.alphabet.decode(reverse_complement_codes(codes) if strand == "-" else codes)

    def contigs(self) -> list[tuple[int, int]]:
        """Start and end of each contig."""
        return [(int(o), int(o + n)) for o, n in zip(self.offsets, self.lengths, strict=True)]


def subtract(intervals: Intervals, others: Intervals) -> Intervals:
    """The parts of ``intervals`` that are not in ``others``."""
    place = np.concatenate((intervals.starts, intervals.ends, others.starts, others.ends))
    step = np.repeat(
        np.array([1, -1, -2, 2]),
        [len(intervals.starts), len(intervals.ends), len(others.starts), len(others.ends)],
    )
    order = np.argsort(place, kind="stable")
    place, level = place[order], np.cumsum(step[order])  # level 1: in the first and not in the second
    inside = np.flatnonzero((level[:-1] == 1) & (place[1:] > place[:-1])) if len(place) else []
    pairs = zip(place[inside].tolist(), place[np.asarray(inside, dtype=np.int64) + 1].tolist(), strict=True)
    return Intervals.merge(pairs)


def window_starts(parts: Pairs, length: int, forbidden: Intervals) -> Intervals:
    """Where a window may begin so that it lies within one part and overlaps nothing forbidden.

    The parts may overlap. The result holds the intervals of first letters.
    """
    room = Intervals.merge((start, end - length + 1) for start, end in parts)
    return subtract(room, Intervals.merge((start - length + 1, end) for start, end in forbidden.pairs()))


# --- Positions of the positives in a genome, by the k-mers that they share with it on either strand

K = 24  # 4**24 k-mers: in a genome of a billion letters one occurs by chance about once in 140,000
BLOCK = 1 << 20


@dataclass(frozen=True)
class Occurrences:
    """Where the k-mers of positives occur.

    ``covered`` is every letter of the genome in such a k-mer, on either strand. ``places`` int64 (N,) are the
    median positions of the k-mers of each positive; -1 if there is none.
    """

    covered: Intervals
    places: Ints


def find_occurrences(positives: Sequence[str], genome: Genome) -> Occurrences:
    """Find the k-mers of N positives in a genome.

    k is 24, or the length of a shorter positive; k-mers with an ambiguous letter don't count. A positive that
    differs from the genome in some letters is found by its other k-mers; one that occurs twice, twice.
    """
    places = np.full(len(positives), -1, dtype=np.int64)
    pieces: list[tuple[int, int]] = []
    sizes = np.array([min(len(sequence), K) for sequence in positives], dtype=np.int64)
    for k in np.unique(sizes):
        rows = np.flatnonzero(sizes == k)
        kmers, owners = _kmers_of_both_strands([positives[int(i)] for i in rows], int(k), genome.alphabet)
        hits, which = _find(kmers, genome, int(k))
        pieces += _runs(hits, int(k))
        _set_positions(places, rows, owners, kmers, hits, which)
    return Occurrences(Intervals.merge(pieces), places)


def _kmers_of_both_strands(sequences: Sequence[str], k: int, alphabet: Alphabet) -> tuple[Ints, Ints]:
    """Number of every k-mer, and the sequence that holds it, sorted by the first."""
    both = [*sequences, *(reverse_complement(sequence, alphabet) for sequence in sequences)]
    letters = len(alphabet.letters)
    stack = stack_sequences(both, alphabet)
    start, owner, _ = kmer_starts(stack, k, letters)
    kmer = kmer_indices(stack, start, k, letters)
    order = np.argsort(kmer, kind="stable")
    return kmer[order], owner[order] % max(len(sequences), 1)


def _find(kmers: Ints, genome: Genome, k: int) -> tuple[Ints, Ints]:
    """Positions in the genome of the sorted k-mers, and the k-mer at each."""
    letters = len(genome.alphabet.letters)
    hits, which = [], []
    for first in range(0, len(genome.codes) if len(kmers) else 0, BLOCK):
        codes = genome.codes[first : first + BLOCK + k - 1]
        stack = CodeStack(codes, np.array([len(codes)], dtype=np.int64))
        start, _, _ = kmer_starts(stack, k, letters)
        kmer = kmer_indices(stack, start, k, letters)
        found = kmers[np.minimum(np.searchsorted(kmers, kmer), len(kmers) - 1)] == kmer
        hits.append(start[found] + first)
        which.append(kmer[found])
    empty = np.empty(0, dtype=np.int64)
    return np.concatenate([empty, *hits]), np.concatenate([empty, *which])


def _runs(hits: Ints, k: int) -> list[tuple[int, int]]:
    """Intervals that the k-mers at ascending positions cover."""
    if not len(hits):
        return []
    breaks = np.flatnonzero(np.diff(hits) > k)
    first, last = np.concatenate(([0], breaks + 1)), np.concatenate((breaks, [len(hits) - 1]))
    return list(zip(hits[first].tolist(), (hits[last] + k).tolist(), strict=True))


def _set_positions(places: Ints, rows: Ints, owner: Ints, kmers: Ints, hits: Ints, which: Ints) -> None:
    """Set the median position of the k-mers of each sequence; of a repeated k-mer the first counts."""
    known, first = np.unique(which, return_index=True)
    if not len(known):
        return
    at = np.minimum(np.searchsorted(known, kmers), len(known) - 1)
    met = known[at] == kmers
    place, owner = hits[first][at[met]], owner[met]
    order = np.lexsort((place, owner))
    place, owner = place[order], owner[order]
    who, begin, count = np.unique(owner, return_index=True, return_counts=True)
    places[rows[who]] = place[begin + count // 2]
