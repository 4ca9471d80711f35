"""Occlusion: how much the log-odds of a class fall when a stretch of the input is hidden.

- In sequences, letters are replaced by those of shuffled copies of the record, which keep its composition.
- In alignments, a hidden column holds the mask token in every row, with which training
  (``augment.mask``) and pre-training hide letters: the column keeps its place. A row that is left out is
  removed with the columns in which only it has letters, as in prediction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seqray.core import Alphabet, Codes, Floats, Ints
from seqray.explanations.attribution.shuffles import shuffled_copies
from seqray.explanations.attribution.targets import AlignmentTarget
from seqray.explanations.options import LETTER_BLOCK

AT_ONCE = 1 << 22  # letters of changed sequences held at a time
REFERENCES = 4


def occlusion(
    codes: Codes, alphabet: Alphabet, score: Callable[[Codes], Floats], *, block: int = LETTER_BLOCK
) -> Floats:
    """How much the score falls when shuffled letters replace a stretch.

    Stretches of ``block`` letters are half a block apart; each record is shuffled `REFERENCES` times. The
    result (N, n) is for each letter the mean fall over the stretches that hold it, 0 for an ambiguous letter.
    ``score`` is as in `substitution_effects`.
    """
    rows = [_occlude(row, score, min(block, len(row))) for row in codes]
    return np.where(codes < len(alphabet.letters), np.array(rows).reshape(codes.shape), 0.0)


def _occlude(codes: Codes, score: Callable[[Codes], Floats], block: int) -> Floats:
    starts, places = _stretches(len(codes), block), np.arange(block)
    falls = np.zeros(len(starts))
    before = float(score(codes[None])[0])
    at_once = max(1, AT_ONCE // len(codes))
    for shuffled in shuffled_copies(codes, REFERENCES):
        for first in range(0, len(starts), at_once):
            some = slice(first, first + at_once)
            changed = starts[some, None] + places  # (S, block)
            hidden = np.tile(codes, (len(changed), 1))
            np.put_along_axis(hidden, changed, shuffled[changed], axis=1)
            falls[some] += (before - score(hidden)) / REFERENCES
    return _mean_over_stretches(falls, starts, block)


def occlude_columns(target: AlignmentTarget, block: int = 1) -> Floats:
    """Fall of the log-odds when a column is hidden in all rows: (C,), below 0 where it rises.

    Stretches of ``block`` columns are hidden, half a block apart; the score of a column is the mean over the
    stretches that hold it.
    """
    columns = target.tokens.shape[1] - 1
    block = min(block, columns)
    starts = _stretches(columns, block)
    place = np.arange(columns)
    hidden = (place >= starts[:, None]) & (place < starts[:, None] + block)  # (S, C)
    before = target.of_hidden(np.zeros((1, columns), dtype=bool))
    return _mean_over_stretches(before - target.of_hidden(hidden), starts, block)


def leave_rows_out(target: AlignmentTarget) -> Floats:
    """Fall of the log-odds when a row is left out: (R,).

    nan for the query, which can't be left out, and for a row without which no letter remains.
    """
    rows = len(target.tokens)
    falls = np.full(rows, np.nan)
    letters = target.letters().sum(axis=1)
    out = np.flatnonzero((letters.sum() > letters) & (np.arange(rows) > 0))
    if len(out):
        every = np.ones((1, rows), dtype=bool)
        falls[out] = target.of_rows(every) - target.of_rows(~np.eye(rows, dtype=bool)[out])
    return falls


def _stretches(length: int, block: int) -> Ints:
    """Starts of stretches that cover every place."""
    last = length - block
    return np.unique(np.append(np.arange(0, last + 1, max(1, block // 2)), last))


def _mean_over_stretches(falls: Floats, starts: Ints, block: int) -> Floats:
    """Falls (S,) of the stretches to the mean at each place (n,)."""
    total, covered = np.zeros(starts[-1] + block), np.zeros(starts[-1] + block)
    for start, fall in zip(starts, falls, strict=True):
        total[start : start + block] += fall
        covered[start : start + block] += 1
    return total / covered
