"""Simple learners as baselines, and tests of paired results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from seqray.core.alphabet import ALPHABETS, Alphabet, CodeStack, kmer_indices, kmer_starts, stack_sequences
from seqray.core.arrays import Floats, Ints, logistic
from seqray.core.errors import InputError
from seqray.core.records import letter_counts
from seqray.metrics.classification import choose_form, learn_rule

# --- McNemar's test: whether two classifiers are right equally often


def mcnemar(labels: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[int, int, float]:
    """Records that only the first calls right, only the second, and the exact p-value (McNemar 1947)."""
    first_right, second_right = first == labels, second == labels
    first_only = int(np.sum(first_right & ~second_right))
    second_only = int(np.sum(second_right & ~first_right))
    trials = first_only + second_only
    return first_only, second_only, float(binomtest(first_only, trials).pvalue) if trials else 1.0


# --- Baselines for a transformer: k-mers with positions, a forest, and the position weight matrix

ENDS = (1, 2, 4, 8, 15, 30, 60)  # letters at an end that are read together, where lengths differ


class Baseline(ClassifierMixin, BaseEstimator, ABC):
    """A classifier of sequences that gives probabilities."""

    classes_: np.ndarray

    @abstractmethod
    def predict_proba(self, sequences: Sequence[str]) -> np.ndarray:
        """Return class probabilities (N, K)."""

    def predict(self, sequences: Sequence[str]) -> np.ndarray:
        """Return the most probable class of each sequence (N,)."""
        return self.classes_[self.predict_proba(sequences).argmax(axis=1)]


@dataclass(eq=False, repr=False)
class KmerPositionalBaseline(Baseline):
    """Logistic regression on k-mer counts, on which k-mer is at which position, and on composition.

    With ``ends``, shares of letters at the ends and of k-mers: counts mostly tell different lengths.
    """

    kmers: tuple[int, ...] = (2, 3, 4, 5)
    positional: tuple[int, ...] = (1, 3)
    penalty: float = 10.0
    alphabet: str = "dna"
    max_iter: int = 1000
    ends: tuple[int, ...] = ()

    def fit(self, sequences: Sequence[str], labels: Sequence[str] | np.ndarray) -> KmerPositionalBaseline:
        """Fit to N sequences and their labels."""
        self.window_ = max(map(len, sequences))
        placed = not self.ends or min(map(len, sequences)) == self.window_
        self.positional_ = self.positional if placed else ()
        features = self._features(sequences)
        largest = abs(features).max(axis=0).toarray().ravel()
        self.scale_ = 1 / np.where(largest > 0, largest, 1)
        self.model_ = LogisticRegression(C=1 / self.penalty, max_iter=self.max_iter)
        with threadpool_limits(1, "blas"):  # more wait for each other over so short vectors
            self.model_.fit(features * self.scale_, np.asarray(labels))
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, sequences: Sequence[str]) -> np.ndarray:
        """Return class probabilities (N, K)."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._features(sequences) * self.scale_)

    def _features(self, sequences: Sequence[str]) -> csr_array:
        alphabet = ALPHABETS[self.alphabet]
        stack = stack_sequences(sequences, alphabet)
        letters = len(alphabet.letters)
        counted = [_kmer_matrix(stack, k, letters) for k in self.kmers]
        placed = [_kmer_matrix(stack, k, letters, self.window_) for k in self.positional_]
        ends = _end_counts(sequences, self.ends, alphabet)
        shares = [_shares(counts) for counts in (*counted, *ends)] if self.ends else []
        return csr_array(hstack([*counted, *placed, *shares], format="csr"))


def _kmer_matrix(stack: CodeStack, k: int, letters: int, window: int | None = None) -> csr_array:
    """Counts of k-mers, sparse (N, letters**k); with a window, of those at each of its positions."""
    start, owner, position = kmer_starts(stack, k, letters)
    places = 1 if window is None else max(window - k + 1, 0)
    position = np.zeros_like(position) if window is None else position
    inside = position < places
    column = position[inside] * letters**k + kmer_indices(stack, start[inside], k, letters)
    return csr_array((np.ones(len(column)), (owner[inside], column)), shape=(len(stack), places * letters**k))


def _end_counts(sequences: Sequence[str], ends: Sequence[int], alphabet: Alphabet) -> list[csr_array]:
    """Counts of letters among the first and the last letters, for each number of them."""
    parts = ([s[cut] for s in sequences] for n in ends for cut in (slice(n), slice(-n, None)))
    return [_kmer_matrix(stack_sequences(part, alphabet), 1, len(alphabet.letters)) for part in parts]


def _shares(counts: csr_array) -> csr_array:
    """Counts (N, F) as shares of their sum in each row."""
    return csr_array(counts / np.maximum(counts.sum(axis=1), 1)[:, None])


@dataclass(eq=False, repr=False)
class ForestBaseline(Baseline):
    """A random forest on composition, pairs of letters, length, and both ends, of ``most`` records."""

    alphabet: str = "dna"
    trees: int = 100
    most: int = 10_000
    seed: int = 0

    def fit(self, sequences: Sequence[str], labels: Sequence[str] | np.ndarray) -> ForestBaseline:
        """Fit to N sequences and their labels."""
        y = np.asarray(labels)
        share = min(1.0, self.most / len(y))
        rng = np.random.default_rng(self.seed)
        rows_of = (rng.permutation(np.flatnonzero(y == name)) for name in np.unique(y))
        rows = np.concatenate([rows[: math.ceil(share * len(rows))] for rows in rows_of])
        self.model_ = RandomForestClassifier(self.trees, random_state=self.seed)
        sample: list[str] = [sequences[int(i)] for i in rows]
        self.model_.fit(self.features(sample), y[rows])
        self.classes_ = np.asarray(self.model_.classes_)
        return self

    def predict_proba(self, sequences: Sequence[str]) -> np.ndarray:
        """Return class probabilities (N, K)."""
        check_is_fitted(self)
        blocks = (sequences[start : start + self.most] for start in range(0, len(sequences), self.most))
        return np.concatenate([self.model_.predict_proba(self.features(block)) for block in blocks])

    def features(self, sequences: Sequence[str]) -> np.ndarray:
        """Lengths, and shares of letters and pairs, in all and at the ends: float32 (N, F)."""
        alphabet = ALPHABETS[self.alphabet]
        stack, letters = stack_sequences(sequences, alphabet), len(alphabet.letters)
        counted = [_kmer_matrix(stack, k, letters) for k in (1, 2)]
        shares = [_shares(counts) for counts in (*counted, *_end_counts(sequences, (5, 15), alphabet))]
        lengths = np.fromiter(map(len, sequences), dtype=np.float32)
        return np.column_stack((lengths, hstack(shares).toarray().astype(np.float32)))


def default_baseline(alphabet: Alphabet, max_iter: int = 1000) -> KmerPositionalBaseline:
    """The baseline of an alphabet: of protein no 3-mers, which are too many, but both ends."""
    settings: dict[str, Any] = {"alphabet": alphabet.name, "max_iter": max_iter}
    if alphabet.name == "protein":
        return KmerPositionalBaseline((1, 2), (1,), ends=ENDS, **settings)
    return KmerPositionalBaseline((2, 3, 4, 5), (1, 3), **settings)


def held_out_probabilities(
    model: Any, train: Sequence[str], labels: Ints, test: Sequence[str], classes: int
) -> Floats:
    """Fit a copy of a classifier and apply it to others: 0 for a class without a training sequence."""
    fresh: Any = clone(model)
    present = np.unique(labels)
    found = np.zeros((len(test), classes))
    found[:, present] = 1.0 if len(present) == 1 else fresh.fit(train, labels).predict_proba(test)
    return found


@dataclass(eq=False, repr=False)
class PositionWeightMatrix(Baseline):
    """Log-odds of the letter at each position of the positives, against the composition of the negatives.

    ``weights_`` (W, letters + 1) are in nats; the last column, for an ambiguous letter, is 0.
    """

    positive: str | None = None
    alphabet: str = "dna"

    def fit(self, sequences: Sequence[str], labels: Sequence[str] | np.ndarray) -> PositionWeightMatrix:
        """Fit to N sequences of one length W and their labels, of which there are two."""
        y = np.asarray(labels)
        self.classes_ = np.unique(y)
        positive = self.classes_[-1] if self.positive is None else self.positive
        if len(self.classes_) != 2 or positive not in self.classes_:
            raise InputError(f"a weight matrix of {positive!r} needs it and one other class in the data")
        is_positive = y == positive
        codes = self._matrix(sequences)
        composition = self._frequencies(codes[~is_positive]).mean(axis=0)
        odds = np.log(self._frequencies(codes[is_positive]) / composition)
        self.weights_ = np.concatenate((odds, np.zeros((len(odds), 1))), axis=1)
        self.prior_ = float(np.log(is_positive.sum() / (~is_positive).sum()))
        self.positive_index_ = int(np.flatnonzero(self.classes_ == positive)[0])
        return self

    def _matrix(self, sequences: Sequence[str]) -> np.ndarray:
        stack = stack_sequences(sequences, ALPHABETS[self.alphabet])
        if stack.lengths.min() != stack.lengths.max():
            raise InputError(
                f"sequences of {stack.lengths.min()} to {stack.lengths.max()} letters",
                remedy="a weight matrix needs one length",
            )
        return stack.codes.reshape(len(stack), -1)

    def _frequencies(self, codes: np.ndarray) -> np.ndarray:
        """Letter frequencies by position, each letter counted once more: (N, W) codes -> (W, letters)."""
        counts = 1 + letter_counts(codes, ALPHABETS[self.alphabet]).T
        return counts / counts.sum(axis=1, keepdims=True)

    def score_codes(self, codes: np.ndarray) -> np.ndarray:
        """Sum the log-odds of windows: codes (N, W) -> (N,), in nats."""
        check_is_fitted(self)
        if codes.ndim != 2 or codes.shape[1] != len(self.weights_):
            raise InputError(f"windows {codes.shape} for a matrix of {len(self.weights_)} letters")
        score = np.zeros(len(codes))
        for position, weights in enumerate(self.weights_):
            score += weights[codes[:, position]]
        return score

    def predict_proba(self, sequences: Sequence[str]) -> np.ndarray:
        """Return class probabilities (N, 2), taking positions as independent and the prior from training."""
        check_is_fitted(self)
        positive = logistic(self.score_codes(self._matrix(sequences)) + self.prior_)
        columns = (1 - positive, positive) if self.positive_index_ == 1 else (positive, 1 - positive)
        return np.stack(columns, axis=1)


@dataclass(eq=False, repr=False)
class RuleBaseline(Baseline):
    """Class probabilities from one number of each sequence: by logistic regression, or shares in bins."""

    measure: Callable[[str], float]

    def fit(self, sequences: Sequence[str], labels: Sequence[str] | np.ndarray) -> RuleBaseline:
        """Fit to N sequences and their labels."""
        values, y = self._values(sequences), np.asarray(labels)
        self.classes_ = np.unique(y)
        forms = [choose_form(values, y == name) for name in self.classes_]
        self.rules_, self.model_ = [], make_pipeline(StandardScaler(), LogisticRegression())
        if 2 * forms.count("shares") > len(forms):
            self.rules_ = [learn_rule(values, y == name, "shares") for name in self.classes_]
        else:
            self.model_.fit(values[:, None], y)
        return self

    def predict_proba(self, sequences: Sequence[str]) -> np.ndarray:
        """Return class probabilities (N, K)."""
        values = self._values(sequences)
        if not self.rules_:
            return self.model_.predict_proba(values[:, None])
        return np.stack([rule.scores(values) for rule in self.rules_], axis=1)

    def _values(self, sequences: Sequence[str]) -> Floats:
        return np.array([self.measure(sequence) for sequence in sequences], dtype=np.float64)
