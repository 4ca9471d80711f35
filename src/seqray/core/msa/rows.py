"""Which rows and columns of an alignment a model reads, and how much each row counts.

A network reads a bounded number of rows (its depth). The query, row 0, is always one of them; the others are
drawn at random or picked to differ as much as they can.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Codes, Ints
from seqray.core.errors import InputError
from seqray.core.records import Alignment

Choice = Literal["diverse", "random"]
_Words = npt.NDArray[np.uint64]
_Counts = npt.NDArray[np.uint32]

IDENTITY = 0.8
_ROUNDING = 1e-6  # 0.8 times a whole number may come out a little too high


def choose_rows(codes: Codes, depth: int, choice: Choice = "diverse", seed: int = 0) -> Ints:
    """Choose the rows that a model reads.

    Raises `ValueError` for a depth below 1, or an unknown choice.

    Parameters
    ----------
    codes
        (R, C) of the alignment; row 0 is the query.
    depth
        Most rows to choose.
    choice
        ``diverse``: from the query on, add the row whose mean distance to all rows chosen is the largest (the
        first of equals), where the distance is the number of columns that differ; so the same rows each time
        (Rao et al. 2021, "MSA Transformer", section 3.2). ``random``: any rows, all sets equally likely.
    seed
        Of the random choice. It starts anew for each alignment, so that none depends on its neighbors.

    Returns
    -------
    array of int64, shape (min(R, depth),)
        Ascending, so 0 comes first.
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}, which must be 1 (the query alone) or more")
    if choice not in get_args(Choice):
        raise ValueError(f"choice={choice!r} is none of {', '.join(get_args(Choice))}")
    rows = len(codes)
    if rows <= depth:
        return np.arange(rows)
    if choice == "random":
        others = np.random.default_rng(seed).choice(rows - 1, depth - 1, replace=False) + 1
    else:
        others = np.array(_most_different(codes, depth - 1), dtype=np.int64)
    return np.sort(np.append(others, 0).astype(np.int64))


def _most_different(codes: Codes, count: int) -> list[int]:
    distance = np.zeros(len(codes), dtype=np.int64)  # to all rows chosen so far, summed
    free = np.ones(len(codes), dtype=bool)
    free[0] = False
    chosen, last = [], 0
    for _ in range(count):
        distance += np.count_nonzero(codes != codes[last], axis=1)
        last = int(np.argmax(np.where(free, distance, -1)))
        free[last] = False
        chosen.append(last)
    return chosen


def row_weights(codes: Codes, letters: int) -> npt.NDArray[np.float64]:
    """One over the number of rows that are nearly the same, the row itself counted.

    Parameters
    ----------
    codes
        (R, C).
    letters
        Number of codes that are letters, the ambiguity letter included: ``alphabet.unknown + 1``. All above
        are gaps or missing data.

    Returns
    -------
    array of float64, shape (R,)
        Their sum is the effective number of rows.

    Notes
    -----
    Rows are nearly the same where at least the share `IDENTITY` of the columns in which either of them has a
    letter have the same letter in both. Columns of gaps thus don't increase the identity.

    Codes are compared 64 columns at a time, as bits; two rows cost C/8 operations or so. 10,000 rows of 300
    columns take seconds and some megabytes. A fragment is the same as another row only where the two cover
    nearly the same columns.
    """
    rows = len(codes)
    real = _words(codes < letters)  # (W, R)
    planes = [_words(codes >> bit & 1) for bit in range(int(codes.max()).bit_length())]
    alike = np.ones(rows, dtype=np.int64)  # each row is like itself
    for row in range(rows - 1):
        same, either = _shared(real, planes, row)
        near = same >= IDENTITY * either - _ROUNDING
        alike[row] += np.count_nonzero(near)
        alike[row + 1 :] += near
    return 1 / alike


def _shared(real: _Words, planes: list[_Words], row: int) -> tuple[_Counts, _Counts]:
    """Columns in which a row and each one below it have the same letter, and in which either has one."""
    same = np.zeros(real.shape[1] - row - 1, dtype=np.uint32)
    either = np.zeros_like(same)
    differs, scratch = np.empty((2, len(same)), dtype=np.uint64)
    for word, mine in enumerate(real):
        others = mine[row + 1 :]
        np.bitwise_xor(others, mine[row], out=differs)  # a letter against none
        for plane in planes:
            np.bitwise_xor(plane[word, row + 1 :], plane[word, row], out=scratch)
            np.bitwise_or(differs, scratch, out=differs)
        np.bitwise_or(others, mine[row], out=scratch)
        either += np.bitwise_count(scratch)
        np.bitwise_and(scratch, ~differs, out=scratch)
        same += np.bitwise_count(scratch)
    return same, either


def _words(bits: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    """(R, C) bits, 64 columns in a word: (W, R)."""
    rows, columns = bits.shape
    packed = np.zeros((rows, -(-columns // 64) * 8), dtype=np.uint8)
    packed[:, : -(-columns // 8)] = np.packbits(bits.astype(bool), axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def choose_columns(codes: Codes, letters: int, budget: int) -> Ints:
    """Choose the columns that a model reads: all of them unless there are too many.

    Parameters
    ----------
    codes
        (R, C).
    letters
        Number of codes that are letters, as in `row_weights`.
    budget
        Most columns.

    Returns
    -------
    array of int64
        Ascending. Columns without any letter are left out first; then those with the fewest letters, from the
        right where they have as many.
    """
    occupied = np.count_nonzero(codes < letters, axis=0)
    kept = np.flatnonzero(occupied)
    if len(kept) > budget:
        fullest = np.argsort(-occupied[kept], kind="stable")[:budget]
        kept = np.sort(kept[fullest])
    return kept.astype(np.int64)


def choose_cells(
    alignment: Alignment, depth: int, budget: int, choice: Choice = "diverse"
) -> tuple[Ints, Ints]:
    """Choose the rows that a model reads, then the columns with letters in these rows.

    Raises `InputError` if these rows have no letters.

    Parameters
    ----------
    alignment
        R rows, C columns.
    depth
        Largest number of rows.
    budget
        Largest number of columns.
    choice
        Method of choosing rows; see `choose_rows`.

    Returns
    -------
    rows, columns
        Indices in the alignment, ascending; see `choose_rows` and `choose_columns`.
    """
    rows = choose_rows(alignment.codes, depth, choice)
    columns = choose_columns(alignment.codes[rows], alignment.alphabet.unknown + 1, budget)
    if not len(columns):
        raise InputError(
            f"the rows that are read ({len(rows)} of {alignment.rows}) have no letters",
            where=f"alignment '{alignment.id}'",
            remedy="put a row with letters first, for it is always read, or remove the alignment",
        )
    return rows, columns


def omits_letters(alignment: Alignment, rows: Ints, columns: Ints) -> bool:
    """Whether these rows have letters in columns other than these.

    Parameters
    ----------
    alignment, rows, columns
        R rows and C columns, and the indices that `choose_cells` gave.
    """
    omitted = np.delete(alignment.codes[rows], columns, axis=1)
    return bool(np.any(omitted <= alignment.alphabet.unknown))


def crop_alignment(alignment: Alignment, depth: int, budget: int, choice: Choice = "diverse") -> Alignment:
    """Crop an alignment to the rows and columns that a model reads.

    Parameters
    ----------
    alignment, depth, budget, choice
        See `choose_cells`.
    """
    rows, columns = choose_cells(alignment, depth, budget, choice)
    cut = alignment.take_rows(rows)
    return cut if len(columns) == cut.columns else cut.take_columns(columns)
