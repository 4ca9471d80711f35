"""Shared words of many pairs at once, as the product of two sparse matrices.

Rows are sequences and columns are words. The product of the words of one set with those of another counts
the distinct words that each pair shares. Its cost is bounded: a word that more than `MAX_OWNERS` sequences
hold (a repeat, a run of one letter, a very large family) is looked up in the first of them only, so every
holder is still compared with the same few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from seqray.core import Alphabet, CodeStack, reverse_complement_codes, stack_sequences, word_starts
from seqray.homology.seeds import MAX_OWNERS

Patterns = tuple[tuple[int, ...], ...]

_CHUNK_LETTERS = 1_000_000
_BLOCK_PRODUCTS = 2_000_000  # entries of a product at once; larger arrays cost page faults each time


def word_matrix(stack: CodeStack, patterns: Patterns, letters: int) -> csr_array:
    """Which words each sequence holds: int32 ones, (N, patterns x letters**weight)."""
    return csr_array(hstack([_one_pattern(stack, places, letters) for places in patterns], format="csr"))


def _one_pattern(stack: CodeStack, places: tuple[int, ...], letters: int) -> csr_array:
    start, owner, _ = word_starts(stack, places[-1] + 1, letters)
    word = np.zeros(len(start), dtype=np.int32)
    for place in places:
        word *= letters
        word += stack.codes[start + place]
    shape = (len(stack), letters ** len(places))
    ends = np.searchsorted(owner, np.arange(len(stack) + 1)).astype(np.int32)
    matrix = csr_array((np.ones(len(word), dtype=np.int32), word, ends), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def chunks(sequences: Sequence[str], alphabet: Alphabet) -> Iterator[tuple[int, CodeStack]]:
    """First row and letters of runs of sequences that hold about a million letters."""
    begin, size = 0, 0
    for row, sequence in enumerate(sequences):
        size += len(sequence)
        if size >= _CHUNK_LETTERS or row + 1 == len(sequences):
            yield begin, stack_sequences(sequences[begin : row + 1], alphabet)
            begin, size = row + 1, 0


def other_strand(stack: CodeStack) -> CodeStack:
    """Reverse complement of each sequence, in the same order."""
    ends = np.cumsum(stack.lengths)
    turned = reverse_complement_codes(stack.codes)  # of all, so the last sequence comes first
    total = len(stack.codes)
    place = np.arange(total) - np.repeat(ends - stack.lengths, stack.lengths)
    return CodeStack(turned[np.repeat(total - ends, stack.lengths) + place], stack.lengths)


class WordIndex:
    """The words of a set of sequences, to be looked up.

    Parameters
    ----------
    sequences
        N of them. Where a word has too many holders, those that stand first are kept.
    patterns
        Places of the letters of each kind of word.
    alphabet
        Of the sequences.

    Attributes
    ----------
    counts : int64 (N,)
        Distinct words of each sequence.
    crowded
        Words with more than `MAX_OWNERS` holders.
    """

    def __init__(self, sequences: Sequence[str], patterns: Patterns, alphabet: Alphabet) -> None:
        self._patterns, self._alphabet = patterns, alphabet
        letters = len(alphabet.letters)
        parts = [word_matrix(stack, patterns, letters) for _, stack in chunks(sequences, alphabet)]
        width = sum(letters ** len(places) for places in patterns)
        words = csr_array(vstack(parts, format="csr") if parts else (0, width), dtype=np.int32)
        del parts
        self.counts = np.diff(words.indptr).astype(np.int64)
        self._size = len(sequences)
        by_word = words.T.tocsr()  # holders of each word, in their order
        del words
        self._lookup, self.crowded = _thin(by_word)
        self._holders = np.diff(self._lookup.indptr)

    def shared(
        self, sequences: Sequence[str], *, turned: bool = False, least: int = 1
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Count the words that queries share with the set, block by block.

        Parameters
        ----------
        sequences
            Queries, M of them.
        turned
            Compare their other strand.
        least
            Pairs that share fewer words are left out.

        Yields
        ------
        query, target, shared, words : int64 (P,)
            Row of the query, row of the sequence in the set, distinct words that they share, and distinct
            words of the query.
        """
        letters = len(self._alphabet.letters)
        for first, stack in chunks(sequences, self._alphabet):
            queries = word_matrix(other_strand(stack) if turned else stack, self._patterns, letters)
            words = np.diff(queries.indptr).astype(np.int64)
            for begin, end in self._blocks(queries):
                product = queries[begin:end] @ self._lookup
                kept = np.flatnonzero(product.data >= least)
                row = begin + np.searchsorted(product.indptr, kept, side="right") - 1
                target, shared = product.indices[kept], product.data[kept]
                yield first + row, target.astype(np.int64), shared.astype(np.int64), words[row]

    def _blocks(self, queries: csr_array) -> Iterator[tuple[int, int]]:
        """Runs of rows whose product stays small."""
        cost = np.concatenate(([0], np.cumsum(self._holders[queries.indices], dtype=np.int64)))
        reached = cost[queries.indptr]
        begin, rows = 0, len(reached) - 1
        while begin < rows:
            limit = reached[begin] + _BLOCK_PRODUCTS
            end = max(int(np.searchsorted(reached, limit, side="right")) - 1, begin + 1)
            yield begin, end
            begin = end


def _thin(by_word: csr_array) -> tuple[csr_array, int]:
    """Keep the first `MAX_OWNERS` entries of each row, and count the rows that were cut."""
    holders = np.diff(by_word.indptr)
    crowded = int((holders > MAX_OWNERS).sum())
    if not crowded:
        return by_word, 0
    place = np.arange(by_word.nnz) - np.repeat(by_word.indptr[:-1].astype(np.int64), holders)
    keep = place < MAX_OWNERS
    ends = np.concatenate(([0], np.cumsum(np.minimum(holders, MAX_OWNERS))))
    return csr_array((by_word.data[keep], by_word.indices[keep], ends), shape=by_word.shape), crowded
