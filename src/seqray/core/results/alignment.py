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
    method
        Its name, for example ``rollout``.
    signed
        Whether a score below 0 speaks against the class; if not, scores are shares that sum to 1.
    columns
        (C',) score of each column.
    rows
        (R',) score of each row; nan if a row has none, as the query has under occlusion.
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
    record
        Number of the alignment in the input, from 0; identifiers may repeat.
    alignment
        As in the file: R rows, C columns.
    label
        The class called.
    target
        The class explained. Rollout is the same for every class.
    probabilities
        Calibrated probability of each class, in the order of the card.
    probability
        That of ``target``.
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
