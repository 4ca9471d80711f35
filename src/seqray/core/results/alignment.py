"""Explanations of alignments: scores of columns, rows and pairs of columns, in the file's coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import Floats, Ints
from seqray.core.records import Alignment


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentScores:
    """Scores by one method of the R' rows and C' columns that a model has read.

    Attributes
    ----------
    method, signed
        Its name, and whether a score below 0 speaks against the class; if not, scores sum to 1.
    columns, rows
        (C',) and (R',) scores; nan if a row has none, as the query has under occlusion.
    grid
        (R', C') score of each cell; None if the method has none.
    """

    method: str
    signed: bool
    columns: Floats
    rows: Floats
    grid: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentExplanation:
    """Scores of one alignment by all methods.

    Attributes
    ----------
    record, alignment
        Number in the input, from 0 (ids may repeat), and the alignment in the file: R rows, C columns.
    label, target
        The class called, and the class explained. Rollout is the same for every class.
    probabilities, probability
        Calibrated probability of each class, in the order of the card, and that of ``target``.
    rows, columns
        (R',) and (C',) 0-based indices, ascending, of what the model has read; row 0 is the query.
    scores
        By method, in the order requested.
    pairs
        (C', C') symmetric score of each pair of columns, see `seqray.core.msa.pairs_from_maps`; the mean
        over the members. None if not computed.
    """

    record: int
    alignment: Alignment
    label: str
    target: str
    probabilities: tuple[float, ...]
    probability: float
    rows: Ints
    columns: Ints
    scores: tuple[AlignmentScores, ...]
    pairs: Floats | None = None

    @property
    def id(self) -> str:
        """Of the alignment."""
        return self.alignment.id

    def by_column(self, scores: AlignmentScores) -> Floats:
        """Score of every column of the file: (C,), nan if it wasn't read."""
        return _spread(scores.columns, self.columns, self.alignment.columns)

    def by_row(self, scores: AlignmentScores) -> Floats:
        """Score of every row of the file: (R,), nan if it has none."""
        return _spread(scores.rows, self.rows, self.alignment.rows)


def _spread(values: Floats, places: Ints, size: int) -> Floats:
    result = np.full(size, np.nan)
    result[places] = values
    return result


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """Two columns of an alignment that go together.

    Attributes
    ----------
    left, right
        0-based columns of the file, the left one first.
    score
        From the maps of row attention.
    covariation
        Score of the baseline, see `seqray.core.msa.column_covariation`.
    helix
        Probability that they pair in a helix of the rows, see `seqray.models.helices`; None for proteins.
    paired
        Whether the consensus structure pairs them; None if there is none.
    """

    left: int
    right: int
    score: float
    covariation: float
    helix: float | None
    paired: bool | None
