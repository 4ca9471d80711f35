"""A Markov chain of sequences, and how improbable another one is under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqray.core import Alphabet, CodeStack, kmer_indices, kmer_starts, round_number

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
    from seqray.homology import kmer_groups  # and scipy; judging an input needs neither

    ends = np.cumsum(stack.lengths)
    texts = [alphabet.decode(stack.codes[e - n : e]) for e, n in zip(ends, stack.lengths, strict=True)]
    groups = kmer_groups(texts, RELATED_WORD, alphabet=alphabet)
    if groups.max() + 1 < _FOLDS:  # all of them are relatives
        groups = np.arange(len(stack))
    rng = np.random.default_rng(_SEED)
    return (rng.permutation(groups.max() + 1) % _FOLDS)[groups]
