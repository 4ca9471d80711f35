"""From raw logits to probabilities that mean something: temperature, threshold and domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from seqray.alphabet import ALPHABETS, Alphabet
from seqray.errors import InputError, ModelFileError
from seqray.metrics import expected_calibration_error
from seqray.words import CodeStack, stack_codes, word_counts

__all__ = ["Domain", "choose_threshold", "expected_calibration_error", "fit_temperature"]

TEMPERATURES = (0.25, 10.0)  # beyond this the held-out data are too few or too easy to tell
_CHUNK = 8192  # sequences judged at once: their word tables take a few MB


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Find the temperature T for which softmax(logits / T) has the least negative log-likelihood.

    Parameters
    ----------
    logits
        (N, K), of held-out data.
    labels
        (N,) class indices.

    Returns
    -------
    float
        T, within 0.25 to 10. The likelihood has one optimum in 1/T, so a bounded search finds it.

    References
    ----------
    Guo et al. 2017, On calibration of modern neural networks, section 4.2.
    """
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(labels).astype(np.int64)
    if z.ndim != 2 or y.shape != z.shape[:1] or len(y) == 0:
        raise InputError(f"logits {z.shape} and labels {y.shape} don't go together")
    true = z[np.arange(len(y)), y]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(logsumexp(z * scale, axis=1) - true * scale))

    bounds = (float(np.log(TEMPERATURES[0])), float(np.log(TEMPERATURES[1])))
    best: Any = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(best.x))


def choose_threshold(probabilities: ArrayLike) -> float:
    """Find the threshold with the highest Matthews correlation to expect, if the probabilities are right.

    Counts of right and wrong calls are replaced by what the probabilities make them on average. The labels
    have their say in the temperature already; asked a second time, a few hundred of them would move the
    threshold by more than the gain (docs/decisions/0008).

    Parameters
    ----------
    probabilities
        (N,) calibrated probabilities of the positive class on held-out data.

    Returns
    -------
    float
        Halfway between two neighbouring probabilities; of equally good places the nearest to 0.5.
        0.5 where all probabilities are alike.
    """
    p = np.sort(np.asarray(probabilities, dtype=np.float64))[::-1]
    if p.ndim != 1 or len(p) == 0:
        raise InputError(f"probabilities have shape {np.shape(probabilities)}, not (N,)")
    cut = np.flatnonzero(p[:-1] > p[1:])  # calls are the first cut + 1 examples
    called, tp = cut + 1.0, np.cumsum(p)[cut]
    positives, n = float(p.sum()), float(len(p))
    fp, fn, tn = called - tp, positives - tp, n - positives - called + tp
    squared = called * positives * (n - positives) * (n - called)
    if not len(cut) or not squared.all():
        return 0.5
    mcc = (tp * tn - fp * fn) / np.sqrt(squared)
    places = (p[cut] + p[cut + 1]) / 2
    best = places[mcc >= mcc.max() - 1e-12]
    return float(best[np.argmin(np.abs(best - 0.5))])


@dataclass(frozen=True, eq=False)
class WordProfile:
    """Frequencies of the words of ``k`` letters in the training sequences, and how far they stray.

    The distance of a sequence with n words is the mean over words of

        (f - mean)^2 / (spread + mean (1 - mean) / n)

    a squared z-score whose variance is that between training sequences plus that of counting n words, so
    that short sequences aren't called odd for being short.
    """

    k: int
    mean: np.ndarray
    spread: np.ndarray
    limit: float

    @classmethod
    def fit(cls, stack: CodeStack, labels: np.ndarray, k: int, letters: int, quantile: float) -> WordProfile:
        """Measure frequencies and spread over all sequences, and the limit as the widest class needs it."""
        counts = word_counts(stack, k, letters)
        whole = counts.sum(axis=1) > 0
        counts, labels = counts[whole], labels[whole]
        if not len(counts):
            raise InputError(f"no training sequence holds a word of {k} unambiguous letters")
        n = counts.sum(axis=1, keepdims=True)
        frequencies = counts / n
        mean = (counts.sum(axis=0) + 1) / (counts.sum() + counts.shape[1])  # no word is impossible
        counting = mean * (1 - mean) * np.mean(1 / n)
        spread = np.maximum(((frequencies - mean) ** 2).mean(axis=0) - counting, 0)
        distances = cls(k, mean, spread, np.inf).distances(counts)
        limits = [np.quantile(distances[labels == label], quantile) for label in np.unique(labels)]
        return cls(k, mean, spread, float(max(limits)))

    def distances(self, counts: np.ndarray) -> np.ndarray:
        """Return the distance per sequence: (N, letters**k) counts -> (N,); infinite without a whole word."""
        n = counts.sum(axis=1, keepdims=True)
        n_safe = np.maximum(n, 1)
        variance = self.spread + self.mean * (1 - self.mean) / n_safe
        squared = ((counts / n_safe - self.mean) ** 2 / variance).mean(axis=1)
        return np.where(n[:, 0] > 0, squared, np.inf)


@dataclass(frozen=True, eq=False)
class Domain:
    """What the training sequences looked like, to flag input that a model can't know about.

    Attributes
    ----------
    alphabet
        Name of the alphabet.
    shortest, longest
        Range of lengths in letters.
    profiles
        Letter composition and, for nucleotides, the composition of 3-letter words. Each limit is the
        quantile of the training sequences' own distances asked for in `fit`.
    """

    alphabet: str
    shortest: int
    longest: int
    profiles: tuple[WordProfile, ...]

    @classmethod
    def fit(
        cls,
        sequences: Sequence[np.ndarray] | np.ndarray,
        alphabet: Alphabet,
        labels: ArrayLike | None = None,
        quantile: float = 0.995,
    ) -> Domain:
        """Describe training sequences.

        Parameters
        ----------
        sequences
            N arrays (n,) or a matrix (N, W) of letter codes.
        alphabet
            Of the codes.
        labels
            (N,) classes. With them the limits hold the quantile of each class, so that a rare class is not
            odd for being rare.
        quantile
            Share of the training sequences that lie within each limit.
        """
        stack = stack_codes(sequences)
        if not len(stack):
            raise InputError("no training sequence to describe")
        letters = len(alphabet.letters)
        sizes = (1,) if alphabet.name == "protein" else (1, 3)  # 8,000 protein 3-mers would never fill
        classes = np.zeros(len(stack)) if labels is None else np.asarray(labels)
        profiles = tuple(WordProfile.fit(stack, classes, k, letters, quantile) for k in sizes)
        return cls(alphabet.name, int(stack.lengths.min()), int(stack.lengths.max()), profiles)

    def outlying(self, sequences: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Say which sequences differ in composition from all but a few of training: bool (N,)."""
        chunks = [self._outlying(sequences[i : i + _CHUNK]) for i in range(0, len(sequences), _CHUNK)]
        return np.concatenate(chunks) if chunks else np.zeros(0, dtype=bool)

    def _outlying(self, sequences: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        stack = stack_codes(sequences)
        letters = len(ALPHABETS[self.alphabet].letters)
        odd = np.zeros(len(stack), dtype=bool)
        for profile in self.profiles:
            odd |= profile.distances(word_counts(stack, profile.k, letters)) > profile.limit
        return odd

    def flags_of(self, sequences: Sequence[np.ndarray] | np.ndarray) -> list[tuple[str, ...]]:
        """Return the reasons for caution of each sequence: ``short``, ``long``, ``out-of-domain``."""
        odd = self.outlying(sequences)
        flags = []
        for codes, outlier in zip(sequences, odd, strict=True):
            n = len(codes)
            reasons = (n < self.shortest, "short"), (n > self.longest, "long"), (outlier, "out-of-domain")
            flags.append(tuple(name for applies, name in reasons if applies))
        return flags

    def flags(self, codes: np.ndarray) -> tuple[str, ...]:
        """Return the reasons for caution of one sequence of letter codes (n,)."""
        return self.flags_of([codes])[0]

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card; numbers are rounded to six significant digits."""
        return {
            "alphabet": self.alphabet,
            "length": [self.shortest, self.longest],
            "words": [
                {"k": p.k, "mean": _plain(p.mean), "spread": _plain(p.spread), "limit": _plain([p.limit])[0]}
                for p in self.profiles
            ],
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Domain:
        """Read what `to_mapping` wrote.

        Raises
        ------
        ModelFileError
            Where a part is missing or does not fit the alphabet.
        """
        try:
            letters = len(ALPHABETS[mapping["alphabet"]].letters)
            shortest, longest = (int(n) for n in mapping["length"])
            profiles = tuple(
                WordProfile(
                    int(w["k"]),
                    np.asarray(w["mean"], float),
                    np.asarray(w["spread"], float),
                    float(w["limit"]),
                )
                for w in mapping["words"]
            )
            if any(p.mean.shape != (letters**p.k,) or p.spread.shape != p.mean.shape for p in profiles):
                raise ValueError("a word table of the wrong size")
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise ModelFileError(f"model card: 'domain' can't be read ({reason})") from None
        return cls(mapping["alphabet"], shortest, longest, profiles)


def _plain(values: Sequence[float] | np.ndarray) -> list[float]:
    return [float(f"{v:.6g}") for v in values]
