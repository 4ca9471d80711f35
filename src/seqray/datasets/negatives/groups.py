"""Groups that a split keeps whole: a positive and what was made from it, and neighbours on the genome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqray.core import Alphabet
from seqray.homology import kmer_groups, position_groups

SHARED_WORD = 40


@dataclass(frozen=True, slots=True)
class Member:
    """One example, with all that ties it to others.

    Attributes
    ----------
    sequence
        Its letters.
    given
        The group that the user's table names.
    parent
        Number of the example that it was made from.
    contig, position
        Where it lies, if known.
    """

    sequence: str
    given: str | None = None
    parent: int | None = None
    contig: str | None = None
    position: int = 0


def assign_groups(members: Sequence[Member], block: int, alphabet: Alphabet) -> list[str]:
    """Name the group of each example.

    An example is tied to the one that it was made from. One without a given group is tied to those in its
    block of the genome, to windows that overlap it, and to those that share a word of 40 letters with it on
    either strand.

    Parameters
    ----------
    members
        N examples; a ``parent`` is the number of another.
    block
        Letters of the genome that stay together.
    alphabet
        Of the sequences.

    Returns
    -------
    list of str
        The given name where there is one, else ``g1``, ``g2`` .. in order of appearance.
    """
    rows = [i for i, member in enumerate(members) if member.given is None]
    words = kmer_groups([members[i].sequence for i in rows], SHARED_WORD, alphabet=alphabet)
    edges = _chain(rows, words.tolist())
    placed = [i for i in rows if members[i].contig is not None]
    if placed:
        longest = max(len(members[i].sequence) for i in placed)
        contigs = [members[i].contig or "" for i in placed]
        blocks = position_groups(contigs, [members[i].position for i in placed], block, longest)
        edges += _chain(placed, blocks.tolist())
    edges += [(i, member.parent) for i, member in enumerate(members) if member.parent is not None]
    return _names(members, _components(len(members), edges))


def _chain(rows: Sequence[int], groups: Sequence[int]) -> list[tuple[int, int]]:
    """Tie each row to the row before it in its group."""
    last: dict[int, int] = {}
    edges = []
    for row, group in zip(rows, groups, strict=True):
        if group in last:
            edges.append((last[group], row))
        last[group] = row
    return edges


def _components(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    table = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(table), dtype=np.int8), (table[:, 0], table[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1].tolist()


def _names(members: Sequence[Member], components: Sequence[int]) -> list[str]:
    """Name components after their given group, or by numbers that no given group bears."""
    names = {c: m.given for c, m in zip(components, members, strict=True) if m.given is not None}
    used = {member.given for member in members}
    number = 0
    for component in components:
        if component in names:
            continue
        number += 1
        while f"g{number}" in used:
            number += 1
        names[component] = f"g{number}"
    return [m.given or names[c] for c, m in zip(components, members, strict=True)]
