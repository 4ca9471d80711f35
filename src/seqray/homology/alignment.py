"""Identity of two sequences by alignment, and the spaced seeds by which pairs are worth one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices

from seqray.core.alphabet import Alphabet

# ------------------------------------------------------------- identity, from the score of one alignment

# Each identical pair adds this much to the score. It is too small to change which alignment is best, but
# among the best ones it prefers the one with most matches, and their number is the fraction of the score.
# Sums of it are exact in float64 up to 2**20 letters.
_TALLY = 2.0**-20


def plain_letters(sequences: Sequence[str], alphabet: Alphabet) -> list[str]:
    """Write every ambiguity letter as N (protein: X), which matches nothing."""
    unknown = alphabet.unknown_letter * len(alphabet.ambiguous)
    table = bytes.maketrans(alphabet.ambiguous.encode(), unknown.encode())
    return [sequence.encode("ascii").translate(table).decode("ascii") for sequence in sequences]


def identity_function(alphabet: Alphabet) -> Callable[[str, str], float]:
    """Return a function of two sequences, one strand, that gives their identity from 0 to 1.

    Identity is the number of identical letters in the best alignment, divided by the known letters of the
    sequence that has fewer of them: a fragment of a sequence is identical to it. Where alignments score
    alike, the one with most identical letters counts. Sequences must be written by `plain_letters`.

    Alignments go from end to end with free end gaps, so that windows which overlap line up. Nucleotides: +2
    for a match, -3 for a mismatch, -6 for a gap letter, under which unrelated windows of 81 letters reach an
    identity of 0.24 in one pair of a thousand. Protein: BLOSUM62, gaps of 11 + 1 a letter.
    """
    unknown = alphabet.unknown_letter
    if alphabet.is_nucleotide:
        aligner = PairwiseAligner(
            mode="global", match_score=2 + _TALLY, mismatch_score=-3, open_gap_score=-6, extend_gap_score=-6
        )
        aligner.wildcard = unknown
    else:
        matrix = substitution_matrices.load("BLOSUM62")
        assert isinstance(matrix, substitution_matrices.Array)
        rows = [str(matrix.alphabet).index(letter) for letter in alphabet.letters]
        np.asarray(matrix)[rows, rows] += _TALLY  # the same memory
        aligner = PairwiseAligner(
            mode="global", substitution_matrix=matrix, open_gap_score=-12, extend_gap_score=-1
        )
    aligner.end_gap_score = 0

    def identity(one: str, other: str) -> float:
        shorter = min(len(one) - one.count(unknown), len(other) - other.count(unknown))
        if shorter == 0:
            return 0.0
        score = aligner.score(one, other)
        return round((score % 1) / _TALLY) / shorter

    return identity


# ----------------------------- spaced seeds: which to use, how many a related pair shares, and what they miss

# By weight, from a random search for two patterns that together are hit twice in most pairs of 60 letters.
_PATTERNS = {
    2: ("1001", "101"),
    3: ("10101", "1011"),
    4: ("110101", "11011"),
    5: ("101000111", "11100101"),
    6: ("10110111", "111010011"),
    7: ("11010100111", "11001111001"),
    8: ("11011000101101", "1011001110011"),
    9: ("1111010010111", "110100011110011"),
    10: ("111100100101111", "101001101110111"),
    11: ("11011100001011111", "10110111011010011"),
    12: ("111101001101011101", "11110110010110111"),
}
_LIGHTEST = {4: 5, 20: 2}  # letters of the alphabet -> weight: below it, unrelated sequences share most seeds

SENSITIVITY = 0.98  # share of pairs at the threshold that a plan has to find, if the budget allows
MAX_SEED_PAIRS = 1e8
MAX_OWNERS = 200  # sequences that a seed is looked up in; beyond, see `seqray.homology.similarity.SeedIndex`
_MAX_CHANCE_OWNERS = MAX_OWNERS / 8  # expected owners of a seed by chance alone
_SHORT = {4: 6, 20: 3}  # letters of the alphabet -> letters of a short k-mer
_MAX_SEEDS = 4**12  # different seeds of one pattern: columns of a matrix
_MIN_SEEDS = 4**7
_MAX_SEEDS_PER_LETTER = 64
_SIMULATED_PAIRS = 2000
_SIMULATED_LETTERS = 300  # longer pairs share seeds even more surely


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """How pairs are found: by ``patterns``, the offsets of the letters of a seed, from 0.

    A pair is a candidate if it shares the fraction ``share`` of the seeds of the sequence that has fewer, and
    ``short_share`` of its k-mers of ``short`` letters; 0 for no such filter. ``sensitivity`` is the share of
    pairs at the threshold (of the median length, substitutions evenly spread) that pass.
    """

    patterns: tuple[tuple[int, ...], ...]
    share: float
    short: int
    short_share: float
    sensitivity: float


def offsets(pattern: str) -> tuple[int, ...]:
    """Offsets of the ones in a pattern such as ``1101``."""
    return tuple(i for i, letter in enumerate(pattern) if letter == "1")


def make_plan(
    lengths: np.ndarray,
    others: np.ndarray,
    identity: float,
    alphabet: Alphabet,
    *,
    budget: float = MAX_SEED_PAIRS,
) -> SeedPlan:
    """Choose the longest seeds that find related pairs, or the shortest that the budget allows.

    ``lengths`` (N,) and ``others`` (M,) are the letters of the sequences on either side of the comparison;
    pairs of this ``identity`` must be found. ``budget`` are pairs of equal seeds that may be examined, for
    each pattern and strand.
    """
    letters, total = len(alphabet.letters), float(others.sum())
    most = min(max(_MAX_SEEDS_PER_LETTER * total, _MIN_SEEDS), _MAX_SEEDS)  # a larger table gains nothing
    affordable = []
    for weight in _PATTERNS:
        seeds = letters**weight
        owners = total / seeds
        fits = seeds <= most and owners <= _MAX_CHANCE_OWNERS and float(lengths.sum()) * owners <= budget
        if fits and weight >= _LIGHTEST[letters]:
            affordable.append(weight)
    length = int(np.median(np.concatenate((lengths, others)))) if len(lengths) + len(others) else 0
    plans = []
    for weight in reversed(affordable or [max(w for w in _PATTERNS if letters**w <= _MAX_SEEDS)]):
        plans.append(_plan(weight, length, identity, letters))
        if plans[-1].sensitivity >= SENSITIVITY:  # long seeds are the cheapest
            return plans[-1]
    return max(plans, key=lambda plan: plan.sensitivity)


def _plan(weight: int, length: int, identity: float, letters: int) -> SeedPlan:
    patterns = tuple(offsets(pattern) for pattern in _PATTERNS[weight])
    size = min(length, _SIMULATED_LETTERS)
    shared, seeds = simulate(patterns, size, identity)
    if seeds == 0:
        return SeedPlan(patterns, 0.0, 0, 0.0, 0.0)
    # At least two seeds, because one is shared by chance in a large set, unless that loses too much.
    least = max(_lower_quantile(shared), 2 if seeds > 2 else 1)
    short = _SHORT[letters] if letters ** _SHORT[letters] >= 8 * length else 0
    passes, short_share = shared >= least, 0.0
    if short:
        alike, kmers = simulate((tuple(range(short)),), size, identity)  # of the same pairs
        short_share = _lower_quantile(alike) / max(kmers, 1)
        passes &= alike >= _lower_quantile(alike)
    return SeedPlan(patterns, least / seeds, short, short_share, float(passes.mean()))


def _lower_quantile(counts: np.ndarray) -> int:
    return int(np.quantile(counts, (1 - SENSITIVITY) / 2, method="lower"))


def simulate(patterns: tuple[tuple[int, ...], ...], length: int, identity: float) -> tuple[np.ndarray, int]:
    """Count the seeds that random pairs without gaps share: (2000,) counts, and the seeds of a sequence.

    Each pair of this length has the same number of identical letters, the smallest that reaches the identity.
    """
    rng = np.random.default_rng(0)
    alike = int(np.ceil(identity * length - 1e-9))
    same = rng.permuted(np.tile(np.arange(length) < alike, (_SIMULATED_PAIRS, 1)), axis=1)
    shared, seeds = np.zeros(_SIMULATED_PAIRS, dtype=np.int64), 0
    for pattern in patterns:
        n = max(length - pattern[-1], 0)
        hit = np.ones((_SIMULATED_PAIRS, n), dtype=bool)
        for offset in pattern:
            hit &= same[:, offset : offset + n]
        shared += hit.sum(axis=1)
        seeds += n
    return shared, seeds
