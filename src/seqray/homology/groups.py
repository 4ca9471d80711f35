"""Group numbers of examples: by name, by position on a genome, and merged from several kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqray.core import InputError, Ints, LabeledSequence, number_by_appearance

_POSITION_ID = re.compile(r"(?P<contig>.+?):(?P<position>\d+)(?:-\d+)?(?::?\(?[+-]\)?)?(?::.*)?")


def connected_groups(n: int, left: Ints, right: Ints) -> Ints:
    """Connected components of n items: group numbers int64 (n,), from 0 in order of first appearance."""
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n))
    return number_by_appearance(connected_components(graph, directed=False)[1])


def merge_groups(*groupings: np.ndarray) -> Ints:
    """Join groups of several kinds: what is together in one of them is together: int64 (N,).

    Parameters
    ----------
    groupings
        (N,) group numbers of the same examples; at least one. Negative numbers mean no group.
    """
    n = len(groupings[0])
    left, right, size = [], [], n
    for grouping in groupings:
        rows = np.flatnonzero(np.asarray(grouping) >= 0)
        _, place = np.unique(np.asarray(grouping)[rows], return_inverse=True)
        left.append(rows)
        right.append(size + place)
        size += int(place.max(initial=-1)) + 1
    return connected_groups(size, np.concatenate(left), np.concatenate(right))[:n]


def position_groups(
    contigs: Sequence[str], positions: Sequence[int] | np.ndarray, block: int, min_gap: int = 0
) -> Ints:
    """Group sites by blocks of a genome.

    Parameters
    ----------
    contigs, positions
        (N,) where each site lies; 0-based.
    block
        Length of a block in letters.
    min_gap
        Neighbors closer than this stay together even across a block border, so that overlapping windows are
        never split: give the window's length.

    Returns
    -------
    int64 (N,)
        Group numbers in order of contig and position.
    """
    if block < 1:
        raise InputError(f"a block of {block} letters", remedy="give 1 or more")
    _, contig = np.unique(np.asarray(contigs), return_inverse=True)
    position = np.asarray(positions, dtype=np.int64)
    if contig.shape != position.shape:
        raise InputError(f"{len(contig)} contigs but {len(position)} positions")
    order = np.lexsort((position, contig))
    c, p = contig[order], position[order]
    crosses = (p[1:] // block != p[:-1] // block) & (p[1:] - p[:-1] >= min_gap)
    fresh = np.concatenate(([0], np.cumsum((c[1:] != c[:-1]) | crosses)))[: len(p)]
    groups = np.empty(len(p), dtype=np.int64)
    groups[order] = fresh
    return groups


def named_groups(names: Sequence[str | None]) -> Ints:
    """Number names: int64 (N,), -1 where there is none (None or empty)."""
    named = np.array([bool(name) for name in names], dtype=bool)
    groups = np.full(len(names), -1, dtype=np.int64)
    groups[named] = number_by_appearance(name for name in names if name)
    return groups


def positions_from_ids(examples: Sequence[LabeledSequence]) -> tuple[list[str], Ints]:
    """Read contig and position from ids such as ``chr1:1234``, ``chr1:1234:+`` or ``chr1:1234-1315(-)``.

    Raises an InputError for an id of another form.
    """
    found = []
    for example in examples:
        match = _POSITION_ID.fullmatch(example.id)
        if match is None:
            raise InputError(
                "the id is not a position such as chr1:1234:+",
                where=example.where,
                remedy="name the columns instead: --positions contig,position",
            )
        found.append(match)
    return [match["contig"] for match in found], np.array([int(m["position"]) for m in found], dtype=np.int64)


def positions_from_column(examples: Sequence[LabeledSequence], texts: Sequence[str], column: str) -> Ints:
    """Read whole numbers: int64 (N,); ``texts`` are the cells of the examples.

    Raises an InputError for a cell that is not a whole number.
    """
    for example, text in zip(examples, texts, strict=True):
        if not (text.isascii() and text.isdigit()):
            what = f"'{text}' in column '{column}' is not a position"
            raise InputError(what, where=example.where, remedy="give a whole number")
    return np.array([int(text) for text in texts], dtype=np.int64)
