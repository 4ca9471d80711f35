"""What is computed from letters alone: words, shuffles, composition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Codes

# --- k-mers of many sequences at once, as flat arrays, for all measures of composition


@dataclass(frozen=True, slots=True)
class CodeStack:
    """Many sequences laid end to end."""

    codes: np.ndarray  # uint8 (T,); Letter codes of all sequences, one after the other
    lengths: np.ndarray  # int64 (N,); Letters of each sequence; they sum to T

    def __len__(self) -> int:
        return len(self.lengths)


def stack_sequences(sequences: Sequence[str], alphabet: Alphabet) -> CodeStack:
    """Encode sequences and lay them end to end."""
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    return CodeStack(alphabet.encode("".join(sequences)), lengths)


def stack_codes(sequences: Sequence[np.ndarray] | np.ndarray) -> CodeStack:
    """Lay encoded sequences end to end: a list of (n,) arrays or one (N, W) matrix of uint8 codes."""
    if isinstance(sequences, np.ndarray):
        n, width = sequences.shape
        return CodeStack(np.ascontiguousarray(sequences).reshape(-1), np.full(n, width, dtype=np.int64))
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    codes = np.concatenate(sequences) if sequences else np.empty(0, dtype=np.uint8)
    return CodeStack(codes, lengths)


def kmer_starts(stack: CodeStack, k: int, letters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find all k-mers of known letters: first letter in the stack, sequence, and place there."""
    total = len(stack.codes)
    owner = np.repeat(np.arange(len(stack), dtype=np.int64), stack.lengths)
    begin = np.cumsum(stack.lengths) - stack.lengths
    position = np.arange(total, dtype=np.int64) - begin[owner]
    unknown_before = np.concatenate(([0], np.cumsum(stack.codes >= letters)))
    end = np.minimum(np.arange(total) + k, total)
    whole = (position + k <= stack.lengths[owner]) & (unknown_before[end] == unknown_before[:-1])
    start = np.flatnonzero(whole)
    return start, owner[start], position[start]


def kmer_indices(stack: CodeStack, start: np.ndarray, k: int, letters: int) -> np.ndarray:
    """Number k-mers that begin at ``start`` (M,), from 0 to letters**k - 1, first letter most significant."""
    index = np.zeros(len(start), dtype=np.int64)
    for offset in range(k):
        index = index * letters + stack.codes[start + offset]
    return index


def kmer_counts(stack: CodeStack, k: int, letters: int) -> np.ndarray:
    """Count the k-mers of each sequence: int64 (N, letters**k)."""
    start, owner, _ = kmer_starts(stack, k, letters)
    size = letters**k
    flat = owner * size + kmer_indices(stack, start, k, letters)
    return np.bincount(flat, minlength=len(stack) * size).reshape(len(stack), size)


# --- Shuffle a sequence so that every dinucleotide occurs exactly as often as before


def dinucleotide_shuffle(codes: Codes, rng: np.random.Generator) -> Codes:
    """Draw codes (n,) uniformly from all that have the same dinucleotide counts and the same first letter.

    The last letter then is the same, too. Unknown letters are letters like any other.
    """
    if len(codes) < 4:  # no other sequence has the same dinucleotides
        return codes.copy()
    order = np.argsort(codes[:-1], kind="stable")  # radix sort on bytes
    counts = np.bincount(codes[:-1], minlength=int(codes.max()) + 1)
    successors = np.split(codes[1:][order], np.cumsum(counts)[:-1])  # of each letter, as they occur
    last = _draw_last_edges(successors, int(codes[-1]), rng)
    shuffled = [_shuffle_edges(edges, last.get(letter), rng) for letter, edges in enumerate(successors)]
    return _walk(shuffled, int(codes[0]), len(codes))


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


# --- What a network counts in a sequence as its composition, see `ModelConfig.composition`

COMPOSITION_ENDS = (15, 30, 60)  # letters of the ends
COMPOSITION_GAPS = (1, 2, 3)  # from the first letter of a pair to the second
# Factors that make the features of each part vary by about 1 between proteins. Sampling alone makes the root
# of A p, for a share p of one of A letters in n, vary by √A / 2√n, so that whole sequences vary least.
WHOLE_FACTOR, END_FACTORS, PAIR_FACTOR = 5.0, (1.5, 1.9, 2.5), 1.6


def composition_size(letters: int, parts: Sequence[str]) -> int:
    """Number of features of an alphabet of so many letters."""
    sizes = {
        "whole": letters,
        "ends": 2 * len(COMPOSITION_ENDS) * letters,
        "pairs": len(COMPOSITION_GAPS) * letters**2,
    }
    return sum(sizes[part] for part in parts)
