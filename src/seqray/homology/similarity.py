"""The most similar sequence of another set, and groups of similar sequences.

Candidate pairs share spaced seeds (`seqray.homology.seeds`) and are measured by alignment
(`seqray.homology.alignment`); no pair counts as similar that was not aligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import product

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from seqray.core import (
    DNA,
    Alphabet,
    Floats,
    InputError,
    Ints,
    OnProgress,
    canonical_strand,
    number_by_appearance,
    reverse_complement,
    track,
)
from seqray.homology.alignment import identity_function, plain_letters
from seqray.homology.candidates import KmerBits, SeedIndex
from seqray.homology.seeds import SeedPlan, make_plan

_MAX_EXHAUSTIVE_CELLS = 2e7  # of alignment: a fraction of a second; smaller tasks need no seeds
_SEED_IDENTITY = 0.6  # that the seeds of `best_matches` are chosen to find
_MAX_SEED_PAIRS = 2e7  # that may be examined; see `seqray.homology.seeds.make_plan`
_VALUE_BITS = 20
_VALUE_STEPS = 2**_VALUE_BITS - 1
_MAX_PARTNERS = 50  # aligned with each sequence, those with most k-mers in common


def best_matches(
    train: Sequence[str],
    test: Sequence[str],
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    candidates: int = 5,
    on_progress: OnProgress | None = None,
) -> tuple[Floats, Ints]:
    """Find for each test sequence the most similar training sequence.

    Parameters
    ----------
    train, test
        Validated letters: N and M sequences.
    alphabet
        Of the sequences.
    both_strands
        Whether the reverse complement counts too; of no effect for protein.
    candidates
        Training sequences that are aligned with each test sequence: those that share most seeds with it.
        If all pairs take less than a fraction of a second, all are aligned.
    on_progress
        Called after each distinct test sequence.

    Returns
    -------
    identity : float64 (M,)
        Identical letters in the best alignment, divided by the known letters of the shorter sequence (see
        `seqray.homology.alignment.identity_function`); 0 where nothing could be aligned. For relatives (0.6
        and above for windows of 81 letters of DNA) all pairs would give the same, except for one in a
        hundred. Below, it is a lower bound: of 4,000 unrelated windows the closest has a median identity of
        0.37, and the one found by seeds 0.15.
    index : int64 (M,)
        Its index in ``train``, the first of equals; -1 where nothing could be aligned.

    Examples
    --------
    >>> identity, index = best_matches(["TTGACAATTA", "GGGGGCCCCC"], ["TTGACAATAA"])
    >>> identity.tolist(), index.tolist()
    ([0.9], [0])
    """
    both_strands = both_strands and alphabet.is_nucleotide
    targets, queries = (_rows_of(plain_letters(s, alphabet), alphabet, both_strands) for s in (train, test))
    found = _Search(list(targets), alphabet, both_strands).best(list(queries), candidates, on_progress)
    first_rows = [rows[0] for rows in targets.values()]
    identity, index = np.zeros(len(test)), np.full(len(test), -1, dtype=np.int64)
    for rows, (value, target) in zip(queries.values(), found, strict=True):
        if target >= 0:
            identity[rows], index[rows] = value, first_rows[target]
    return identity, index


def _rows_of(sequences: Sequence[str], alphabet: Alphabet, both_strands: bool) -> dict[str, list[int]]:
    """Rows of each distinct sequence, or of either strand of it, in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, sequence in enumerate(sequences):
        key = canonical_strand(sequence, alphabet) if both_strands else sequence
        rows.setdefault(key, []).append(row)
    return rows


class _Search:
    """Search among distinct targets for the most similar one of each query."""

    def __init__(self, targets: list[str], alphabet: Alphabet, both_strands: bool) -> None:
        self._targets, self._alphabet = targets, alphabet
        self._strands = (False, True) if both_strands else (False,)  # whether the query is reversed
        self._identity = identity_function(alphabet)

    def best(
        self, queries: list[str], candidates: int, on_progress: OnProgress | None
    ) -> list[tuple[float, int]]:
        """Identity and target of each query; (0, -1) where there is none."""
        unknown = self._alphabet.unknown_letter
        copies = {key: row for row, key in enumerate(self._targets) if key.strip(unknown)}
        aligned = self._align([query for query in queries if query not in copies], candidates)
        tracked = track(queries, len(queries), "align held-out sequences", on_progress)
        return [(1.0, copies[query]) if query in copies else next(aligned) for query in tracked]

    def _align(self, queries: list[str], candidates: int) -> Iterator[tuple[float, int]]:
        cells = float(sum(map(len, queries))) * sum(map(len, self._targets)) * len(self._strands)
        if cells <= _MAX_EXHAUSTIVE_CELLS or len(self._targets) <= candidates:
            everything = list(product(range(len(self._targets)), self._strands))
            yield from (self._best_of(query, everything) for query in queries)
            return
        proposed = self._candidates(queries, candidates)
        yield from (self._best_of(query, pairs) for query, pairs in zip(queries, proposed, strict=True))

    def _best_of(self, query: str, pairs: Sequence[tuple[int, bool]]) -> tuple[float, int]:
        other = reverse_complement(query, self._alphabet) if len(self._strands) > 1 else ""
        best, found = 0.0, -1
        for target, reverse in pairs:
            value = self._identity(other if reverse else query, self._targets[target])
            if value > best:
                best, found = value, target
        return best, found

    def _candidates(self, queries: list[str], count: int) -> list[list[tuple[int, bool]]]:
        """Targets that share most of their seeds with each query, with the strand, in order."""
        lengths = [np.array([len(s) for s in side], dtype=np.int64) for side in (queries, self._targets)]
        plan = make_plan(lengths[0], lengths[1], _SEED_IDENTITY, self._alphabet, budget=_MAX_SEED_PAIRS)
        index = SeedIndex(self._targets, plan.patterns, self._alphabet)
        proposed: list[list[tuple[float, int, bool]]] = [[] for _ in queries]
        for reverse in self._strands:
            for query, target, shared, seeds in index.shared(queries, reverse=reverse):
                best = _top_pairs(query, target, shared / np.minimum(seeds, index.counts[target]), count)
                for row, other, value in zip(*(column.tolist() for column in best), strict=True):
                    proposed[row].append((-value, other, reverse))
        return [sorted((target, reverse) for _, target, reverse in sorted(row)[:count]) for row in proposed]


def _top_pairs(query: Ints, target: Ints, value: Floats, count: int) -> tuple[Ints, Ints, Floats]:
    """Keep the ``count`` pairs of each query with the largest values (0 to 1), ties by target.

    Queries are in order. The three are packed into one number each, because sorting those is ten times
    faster than sorting rows; values are distinguished to the 20th bit.
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
    kept = 1 - ((key >> bits) & np.uint64(_VALUE_STEPS)).astype(np.float64) / _VALUE_STEPS
    row = (key >> bits) >> np.uint64(_VALUE_BITS)
    return query[fresh][row], (key & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64), kept


# ------------------------------------------------------------------------------------------------ groups


def homology_groups(
    sequences: Sequence[str],
    identity: float = 0.8,
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    on_progress: OnProgress | None = None,
) -> Ints:
    """Group sequences of at least this identity, directly or through others (single linkage).

    Parameters
    ----------
    sequences, alphabet
        N validated sequences, and their alphabet.
    identity
        Threshold, above 0 and at most 1; as `best_matches` measures it.
    both_strands
        Whether the reverse complement counts too; of no effect for protein.
    on_progress
        Called after each pair that may be similar.

    Returns
    -------
    int64 (N,)
        Group numbers, from 0 in order of first appearance. The partition does not depend on the order of the
        sequences, nor, with both strands, on which one is given.

    Raises an InputError for a threshold out of range.

    Notes
    -----
    Every pair in a group is connected by steps that were aligned, so nothing is joined wrongly. A pair may be
    missed; `expected_sensitivity` estimates how rarely. Of each sequence at most 50 pairs are aligned, those
    with most k-mers in common.

    Examples
    --------
    >>> homology_groups(["TTGACAATTACGGTACC", "TTGACAATTACGCTACC", "GCGCGCGGCCAATTGGCC"]).tolist()
    [0, 0, 1]
    """
    if not 0 < identity <= 1:
        raise InputError(f"an identity of {identity:g}", remedy="give one above 0 and up to 1")
    both_strands = both_strands and alphabet.is_nucleotide
    rows = _rows_of(plain_letters(sequences, alphabet), alphabet, both_strands)
    # In an order that follows from the letters alone, so that limits cut the same pairs in any input order.
    unique = sorted(rows, key=lambda s: blake2b(s.encode(), digest_size=16).digest())
    plan, measure = _group_plan(unique, identity, alphabet), identity_function(alphabet)
    sets = DisjointSet(range(len(unique)))
    pairs = _similar_candidates(unique, plan, alphabet, both_strands)
    rows_and_strand = zip(*pairs, strict=True)
    for one, two, reverse in track(rows_and_strand, len(pairs[0]), "align similar sequences", on_progress):
        if not sets.connected(one, two):
            other = reverse_complement(unique[two], alphabet) if reverse else unique[two]
            if measure(unique[one], other) >= identity - 1e-9:
                sets.merge(one, two)
    groups = np.empty(len(sequences), dtype=np.int64)
    for row, sequence in enumerate(unique):
        groups[rows[sequence]] = sets[row]
    return number_by_appearance(groups)


def _group_plan(sequences: Sequence[str], identity: float, alphabet: Alphabet) -> SeedPlan:
    lengths = np.array([len(s) for s in sequences], dtype=np.int64)
    return make_plan(lengths, lengths, identity, alphabet)


def expected_sensitivity(sequences: Sequence[str], identity: float, alphabet: Alphabet) -> float:
    """Share of pairs at the threshold that `homology_groups` finds, by simulation (0 to 1).

    Parameters
    ----------
    sequences, identity, alphabet
        As for `homology_groups`.
    """
    return _group_plan(sequences, identity, alphabet).sensitivity


def _similar_candidates(
    unique: list[str], plan: SeedPlan, alphabet: Alphabet, both_strands: bool
) -> tuple[list[int], list[int], list[bool]]:
    """Distinct pairs that share enough seeds: smaller and larger row, and strand; most similar first."""
    index = SeedIndex(unique, plan.patterns, alphabet)
    short = KmerBits(unique, plan.short, alphabet, both_strands=both_strands) if plan.short else None
    parts = [(np.empty(0, int), np.empty(0, int), np.empty(0, bool), np.empty(0))]
    for reverse in (False, True) if both_strands else (False,):
        for query, target, shared, seeds in index.shared(unique, reverse=reverse):
            fewer = np.minimum(seeds, index.counts[target])
            enough = (shared >= np.maximum(plan.share * fewer - 1e-9, 1)) & (query != target)
            query, target, value = query[enough], target[enough], (shared / np.maximum(fewer, 1))[enough]
            if short:
                value = short.shared_fraction(target, query, reverse)
                alike = value >= plan.short_share - 1e-9
                query, target, value = query[alike], target[alike], value[alike]
            one, two, value = _top_pairs(query, target, value, _MAX_PARTNERS)
            parts.append((np.minimum(one, two), np.maximum(one, two), np.full(len(one), reverse), value))
    one, two, strand, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((strand, two, one, -value))
    pairs = np.stack((one, two, strand))[:, order]
    fresh = np.any(np.diff(pairs, axis=1, prepend=-1) != 0, axis=0)  # each was proposed from either side
    one, two, strand = (column[fresh].tolist() for column in pairs)
    return one, two, strand
