"""The proof of a split: how similar the held-out sequences are to the training sequences, by alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Floats, Ints
from seqray.core.errors import OnProgress
from seqray.homology.kmers import kmer_table
from seqray.homology.options import RelationOptions
from seqray.homology.similarity import best_matches

QUANTILES = (0.5, 0.9, 0.99)
_TOLERANCE = 1e-9  # an identity is a fraction of whole letters; rounding must not move it across a threshold


class Sides(NamedTuple):
    """The two sides of a boundary.

    Attributes
    ----------
    name
        Of the side that is held out, such as ``test`` or ``fold 3``.
    against
        Name of the other side.
    rows, others : int64 (M,), (N,)
        Examples on either side, as rows of the data.
    """

    name: str
    against: str
    rows: Ints
    others: Ints


@dataclass(frozen=True)
class Boundary:
    """Held-out sequences and the most similar ones on the other side.

    Attributes
    ----------
    name, against, rows, others
        See `Sides`.
    identity : float64 (M,)
        Best identity of each held-out sequence.
    nearest : int64 (M,)
        Row of the sequence it was found with; -1 for none.
    word
        Letters of the k-mer that must not be shared; 0 if that was not examined.
    shared : bool (M,)
        Whether such a k-mer is shared.
    """

    name: str
    against: str
    rows: Ints
    others: Ints
    identity: Floats
    nearest: Ints
    word: int
    shared: Bools


@dataclass(frozen=True)
class ProofLine:
    """Summary of one boundary and class (``all`` for the classes together)."""

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
    sides: Sides,
    sequences: Sequence[str],
    alphabet: Alphabet,
    relation: RelationOptions,
    *,
    candidates: int = 5,
    on_progress: OnProgress | None = None,
) -> Boundary:
    """Align each held-out sequence with its best match on the other side; see `seqray.homology.best_matches`.

    ``candidates`` sequences of the other side are aligned with each one. ``on_progress`` is called after each
    distinct sequence held out.
    """
    _, _, rows, others = sides
    both_strands, word = relation.both_strands, relation.word
    held, rest = [sequences[int(i)] for i in rows], [sequences[int(i)] for i in others]
    identity, index = best_matches(
        rest, held, alphabet, both_strands=both_strands, candidates=candidates, on_progress=on_progress
    )
    nearest = np.where(index >= 0, others[index], -1) if len(others) else index
    shared = np.zeros(len(rows), dtype=bool)
    if word and len(rows) and len(others):
        table, n = kmer_table([*held, *rest], word, alphabet, both_strands=both_strands), len(held)
        shared = table.sharing_across(np.arange(n), np.arange(n, n + len(rest)))
    return Boundary(*sides, identity, nearest, word, shared)


def remeasure(
    old: Boundary, sides: Sides, sequences: Sequence[str], alphabet: Alphabet, relation: RelationOptions
) -> Boundary:
    """Measure a boundary again after a few sequences changed sides; only what changed is aligned."""
    _, _, rows, others = sides
    place = np.full(len(sequences), -1)
    place[old.rows] = np.arange(len(old.rows))
    known = place[rows] >= 0
    taken = place[rows[known]]  # their nearest sequence must still be on the other side
    known[known] = np.isin(old.nearest[taken], others) & ~old.shared[taken]
    identity, nearest = np.zeros(len(rows)), np.full(len(rows), -1, dtype=np.int64)
    shared = np.zeros(len(rows), dtype=bool)
    taken = place[rows[known]]
    identity[known], nearest[known] = old.identity[taken], old.nearest[taken]
    # Against the few that came over, two candidates are enough to find a relative.
    for asked, side, candidates in ((~known, others, 5), (known, np.setdiff1d(others, old.others), 2)):
        some = sides._replace(rows=rows[asked], others=side)
        part = measure_boundary(some, sequences, alphabet, relation, candidates=candidates)
        better = part.identity > identity[asked]
        identity[asked] = np.where(better, part.identity, identity[asked])
        nearest[asked] = np.where(better, part.nearest, nearest[asked])
        shared[asked] |= part.shared
    return Boundary(*sides, identity, nearest, old.word, shared)


def proof_lines(boundary: Boundary, labels: Sequence[str], threshold: float) -> list[ProofLine]:
    """Summarize a boundary: all classes together, then each of its classes, by name.

    Parameters
    ----------
    boundary
        As measured.
    labels
        (N,) class of each row of the data.
    threshold
        Identity that no pair should reach.
    """
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
        int((identity >= threshold - _TOLERANCE).sum()),
        tuple(float(q) for q in quantiles),
        float(identity[top]) if top >= 0 else float("nan"),
        int(rows[top]) if top >= 0 else -1,
        int(boundary.nearest[chosen][top]) if top >= 0 else -1,
    )


def leaking_pairs(boundary: Boundary, threshold: float) -> tuple[Ints, Ints]:
    """Pairs of rows across the boundary at or above the threshold: held-out one, nearest one."""
    over = (boundary.identity >= threshold - _TOLERANCE) & (boundary.nearest >= 0)
    return boundary.rows[over], boundary.nearest[over]
