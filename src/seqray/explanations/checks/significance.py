"""Empirical p-values of scores from shuffled sequence, and their false discovery rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seqray.core import Codes, Floats
from seqray.explanations.attribution import shuffled_copies
from seqray.explanations.options import SHUFFLES


def p_values(
    codes: Codes, scores: Floats, score: Callable[[Codes], Floats], copies: int = SHUFFLES, seed: int = 0
) -> Floats:
    """Empirical p-values of the scores of some records of one length.

    A score is compared with the scores of all letters of shuffled copies of its own record, at any place:
    p = (1 + number that are as high) / (1 + copies n), see Phipson and Smyth 2010.

    Parameters
    ----------
    codes
        (N, n) letter codes.
    scores
        (N, n) of the letters.
    score
        Codes (M, n) to scores (M, n), by the same method.
    copies
        Shuffled copies of each record.
    seed
        Of the shuffles.

    Returns
    -------
    array of float64, shape (N, n)
    """
    count, length = codes.shape
    copied = np.concatenate([shuffled_copies(row, copies, seed) for row in codes])  # (N·copies, n)
    chance = np.sort(score(copied).reshape(count, copies * length), axis=1)
    # Copies that are the record itself must tie with it, whatever batch they were computed in.
    slack = 1e-5 * np.abs(scores) + 1e-6 * np.abs(scores).max(axis=1, keepdims=True)
    at_least = [
        copies * length - np.searchsorted(known, row, "left")
        for known, row in zip(chance, scores - slack, strict=True)
    ]
    return (1 + np.array(at_least)) / (1 + copies * length)


def q_values(p: Floats) -> Floats:
    """Smallest false discovery rate at which each of (..., n) p-values counts, along the last axis.

    References
    ----------
    Benjamini and Hochberg 1995.
    """
    order = np.argsort(p, axis=-1)[..., ::-1]
    count = p.shape[-1]
    rates = np.take_along_axis(p, order, axis=-1) * count / np.arange(count, 0, -1)
    q = np.empty(p.shape)
    np.put_along_axis(q, order, np.minimum.accumulate(rates, axis=-1).clip(max=1), axis=-1)
    return q
