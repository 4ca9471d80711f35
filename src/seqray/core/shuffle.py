"""Shuffle a sequence so that every dinucleotide occurs exactly as often as before.

A sequence is a walk through a graph whose nodes are letters and whose edges are its dinucleotides. Another
Eulerian walk over the same edges is a sequence with the same dinucleotides, and drawing one uniformly is a
uniform shuffle: S. F. Altschul and B. W. Erickson (1985), Mol. Biol. Evol. 2:526-538.
"""

from __future__ import annotations

import numpy as np

from seqray.core.arrays import Codes


def dinucleotide_shuffle(codes: Codes, rng: np.random.Generator) -> Codes:
    """Draw a sequence uniformly from all that have the same dinucleotide counts and the same first letter.

    The last letter then is the same, too. Unknown letters are letters like any other. Raises `ValueError` for
    an array of another shape.

    Parameters
    ----------
    codes
        Letter codes, shape (n,).
    rng
        Source of randomness; the same state gives the same shuffle.

    Returns
    -------
    array of uint8, shape (n,)
        A new array.
    """
    if codes.ndim != 1:
        raise ValueError(f"codes have shape {codes.shape}, not (n,)")
    if len(codes) < 4:  # no other sequence has the same dinucleotides
        return codes.copy()
    successors = _successors(codes)
    last = _draw_last_edges(successors, int(codes[-1]), rng)
    shuffled = [_shuffle_edges(edges, last.get(letter), rng) for letter, edges in enumerate(successors)]
    return _walk(shuffled, int(codes[0]), len(codes))


def _successors(codes: Codes) -> list[Codes]:
    """For each letter, the letters that follow it, in order of occurrence."""
    order = np.argsort(codes[:-1], kind="stable")  # radix sort on bytes
    counts = np.bincount(codes[:-1], minlength=int(codes.max()) + 1)
    return np.split(codes[1:][order], np.cumsum(counts)[:-1])


def _draw_last_edges(successors: list[Codes], end: int, rng: np.random.Generator) -> dict[int, int]:
    """The letter that follows the last occurrence of each letter but ``end``: a random tree that leads to it.

    An Eulerian walk exists for exactly those choices that form a tree towards the end. Altschul and Erickson
    redraw all choices until they do; the walk of Wilson's algorithm (1996) draws from the same
    distribution, a tree in proportion to the product of its edge counts, and never starts over.
    """
    tree: dict[int, int] = {}
    reached = {end}
    for start, edges in enumerate(successors):
        letter = start if len(edges) else end
        while letter not in reached:
            tree[letter] = int(rng.choice(successors[letter]))  # a later visit overwrites: loops are erased
            letter = tree[letter]
        letter = start if len(edges) else end
        while letter not in reached:
            reached.add(letter)
            letter = tree[letter]
    return tree


def _shuffle_edges(edges: Codes, last: int | None, rng: np.random.Generator) -> list[int]:
    """Edges in reverse order of use, so that ``pop`` takes the next one; an edge to ``last`` is used last."""
    if last is None:
        return rng.permutation(edges).tolist()
    rest = np.delete(edges, np.flatnonzero(edges == last)[0])
    return [last, *rng.permutation(rest).tolist()]


def _walk(successors: list[list[int]], start: int, length: int) -> Codes:
    walk = bytearray(length)
    walk[0] = letter = start
    take = [edges.pop for edges in successors]
    for i in range(1, length):  # each step depends on the one before: a loop of 50 ns a letter
        walk[i] = letter = take[letter]()
    return np.frombuffer(walk, dtype=np.uint8)
