"""Motifs from seqlets, the stretches of a record on which high scores lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.explanation import Explanation, Motif
from seqray.core.records import letter_counts
from seqray.explanations.checks import mean_ranks

# --- Cut seqlets out of explained records

# A promoter has about three elements that a classifier can lean on; one more leaves room for chance.
_MAX_SEQLETS_PER_RECORD = 4
# This only selects windows; whether their letters have something in common is tested later, against shuffled
# letters. A sixth of normally distributed windows lie one standard deviation above the mean.
_PEAK_DEVIATIONS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Seqlets:
    """Windows of high scores and what is beside: codes (S, r), first places and lengths of records (S,)."""

    codes: Codes
    starts: Ints
    lengths: Ints


def window_sums(scores: Floats, width: int) -> Floats:
    """Sums (n - width + 1,) of the scores (n,) in each window; scores below 0 and nan count as 0."""
    running = np.concatenate([[0.0], np.cumsum(np.fmax(scores, 0.0))])
    return running[width:] - running[:-width]


def window_peaks(scores: Floats, width: int, apart: int) -> list[int]:
    """First letters of at most four windows of unusually high sums, so far ``apart``, the highest first."""
    if len(scores) < width:
        return []
    sums = window_sums(scores, width)
    if np.ptp(sums) <= 1e-9 * sums.max():  # else rounding errors would make peaks of a flat record
        return []
    limit = sums.mean() + _PEAK_DEVIATIONS * sums.std()
    found: list[int] = []
    while len(found) < _MAX_SEQLETS_PER_RECORD and sums.max() > limit:
        best = int(sums.argmax())
        found.append(best)
        sums[max(0, best - apart + 1) : best + apart] = -np.inf
    return found


def extract_seqlets(explanations: Iterable[Explanation], alphabet: Alphabet, width: int) -> Seqlets:
    """Cut windows of ``width`` with a third of it on either side, as scores and motif may be shifted."""
    flank, region = width // 3, width + 2 * (width // 3)
    codes, starts, lengths = [], [], []
    for explanation in explanations:
        padding = np.full(flank, alphabet.unknown, dtype=np.uint8)
        padded = np.concatenate([padding, alphabet.encode(explanation.sequence), padding])
        for peak in window_peaks(explanation.scores, width, apart=region):
            codes.append(padded[peak : peak + region])
            starts.append(peak - flank)
            lengths.append(len(explanation.sequence))
    return Seqlets(
        np.array(codes, dtype=np.uint8).reshape(-1, region),
        np.array(starts, dtype=np.int64),
        np.array(lengths, dtype=np.int64),
    )


# --- K-mers that occur in many seqlets: where the search for motifs starts

Kmer = tuple[int, ...]


def kmer_probabilities(background: Floats, length: int, reference: Codes | None = None) -> Floats:
    """Probability of each k-mer, (A,) * length, by the background (A,) and its counts in a reference (n,)."""
    expected = reduce(np.multiply.outer, [background] * length, np.ones(()))
    if reference is None or len(reference) < length:
        return expected
    numbers, known = _kmer_numbers(reference[None], len(background), length)
    counts = np.bincount(numbers[known], minlength=expected.size).reshape(expected.shape)
    return (counts + expected.size * expected) / (counts.sum() + expected.size)


def enriched_kmers(codes: Codes, expected: Floats, most: int) -> list[Kmer]:
    """The k-mers most above ``expected`` in codes (S, r), best first; once a seqlet, near ones half."""
    numbers, known = _kmer_numbers(codes, expected.shape[0], expected.ndim)
    rows = np.broadcast_to(np.arange(len(codes))[:, None], numbers.shape)
    once = np.unique(rows[known] * expected.size + numbers[known]) % expected.size
    observed = np.bincount(once, minlength=expected.size).reshape(expected.shape).astype(np.float64)
    near, chance = (  # twice each, and all that differ from it in one letter
        (2 - n.ndim) * n + sum(n.sum(axis=axis, keepdims=True) for axis in range(n.ndim))
        for n in (observed, known.sum() * expected)
    )
    order = np.argsort(-((near - chance) / np.sqrt(chance + 1e-12)).ravel(), kind="stable")
    return [tuple(int(code) for code in np.unravel_index(n, expected.shape)) for n in order[:most]]


def _kmer_numbers(codes: Codes, letters: int, length: int) -> tuple[Ints, Bools]:
    """The k-mer at each place of codes (S, r) as a number, and whether all of its letters are known."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, length, axis=1)
    numbers = windows.astype(np.int64) @ letters ** np.arange(length)[::-1]
    return numbers, np.asarray((windows < letters).all(axis=2))


# --- From aligned sites to a `Motif`: information, consensus letters and likeness to known elements

PROMOTER_ELEMENTS: Mapping[str, str] = MappingProxyType(
    {"-35 box": "TTGACA", "-10 box": "TATAAT", "TATA box": "TATAWAW"}
)

_IUPAC = {
    **{base: base for base in "ACGT"},
    **{"R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
_PAIR_SHARE = 0.75  # two letters in three quarters of the sites: D. R. Cavener (1987), NAR 15:1353-1361
_MIN_OVERLAP = 5
_TRIM_SHARE = 0.1  # of the bits of a place where every site has the same letter, all letters being alike
_MIN_WIDTH = 3


def information(counts: npt.ArrayLike, background: npt.ArrayLike) -> Floats:
    """Relative entropy (w,) of letters (w, A) over the background (A,), in bits, no pseudocounts."""
    table = np.asarray(counts, dtype=np.float64)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0, shares * np.log2(shares / np.asarray(background)), 0.0)
    return np.maximum(terms.sum(axis=1), 0.0)


def informative_places(counts: Floats, background: Floats) -> slice:
    """Places (w, A) from the first to the last with a tenth of the most bits, and more than chance."""
    letters, sites = len(background), max(1.0, float(counts.sum(axis=1).max(initial=0.0)))
    chance = float(chdtri(letters - 1, 0.01)) / (2 * sites * np.log(2))
    limit = max(_TRIM_SHARE * np.log2(letters), chance)
    places = np.flatnonzero(information(counts, background) >= limit)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


def consensus_letters(counts: Floats, alphabet: Alphabet) -> str:
    """A letter for each place of counts (w, A): that of half of the sites, the IUPAC code of two, or N."""
    letters = []
    for row in counts:
        order, total = np.argsort(-row, kind="stable"), row.sum()
        if total > 0 and row[order[0]] >= 0.5 * total:
            letters.append(alphabet.letters[order[0]])
        elif alphabet.is_nucleotide and total > 0 and row[order[:2]].sum() >= _PAIR_SHARE * total:
            pair = {"ACGT"[code] for code in order[:2]}
            letters.append(next(code for code, bases in _IUPAC.items() if set(bases) == pair))
        else:
            letters.append(alphabet.unknown_letter)
    return "".join(letters)


def similarity(counts: Floats, background: Floats, known: str, alphabet: Alphabet) -> float:
    """Agreement of sites, counts (w, A), with a consensus in IUPAC codes at the best shift; or nan.

    Unrelated motifs in simulations reach 0.6 in one case of 20, 0.7 in one of 100: less is no evidence.
    """
    bases = alphabet.letters.replace("U", "T")
    allowed = np.array([[float(base in _IUPAC[code]) for base in bases] for code in known])  # (length, A)
    agreement = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)) @ allowed.T
    chance = background @ allowed.T
    width, length = agreement.shape
    if min(width, length) < _MIN_OVERLAP:
        return float("nan")
    beyond = np.tile(chance, (length, 1))
    padded = np.concatenate((beyond, agreement, beyond))  # (places of the motif and around it, length)
    firsts = range(_MIN_OVERLAP, width + length - _MIN_OVERLAP + 1)
    return max(float(np.diagonal(padded[first:]).mean()) for first in firsts)


def motif_of_sites(
    counts: Floats, positions: npt.NDArray[np.int64], background: Floats, alphabet: Alphabet
) -> Motif | None:
    """Describe aligned sites by counts (w, A), or None where fewer than three places are informative."""
    kept = informative_places(counts, background)
    if kept.stop - kept.start < _MIN_WIDTH:
        return None
    cut = counts[kept]
    elements = PROMOTER_ELEMENTS if alphabet.is_nucleotide else {}
    alike = [(name, similarity(cut, background, text, alphabet)) for name, text in elements.items()]
    alike = [(name, value) for name, value in alike if not np.isnan(value)]
    name, value = max(alike, key=lambda pair: pair[1], default=("", float("nan")))
    return Motif(
        name="",
        letters=alphabet.letters,
        counts=cut,
        bits=information(cut, background),
        sites=len(positions),
        positions=np.sort(positions + kept.start),
        consensus=consensus_letters(cut, alphabet),
        known=name,
        similarity=value,
    )


# --- Align seqlets to weight matrices: a mixture of seqlets with a site of one of K motifs, and without

_MAX_KMERS = 10_000  # 4096 k-mers of six bases, 8000 of three amino acids
_STARTS = 6
_MAX_START_STEPS = 3
_MAX_STEPS = 40
_TOLERANCE = 1e-4  # of the log-likelihood, relative
_START_SHARE = 0.3  # of seqlets with a site of any motif, before the first step
_START_WEIGHT = 0.6  # of the k-mer's letter, before the first step; the rest is background
_MAX_CORRELATION = 0.6  # of matrices
_PSEUDOCOUNT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """K motifs fitted to S seqlets, with the k-mers that they began with; ``gain`` of likelihood is in nats.

    ``matrices`` (K, w, A), ``shares`` (K,) of seqlets with a site, ``background`` (A,) of letters outside.
    """

    kmers: tuple[Kmer, ...]
    matrices: Floats
    shares: Floats
    background: Floats
    gain: float = -np.inf


class Mixture:
    """Seqlets, codes (S, r), prepared for fits of weight matrices; codes of ``letters`` or more do not count.

    Fits start from k-mers enriched over the ``reference`` (n,), or over the composition of the seqlets.
    """

    def __init__(self, codes: Codes, letters: int, width: int, reference: Codes | None = None) -> None:
        self._codes, self._width = codes, width
        windows = np.lib.stride_tricks.sliding_window_view(codes, width, axis=1)
        self._shifts = windows.shape[1]
        one_hot = np.eye(letters + 1, letters)[np.minimum(windows, letters)]
        self._one_hot = one_hot.reshape(-1, width * letters)
        self._counts = np.bincount(codes.ravel(), minlength=letters + 1)[:letters] + _PSEUDOCOUNT
        # The composition of the seqlets, not of the records: letters that are merely rich in A and T
        # where scores are high make no motif.
        self._composition = self._counts / self._counts.sum()
        self._kmer_length = min(width, int(np.log(_MAX_KMERS) / np.log(letters)))
        self._kmer_probabilities = kmer_probabilities(self._composition, self._kmer_length, reference)

    def fit(self, kmers: tuple[Kmer, ...] = ()) -> Fit:
        """Fit one motif for each of ``kmers`` and one more, started from the best of several new k-mers."""
        codes = self._codes
        for kmer in kmers:  # leave out seqlets that agree with it somewhere, in all letters or all but one
            windows = np.lib.stride_tricks.sliding_window_view(codes, len(kmer), axis=1)
            codes = codes[((windows != np.array(kmer)).sum(axis=2) > 1).all(axis=1)]
        new = enriched_kmers(codes, self._kmer_probabilities, _STARTS)
        fits = [self._start((*kmers, kmer)) for kmer in new]
        best = self._run(max(fits, key=lambda fit: fit.gain), _MAX_STEPS)
        # A k-mer that is a part of a motif can put the motif at an edge of the matrix.
        moved = np.stack([_center(matrix, best.background) for matrix in best.matrices])
        centered = self._run(replace(best, matrices=moved, gain=-np.inf), _MAX_STEPS)
        return max(best, centered, key=lambda fit: fit.gain)

    def sites(self, fit: Fit) -> Floats:
        """(S, m, K) probability that a seqlet has its site of a motif at a shift; 1 less the sum is none."""
        return self._expect(fit)[0]

    def _start(self, kmers: tuple[Kmer, ...]) -> Fit:
        first = (self._width - self._kmer_length) // 2
        matrices = np.tile(self._composition, (len(kmers), self._width, 1))
        for matrix, kmer in zip(matrices, kmers, strict=True):
            matrix[first : first + len(kmer)] *= 1 - _START_WEIGHT
            matrix[np.arange(first, first + len(kmer)), list(kmer)] += _START_WEIGHT
        shares = np.full(len(kmers), _START_SHARE / len(kmers))
        return self._run(Fit(kmers, matrices, shares, self._composition), _MAX_START_STEPS)

    def _run(self, fit: Fit, steps: int) -> Fit:
        for _ in range(steps):
            sites, gain = self._expect(fit)
            before, fit = fit.gain, self._maximize(fit.kmers, sites, gain)
            if gain - before <= _TOLERANCE * abs(gain):
                break
        return fit

    def _expect(self, fit: Fit) -> tuple[Floats, float]:
        weights = np.log(fit.matrices / fit.background).reshape(len(fit.kmers), -1)
        odds = np.exp(self._one_hot @ weights.T) * (fit.shares / self._shifts)
        odds = odds.reshape(-1, self._shifts, len(fit.kmers))
        total = 1.0 - fit.shares.sum() + odds.sum(axis=(1, 2))
        composition_gain = self._counts @ np.log(fit.background / self._composition)
        return odds / total[:, None, None], float(np.log(total).sum() + composition_gain)

    def _maximize(self, kmers: tuple[Kmer, ...], sites: Floats, gain: float) -> Fit:
        in_sites = sites.reshape(-1, len(kmers)).T @ self._one_hot
        in_sites = in_sites.reshape(len(kmers), self._width, -1)
        outside = np.maximum(self._counts - in_sites.sum(axis=(0, 1)), _PSEUDOCOUNT)
        matrices = in_sites + _PSEUDOCOUNT * self._composition
        return Fit(
            kmers,
            matrices / matrices.sum(axis=2, keepdims=True),
            np.maximum(sites.sum(axis=(0, 1)), 0.01) / (len(sites) + 0.1),  # in sum below 1
            outside / outside.sum(),
            gain,
        )


def are_alike(matrices: Floats) -> bool:
    """Whether two matrices (K, w, A) correlate, shifted by up to w // 3; TTGACA and TATAAT reach 0.3."""
    width = matrices.shape[1]
    for first in range(len(matrices)):
        for second in range(first):
            for shift in range(-(width // 3), width // 3 + 1):
                one = matrices[first, max(0, shift) : width + min(0, shift)]
                other = matrices[second, max(0, -shift) : width - max(0, shift)]
                if np.corrcoef(one.ravel(), other.ravel())[0, 1] > _MAX_CORRELATION:
                    return True
    return False


def _center(matrix: Floats, background: Floats) -> Floats:
    """Move the columns (w, A) so that the information lies in the middle."""
    width = len(matrix)
    bits = (matrix * np.log2(matrix / background)).sum(axis=1)
    offset = round(float(bits @ np.arange(width) / bits.sum() - (width - 1) / 2)) if bits.sum() > 0 else 0
    kept = np.arange(width) + offset
    inside = (kept >= 0) & (kept < width)
    return np.where(inside[:, None], matrix[np.clip(kept, 0, width - 1)], background)


# --- Whether the sites of a motif are where the scores are high, or anywhere in the records

_SITE_PSEUDOCOUNT = 0.5
# Passed by one in thirty thousand if scores and motif are independent; that strict because the motif was
# fitted to letters with high scores.
_SUPPORT_DEVIATIONS = 4.0


def scores_prefer(
    motif: Motif, explanations: Sequence[Explanation], alphabet: Alphabet, background: Floats
) -> bool:
    """Whether scores under the best matches to a motif rank higher in their records than chance allows."""
    smooth = motif.counts + _SITE_PSEUDOCOUNT * background
    odds = np.log(smooth / smooth.sum(axis=1, keepdims=True) / background)
    width, weights = len(odds), np.pad(odds, ((0, 0), (0, 1)))  # unknown letters, last, weigh nothing
    long_enough = [e for e in explanations if len(e.sequence) >= width]
    matches = []
    for explanation in long_enough:
        windows = np.lib.stride_tricks.sliding_window_view(alphabet.encode(explanation.sequence), width)
        matches.append(weights[np.arange(width), windows].sum(axis=1))
    if not matches:
        return False
    # As many as half of the sites: the better half of them, unless others match as well.
    limit = np.sort(np.concatenate(matches))[-max(1, motif.sites // 2)]
    ranks = []
    for explanation, match in zip(long_enough, matches, strict=True):
        sums = window_sums(explanation.scores, width)
        ranks.append((mean_ranks(sums)[match >= limit] - 1) / max(1, len(sums) - 1))
    joined = np.concatenate(ranks)
    deviation = 1 / np.sqrt(12 * max(1, len(joined)))  # of the mean of uniform ranks
    return bool(len(joined) and joined.mean() - 0.5 > _SUPPORT_DEVIATIONS * deviation)


# --- Find what the high-scoring stretches of many explained records have in common

MIN_RECORDS = 10
WIDTH = 10  # letters of the window that is scored, and of a motif before its uninformative ends are cut off
_MAX_MOTIFS = 5
_MIN_SITES = 5
_MIN_SITE_SHARE = 0.02  # of the records
_SHUFFLES = 12
# The gain of the best of many k-mers has a long tail, and few shuffles estimate mean and deviation coarsely.
_DEVIATIONS = 5.0
_SPARE = 3  # matrices for frequent k-mers that the scores do not prefer
_MIN_MEMBERSHIP = 0.5


def find_motifs(explanations: Sequence[Explanation], alphabet: Alphabet) -> tuple[Motif, ...]:
    """Fit at most five motifs to the windows of highest summed scores, those with the most sites first.

    Each must gain more than in shuffled seqlets, and be preferred by the scores: frequent k-mers abound.
    """
    if len(explanations) < MIN_RECORDS:
        return ()
    # Sorted, because the shuffles and the rounding of sums depend on the order.
    ordered = sorted(explanations, key=lambda e: (e.sequence, e.scores.tobytes()))
    background = background_of(ordered, alphabet)
    seqlets = extract_seqlets(ordered, alphabet, WIDTH)
    fewest = max(_MIN_SITES, int(np.ceil(_MIN_SITE_SHARE * len(ordered))))
    if len(seqlets.codes) < fewest:
        return ()
    reference = alphabet.encode(alphabet.unknown_letter.join(e.sequence for e in ordered))
    candidates = [
        motif_of_sites(*_sites(seqlets, chances, background, alphabet), background, alphabet)
        for chances in _fit_beyond_chance(seqlets, reference, len(alphabet.letters))
    ]
    large = [motif for motif in candidates if motif is not None and motif.sites >= fewest]
    preferred = [motif for motif in large if scores_prefer(motif, ordered, alphabet, background)]
    preferred.sort(key=lambda motif: (-motif.sites, motif.consensus))
    numbered = enumerate(preferred[:_MAX_MOTIFS], start=1)
    return tuple(replace(motif, name=f"motif_{i}") for i, motif in numbered)


def background_of(explanations: Sequence[Explanation], alphabet: Alphabet) -> Floats:
    """Shares (A,) of the letters of the alphabet in all records; one of each is added, so none is 0."""
    text = "".join(e.sequence for e in explanations)
    counts = np.bincount(alphabet.encode(text), minlength=alphabet.unknown + 1)[: alphabet.unknown] + 1.0
    return counts / counts.sum()


def _fit_beyond_chance(seqlets: Seqlets, reference: Codes, letters: int) -> list[Floats]:
    """For each motif that a fit to shuffled letters does not give, the probabilities (S, m) of its sites."""
    rng = np.random.default_rng(0)
    shuffles = (Mixture(rng.permuted(seqlets.codes, axis=1), letters, WIDTH) for _ in range(_SHUFFLES))
    chance = [shuffle.fit().gain for shuffle in shuffles]
    limit = float(np.mean(chance) + _DEVIATIONS * np.std(chance, ddof=1))
    mixture = Mixture(seqlets.codes, letters, WIDTH, reference)
    fit = None
    for _ in range(_MAX_MOTIFS + _SPARE):
        more = mixture.fit(fit.kmers if fit else ())
        # A further matrix can also share the sites of one that is there.
        if more.gain - (fit.gain if fit else 0.0) <= limit or are_alike(more.matrices):
            break
        fit = more
    return list(np.moveaxis(mixture.sites(fit), 2, 0)) if fit else []


def _sites(seqlets: Seqlets, chances: Floats, background: Floats, alphabet: Alphabet) -> tuple[Floats, Ints]:
    """Counts (w, A) and positions (sites,) of the likely sites."""
    member = chances.sum(axis=1) >= _MIN_MEMBERSHIP
    shifts = chances[member].argmax(axis=1)
    sites = np.take_along_axis(seqlets.codes[member], shifts[:, None] + np.arange(WIDTH), axis=1)
    positions: Ints = seqlets.starts[member] + shifts
    kept = informative_places(_count(sites, alphabet), background)
    # Only an end that is cut off may reach beyond the record.
    whole = (positions + kept.start >= 0) & (positions + kept.stop <= seqlets.lengths[member])
    return _count(sites[whole], alphabet), positions[whole]


def _count(sites: np.ndarray, alphabet: Alphabet) -> Floats:
    """Counts (w, A) of each letter in each column of codes (sites, w), unknown letters left out."""
    return letter_counts(sites, alphabet).T.astype(np.float64)
