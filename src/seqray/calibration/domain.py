"""Input that is unlike the training data: improbable letters, odd composition, odd lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from seqray.calibration.signature import fit_signature
from seqray.core.alphabet import (
    ALPHABETS,
    Alphabet,
    CodeStack,
    kmer_counts,
    kmer_indices,
    kmer_starts,
    stack_codes,
)
from seqray.core.arrays import Bools, Floats, Ints
from seqray.core.card_parts import MAX_CHAIN_ORDER, CalibrationDomain, Domain, MarkovChain, WordTable
from seqray.core.errors import InputError
from seqray.core.text import round_number

BACK_OFF = 16  # letters that the next lower order is worth
MIN_SEQUENCES = 50  # fewer say nothing about a tail
MAX_LETTERS = 2_000_000  # of the sequences that the limit of the chain is measured on
RELATED_WORD = 30  # sequences that share so many letters are relatives
_FOLDS = 5
_SEED = 20_240_229
_CHUNK = 8192  # sequences at once: their k-mer tables take a few MB
_MIN_VARIANCE = 1e-30  # a mean that is rounded may be 1, of sequences of one letter
Codes2 = Sequence[np.ndarray] | np.ndarray
"""N arrays (n,) or a matrix (N, W) of letter codes."""


def fit_domain(
    sequences: Codes2,
    alphabet: Alphabet,
    labels: ArrayLike | None = None,
    quantile: float = 0.997,
    contexts: Sequence[str | None] | None = None,
) -> Domain:
    """Describe training sequences; limits hold the share ``quantile`` of all, or of each class."""
    stack = stack_codes(sequences)
    if not len(stack):
        raise InputError("no training sequence to describe")
    sizes = (1,) if alphabet.name == "protein" else (1, 3)  # 8,000 protein 3-mers would never fill
    classes = np.zeros(len(stack)) if labels is None else np.asarray(labels)
    words = [fit_words(stack, classes, k, len(alphabet.letters), quantile) for k in sizes]
    if not any(words):
        raise InputError("no training sequence holds an unambiguous letter")
    return Domain(
        alphabet=alphabet.name,  # pyright: ignore[reportArgumentType]
        length=(int(stack.lengths.min()), int(stack.lengths.max())),
        words=tuple(table for table in words if table is not None),
        chain=fit_chain(stack, classes, alphabet, quantile) if alphabet.is_nucleotide else None,
        signature=fit_signature(stack, classes, contexts) if alphabet.is_nucleotide and contexts else None,
    )


def describe_calibration(
    domain: Domain, sequences: Sequence[np.ndarray], labels: ArrayLike, contexts: Sequence[str | None]
) -> CalibrationDomain:
    """Describe the data of a later calibration: N sequences, classes and contexts, as for `fit_domain`."""
    counts = Counter(flag for flags in flag_sequences(domain, sequences) for flag in flags)
    shares = {name: round_number(count / len(sequences)) for name, count in sorted(counts.items())}
    signature = None
    if ALPHABETS[domain.alphabet].is_nucleotide:
        signature = fit_signature(stack_codes(sequences), np.asarray(labels), contexts)
    return CalibrationDomain(shares, signature)


def out_of_domain(domain: Domain, sequences: Codes2) -> Bools:
    """Say which sequences differ in composition from all but a few of training: (N,)."""
    letters = len(ALPHABETS[domain.alphabet].letters)
    chunks = [np.zeros(0, dtype=bool)]
    for start in range(0, len(sequences), _CHUNK):
        stack = stack_codes(sequences[start : start + _CHUNK])
        odd = np.zeros(len(stack), dtype=bool)
        for table in domain.words:
            odd |= word_distances(table, kmer_counts(stack, table.k, letters)) > table.limit
        if domain.chain is not None:
            odd |= chain_distances(domain.chain, stack, letters) > domain.chain.limit
        chunks.append(odd)
    return np.concatenate(chunks)


def flag_sequences(domain: Domain, sequences: Codes2) -> list[tuple[str, ...]]:
    """Return the reasons for caution of each sequence: ``short``, ``long``, ``out-of-domain``."""
    shortest, longest = domain.length
    flags = []
    for codes, odd in zip(sequences, out_of_domain(domain, sequences), strict=True):
        n = len(codes)
        reasons = (n < shortest, "short"), (n > longest, "long"), (odd, "out-of-domain")
        flags.append(tuple(name for applies, name in reasons if applies))
    return flags


def _widest_limit(distances: Floats, labels: np.ndarray, quantile: float) -> float:
    """Largest quantile of the distances within a class."""
    return float(max(np.quantile(distances[labels == label], quantile) for label in np.unique(labels)))


# --- Frequencies of words


def fit_words(
    stack: CodeStack, labels: np.ndarray, k: int, letters: int, quantile: float
) -> WordTable | None:
    """Frequencies and spread over all sequences, and the limit of the widest class; None without a word."""
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
    distances = word_distances(WordTable(k, np.inf, mean, spread), counts)
    rounded = [np.array([round_number(value) for value in values]) for values in (mean, spread)]
    return WordTable(k, round_number(_widest_limit(distances, labels, quantile)), *rounded)


def word_distances(table: WordTable, counts: Ints) -> Floats:
    """Distances (N,) of counts (N, letters**k), as squared z-scores; infinite without a complete word.

    The mean over words of (f - mean)^2 / (spread + mean (1 - mean) / n): short ones vary by sampling, too.
    """
    n = counts.sum(axis=1, keepdims=True)
    n_safe = np.maximum(n, 1)
    variance = np.maximum(table.spread + table.mean * (1 - table.mean) / n_safe, _MIN_VARIANCE)
    squared = ((counts / n_safe - table.mean) ** 2 / variance).mean(axis=1)
    return np.where(n[:, 0] > 0, squared, np.inf)


# --- A Markov chain


def fit_chain(
    stack: CodeStack, labels: np.ndarray, alphabet: Alphabet, quantile: float
) -> MarkovChain | None:
    """Fit the chain; None for fewer than 50 sequences, or than 4 k-mers a parameter.

    What it says of new sequences is by cross-validation in five folds of relatives.
    """
    letters, total = len(alphabet.letters), int(stack.lengths.sum())
    orders = [m for m in range(1, MAX_CHAIN_ORDER + 1) if 4 * letters ** (m + 1) <= total]
    if len(stack) < MIN_SEQUENCES or not orders:
        return None
    order = orders[-1]
    # Finding relatives costs memory: as many sequences, at random, as make `MAX_LETTERS`.
    drawn = np.random.default_rng(_SEED).permutation(len(stack))
    count = int(np.searchsorted(np.cumsum(stack.lengths[drawn]), MAX_LETTERS, side="right"))
    rows = np.sort(drawn[: max(count, min(MIN_SEQUENCES, len(stack)))])
    sums, squares, n = _cross_fitted(_select(stack, rows), order, alphabet)
    judged = n > 0
    if not judged.any():
        return None
    sums, squares, n, labels = sums[judged], squares[judged], n[judged], labels[rows][judged]
    level = sums / n
    mean = float(sums.sum() / n.sum())
    within = float((squares - n * level**2).sum() / n.sum())
    spread = max(float(np.mean((level - mean) ** 2) - within * np.mean(1 / n)), 0.0)
    limit = _widest_limit(_distances(sums, n, mean, spread, within), labels, quantile)
    log_p = _fit_log_p(stack, order, letters).astype(np.int64)
    return MarkovChain(
        round_number(limit), log_p, round_number(mean), order, round_number(spread), round_number(within)
    )


def chain_distances(chain: MarkovChain, stack: CodeStack, letters: int) -> Floats:
    """Distances (N,) by k-mers of ``order + 1`` letters, as squared z-scores; 0 without any.

    (mean - L) / sqrt(spread + within / n); L is the mean of ln p(letter | the ``order`` ones before).
    """
    sums, _, n = _chain_sums(stack, chain.log_p, chain.order, letters)
    return _distances(sums, n, chain.mean, chain.spread, chain.within)


def _distances(sums: Floats, n: Floats, mean: float, spread: float, within: float) -> Floats:
    n_safe = np.maximum(n, 1)
    deviation = np.sqrt(np.maximum(spread + within / n_safe, 1e-12))
    return np.where(n > 0, (mean - sums / n_safe) / deviation, 0.0)


def _fit_log_p(stack: CodeStack, order: int, letters: int) -> np.ndarray:
    """Fit a chain: ln p in hundredths, (letters**(order + 1),); orders lean on lower ones by `BACK_OFF`."""
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


def _cross_fitted(stack: CodeStack, order: int, alphabet: Alphabet) -> tuple[Floats, Floats, Floats]:
    """`_chain_sums` of the sequences, each under a chain that saw none of its relatives."""
    letters = len(alphabet.letters)
    fold = _related_folds(stack, alphabet)
    sums, squares, n = (np.zeros(len(stack)) for _ in range(3))
    for number in np.unique(fold):
        out = fold == number
        log_p = _fit_log_p(_select(stack, np.flatnonzero(~out)), order, letters)
        sums[out], squares[out], n[out] = _chain_sums(
            _select(stack, np.flatnonzero(out)), log_p, order, letters
        )
    return sums, squares, n


def _related_folds(stack: CodeStack, alphabet: Alphabet) -> np.ndarray:
    """Random folds (N,) of sequences; those that share a long k-mer go to the same one."""
    from seqray.homology.kmers import kmer_groups

    ends = np.cumsum(stack.lengths)
    texts = [alphabet.decode(stack.codes[e - n : e]) for e, n in zip(ends, stack.lengths, strict=True)]
    groups = kmer_groups(texts, RELATED_WORD, alphabet=alphabet)
    if groups.max() + 1 < _FOLDS:  # all of them are relatives
        groups = np.arange(len(stack))
    rng = np.random.default_rng(_SEED)
    return (rng.permutation(groups.max() + 1) % _FOLDS)[groups]
