"""Pairs of sequences that are worth an alignment, by the k-mers that they share.

`SeedIndex` counts the spaced seeds that pairs share, as the product of two sparse matrices (sequences by
seeds). Its cost is bounded: a seed that more than `MAX_OWNERS` sequences hold (a repeat, a run of one
letter, a very large family) is looked up in the first of them only, so every holder is
compared with the same few.

`KmerBits` is a second filter. Among a hundred thousand windows many pairs share two seeds by chance, but few
short k-mers. These are compared as bits, which costs a fiftieth of an alignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from seqray.core import Alphabet, CodeStack, Floats, Ints, kmer_indices, kmer_starts, reverse_complement_codes
from seqray.homology.seeds import MAX_OWNERS
from seqray.homology.shared_kmers import chunks

Patterns = tuple[tuple[int, ...], ...]

_CHUNK_LETTERS = 1_000_000
_BLOCK_PRODUCTS = 2_000_000  # entries of a product at once; larger arrays cost page faults each time
_PAIRS_AT_ONCE = 20_000
_ROWS_AT_ONCE = 10_000
_NO = np.empty((0, 1), dtype=np.uint16)


def _seed_matrix(stack: CodeStack, patterns: Patterns, letters: int) -> csr_array:
    """Which seeds each sequence holds: int32 ones, (N, patterns x letters**weight)."""
    return csr_array(hstack([_one_pattern(stack, offsets, letters) for offsets in patterns], format="csr"))


def _one_pattern(stack: CodeStack, offsets: tuple[int, ...], letters: int) -> csr_array:
    start, owner, _ = kmer_starts(stack, offsets[-1] + 1, letters)
    seed = np.zeros(len(start), dtype=np.int32)
    for offset in offsets:
        seed *= letters
        seed += stack.codes[start + offset]
    shape = (len(stack), letters ** len(offsets))
    ends = np.searchsorted(owner, np.arange(len(stack) + 1)).astype(np.int32)
    matrix = csr_array((np.ones(len(seed), dtype=np.int32), seed, ends), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def reverse_complement_stack(stack: CodeStack) -> CodeStack:
    """Reverse complement of each sequence, in the same order."""
    ends = np.cumsum(stack.lengths)
    codes = reverse_complement_codes(stack.codes)  # of all, so the last sequence comes first
    total = len(stack.codes)
    position = np.arange(total) - np.repeat(ends - stack.lengths, stack.lengths)
    return CodeStack(codes[np.repeat(total - ends, stack.lengths) + position], stack.lengths)


class SeedIndex:
    """The spaced seeds of a set of sequences, for lookup.

    Parameters
    ----------
    sequences
        N of them. If a seed has too many holders, the first ones are kept.
    patterns
        Offsets of the letters of each pattern.

    Attributes
    ----------
    counts : int64 (N,)
        Distinct seeds of each sequence.
    crowded
        Number of seeds with more than `MAX_OWNERS` holders.
    """

    def __init__(self, sequences: Sequence[str], patterns: Patterns, alphabet: Alphabet) -> None:
        self._patterns, self._alphabet = patterns, alphabet
        letters = len(alphabet.letters)
        parts = [
            _seed_matrix(stack, patterns, letters) for _, stack in chunks(sequences, alphabet, _CHUNK_LETTERS)
        ]
        width = sum(letters ** len(offsets) for offsets in patterns)
        seeds = csr_array(vstack(parts, format="csr") if parts else (0, width), dtype=np.int32)
        del parts
        self.counts = np.diff(seeds.indptr).astype(np.int64)
        by_seed = seeds.T.tocsr()  # holders of each seed, in their order
        del seeds
        self._lookup, self.crowded = _first_holders(by_seed)
        self._holders = np.diff(self._lookup.indptr)

    def shared(
        self, sequences: Sequence[str], *, reverse: bool = False
    ) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Count the seeds that queries share with the set, block by block.

        Parameters
        ----------
        sequences
            Queries, M of them.
        reverse
            Compare their reverse complement.

        Yields
        ------
        query, target, shared, seeds : int64 (P,)
            Row of the query, row of the sequence in the set, distinct seeds that they share, and distinct
            seeds of the query.
        """
        letters = len(self._alphabet.letters)
        for first, stack in chunks(sequences, self._alphabet, _CHUNK_LETTERS):
            queries = _seed_matrix(
                reverse_complement_stack(stack) if reverse else stack, self._patterns, letters
            )
            seeds = np.diff(queries.indptr).astype(np.int64)
            for begin, end in self._blocks(queries):
                product = queries[begin:end] @ self._lookup
                row = np.repeat(np.arange(begin, end), np.diff(product.indptr))
                target, shared = product.indices.astype(np.int64), product.data.astype(np.int64)
                yield first + row, target, shared, seeds[row]

    def _blocks(self, queries: csr_array) -> Iterator[tuple[int, int]]:
        """Ranges of rows whose product stays small."""
        cost = np.concatenate(([0], np.cumsum(self._holders[queries.indices], dtype=np.int64)))
        reached = cost[queries.indptr]
        begin, rows = 0, len(reached) - 1
        while begin < rows:
            limit = reached[begin] + _BLOCK_PRODUCTS
            end = max(int(np.searchsorted(reached, limit, side="right")) - 1, begin + 1)
            yield begin, end
            begin = end


def _first_holders(by_seed: csr_array) -> tuple[csr_array, int]:
    """Keep the first `MAX_OWNERS` entries of each row, and count the rows that were cut."""
    holders = np.diff(by_seed.indptr)
    crowded = int((holders > MAX_OWNERS).sum())
    if not crowded:
        return by_seed, 0
    rank = np.arange(by_seed.nnz) - np.repeat(by_seed.indptr[:-1].astype(np.int64), holders)
    keep = rank < MAX_OWNERS
    ends = np.concatenate(([0], np.cumsum(np.minimum(holders, MAX_OWNERS))))
    return csr_array((by_seed.data[keep], by_seed.indices[keep], ends), shape=by_seed.shape), crowded


class KmerBits:
    """Which k-mers N sequences hold, as bits.

    ``both_strands`` says whether pairs on opposite strands will be compared.
    """

    def __init__(self, sequences: Sequence[str], k: int, alphabet: Alphabet, *, both_strands: bool) -> None:
        letters = len(alphabet.letters)
        parts: list[list[np.ndarray]] = [[], []]
        for _, stack in chunks(sequences, alphabet, _CHUNK_LETTERS):
            parts[0] += _kmer_bits(stack, k, letters)
            parts[1] += _kmer_bits(reverse_complement_stack(stack), k, letters) if both_strands else []
        self._bits = [np.concatenate(part) if part else _NO for part in parts]
        self._counts = np.concatenate([_count_ones(part) for part in parts[0] or [_NO]])

    def shared_fraction(self, one: Ints, two: Ints, reverse: bool) -> Floats:
        """Fraction of the k-mers of the sequence with fewer that both hold: (P,).

        ``one`` and ``two`` (P,) are rows of the pairs; ``reverse`` takes the reverse complement of ``two``.
        """
        shared = np.empty(len(one), dtype=np.int64)
        for begin in range(0, len(one), _PAIRS_AT_ONCE):
            block = slice(begin, begin + _PAIRS_AT_ONCE)
            both = self._bits[0][one[block]] & self._bits[int(reverse)][two[block]]
            shared[block] = _count_ones(both)
        return shared / np.maximum(np.minimum(self._counts[one], self._counts[two]), 1)


def _count_ones(bits: np.ndarray) -> Ints:
    return np.bitwise_count(bits).sum(axis=1, dtype=np.int64)


def _kmer_bits(stack: CodeStack, k: int, letters: int) -> list[np.ndarray]:
    """Bits of the k-mers that each sequence holds: blocks of uint16 (rows, letters**k / 16)."""
    start, owner, _ = kmer_starts(stack, k, letters)
    word = kmer_indices(stack, start, k, letters)
    blocks = []
    for begin in range(0, len(stack), _ROWS_AT_ONCE):
        rows = min(_ROWS_AT_ONCE, len(stack) - begin)
        first, last = np.searchsorted(owner, (begin, begin + rows))
        held = np.zeros((rows, letters**k), dtype=bool)
        held[owner[first:last] - begin, word[first:last]] = True
        blocks.append(np.packbits(held, axis=1).view(np.uint16))
    return blocks
