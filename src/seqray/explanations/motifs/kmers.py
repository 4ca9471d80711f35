"""Short words that occur in many seqlets: where the search for motifs starts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqray.core import Codes, Floats, Ints

Word = tuple[int, ...]


def word_chances(background: Floats, length: int, reference: Codes | None = None) -> Floats:
    """Probability of each word in letters that are drawn at random, or as in a reference.

    Parameters
    ----------
    background
        (A,) probabilities of the letters.
    reference
        (n,) codes of letters in which words are counted, an unknown one between records. The counts are
        drawn towards what the composition lets expect by one word of each kind.

    Returns
    -------
    array, shape (A,) * length
        Sums to 1.
    """
    chances = np.ones(())
    for _ in range(length):
        chances = np.multiply.outer(chances, background)
    if reference is None or len(reference) < length:
        return chances
    numbers, known = _numbers(reference[None], len(background), length)
    counts = np.bincount(numbers[known], minlength=chances.size).reshape(chances.shape)
    return (counts + chances.size * chances) / (counts.sum() + chances.size)


def enriched_words(codes: Codes, chances: Floats, most: int) -> list[Word]:
    """Words, those first that occur most above expectation.

    Words with one other letter count, too, exact ones twice: sites of a motif are seldom all alike.

    Parameters
    ----------
    codes
        (S, r) letter codes; A or more is an unknown letter.
    chances
        (A,) * length, expected share of each word; see `word_chances`.

    Returns
    -------
    list of tuple of int
        Codes of the letters of at most ``most`` words. A word counts once for a seqlet, so that runs of a
        letter gain nothing from overlapping themselves.
    """
    numbers, known = _numbers(codes, chances.shape[0], chances.ndim)
    rows = np.broadcast_to(np.arange(len(codes))[:, None], numbers.shape)
    once = np.unique(rows[known] * chances.size + numbers[known]) % chances.size
    observed = np.bincount(once, minlength=chances.size).reshape(chances.shape).astype(np.float64)
    near, chance = (n + _with_neighbours(n) for n in (observed, known.sum() * chances))
    order = np.argsort(-((near - chance) / np.sqrt(chance + 1e-12)).ravel(), kind="stable")
    return [tuple(int(code) for code in np.unravel_index(n, chances.shape)) for n in order[:most]]


def _numbers(codes: Codes, letters: int, length: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The word at each place of codes (S, r) as a number, and whether all of its letters are known."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, length, axis=1)
    numbers = windows.astype(np.int64) @ letters ** np.arange(length)[::-1]
    return numbers, np.asarray((windows < letters).all(axis=2))


def _with_neighbours(counts: Floats) -> Floats:
    """Add to each word the counts of all words that differ from it in one letter."""
    total = (1 - counts.ndim) * counts
    for axis in range(counts.ndim):
        total = total + counts.sum(axis=axis, keepdims=True)
    return total


def lacks_word(codes: Codes, word: Word) -> npt.NDArray[np.bool_]:
    """(S,) whether no place of a seqlet (S, r) agrees with the word in all letters or all but one."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, len(word), axis=1)
    return ((windows != np.array(word)).sum(axis=2) > 1).all(axis=1)
