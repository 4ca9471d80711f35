"""Align seqlets to weight matrices: a mixture of seqlets with a site of one of K motifs, and without.

The model is that of MEME with zero or one occurrence per sequence (T. L. Bailey and C. Elkan, 1994, ISMB
2:28-36), but all motifs are fitted together. One at a time, two boxes that share letters, such as TATAAT
and TTGACA, end as a single blurred matrix. Only the given strand is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from seqray.core import Codes, Floats
from seqray.explanations.motifs.kmers import Kmer, enriched_kmers, kmer_probabilities, lacks_kmer

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
    """K motifs fitted to S seqlets.

    Attributes
    ----------
    kmers, matrices
        (K) from which the motifs were started, as codes; (K, w, A) probability of each letter in each column.
    shares
        (K,) of seqlets that have a site of each motif.
    background
        (A,) probability of each letter outside of sites.
    gain
        Log-likelihood over that of letters without motifs, in nats.
    """

    kmers: tuple[Kmer, ...]
    matrices: Floats
    shares: Floats
    background: Floats
    gain: float = -np.inf


class Mixture:
    """Seqlets prepared for fits.

    Parameters
    ----------
    codes
        (S, r) letter codes; ``letters`` or more is an unknown letter, which counts neither for nor against.
    letters
        A, the size of the alphabet.
    width
        w, columns of the weight matrices; at most r.
    reference
        (n,) codes of the records, an unknown letter between any two. Fits start from k-mers that are enriched
        in the seqlets over the records; without it, over the composition of the seqlets.
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
        fits = [self._start((*kmers, kmer)) for kmer in self._new_kmers(kmers)]
        best = self._run(max(fits, key=lambda fit: fit.gain), _MAX_STEPS)
        # A k-mer that is a part of a motif can put the motif at an edge of the matrix.
        moved = np.stack([_center(matrix, best.background) for matrix in best.matrices])
        centered = self._run(replace(best, matrices=moved, gain=-np.inf), _MAX_STEPS)
        return max(best, centered, key=lambda fit: fit.gain)

    def sites(self, fit: Fit) -> Floats:
        """(S, m, K) probability that a seqlet has its site of a motif at a shift; 1 less the sum is none."""
        return self._expect(fit)[0]

    def _new_kmers(self, kmers: tuple[Kmer, ...]) -> list[Kmer]:
        codes = self._codes
        for kmer in kmers:
            codes = codes[lacks_kmer(codes, kmer)]
        return enriched_kmers(codes, self._kmer_probabilities, _STARTS)

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
    """Whether any two of the matrices (K, w, A) correlate, shifted by up to w // 3 columns.

    TTGACA and TATAAT reach 0.3; two matrices that share the sites of one motif, 0.8 and more.
    """
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
