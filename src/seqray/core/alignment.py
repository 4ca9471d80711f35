"""Rows and columns of alignments: what they hold, and which a model reads."""

from __future__ import annotations

from typing import Literal

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.errors import InputError
from seqray.core.records import Alignment

# --- Occupancy and conservation of the columns of an alignment, and whether it is one


def occupancy(codes: Codes, alphabet: Alphabet) -> Floats:
    """Share of the rows that have a letter, ambiguous ones counted: (R, C) to (C,)."""
    return (codes <= alphabet.unknown).mean(axis=0)


def letter_counts(codes: Codes, alphabet: Alphabet) -> Ints:
    """Count each of the A letters in each column of codes (R, C): (A, C). Ambiguous letters do not count."""
    return np.stack([(codes == letter).sum(axis=0) for letter in range(len(alphabet.letters))])


def conservation(codes: Codes, alphabet: Alphabet) -> Floats:
    """Conservation (C,) of the columns of codes (R, C): 1 - H / log A, with H the entropy of their letters.

    Gaps, missing data and ambiguous letters aren't counted; nan for a column without letters.
    """
    letters, counts = len(alphabet.letters), letter_counts(codes, alphabet).astype(np.float64)
    total = counts.sum(axis=0)
    shares = counts / np.maximum(total, 1)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=0)
    return np.where(total > 0, 1 - entropy / np.log(letters), np.nan)


_RELATED = 0.15  # of the way from chance to identity: what two rows of an alignment share at the least


def looks_unaligned(codes: Codes, alphabet: Alphabet) -> bool:
    """Whether rows (R, C) look like separate sequences of one length, as in a FASTA file that nobody aligned.

    No row has a gap, and two rows share hardly more letters of a column than two letters drawn from all.
    """
    rows = len(codes)
    if rows < 2 or (codes > alphabet.unknown).any():
        return False
    counts = letter_counts(codes, alphabet).astype(np.float64)
    shared = (counts * (counts - 1)).sum(axis=0).mean() / (rows * (rows - 1))
    by_chance = ((counts.sum(axis=1) / max(counts.sum(), 1)) ** 2).sum()
    return bool(shared - by_chance < _RELATED * (1 - by_chance))


# --- Which rows and columns of an alignment a model reads

Choice = Literal["diverse", "random"]


def choose_rows(codes: Codes, depth: int, choice: Choice = "diverse", seed: int = 0) -> Ints:
    """Choose the rows of codes (R, C) that a model reads, ascending; the query, row 0, is always among them.

    ``diverse`` adds the row whose mean distance, in columns that differ, to all rows chosen is the largest
    (Rao et al. 2021, "MSA Transformer", section 3.2), ``random`` any rows.
    """
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


def choose_columns(codes: Codes, letters: int, budget: int) -> Ints:
    """Choose the columns of codes (R, C) that a model reads, ascending: all, unless there are too many.

    Those without codes below ``letters`` go first, then those with the fewest, from the right of as many.
    """
    occupied = np.count_nonzero(codes < letters, axis=0)
    kept = np.flatnonzero(occupied)
    if len(kept) > budget:
        fullest = np.argsort(-occupied[kept], kind="stable")[:budget]
        kept = np.sort(kept[fullest])
    return kept.astype(np.int64)


def choose_cells(alignment: Alignment, depth: int, budget: int) -> tuple[Ints, Ints]:
    """Choose the rows that a model reads, then the columns with letters in these rows."""
    rows = choose_rows(alignment.codes, depth)
    columns = choose_columns(alignment.codes[rows], alignment.alphabet.unknown + 1, budget)
    if not len(columns):
        what = f"the rows that are read ({len(rows)} of {alignment.rows}) have no letters"
        remedy = "put a row with letters first, for it is always read, or remove the alignment"
        raise InputError(what, where=f"alignment '{alignment.id}'", remedy=remedy)
    return rows, columns


def omits_letters(alignment: Alignment, rows: Ints, columns: Ints) -> bool:
    """Whether these rows have letters in columns other than these."""
    omitted = np.delete(alignment.codes[rows], columns, axis=1)
    return bool(np.any(omitted <= alignment.alphabet.unknown))


def crop_alignment(alignment: Alignment, depth: int, budget: int) -> Alignment:
    """Crop an alignment to the rows and columns that a model reads."""
    rows, columns = choose_cells(alignment, depth, budget)
    cut = alignment.take_rows(rows)
    return cut if len(columns) == cut.columns else cut.take_columns(columns)
