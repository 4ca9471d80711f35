"""Positions of the positives in a genome, by the k-mers that they share with it on either strand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import (
    Alphabet,
    CodeStack,
    Intervals,
    Ints,
    kmer_indices,
    kmer_starts,
    reverse_complement,
    stack_sequences,
)
from seqray.datasets.negatives.genome import Genome

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
