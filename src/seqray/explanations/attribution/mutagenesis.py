"""In-silico mutagenesis: replace letters, run the network again, and measure the change of the score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seqray.core import Alphabet, Codes, Floats

AT_ONCE = 1 << 22  # letters of mutated sequences held at a time


def substitution_effects(codes: Codes, alphabet: Alphabet, score: Callable[[Codes], Floats]) -> Floats:
    """Change of the score for every single substitution.

    Parameters
    ----------
    codes
        (N, n) letter codes.
    score
        Codes (M, n) to the quantity explained (M,).

    Returns
    -------
    array of float64, shape (N, n, A)
        0 for the letter that is there; nan where the letter is ambiguous.
    """
    letters = len(alphabet.letters)
    count, length = codes.shape
    before = score(codes)
    effects = np.full((count, length, letters), np.nan)
    known = codes < letters
    effects[known] = 0.0
    places = np.argwhere(known)  # (S, 2): row, place
    at_once = max(1, AT_ONCE // length)
    for shift in range(1, letters):  # to each of the other letters in turn
        for start in range(0, len(places), at_once):
            row, place = places[start : start + at_once].T
            letter = (codes[row, place] + shift) % letters
            mutants = codes[row]
            mutants[np.arange(len(row)), place] = letter
            effects[row, place, letter] = score(mutants) - before[row]
    return effects


def loss_of_letters(effects: Floats) -> Floats:
    """How much the letters that are there support the target: (..., n, A) effects to (..., n).

    Minus the mean effect of the other letters; 0 for an ambiguous letter.
    """
    others = effects.shape[-1] - 1
    return np.nan_to_num(-effects.sum(axis=-1) / others)
