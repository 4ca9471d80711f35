"""In-silico mutagenesis: change the letters, run the network again, and see what the score does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from seqray.core import Alphabet, Codes, Floats, dinucleotide_shuffle
from seqray.explanations.attribution.seeds import generator_for
from seqray.explanations.options import LETTER_BLOCK

Score = Callable[[Codes], Floats]
"""Letter codes (N, n) to the quantity explained (N,)."""

AT_ONCE = 1 << 22  # letters of mutated sequences held at a time
REFERENCES = 4


def substitution_effects(codes: Codes, alphabet: Alphabet, score: Score) -> Floats:
    """Change of the score for every single substitution.

    Parameters
    ----------
    codes
        (N, n) letter codes.
    alphabet
        Of A letters.
    score
        Of the quantity explained.

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


def occlusion(
    codes: Codes, alphabet: Alphabet, score: Score, *, block: int = LETTER_BLOCK, references: int = REFERENCES
) -> Floats:
    """How much the score falls when a stretch gives way to shuffled letters: (N, n).

    Stretches of ``block`` letters, half a block apart, take the letters of shuffled copies of the record
    itself, which keep its composition; a letter's score is the mean fall over the stretches that hold it,
    and 0 where it is ambiguous.
    """
    rows = [_occlude(row, score, min(block, len(row)), references) for row in codes]
    return np.where(codes < len(alphabet.letters), np.array(rows).reshape(codes.shape), 0.0)


def _occlude(codes: Codes, score: Score, block: int, references: int) -> Floats:
    rng = generator_for(codes)
    starts = stretches(len(codes), block)
    falls = np.zeros(len(starts))
    before = float(score(codes[None])[0])
    at_once = max(1, AT_ONCE // len(codes))
    for _ in range(references):
        shuffled = dinucleotide_shuffle(codes, rng)
        for first in range(0, len(starts), at_once):
            some = slice(first, first + at_once)
            hidden = np.tile(codes, (len(starts[some]), 1))
            for row, start in zip(hidden, starts[some], strict=True):
                row[start : start + block] = shuffled[start : start + block]
            falls[some] += (before - score(hidden)) / references
    total, covered = np.zeros(len(codes)), np.zeros(len(codes))
    for start, fall in zip(starts, falls, strict=True):
        total[start : start + block] += fall
        covered[start : start + block] += 1
    return total / covered


def stretches(length: int, block: int) -> npt.NDArray[np.int64]:
    """Starts of stretches that cover every letter."""
    last = length - block
    return np.unique(np.append(np.arange(0, last + 1, max(1, block // 2)), last))
