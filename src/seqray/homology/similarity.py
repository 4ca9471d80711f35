"""How alike sequences are across two sets, and which of one set belong together.

Pairs are proposed by spaced words (`seqray.homology.seeds`) and measured by alignment
(`seqray.homology.alignment`); no pair counts as similar that was not aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import product

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqray.core import DNA, Alphabet, InputError, reverse_complement
from seqray.homology.alignment import identity_function, plain_letters
from seqray.homology.kmers import WordIndex
from seqray.homology.seeds import SeedPlan, make_plan
from seqray.homology.sketch import ShortWords
from seqray.homology.splits import number_by_appearance

_EXHAUSTIVE_CELLS = 2e7  # of alignment: a fraction of a second; smaller tasks need no words
_DISTANT = 0.6  # identity that the words of `best_matches` are chosen to find
_WORD_PAIRS = 2e7  # that may be looked at; see `seqray.homology.seeds.make_plan`
_VALUE_BITS = 20
_VALUE_STEPS = 2**_VALUE_BITS - 1
_PARTNERS = 50  # pairs that are aligned for each sequence, the ones with most words in common

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def best_matches(
    train: Sequence[str],
    test: Sequence[str],
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    candidates: int = 5,
) -> tuple[np.ndarray, np.ndarray]:
    """Find for each test sequence the training sequence that is most like it.

    Parameters
    ----------
    train, test
        Validated letters: N and M sequences.
    alphabet
        Of the sequences.
    both_strands
        Whether the reverse complement counts too; of no effect for protein.
    candidates
        Training sequences that are aligned with each test sequence: those that share most words with it.
        Where all pairs take less than a fraction of a second, all are aligned.

    Returns
    -------
    identity : float64 (M,)
        Identical letters in the best alignment, divided by the known letters of the shorter sequence;
        see `seqray.homology.alignment.identity_function`. 0 where nothing could be aligned. Of relatives
        (0.6 and above for windows of 81 letters of DNA) this is what all pairs would give, but for one in a
        hundred. Below, it is a lower bound: of 4000 unrelated windows the likest has an identity of 0.37 in
        the median, and the one found by words 0.15.
    index : int64 (M,)
        Its index in ``train``, the first of equals; -1 where nothing could be aligned.
    """
    both_strands = both_strands and alphabet.is_nucleotide
    unique = _distinct(plain_letters(train, alphabet), alphabet, both_strands)
    queries = _distinct(plain_letters(test, alphabet), alphabet, both_strands)
    targets = list(unique)
    best = _Best(targets, alphabet, both_strands)
    found = best.search(list(queries), candidates)
    identity = np.zeros(len(test))
    index = np.full(len(test), -1, dtype=np.int64)
    for rows, (value, target) in zip(queries.values(), found, strict=True):
        if target >= 0:
            identity[rows], index[rows] = value, unique[targets[target]][0]
    return identity, index


def _distinct(sequences: Sequence[str], alphabet: Alphabet, both_strands: bool) -> dict[str, list[int]]:
    """Rows of each different sequence, or of either strand of it, in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, sequence in enumerate(sequences):
        key = min(sequence, reverse_complement(sequence, alphabet)) if both_strands else sequence
        rows.setdefault(key, []).append(row)
    return rows


class _Best:
    """Search of distinct targets for the most similar one of each query."""

    def __init__(self, targets: list[str], alphabet: Alphabet, both_strands: bool) -> None:
        self._targets, self._alphabet, self._both = targets, alphabet, both_strands
        self._identity = identity_function(alphabet)

    def search(self, queries: list[str], candidates: int) -> list[tuple[float, int]]:
        """Identity and target of each query; (0, -1) where there is none."""
        unknown = self._alphabet.unknown_letter
        place = {key: row for row, key in enumerate(self._targets) if key.strip(unknown)}
        found = [(1.0, place[query]) if query in place else (0.0, -1) for query in queries]
        rest = [row for row, query in enumerate(queries) if query not in place]  # those without a copy
        answers = self._align([queries[row] for row in rest], candidates)
        for row, answer in zip(rest, answers, strict=True):
            found[row] = answer
        return found

    def _align(self, queries: list[str], candidates: int) -> Iterator[tuple[float, int]]:
        cells = float(sum(map(len, queries))) * sum(map(len, self._targets)) * (1 + self._both)
        if cells <= _EXHAUSTIVE_CELLS or len(self._targets) <= candidates:
            everything = list(product(range(len(self._targets)), self._strands))
            for query in queries:
                yield self._best_of(query, everything)
            return
        proposed = self._propose(queries, candidates)
        for query, pairs in zip(queries, proposed, strict=True):
            yield self._best_of(query, sorted(pairs))

    @property
    def _strands(self) -> tuple[bool, ...]:
        return (False, True) if self._both else (False,)

    def _best_of(self, query: str, pairs: Sequence[tuple[int, bool]]) -> tuple[float, int]:
        other = reverse_complement(query, self._alphabet) if self._both else ""
        best, found = 0.0, -1
        for target, turned in pairs:
            value = self._identity(other if turned else query, self._targets[target])
            if value > best:
                best, found = value, target
        return best, found

    def _propose(self, queries: list[str], candidates: int) -> list[list[tuple[int, bool]]]:
        """Targets that share most of their words with each query, and on which strand."""
        lengths = [np.array([len(s) for s in side], dtype=np.int64) for side in (queries, self._targets)]
        plan = make_plan(lengths[0], lengths[1], _DISTANT, self._alphabet, budget=_WORD_PAIRS)
        index = WordIndex(self._targets, plan.patterns, self._alphabet)
        proposed: list[list[tuple[float, int, bool]]] = [[] for _ in queries]
        for turned in self._strands:
            for block in index.shared(queries, turned=turned):
                likeness = block[2] / np.minimum(block[3], index.counts[block[1]])
                best = _top(block[0], block[1], likeness, candidates)
                for row, target, value in zip(*(column.tolist() for column in best), strict=True):
                    proposed[row].append((-value, target, turned))
        return [[(target, turned) for _, target, turned in sorted(row)[:candidates]] for row in proposed]


def _top(
    query: np.ndarray, target: np.ndarray, value: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each query the pairs with the largest values (0 to 1), ties by target.

    The three are packed into one number each, because sorting those is ten times faster than sorting rows.
    Values are told apart to the 20th bit.

    Parameters
    ----------
    query, target, value : (P,)
        Pairs, queries in order.
    count
        Pairs to be kept of each.

    Returns
    -------
    query, target, value : (Q,)
        Those that are kept.
    """
    fresh = np.concatenate(([0], np.flatnonzero(query[1:] != query[:-1]) + 1)) if len(query) else query
    rank = np.zeros(len(query), dtype=np.uint64)
    rank[fresh[1:]] = 1
    bits = np.uint64(int(target.max(initial=0)).bit_length())
    key = (np.cumsum(rank, dtype=np.uint64) << np.uint64(_VALUE_BITS)) | np.round(
        (1 - value) * _VALUE_STEPS
    ).astype(np.uint64)
    key = np.sort((key << bits) | target.astype(np.uint64))
    place = np.arange(len(key)) - np.repeat(fresh, np.diff(np.append(fresh, len(key))))
    key = key[place < count]
    likeness = 1 - ((key >> bits) & np.uint64(_VALUE_STEPS)).astype(np.float64) / _VALUE_STEPS
    row = (key >> bits) >> np.uint64(_VALUE_BITS)
    return query[fresh][row], (key & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64), likeness


# ------------------------------------------------------------------------------------------------ groups


def homology_groups(
    sequences: Sequence[str],
    identity: float = 0.8,
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    plan: SeedPlan | None = None,
) -> np.ndarray:
    """Group sequences of at least this identity, directly or through others (single linkage).

    Parameters
    ----------
    sequences
        Validated letters, N of them.
    identity
        Threshold, above 0 and at most 1; as `best_matches` measures it.
    alphabet
        Of the sequences.
    both_strands
        Whether the reverse complement counts too; of no effect for protein.
    plan
        How pairs are found; `group_plan` by default.

    Returns
    -------
    int64 (N,)
        Group numbers, from 0 in order of first appearance. The partition does not depend on the order of
        the sequences, nor, with both strands, on which one is given.

    Raises
    ------
    InputError
        For a threshold out of range.

    Notes
    -----
    Every pair in a group is joined by steps that were aligned, so nothing is joined wrongly. A pair may be
    missed: ``plan.sensitivity`` tells how rarely. Of each sequence at most 50 pairs are aligned, those with
    most words in common.
    """
    if not 0 < identity <= 1:
        raise InputError(f"an identity of {identity:g}", remedy="give one above 0 and up to 1")
    both_strands = both_strands and alphabet.is_nucleotide
    rows = _distinct(plain_letters(sequences, alphabet), alphabet, both_strands)
    # In an order that follows from the letters alone, so that what is cut short is cut alike.
    unique = sorted(rows, key=lambda s: blake2b(s.encode(), digest_size=16).digest())
    plan = plan or group_plan(unique, identity, alphabet)
    pairs = _related_candidates(unique, plan, alphabet, both_strands)
    labels = _join(unique, pairs, identity, identity_function(alphabet), alphabet)
    groups = np.empty(len(sequences), dtype=np.int64)
    for sequence, label in zip(unique, labels, strict=True):
        groups[rows[sequence]] = label
    return number_by_appearance(groups)


def group_plan(sequences: Sequence[str], identity: float, alphabet: Alphabet = DNA) -> SeedPlan:
    """How `homology_groups` finds its pairs, and how surely."""
    lengths = np.array([len(s) for s in sequences], dtype=np.int64)
    return make_plan(lengths, lengths, identity, alphabet)


def _related_candidates(unique: list[str], plan: SeedPlan, alphabet: Alphabet, both_strands: bool) -> Pairs:
    """Pairs that share enough words: smaller and larger row, strand, and the share of words; likest first."""
    index = WordIndex(unique, plan.patterns, alphabet)
    short = ShortWords(unique, plan.short, alphabet, both_strands=both_strands) if plan.short else None
    parts: list[Pairs] = []
    least = max(1, int(np.ceil(plan.share * index.counts[index.counts > 0].min(initial=1) - 1e-9)))
    for turned in (False, True) if both_strands else (False,):
        for query, target, shared, words in index.shared(unique, turned=turned, least=least):
            fewer = np.minimum(words, index.counts[target])
            enough = (shared >= np.maximum(plan.share * fewer - 1e-9, 1)) & (query != target)
            query, target, likeness = query[enough], target[enough], (shared / np.maximum(fewer, 1))[enough]
            if short:
                likeness = short.likeness(target, query, turned)
                alike = likeness >= plan.short_share - 1e-9
                query, target, likeness = query[alike], target[alike], likeness[alike]
            one, two, value = _top(query, target, likeness, _PARTNERS)
            strand = np.full(len(one), turned)
            parts.append((np.minimum(one, two), np.maximum(one, two), strand, value))
    if not parts:
        return np.empty(0, int), np.empty(0, int), np.empty(0, bool), np.empty(0)
    one, two, strand, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((strand, two, one, -value))
    one, two, strand, value = one[order], two[order], strand[order], value[order]
    return one.astype(int), two.astype(int), strand.astype(bool), value


def _join(
    unique: list[str],
    pairs: Pairs,
    identity: float,
    measure: Callable[[str, str], float],
    alphabet: Alphabet,
) -> list[int]:
    """Align the pairs that are not joined yet, and join those that are alike: a label for each sequence."""
    parent = list(range(len(unique)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = row = parent[parent[row]]
        return row

    seen = (-1, -1, False)
    for one, two, turned in zip(*(column.tolist() for column in pairs[:3]), strict=True):
        a, b = root(one), root(two)
        if a == b or (one, two, turned) == seen:
            continue
        seen = (one, two, turned)
        other = reverse_complement(unique[two], alphabet) if turned else unique[two]
        if measure(unique[one], other) >= identity - 1e-9:
            parent[max(a, b)] = min(a, b)
    return [root(row) for row in range(len(unique))]


def merge_groups(*groupings: np.ndarray) -> np.ndarray:
    """Join groups of several kinds: what is together in one of them is together: int64 (N,).

    Parameters
    ----------
    groupings
        (N,) group numbers of the same examples; at least one. Negative numbers stand for no group.
    """
    n = len(groupings[0])
    left, right, size = [], [], n
    for grouping in groupings:
        rows = np.flatnonzero(np.asarray(grouping) >= 0)
        _, place = np.unique(np.asarray(grouping)[rows], return_inverse=True)
        left.append(rows)
        right.append(size + place)
        size += int(place.max(initial=-1)) + 1
    ends = np.concatenate(left), np.concatenate(right)
    graph = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(size, size))
    return number_by_appearance(connected_components(graph, directed=False)[1][:n])
