"""The proof of a split: how like the held-out sequences are to those learned from, by alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet
from seqray.homology.similarity import best_matches
from seqray.homology.splits import shares_word

QUANTILES = (0.5, 0.9, 0.99)
_CHANCE = 1e-9  # an identity is a fraction of whole letters; rounding must not lift it over a threshold


@dataclass(frozen=True)
class Boundary:
    """Held-out sequences and what they resemble on the other side.

    Attributes
    ----------
    name
        Such as ``test`` or ``fold 3``.
    against
        Name of the other side.
    rows, others : int64 (M,), (N,)
        Examples on either side, as rows of the data.
    identity : float64 (M,)
        Best identity of each held-out sequence.
    nearest : int64 (M,)
        Row of the sequence it was found with; -1 for none.
    word
        Letters of the word that must not be shared; 0 where that was not looked at.
    shared : bool (M,)
        Whether such a word is shared.
    """

    name: str
    against: str
    rows: np.ndarray
    others: np.ndarray
    identity: np.ndarray
    nearest: np.ndarray
    word: int
    shared: np.ndarray


@dataclass(frozen=True)
class ProofLine:
    """Figures of one boundary and class (``all`` for the classes together)."""

    boundary: str
    against: str
    label: str
    sequences: int
    shared: int | None
    above: int
    quantiles: tuple[float, ...]
    highest: float
    row: int
    nearest: int


def measure_boundary(
    name: str,
    against: str,
    sequences: Sequence[str],
    rows: np.ndarray,
    others: np.ndarray,
    alphabet: Alphabet,
    *,
    word: int,
    both_strands: bool,
    candidates: int = 5,
) -> Boundary:
    """Align each held-out sequence with its likest on the other side; see `seqray.homology.best_matches`.

    Parameters
    ----------
    name, against
        Of the two sides.
    sequences
        All of them; ``rows`` and ``others`` are those held out and those on the other side.
    alphabet
        Of the sequences.
    word
        Letters of the word to look for as well; 0 for none.
    both_strands
        Whether the reverse complement counts too.
    candidates
        Sequences of the other side that each is aligned with.
    """
    held, rest = [sequences[int(i)] for i in rows], [sequences[int(i)] for i in others]
    identity, index = best_matches(rest, held, alphabet, both_strands=both_strands, candidates=candidates)
    nearest = np.where(index >= 0, others[index], -1) if len(others) else index
    shared = np.zeros(len(rows), dtype=bool)
    if word and len(rows) and len(others):
        shared = shares_word(rest, held, word, both_strands, alphabet)
    return Boundary(name, against, rows, others, identity, nearest, word, shared)


def remeasure(
    old: Boundary,
    sequences: Sequence[str],
    rows: np.ndarray,
    others: np.ndarray,
    alphabet: Alphabet,
    *,
    both_strands: bool,
) -> Boundary:
    """Measure a boundary of which a few sequences changed sides; the rest is taken from what was measured.

    Parameters
    ----------
    old
        As it was.
    sequences, rows, others, alphabet, both_strands
        As in `measure_boundary`.
    """
    place = np.full(len(sequences), -1)
    place[old.rows] = np.arange(len(old.rows))
    known = place[rows] >= 0
    taken = place[rows[known]]  # what their findings rest on must still be there
    known[known] = np.isin(old.nearest[taken], others) & ~old.shared[taken]
    identity, nearest = np.zeros(len(rows)), np.full(len(rows), -1, dtype=np.int64)
    shared = np.zeros(len(rows), dtype=bool)
    taken = place[rows[known]]
    identity[known], nearest[known] = old.identity[taken], old.nearest[taken]
    # Against the few that came over, two candidates are enough to find a relative.
    for asked, side, candidates in ((~known, others, 5), (known, np.setdiff1d(others, old.others), 2)):
        part = measure_boundary(
            old.name,
            old.against,
            sequences,
            rows[asked],
            side,
            alphabet,
            word=old.word,
            both_strands=both_strands,
            candidates=candidates,
        )
        better = part.identity > identity[asked]
        identity[asked] = np.where(better, part.identity, identity[asked])
        nearest[asked] = np.where(better, part.nearest, nearest[asked])
        shared[asked] |= part.shared
    return Boundary(old.name, old.against, rows, others, identity, nearest, old.word, shared)


def proof_lines(boundary: Boundary, labels: Sequence[str], threshold: float) -> list[ProofLine]:
    """Sum up a boundary: all classes together, then each that it holds, by name."""
    own = np.array([labels[int(i)] for i in boundary.rows])
    everything = np.ones(len(own), dtype=bool)
    return [
        _line(boundary, name, chosen, threshold)
        for name, chosen in [("all", everything), *((str(c), own == c) for c in np.unique(own))]
    ]


def _line(boundary: Boundary, label: str, chosen: np.ndarray, threshold: float) -> ProofLine:
    identity = boundary.identity[chosen]
    rows = boundary.rows[chosen]
    top = int(np.argmax(identity)) if len(identity) else -1
    quantiles = np.quantile(identity, QUANTILES) if len(identity) else np.full(len(QUANTILES), np.nan)
    return ProofLine(
        boundary.name,
        boundary.against,
        label,
        len(rows),
        int(boundary.shared[chosen].sum()) if boundary.word else None,
        int((identity >= threshold - _CHANCE).sum()),
        tuple(float(q) for q in quantiles),
        float(identity[top]) if top >= 0 else float("nan"),
        int(rows[top]) if top >= 0 else -1,
        int(boundary.nearest[chosen][top]) if top >= 0 else -1,
    )


def leaks(boundary: Boundary, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows across the boundary at or above the threshold: held-out one, nearest one."""
    over = (boundary.identity >= threshold - _CHANCE) & (boundary.nearest >= 0)
    return boundary.rows[over], boundary.nearest[over]
