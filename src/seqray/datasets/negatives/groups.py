"""Groups that a split keeps whole: a positive and the negatives made from it, and neighbors on the genome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet, Ints
from seqray.homology import kmer_groups, merge_groups, position_groups

SHARED_WORD = 40


@dataclass(frozen=True, slots=True)
class Member:
    """An example and what relates it to others.

    Attributes
    ----------
    sequence, given
        Its letters, and the group in the user's table.
    parent
        Number of the example that it was made from.
    contig, position
        Its position on the genome, if known.
    """

    sequence: str
    given: str | None = None
    parent: int | None = None
    contig: str | None = None
    position: int = 0


def assign_groups(members: Sequence[Member], block: int, alphabet: Alphabet) -> list[str]:
    """Name the group of each example.

    An example is grouped with the one that it was made from. One without a given group is also grouped with
    those in its block of the genome, with windows that overlap it, and with those that share a k-mer of 40
    letters with it on either strand.

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
        The given name if there is one, else ``g1``, ``g2`` .. in order of appearance.
    """
    families = np.array([i if m.parent is None else m.parent for i, m in enumerate(members)], dtype=np.int64)
    kmers, blocks = (np.full(len(members), -1, dtype=np.int64) for _ in range(2))
    rows = [i for i, member in enumerate(members) if member.given is None]
    kmers[rows] = kmer_groups([members[i].sequence for i in rows], SHARED_WORD, alphabet=alphabet)
    placed = [i for i in rows if members[i].contig is not None]
    if placed:
        longest = max(len(members[i].sequence) for i in placed)
        contigs = [members[i].contig or "" for i in placed]
        blocks[placed] = position_groups(contigs, [members[i].position for i in placed], block, longest)
    return _names(members, merge_groups(families, kmers, blocks))


def _names(members: Sequence[Member], groups: Ints) -> list[str]:
    """Name groups after their given name, or by numbers that no given name uses."""
    numbers = groups.tolist()
    names = {g: m.given for g, m in zip(numbers, members, strict=True) if m.given is not None}
    used = {member.given for member in members}
    free = (name for n in range(1, 2 * len(members) + 2) if (name := f"g{n}") not in used)
    for group in numbers:
        if group not in names:
            names[group] = next(free)
    return [m.given or names[g] for g, m in zip(numbers, members, strict=True)]
