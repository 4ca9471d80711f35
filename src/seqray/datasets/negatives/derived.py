"""Negatives that are made from the letters of a positive, recipe by recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet, Codes, InputError, LabeledSequence, reverse_complement
from seqray.datasets.negatives.options import NegativeOptions
from seqray.datasets.negatives.sampling import OccupiedIntervals
from seqray.datasets.negatives.transformations import shuffle_letters, substitute_segments
from seqray.datasets.negatives.windows import Negative

MAX_SHUFFLES = 20  # of one positive before it is skipped: a run of one letter has no other order


@dataclass(frozen=True, eq=False)
class SequenceDeriver:
    """Changes positives to sequences that are neither a positive nor an earlier negative."""

    positives: Sequence[LabeledSequence]
    options: NegativeOptions
    alphabet: Alphabet
    occupied: OccupiedIntervals

    def __call__(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[Negative]:
        """A negative from each of the positives ``rows``, but for those without another order of letters."""
        change, every = self._change(recipe, rows, rng), _with_own_codes(self.alphabet)
        made: list[Negative] = []
        number: Counter[int] = Counter()
        for row in rows:
            codes = every.encode(self.positives[row].sequence)
            fresh = (every.decode(change(codes)) for _ in range(MAX_SHUFFLES))
            letters = next(filter(self._is_new, fresh), None)
            if letters is not None:
                self.occupied.sequences.add(letters)
                number[row] += 1
                made.append(Negative(letters, row, f"{recipe}:{self.positives[row].id}:{number[row]}"))
        return made

    def _change(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> Callable[[Codes], Codes]:
        """The function that a recipe applies to the codes of a positive."""
        options, nucleotides = self.options, self.alphabet.is_nucleotide
        if recipe == "substitution":
            self._check_lengths(rows)
            letters = len(self.alphabet.letters)
            return lambda codes: substitute_segments(codes, rng, letters, options.segments, options.keep)[0]
        words = options.shuffle_words or (2 if nucleotides else 1)
        return lambda codes: shuffle_letters(codes, rng, words)

    def _check_lengths(self, rows: Sequence[int]) -> None:
        for row in rows:
            length = len(self.positives[row].sequence)
            if length < self.options.segments:
                raise InputError(
                    f"has {length} letters, fewer than {self.options.segments} segments",
                    where=self.positives[row].where,
                    remedy="give fewer segments",
                )

    def _is_new(self, letters: str) -> bool:
        turned = reverse_complement(letters, self.alphabet) if self.alphabet.is_nucleotide else letters
        return not {letters, turned} & self.occupied.sequences


def _with_own_codes(alphabet: Alphabet) -> Alphabet:
    """The alphabet with a code for each ambiguity letter: if they became N or X, these would mark negatives.

    The codes of the others stay, so that the same seed gives the same negatives.
    """
    unknown = alphabet.unknown_letter
    others = alphabet.ambiguous.replace(unknown, "")
    return Alphabet(alphabet.name, alphabet.letters + unknown + others, "")
