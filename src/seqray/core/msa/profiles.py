"""Occupancy and conservation of the columns of an alignment, and whether it is one."""

from __future__ import annotations

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats, Ints


def occupancy(codes: Codes, alphabet: Alphabet) -> Floats:
    """Share of the rows that have a letter, ambiguous ones counted: (R, C) to (C,)."""
    return (codes <= alphabet.unknown).mean(axis=0)


def letter_counts(codes: Codes, alphabet: Alphabet) -> Ints:
    """Count each of the A letters in each column of codes (R, C): (A, C). Ambiguous letters do not count."""
    return np.stack([(codes == letter).sum(axis=0) for letter in range(len(alphabet.letters))])


def conservation(codes: Codes, alphabet: Alphabet) -> Floats:
    """Conservation of each column: 1 - H / log A, with H the entropy of its letters.

    Parameters
    ----------
    codes
        (R, C); gaps, missing data and ambiguous letters aren't counted, rows have equal weight.
    alphabet
        Of A letters.

    Returns
    -------
    array of float64, shape (C,)
        1 for one letter only, 0 for equal frequencies; nan for a column without letters.
    """
    letters, counts = len(alphabet.letters), letter_counts(codes, alphabet).astype(np.float64)
    total = counts.sum(axis=0)
    shares = counts / np.maximum(total, 1)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=0)
    return np.where(total > 0, 1 - entropy / np.log(letters), np.nan)


_RELATED = 0.15  # of the way from chance to identity: what two rows of an alignment share at the least


def looks_unaligned(codes: Codes, alphabet: Alphabet) -> bool:
    """Whether rows look like separate sequences of one length, as in a FASTA file that nobody aligned.

    No row has a gap, and two rows share hardly more letters of a column than two letters drawn from all.

    Parameters
    ----------
    codes
        (R, C) codes of the rows.
    alphabet
        Of the letters.
    """
    rows = len(codes)
    if rows < 2 or (codes > alphabet.unknown).any():
        return False
    counts = letter_counts(codes, alphabet).astype(np.float64)
    shared = (counts * (counts - 1)).sum(axis=0).mean() / (rows * (rows - 1))
    by_chance = ((counts.sum(axis=1) / max(counts.sum(), 1)) ** 2).sum()
    return bool(shared - by_chance < _RELATED * (1 - by_chance))
