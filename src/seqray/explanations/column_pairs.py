"""Pairs of columns by the maps of row attention, beside covariation and the consensus structure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.alignment_results import AlignmentExplanation, ColumnPair, Floats
from seqray.alignment_rows import row_weights
from seqray.covariation import base_pairs, covariation
from seqray.records import Alignment

SEPARATION = 4
Structure = frozenset[tuple[int, int]]
"""0-based columns that pair, the left one first."""


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """All pairs of the C' columns that were read.

    Attributes
    ----------
    best
        Pairs that are far enough apart, the highest score first.
    covariation
        (C', C') scores of the baseline, of all rows of the file.
    structure
        0-based columns of the file that the consensus structure pairs; None where there is none.
    separation
        Least distance of two columns of a pair, in columns of the file.
    """

    best: tuple[ColumnPair, ...]
    covariation: Floats
    structure: Structure | None
    separation: int


def structure_of(alignment: Alignment) -> Structure | None:
    """Columns that the consensus structure pairs; None without one.

    The structure of proteins is written in letters that pair nothing, so it gives None.

    Raises
    ------
    ValueError
        For a bracket without its partner.
    """
    if alignment.ss_cons is None or not alignment.alphabet.is_nucleotide:
        return None
    return frozenset((left, right) for left, right in base_pairs(alignment.ss_cons).tolist())


def pair_table(
    explanation: AlignmentExplanation,
    structure: Structure | None,
    count: int | None = None,
    separation: int = SEPARATION,
) -> PairTable:
    """Rank the pairs of an alignment that was explained with its pairs.

    Parameters
    ----------
    structure
        See `structure_of`.
    count
        Most pairs to keep; as many as columns were read if None.
    separation
        Least distance of two columns, in columns of the file.

    Notes
    -----
    Ties go to the pair that stands further left. The baseline weighs rows by how many are nearly the same, so
    it takes time with the square of their number.
    """
    e, alphabet = explanation, explanation.alignment.alphabet
    if e.pairs is None:
        raise ValueError("the alignment was explained without pairs")
    codes = e.alignment.codes[:, e.columns]
    baseline = covariation(codes, len(alphabet.letters), row_weights(codes, alphabet.unknown + 1))
    left, right = np.triu_indices(len(e.columns), k=1)
    apart = e.columns[right] - e.columns[left] >= separation
    left, right = left[apart], right[apart]
    most = len(e.columns) if count is None else count
    order = np.argsort(-e.pairs[left, right], kind="stable")[:most]
    best = []
    for i, j in zip(left[order].tolist(), right[order].tolist(), strict=True):
        place = (int(e.columns[i]), int(e.columns[j]))
        paired = None if structure is None else place in structure
        best.append(ColumnPair(*place, float(e.pairs[i, j]), float(baseline[i, j]), paired))
    return PairTable(tuple(best), baseline, structure, separation)
