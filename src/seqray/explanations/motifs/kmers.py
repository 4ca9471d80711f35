"""K-mers that occur in many seqlets: where the search for motifs starts."""

from __future__ import annotations

import numpy as np

from seqray.core import Bools, Codes, Floats, Ints

Kmer = tuple[int, ...]


def kmer_probabilities(background: Floats, length: int, reference: Codes | None = None) -> Floats:
    """Probability of each k-mer in letters that are drawn at random, or as in a reference.

    Parameters
    ----------
    background
        (A,) probabilities of the letters.
    reference
        (n,) codes of letters in which k-mers are counted, an unknown one between records. One
        pseudocount for each k-mer is shared out by the composition.

    Returns
    -------
    array, shape (A,) * length
        Sums to 1.
    """
    expected = np.ones(())
    for _ in range(length):
        expected = np.multiply.outer(expected, background)
    if reference is None or len(reference) < length:
        return expected
    numbers, known = _kmer_numbers(reference[None], len(background), length)
    counts = np.bincount(numbers[known], minlength=expected.size).reshape(expected.shape)
    return (counts + expected.size * expected) / (counts.sum() + expected.size)


def enriched_kmers(codes: Codes, expected: Floats, most: int) -> list[Kmer]:
    """Find the k-mers that occur most above expectation.

    K-mers with one other letter count too, exact ones twice, because sites of a motif are seldom identical.

    Parameters
    ----------
    codes
        (S, r) letter codes; A or more is an unknown letter.
    expected
        (A,) * length, expected share of each k-mer; see `kmer_probabilities`.

    Returns
    -------
    list of tuple of int
        Codes of the letters of at most ``most`` k-mers, the best first. A k-mer counts once for a seqlet,
        so a run of one letter gains nothing from overlapping itself.
    """
    numbers, known = _kmer_numbers(codes, expected.shape[0], expected.ndim)
    rows = np.broadcast_to(np.arange(len(codes))[:, None], numbers.shape)
    once = np.unique(rows[known] * expected.size + numbers[known]) % expected.size
    observed = np.bincount(once, minlength=expected.size).reshape(expected.shape).astype(np.float64)
    near, chance = (n + _with_neighbors(n) for n in (observed, known.sum() * expected))
    order = np.argsort(-((near - chance) / np.sqrt(chance + 1e-12)).ravel(), kind="stable")
    return [tuple(int(code) for code in np.unravel_index(n, expected.shape)) for n in order[:most]]


def _kmer_numbers(codes: Codes, letters: int, length: int) -> tuple[Ints, Bools]:
    """The k-mer at each place of codes (S, r) as a number, and whether all of its letters are known."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, length, axis=1)
    numbers = windows.astype(np.int64) @ letters ** np.arange(length)[::-1]
    return numbers, np.asarray((windows < letters).all(axis=2))


def _with_neighbors(counts: Floats) -> Floats:
    """Add to each k-mer the counts of all k-mers that differ from it in one letter."""
    total = (1 - counts.ndim) * counts
    for axis in range(counts.ndim):
        total = total + counts.sum(axis=axis, keepdims=True)
    return total


def lacks_kmer(codes: Codes, kmer: Kmer) -> Bools:
    """(S,) whether no place of a seqlet (S, r) agrees with the k-mer in all letters or all but one."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, len(kmer), axis=1)
    return ((windows != np.array(kmer)).sum(axis=2) > 1).all(axis=1)
