"""Pairs of columns by the maps of row attention, beside covariation, helices and the consensus structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from seqray.core.alignment import base_pairs, covariation, row_weights
from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats
from seqray.core.errors import ConfigError
from seqray.core.explanation import AlignmentExplanation, ColumnPair
from seqray.core.records import Alignment
from seqray.models.alignment import pair_probabilities
from seqray.models.tokenizers import FIRST_LETTER, AlignmentTokenizer

SEPARATION = 4
Ranking = Literal["attention", "covariation", "helix"]
Structure = frozenset[tuple[int, int]]
"""0-based columns that pair, the left one first."""


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """All pairs of the C' columns that were read.

    Attributes
    ----------
    best
        Pairs that are far enough apart, those that rank highest first.
    covariation
        (C', C') scores of the baseline, of all rows of the file.
    helices
        (C', C') probabilities of base pairs, of all rows of the file; None for proteins.
    structure
        0-based columns of the file that the consensus structure pairs; None where there is none.
    separation
        Least distance of two columns of a pair, in columns of the file.
    """

    best: tuple[ColumnPair, ...]
    covariation: Floats
    helices: Floats | None
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
    by: Ranking = "attention",
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
    by
        What ranks them; pairs that helices give no probability are left out of that ranking.

    Raises
    ------
    ConfigError
        For helices of proteins.

    Notes
    -----
    Of tied pairs the one further left comes first. The baseline weights rows by how many are nearly the same,
    which takes time with the square of their number.
    """
    e, alphabet = explanation, explanation.alignment.alphabet
    if e.pairs is None:
        raise ValueError("the alignment was explained without pairs")
    if by not in get_args(Ranking):
        raise ValueError(f"by={by!r} is not one of {', '.join(get_args(Ranking))}")
    codes = e.alignment.codes[:, e.columns]
    baseline = covariation(codes, len(alphabet.letters), row_weights(codes, alphabet.unknown + 1))
    paired = helices(codes, alphabet)
    ranking = {"attention": e.pairs, "covariation": baseline, "helix": paired}[by]
    if ranking is None:
        raise ConfigError("helices require RNA or DNA", remedy="rank the pairs by attention or covariation")
    left, right = np.triu_indices(len(e.columns), k=1)
    apart = e.columns[right] - e.columns[left] >= separation
    left, right = left[apart], right[apart]
    most = len(e.columns) if count is None else count
    if by == "helix":
        known = ranking[left, right] > 0
        left, right = left[known], right[known]
    order = np.argsort(-ranking[left, right], kind="stable")[:most]
    best = []
    for i, j in zip(left[order].tolist(), right[order].tolist(), strict=True):
        place = (int(e.columns[i]), int(e.columns[j]))
        helix = None if paired is None else float(paired[i, j])
        paired_in_structure = None if structure is None else place in structure
        best.append(
            ColumnPair(*place, float(e.pairs[i, j]), float(baseline[i, j]), helix, paired_in_structure)
        )
    return PairTable(tuple(best), baseline, paired, structure, separation)


def helices(codes: Codes, alphabet: Alphabet) -> Floats | None:
    """Probability that two columns of codes (R, C) pair in a helix, (C, C); None for proteins."""
    if not alphabet.is_nucleotide:
        return None
    tokens = torch.from_numpy(AlignmentTokenizer(alphabet).encode(codes))[None, :, 1:]  # without CLS
    return pair_probabilities(tokens - FIRST_LETTER)[0].double().numpy()
