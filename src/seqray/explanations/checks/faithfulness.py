"""Faithfulness of a ranking: replace letters in its order and measure the log-odds.

Deletion: letters of a shuffled copy of the record replace the letters ranked first, and the log-odds of the
explained class should fall faster than in random order. Insertion: the shuffled copy gets the record's
letters back, and the log-odds should rise faster (Samek et al. 2017; Petsiuk et al. 2018). The shuffled
copies keep the record's dinucleotides, so that what is replaced looks like sequence.

Further measures: agreement with in-silico mutagenesis and among methods, among the members of the model, and
with the same method on a network of random weights (Adebayo et al. 2018), which should be low.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from seqray.core import Codes, Floats, Ints
from seqray.explanations.attribution import generator_for, shuffled_copies
from seqray.explanations.ranks import mean_ranks

SHARES = np.array([0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0])
RANDOM_RANKINGS, REFERENCES = 5, 2
KINDS = ("deletion", "insertion")
Key = TypeVar("Key")
_REFERENCE_KEY, _RANDOM_KEY = 101, 102  # of the records' random draws, apart from those of the p-values
AT_ONCE = 1 << 22  # letters of changed sequences held at a time


def ranks_of(scores: Floats) -> Ints:
    """Rank of each letter, 0 for the highest score; ties in the order of the sequence: (..., n)."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    return np.argsort(order, axis=-1, kind="stable")


def rank_correlation(a: Floats, b: Floats) -> Floats:
    """Spearman correlation of each row: (N, n) and (N, n) to (N,); nan where a row is constant."""
    x, y = mean_ranks(a), mean_ranks(b)
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    spread = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    return np.where(spread > 0, (x * y).sum(axis=-1) / np.where(spread > 0, spread, 1), np.nan)


def curves(codes: Codes, ranks: Ints, score: Callable[[Codes], Floats]) -> dict[str, Floats]:
    """Log-odds while letters are replaced, and while they are put back, in the order of the ranks.

    Parameters
    ----------
    codes
        (N, n) letter codes.
    ranks
        (N, n), see `ranks_of`.
    score
        Codes (M, n) to log-odds (M,).

    Returns
    -------
    dict
        ``deletion`` and ``insertion``, (N, S) each, at `SHARES`; means over `REFERENCES` shuffled copies.
    """
    count, length = codes.shape
    limits = np.round(SHARES * length)  # letters replaced at each step
    first = ranks[:, None, :] < limits[:, None]  # (N, S, n)
    total = {kind: np.zeros((count, len(SHARES))) for kind in KINDS}
    references = np.stack([shuffled_copies(row, REFERENCES, _REFERENCE_KEY) for row in codes])  # (N, R, n)
    rows = max(1, AT_ONCE // (length * len(SHARES)))
    for start in range(0, count, rows):
        part = slice(start, start + rows)
        record, chosen = codes[part, None, :], first[part]
        for reference in range(REFERENCES):
            other = references[part, reference, None, :]
            for kind, changed in (("deletion", chosen), ("insertion", ~chosen)):
                sequences = np.where(changed, other, record)  # (rows, S, n)
                values = score(sequences.reshape(-1, length)).reshape(-1, len(SHARES))
                total[kind][part] += values / REFERENCES
    return total


def random_ranks(codes: Codes, draw: int) -> Ints:
    """Random ranks of each record's letters, or of each alignment's columns: (N, ..., n) to (N, n)."""
    return np.stack([generator_for(row, _RANDOM_KEY, draw).permutation(row.shape[-1]) for row in codes])


def areas(values: Floats) -> Floats:
    """Area under curves (N, S) over `SHARES`: (N,), in log-odds."""
    return np.asarray(np.trapezoid(values, SHARES, axis=-1))


@dataclass
class Evidence:
    """Measurements of each record, by method; arrays grow as groups of records are added.

    Attributes
    ----------
    curves
        (method, kind) to (N, S).
    agreement
        (method, measure, against) to (N,).
    """

    curves: dict[tuple[str, str], Floats] = field(default_factory=dict)
    agreement: dict[tuple[str, str, str], Floats] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Methods that curves were measured for, the random one left out."""
        return [method for method, kind in self.curves if kind == "deletion" and method != "random"]

    def add(
        self,
        codes: Codes,
        by_member: dict[str, Floats],
        by_chance: dict[str, Floats],
        curves_of: Callable[[Ints], dict[str, Floats]],
    ) -> None:
        """Measure the rankings of N records, each with n letters (or columns) to rank.

        Parameters
        ----------
        codes
            (N, n) letter codes, or (N, R, n) of alignments: what the random rankings belong to.
        by_member
            Method to scores (M, N, n) by each member; the reference method is among them.
        by_chance
            Method to scores (N, n) by networks of random weights.
        curves_of
            Ranks (N, n) to the curves (N, S) of each kind, see `curves`.
        """
        means = {method: scores.mean(axis=0) for method, scores in by_member.items()}
        for method, scores in means.items():
            self._add_curves(method, curves_of(ranks_of(scores)))
        chance = [curves_of(random_ranks(codes, draw)) for draw in range(RANDOM_RANKINGS)]
        self._add_curves("random", {kind: np.mean([c[kind] for c in chance], axis=0) for kind in KINDS})
        for method, scores in means.items():
            for other in means:
                if other != method:
                    values = rank_correlation(scores, means[other])
                    _append(self.agreement, (method, "rank_correlation", other), values)
            _append(self.agreement, (method, "stability", "members"), stability(by_member[method]))
            if method in by_chance:
                kept = rank_correlation(scores, by_chance[method])
                _append(self.agreement, (method, "randomised_weights", "random weights"), kept)

    def _add_curves(self, method: str, found: dict[str, Floats]) -> None:
        for kind, values in found.items():
            _append(self.curves, (method, kind), values)


def _append(figures: dict[Key, Floats], key: Key, values: Floats) -> None:
    figures[key] = np.concatenate([figures[key], values]) if key in figures else values


def stability(scores: Floats) -> Floats:
    """Mean rank correlation over the pairs of members: (M, N, n) to (N,); nan for a single member."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(i)]
    if not pairs:
        return np.full(scores.shape[1], np.nan)
    return np.mean([rank_correlation(scores[i], scores[j]) for i, j in pairs], axis=0)
