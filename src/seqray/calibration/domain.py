"""Profiles of the training sequences, to flag input that differs from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqray.calibration.markov import MarkovProfile, widest_limit
from seqray.calibration.signature import Signature
from seqray.core import (
    ALPHABETS,
    Alphabet,
    Card,
    CodeStack,
    InputError,
    kmer_counts,
    reading_card,
    round_number,
    stack_codes,
)

_MAX_KMER_LENGTH = 8
_CHUNK = 8192  # sequences at once: their k-mer tables take a few MB
_MIN_VARIANCE = 1e-30  # a mean that is rounded may be 1, of sequences of one letter


@dataclass(frozen=True, eq=False)
class KmerProfile:
    """Frequencies of k-mers in the training sequences, and their spread.

    The distance of a sequence with n k-mers is the mean over k-mers of

        (f - mean)^2 / (spread + mean (1 - mean) / n)

    a squared z-score. Its variance is that between training sequences plus the sampling variance of n
    k-mers, so short sequences are not flagged only because they are short.
    """

    k: int
    mean: np.ndarray
    spread: np.ndarray
    limit: float

    @classmethod
    def fit(
        cls, stack: CodeStack, labels: np.ndarray, k: int, letters: int, quantile: float
    ) -> KmerProfile | None:
        """Measure frequencies and spread over all sequences, and the limit of the widest class.

        Returns None if no sequence holds a word of k unambiguous letters.

        ``quantile`` is as in `MarkovProfile.fit`.
        """
        counts = kmer_counts(stack, k, letters)
        whole = counts.sum(axis=1) > 0
        counts, labels = counts[whole], labels[whole]
        if not len(counts):
            return None
        n = counts.sum(axis=1, keepdims=True)
        frequencies = counts / n
        mean = (counts.sum(axis=0) + 1) / (counts.sum() + counts.shape[1])  # no word is impossible
        counting = mean * (1 - mean) * np.mean(1 / n)
        spread = np.maximum(((frequencies - mean) ** 2).mean(axis=0) - counting, 0)
        distances = cls(k, mean, spread, np.inf).distances(counts)
        return cls(k, mean, spread, widest_limit(distances, labels, quantile))

    def distances(self, counts: np.ndarray) -> np.ndarray:
        """Distance per sequence: (N, letters**k) counts -> (N,); infinite without a complete k-mer."""
        n = counts.sum(axis=1, keepdims=True)
        n_safe = np.maximum(n, 1)
        variance = np.maximum(self.spread + self.mean * (1 - self.mean) / n_safe, _MIN_VARIANCE)
        squared = ((counts / n_safe - self.mean) ** 2 / variance).mean(axis=1)
        return np.where(n[:, 0] > 0, squared, np.inf)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card."""
        tables = {name: list(map(round_number, getattr(self, name))) for name in ("mean", "spread")}
        return {"k": self.k, **tables, "limit": round_number(self.limit)}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], letters: int) -> KmerProfile:
        """Read the output of `to_mapping`; raises KeyError, TypeError or ValueError if it is damaged."""
        mean, spread = (np.asarray(mapping[name], float) for name in ("mean", "spread"))
        k, limit = int(mapping["k"]), float(mapping["limit"])
        if not 1 <= k <= _MAX_KMER_LENGTH or not mean.shape == spread.shape == (letters**k,):
            raise ValueError("a word table of the wrong size")
        if not all((shares >= 0).all() and (shares <= 1).all() for shares in (mean, spread)):
            raise ValueError("shares of words that no sequences have")
        return cls(k, mean, spread, limit)


@dataclass(frozen=True, eq=False)
class CalibrationDomain:
    """What the data of a later calibration looked like: the probabilities hold for input like them.

    ``flags`` holds the share of its sequences that have each flag (`Domain.flag_sequences`); those of none
    are left out. ``signature`` is None for other letters than nucleotides, and for too few 4-mers.
    """

    flags: Mapping[str, float]
    signature: Signature | None = None

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card."""
        shares = {name: round_number(share) for name, share in self.flags.items()}
        return {"flags": shares} | ({"signature": self.signature.to_mapping()} if self.signature else {})

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> CalibrationDomain:
        """Read the output of `to_mapping`; raises KeyError, TypeError or ValueError if it is damaged."""
        signature = Signature.from_mapping(mapping["signature"]) if "signature" in mapping else None
        flags = {name: float(share) for name, share in mapping["flags"].items()}
        if not all(0 <= share <= 1 for share in flags.values()):
            raise ValueError("shares of flags that no sequences have")
        return cls(flags, signature)


@dataclass(frozen=True, eq=False)
class Domain:
    """Profiles of the training sequences, to flag input that differs from them.

    Attributes
    ----------
    alphabet, shortest, longest
        Name of the alphabet, and the range of lengths in letters.
    profiles
        Letter composition and, for nucleotides, the composition of 3-letter words. Each limit is the
        quantile, chosen in `fit`, of the training sequences' own distances.
    chain
        For nucleotides, the Markov chain of the training sequences; None in cards without it.
    signature
        For nucleotides, the k-mer shares by context, to judge a whole file; None in cards without it.
    calibration
        Of the data that `seqray.training.recalibrate` used; None for a model as it was trained.
    """

    alphabet: str
    shortest: int
    longest: int
    profiles: tuple[KmerProfile, ...]
    chain: MarkovProfile | None = None
    signature: Signature | None = None
    calibration: CalibrationDomain | None = None

    @classmethod
    def fit(
        cls,
        sequences: Sequence[np.ndarray] | np.ndarray,
        alphabet: Alphabet,
        labels: ArrayLike | None = None,
        quantile: float = 0.997,
        contexts: Sequence[str | None] | None = None,
    ) -> Domain:
        """Describe training sequences.

        Parameters
        ----------
        sequences
            N arrays (n,) or a matrix (N, W) of letter codes.
        alphabet
            Of the codes.
        labels
            (N,) classes. With them the limits hold the quantile of each class, so that a rare class is
            not flagged because it is rare.
        quantile
            Share of the training sequences that lie within each limit. There are three, so about 1 % of
            sequences like those of training are flagged.
        contexts
            N names, None for unknown, as `Signature.fit` takes them; without them there is no signature.
        """
        stack = stack_codes(sequences)
        if not len(stack):
            raise InputError("no training sequence to describe")
        letters = len(alphabet.letters)
        sizes = (1,) if alphabet.name == "protein" else (1, 3)  # 8,000 protein 3-mers would never fill
        classes = np.zeros(len(stack)) if labels is None else np.asarray(labels)
        fitted = (KmerProfile.fit(stack, classes, k, letters, quantile) for k in sizes)
        profiles = tuple(profile for profile in fitted if profile is not None)
        if not profiles:
            raise InputError("no training sequence holds an unambiguous letter")
        chain = MarkovProfile.fit(stack, classes, alphabet, quantile) if alphabet.is_nucleotide else None
        signature = None
        if alphabet.is_nucleotide and contexts is not None:
            signature = Signature.fit(stack, classes, contexts)
        shortest, longest = int(stack.lengths.min()), int(stack.lengths.max())
        return cls(alphabet.name, shortest, longest, profiles, chain, signature)

    def describe_calibration(
        self, sequences: Sequence[np.ndarray], labels: ArrayLike, contexts: Sequence[str | None]
    ) -> CalibrationDomain:
        """Describe the data of a later calibration.

        Parameters
        ----------
        sequences, labels, contexts
            N sequences of letter codes, (N,) classes and N names, as `fit` takes them.
        """
        counts = Counter(flag for flags in self.flag_sequences(sequences) for flag in flags)
        shares = {name: count / len(sequences) for name, count in sorted(counts.items())}
        signature = None
        if ALPHABETS[self.alphabet].is_nucleotide:
            signature = Signature.fit(stack_codes(sequences), np.asarray(labels), contexts)
        return CalibrationDomain(shares, signature)

    def out_of_domain(self, sequences: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Say which sequences differ in composition from all but a few of training: bool (N,)."""
        chunks = [self._outlying(sequences[i : i + _CHUNK]) for i in range(0, len(sequences), _CHUNK)]
        return np.concatenate(chunks) if chunks else np.zeros(0, dtype=bool)

    def _outlying(self, sequences: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        stack = stack_codes(sequences)
        letters = len(ALPHABETS[self.alphabet].letters)
        odd = np.zeros(len(stack), dtype=bool)
        for profile in self.profiles:
            odd |= profile.distances(kmer_counts(stack, profile.k, letters)) > profile.limit
        if self.chain is not None:
            odd |= self.chain.distances(stack, letters) > self.chain.limit
        return odd

    def flag_sequences(self, sequences: Sequence[np.ndarray] | np.ndarray) -> list[tuple[str, ...]]:
        """Return the reasons for caution of each sequence: ``short``, ``long``, ``out-of-domain``."""
        odd = self.out_of_domain(sequences)
        flags = []
        for codes, outlier in zip(sequences, odd, strict=True):
            n = len(codes)
            reasons = (n < self.shortest, "short"), (n > self.longest, "long"), (outlier, "out-of-domain")
            flags.append(tuple(name for applies, name in reasons if applies))
        return flags

    def flags(self, codes: np.ndarray) -> tuple[str, ...]:
        """Return the reasons for caution of one sequence of letter codes (n,)."""
        return self.flag_sequences([codes])[0]

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card; numbers are rounded to six significant digits."""
        mapping: dict[str, Any] = {
            "alphabet": self.alphabet,
            "length": [self.shortest, self.longest],
            "words": [profile.to_mapping() for profile in self.profiles],
        }
        parts = {"chain": self.chain, "signature": self.signature, "calibration": self.calibration}
        return mapping | {name: part.to_mapping() for name, part in parts.items() if part is not None}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Domain:
        """Read what `to_mapping` wrote.

        Raises ModelFileError if a part is missing or does not fit the alphabet.
        """
        with reading_card("domain"):
            letters = len(ALPHABETS[mapping["alphabet"]].letters)
            shortest, longest = (int(n) for n in mapping["length"])
            profiles = tuple(KmerProfile.from_mapping(table, letters) for table in mapping["words"])
            chain = MarkovProfile.from_mapping(mapping["chain"], letters) if "chain" in mapping else None
            signature = Signature.from_mapping(mapping["signature"]) if "signature" in mapping else None
            later = (
                CalibrationDomain.from_mapping(mapping["calibration"]) if "calibration" in mapping else None
            )
        return cls(mapping["alphabet"], shortest, longest, profiles, chain, signature, later)

    @classmethod
    def of(cls, card: Card) -> Domain | None:
        """That of a model; None if its card has none. A damaged one is a ModelFileError."""
        return cls.from_mapping(card.domain) if card.domain else None


def signature_of(card: Card) -> Signature | None:
    """The `Signature` of a model; None if its card has none."""
    domain = Domain.of(card)
    return domain.signature if domain else None
