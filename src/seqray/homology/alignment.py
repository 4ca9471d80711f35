"""Identity of two sequences, from the score of one alignment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices

from seqray.core import Alphabet

# Each identical pair adds this much to the score. It is too small to change which alignment is best, but
# among the best ones it prefers the one with most matches, and their number is the fraction of the score.
# Sums of it are exact in float64 up to 2**20 letters.
_TALLY = 2.0**-20


def make_aligner(alphabet: Alphabet) -> PairwiseAligner:
    """Alignment from end to end with free end gaps, so that windows which overlap line up.

    Nucleotides: +2 for a match, -3 for a mismatch, -6 for a gap letter, under which unrelated windows of 81
    letters reach an identity of 0.24 in one pair of a thousand. Protein: BLOSUM62, gaps of 11 + 1 a letter.
    """
    if alphabet.is_nucleotide:
        aligner = PairwiseAligner(
            mode="global", match_score=2 + _TALLY, mismatch_score=-3, open_gap_score=-6, extend_gap_score=-6
        )
        aligner.wildcard = alphabet.unknown_letter
    else:
        matrix = substitution_matrices.load("BLOSUM62")
        assert isinstance(matrix, substitution_matrices.Array)
        rows = [str(matrix.alphabet).index(letter) for letter in alphabet.letters]
        np.asarray(matrix)[rows, rows] += _TALLY  # the same memory
        aligner = PairwiseAligner(
            mode="global", substitution_matrix=matrix, open_gap_score=-12, extend_gap_score=-1
        )
    aligner.end_gap_score = 0
    return aligner


def plain_letters(sequences: Sequence[str], alphabet: Alphabet) -> list[str]:
    """Write every ambiguity letter as N (protein: X), which matches nothing."""
    unknown = alphabet.unknown_letter * len(alphabet.ambiguous)
    table = bytes.maketrans(alphabet.ambiguous.encode(), unknown.encode())
    return [sequence.encode("ascii").translate(table).decode("ascii") for sequence in sequences]


def identity_function(alphabet: Alphabet) -> Callable[[str, str], float]:
    """Return a function of two sequences, one strand, that gives their identity from 0 to 1.

    Identity is the number of identical letters in the best alignment (see `make_aligner`), divided by the
    known letters of the sequence that has fewer of them: a fragment of a sequence is identical to it. Where
    alignments score alike, the one with most identical letters counts. Sequences must be written by
    `plain_letters`.
    """
    aligner = make_aligner(alphabet)
    unknown = alphabet.unknown_letter

    def identity(one: str, other: str) -> float:
        shorter = min(len(one) - one.count(unknown), len(other) - other.count(unknown))
        if shorter == 0:
            return 0.0
        score = aligner.score(one, other)
        return round((score % 1) / _TALLY) / shorter

    return identity
