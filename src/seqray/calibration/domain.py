"""Input that is unlike the training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqray.calibration.signature import Signature
from seqray.core.alphabet import ALPHABETS, Alphabet
from seqray.core.card import Card, reading_card
from seqray.core.errors import InputError
from seqray.core.letters import CodeStack, kmer_counts, kmer_indices, kmer_starts, stack_codes
from seqray.core.text import round_number

# --- A Markov chain of sequences, and how improbable another one is under it

MAX_ORDER = 5  # the best of 2 to 7 on windows of 81 letters (docs/concepts/probabilities.md)
BACK_OFF = 16  # letters that the next lower order is worth
MIN_SEQUENCES = 50  # fewer say nothing about a tail
MAX_LETTERS = 2_000_000  # of the sequences that the limit of the chain is measured on
RELATED_WORD = 30  # sequences that share so many letters are relatives
_NUMBERS = ("mean", "spread", "within", "limit")
_MAX_MAGNITUDE = 1e9  # far above any logarithm of a share; its square is still finite
_FOLDS = 5
_SEED = 20_240_229


@dataclass(frozen=True, eq=False)
class MarkovProfile:
    """Markov chain of the training sequences, and how improbable they are under it.

    The distance of a sequence with n k-mers of ``order + 1`` letters is

        (mean - L) / sqrt(spread + within / n)

    where L is the mean over its letters of ln p(letter | the ``order`` letters before), ``spread`` the
    variance of L between training sequences and ``within`` the variance between letters of one sequence. It
    is large for a sequence less probable than training sequences of its length, and 0 without any k-mer.

    Attributes
    ----------
    order
        Letters that the next one depends on.
    log_p
        (letters**(order + 1),) ln p of the last letter of each word given the others, in hundredths.
    mean, spread, within
        Of L, from sequences whose relatives the chain had not seen.
    limit
        Quantile of the distances of those sequences, as the widest class needs it.
    """

    order: int
    log_p: np.ndarray
    mean: float
    spread: float
    within: float
    limit: float

    @classmethod
    def fit(
        cls, stack: CodeStack, labels: np.ndarray, alphabet: Alphabet, quantile: float
    ) -> MarkovProfile | None:
        """Fit the chain to all sequences, and the other values by cross-validation in five folds.

        Returns None for too few data: fewer than 50 sequences, or than 4 k-mers per parameter.

        ``quantile`` is the share of a class that must lie within the limit, 0 to 1.
        """
        letters = len(alphabet.letters)
        order = _affordable_order(int(stack.lengths.sum()), letters)
        if len(stack) < MIN_SEQUENCES or order < 1:
            return None
        chain = cls(order, _fit_chain(stack, order, letters), 0.0, 0.0, 0.0, np.inf)
        rows = _sample_rows(stack, MAX_LETTERS)
        sums, squares, n = _cross_fitted(stack, rows, order, alphabet)
        judged = n > 0
        if not judged.any():
            return None
        sums, squares, n, labels = sums[judged], squares[judged], n[judged], labels[rows][judged]
        level = sums / n
        mean = float(sums.sum() / n.sum())
        within = float((squares - n * level**2).sum() / n.sum())
        spread = max(float(np.mean((level - mean) ** 2) - within * np.mean(1 / n)), 0.0)
        chain = replace(chain, mean=mean, spread=spread, within=within)
        distances = chain._distances(sums, n)
        return replace(chain, limit=widest_limit(distances, labels, quantile))

    def distances(self, stack: CodeStack, letters: int) -> np.ndarray:
        """Return the distance of each sequence: (N,)."""
        sums, _, n = _chain_sums(stack, self.log_p, self.order, letters)
        return self._distances(sums, n)

    def _distances(self, sums: np.ndarray, n: np.ndarray) -> np.ndarray:
        n_safe = np.maximum(n, 1)
        deviation = np.sqrt(np.maximum(self.spread + self.within / n_safe, 1e-12))
        return np.where(n > 0, (self.mean - sums / n_safe) / deviation, 0.0)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data for the model card."""
        numbers = {name: round_number(getattr(self, name)) for name in _NUMBERS}
        return {"order": self.order, "log_p": [int(v) for v in self.log_p], **numbers}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], letters: int) -> MarkovProfile:
        """Read the output of `to_mapping`; raises KeyError, TypeError or ValueError if it is damaged."""
        order, log_p = int(mapping["order"]), np.asarray(mapping["log_p"], float)
        if not 1 <= order <= MAX_ORDER or log_p.shape != (letters ** (order + 1),):
            raise ValueError("a chain of the wrong size")
        numbers = [float(mapping[name]) for name in _NUMBERS]
        if not (np.abs([*log_p, *numbers]) < _MAX_MAGNITUDE).all():
            raise ValueError("a chain of impossible numbers")
        return cls(order, log_p, *numbers)


def widest_limit(distances: np.ndarray, labels: np.ndarray, quantile: float) -> float:
    """Largest quantile of the distances within a class."""
    return float(max(np.quantile(distances[labels == label], quantile) for label in np.unique(labels)))


def _affordable_order(total: int, letters: int) -> int:
    """Return the largest order up to 5 with at least 4 training letters to a parameter."""
    orders = [m for m in range(1, MAX_ORDER + 1) if 4 * letters ** (m + 1) <= total]
    return max(orders, default=0)


def _fit_chain(stack: CodeStack, order: int, letters: int) -> np.ndarray:
    """Fit a chain: ln p in hundredths, (letters**(order + 1),).

    Each order leans on the one below as on `BACK_OFF` further letters (interpolation with a fixed weight).
    """
    p = np.full((1, letters), 1 / letters)
    for k in range(order + 1):
        start, _, _ = kmer_starts(stack, k + 1, letters)
        words = np.bincount(kmer_indices(stack, start, k + 1, letters), minlength=letters ** (k + 1))
        counts = words.reshape(letters**k, letters)
        # A context without its first letter is that context's number modulo letters**(k - 1).
        lower = p[np.arange(letters**k) % len(p)]
        p = (counts + BACK_OFF * lower) / (counts.sum(axis=1, keepdims=True) + BACK_OFF)
    return np.round(100 * np.log(p)).ravel()


def _chain_sums(
    stack: CodeStack, log_p: np.ndarray, order: int, letters: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of ln p, sum of its square, and number of k-mers of each sequence: (N,) each."""
    start, owner, _ = kmer_starts(stack, order + 1, letters)
    values = log_p[kmer_indices(stack, start, order + 1, letters)] / 100
    size = len(stack)
    return (
        np.bincount(owner, values, minlength=size),
        np.bincount(owner, values**2, minlength=size),
        np.bincount(owner, minlength=size),
    )


def _select(stack: CodeStack, rows: np.ndarray) -> CodeStack:
    """Those sequences of the stack."""
    ends = np.cumsum(stack.lengths)
    parts = [stack.codes[ends[i] - stack.lengths[i] : ends[i]] for i in rows]
    return CodeStack(np.concatenate(parts) if parts else stack.codes[:0], stack.lengths[rows])


def _sample_rows(stack: CodeStack, letters: int) -> np.ndarray:
    """Rows of as many sequences, at random, as make that many letters: finding relatives costs memory."""
    order = np.random.default_rng(_SEED).permutation(len(stack))
    count = int(np.searchsorted(np.cumsum(stack.lengths[order]), letters, side="right"))
    return np.sort(order[: max(count, min(MIN_SEQUENCES, len(stack)))])


def _cross_fitted(
    stack: CodeStack, rows: np.ndarray, order: int, alphabet: Alphabet
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`_chain_sums` of those rows, each under a chain that saw none of its relatives."""
    letters = len(alphabet.letters)
    sample = _select(stack, rows)
    fold = _related_folds(sample, alphabet)
    sums, squares, n = (np.zeros(len(rows)) for _ in range(3))
    for number in np.unique(fold):
        out = fold == number
        log_p = _fit_chain(_select(sample, np.flatnonzero(~out)), order, letters)
        sums[out], squares[out], n[out] = _chain_sums(
            _select(sample, np.flatnonzero(out)), log_p, order, letters
        )
    return sums, squares, n


def _related_folds(stack: CodeStack, alphabet: Alphabet) -> np.ndarray:
    """Assign sequences to random folds; sequences that share a long k-mer go to the same fold: int64 (N,)."""
    from seqray.homology.kmers import kmer_groups

    ends = np.cumsum(stack.lengths)
    texts = [alphabet.decode(stack.codes[e - n : e]) for e, n in zip(ends, stack.lengths, strict=True)]
    groups = kmer_groups(texts, RELATED_WORD, alphabet=alphabet)
    if groups.max() + 1 < _FOLDS:  # all of them are relatives
        groups = np.arange(len(stack))
    rng = np.random.default_rng(_SEED)
    return (rng.permutation(groups.max() + 1) % _FOLDS)[groups]


# --- Profiles of the training sequences, to flag input that differs from them

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
