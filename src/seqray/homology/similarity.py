"""Similarity of records: candidates by words, identity by alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product, repeat

import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices
from scipy.cluster.hierarchy import DisjointSet
from scipy.sparse import csr_array, hstack, vstack

from seqray.core.alphabet import (
    DNA,
    Alphabet,
    CodeStack,
    canonical_strand,
    kmer_indices,
    kmer_starts,
    reverse_complement,
    reverse_complement_codes,
)
from seqray.core.arrays import Floats, Ints, number_by_appearance
from seqray.core.errors import InputError, OnProgress, track
from seqray.core.text import Brief
from seqray.homology.kmers import chunks, kmer_groups, merge_groups
from seqray.homology.options import RelationOptions

# ------------------------------------------------------------- identity, from the score of one alignment

# Each identical pair adds this much to the score. It is too small to change which alignment is best, but
# among the best ones it prefers the one with most matches, and their number is the fraction of the score.
# Sums of it are exact in float64 up to 2**20 letters.
_TALLY = 2.0**-20


def plain_letters(sequences: Sequence[str], alphabet: Alphabet) -> list[str]:
    """Write every ambiguity letter as N (protein: X), which matches nothing."""
    unknown = alphabet.unknown_letter * len(alphabet.ambiguous)
    table = bytes.maketrans(alphabet.ambiguous.encode(), unknown.encode())
    return [sequence.encode("ascii").translate(table).decode("ascii") for sequence in sequences]


def identity_function(alphabet: Alphabet) -> Callable[[str, str], float]:
    """Return a function that gives the identity, 0 to 1, of two sequences as `plain_letters` writes them.

    Of the best alignment, free ends, over the shorter one; DNA: +2, -3, gap -6; protein: BLOSUM62, 11 + 1.
    """
    unknown = alphabet.unknown_letter
    if alphabet.is_nucleotide:
        aligner = PairwiseAligner(
            mode="global", match_score=2 + _TALLY, mismatch_score=-3, open_gap_score=-6, extend_gap_score=-6
        )
        aligner.wildcard = unknown
    else:
        matrix = substitution_matrices.load("BLOSUM62")
        assert isinstance(matrix, substitution_matrices.Array)
        rows = [str(matrix.alphabet).index(letter) for letter in alphabet.letters]
        np.asarray(matrix)[rows, rows] += _TALLY  # the same memory
        aligner = PairwiseAligner(
            mode="global", substitution_matrix=matrix, open_gap_score=-12, extend_gap_score=-1
        )
    aligner.end_gap_score = 0

    def identity(one: str, other: str) -> float:
        shorter = min(len(one) - one.count(unknown), len(other) - other.count(unknown))
        if shorter == 0:
            return 0.0
        score = aligner.score(one, other)
        return round((score % 1) / _TALLY) / shorter

    return identity


# ----------------------------- spaced seeds: which to use, how many a related pair shares, and what they miss

# By weight, from a random search for two patterns that together are hit twice in most pairs of 60 letters.
_PATTERNS = {
    2: ("1001", "101"),
    3: ("10101", "1011"),
    4: ("110101", "11011"),
    5: ("101000111", "11100101"),
    6: ("10110111", "111010011"),
    7: ("11010100111", "11001111001"),
    8: ("11011000101101", "1011001110011"),
    9: ("1111010010111", "110100011110011"),
    10: ("111100100101111", "101001101110111"),
    11: ("11011100001011111", "10110111011010011"),
    12: ("111101001101011101", "11110110010110111"),
}
_LIGHTEST = {4: 5, 20: 2}  # letters of the alphabet -> weight: below it, unrelated sequences share most seeds

SENSITIVITY = 0.98  # share of pairs at the threshold that a plan has to find, if the budget allows
MAX_SEED_PAIRS = 1e8
MAX_OWNERS = 200  # sequences that a seed is looked up in; beyond, see `seqray.homology.similarity.SeedIndex`
_MAX_CHANCE_OWNERS = MAX_OWNERS / 8  # expected owners of a seed by chance alone
_SHORT = {4: 6, 20: 3}  # letters of the alphabet -> letters of a short k-mer
_MAX_SEEDS = 4**12  # different seeds of one pattern: columns of a matrix
_MIN_SEEDS = 4**7
_MAX_SEEDS_PER_LETTER = 64
_SIMULATED_PAIRS = 2000
_SIMULATED_LETTERS = 300  # longer pairs share seeds even more surely


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """How pairs are found: by ``patterns``, the offsets of the letters of a seed, from 0.

    A candidate shares ``share`` of seeds, ``short_share`` of k-mers of ``short`` letters (0: any).
    """

    patterns: tuple[tuple[int, ...], ...]
    share: float
    short: int
    short_share: float
    sensitivity: float


def offsets(pattern: str) -> tuple[int, ...]:
    """Offsets of the ones in a pattern such as ``1101``."""
    return tuple(i for i, letter in enumerate(pattern) if letter == "1")


def make_plan(
    lengths: np.ndarray,
    others: np.ndarray,
    identity: float,
    alphabet: Alphabet,
    *,
    budget: float = MAX_SEED_PAIRS,
) -> SeedPlan:
    """Choose the longest seeds that find pairs of an ``identity``, or the shortest that the budget allows."""
    letters, total = len(alphabet.letters), float(others.sum())
    most = min(max(_MAX_SEEDS_PER_LETTER * total, _MIN_SEEDS), _MAX_SEEDS)  # a larger table gains nothing
    affordable = []
    for weight in _PATTERNS:
        seeds = letters**weight
        owners = total / seeds
        fits = seeds <= most and owners <= _MAX_CHANCE_OWNERS and float(lengths.sum()) * owners <= budget
        if fits and weight >= _LIGHTEST[letters]:
            affordable.append(weight)
    length = int(np.median(np.concatenate((lengths, others)))) if len(lengths) + len(others) else 0
    plans = []
    for weight in reversed(affordable or [max(w for w in _PATTERNS if letters**w <= _MAX_SEEDS)]):
        plans.append(_plan(weight, length, identity, letters))
        if plans[-1].sensitivity >= SENSITIVITY:  # long seeds are the cheapest
            return plans[-1]
    return max(plans, key=lambda plan: plan.sensitivity)


def _plan(weight: int, length: int, identity: float, letters: int) -> SeedPlan:
    patterns = tuple(offsets(pattern) for pattern in _PATTERNS[weight])
    size = min(length, _SIMULATED_LETTERS)
    shared, seeds = simulate(patterns, size, identity)
    if seeds == 0:
        return SeedPlan(patterns, 0.0, 0, 0.0, 0.0)
    # At least two seeds, because one is shared by chance in a large set, unless that loses too much.
    least = max(_lower_quantile(shared), 2 if seeds > 2 else 1)
    short = _SHORT[letters] if letters ** _SHORT[letters] >= 8 * length else 0
    passes, short_share = shared >= least, 0.0
    if short:
        alike, kmers = simulate((tuple(range(short)),), size, identity)  # of the same pairs
        short_share = _lower_quantile(alike) / max(kmers, 1)
        passes &= alike >= _lower_quantile(alike)
    return SeedPlan(patterns, least / seeds, short, short_share, float(passes.mean()))


def _lower_quantile(counts: np.ndarray) -> int:
    return int(np.quantile(counts, (1 - SENSITIVITY) / 2, method="lower"))


def simulate(patterns: tuple[tuple[int, ...], ...], length: int, identity: float) -> tuple[np.ndarray, int]:
    """Seeds shared by random pairs that just have the identity, without gaps: (2000,), and of a sequence."""
    rng = np.random.default_rng(0)
    alike = int(np.ceil(identity * length - 1e-9))
    same = rng.permuted(np.tile(np.arange(length) < alike, (_SIMULATED_PAIRS, 1)), axis=1)
    shared, seeds = np.zeros(_SIMULATED_PAIRS, dtype=np.int64), 0
    for pattern in patterns:
        n = max(length - pattern[-1], 0)
        hit = np.ones((_SIMULATED_PAIRS, n), dtype=bool)
        for offset in pattern:
            hit &= same[:, offset : offset + n]
        shared += hit.sum(axis=1)
        seeds += n
    return shared, seeds


# -------------------------------------------- pairs that are worth an alignment, by the seeds that they share

Patterns = tuple[tuple[int, ...], ...]

_CHUNK_LETTERS = 1_000_000
_BLOCK_PRODUCTS = 2_000_000  # entries of a product at once; larger arrays cost page faults each time
_PAIRS_AT_ONCE = 20_000
_ROWS_AT_ONCE = 10_000


def _seed_matrix(stack: CodeStack, patterns: Patterns, letters: int) -> csr_array:
    """Which seeds each sequence holds: int32 ones, (N, patterns x letters**weight)."""
    parts = []
    for offsets in patterns:
        start, owner, _ = kmer_starts(stack, offsets[-1] + 1, letters)
        seed = np.zeros(len(start), dtype=np.int32)
        for offset in offsets:
            seed *= letters
            seed += stack.codes[start + offset]
        ends = np.searchsorted(owner, np.arange(len(stack) + 1)).astype(np.int32)
        shape = (len(stack), letters ** len(offsets))
        matrix = csr_array((np.ones(len(seed), dtype=np.int32), seed, ends), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1
        parts.append(matrix)
    return csr_array(hstack(parts, format="csr"))


def reverse_complement_stack(stack: CodeStack) -> CodeStack:
    """Reverse complement of each sequence, in the same order."""
    ends = np.cumsum(stack.lengths)
    codes = reverse_complement_codes(stack.codes)  # of all, so the last sequence comes first
    total = len(stack.codes)
    position = np.arange(total) - np.repeat(ends - stack.lengths, stack.lengths)
    return CodeStack(codes[np.repeat(total - ends, stack.lengths) + position], stack.lengths)


class SeedIndex:
    """The spaced seeds of N sequences, ``counts`` (N,); of too many holders of a seed the first are kept."""

    def __init__(self, sequences: Sequence[str], patterns: Patterns, alphabet: Alphabet) -> None:
        self._patterns, self._alphabet = patterns, alphabet
        letters = len(alphabet.letters)
        parts = [
            _seed_matrix(stack, patterns, letters) for _, stack in chunks(sequences, alphabet, _CHUNK_LETTERS)
        ]
        width = sum(letters ** len(offsets) for offsets in patterns)
        seeds = csr_array(vstack(parts, format="csr") if parts else (0, width), dtype=np.int32)
        del parts
        self.counts = np.diff(seeds.indptr).astype(np.int64)
        by_seed = seeds.T.tocsr()  # holders of each seed, in their order
        del seeds
        holders = np.diff(by_seed.indptr)
        if (holders > MAX_OWNERS).any():
            rank = np.arange(by_seed.nnz) - np.repeat(by_seed.indptr[:-1].astype(np.int64), holders)
            first = rank < MAX_OWNERS
            ends = np.concatenate(([0], np.cumsum(np.minimum(holders, MAX_OWNERS))))
            entries = (by_seed.data[first], by_seed.indices[first], ends)
            by_seed = csr_array(entries, shape=by_seed.shape)
        self._lookup, self._holders = by_seed, np.diff(by_seed.indptr)

    def shared(
        self, sequences: Sequence[str], *, reverse: bool = False
    ) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield rows of query and set, shared distinct seeds, and those of the query, (P,) each, by block."""
        letters = len(self._alphabet.letters)
        for first, stack in chunks(sequences, self._alphabet, _CHUNK_LETTERS):
            strand = reverse_complement_stack(stack) if reverse else stack
            queries = _seed_matrix(strand, self._patterns, letters)
            seeds = np.diff(queries.indptr).astype(np.int64)
            for begin, end in self._blocks(queries):
                product = queries[begin:end] @ self._lookup
                row = np.repeat(np.arange(begin, end), np.diff(product.indptr))
                target, shared = product.indices.astype(np.int64), product.data.astype(np.int64)
                yield first + row, target, shared, seeds[row]

    def _blocks(self, queries: csr_array) -> Iterator[tuple[int, int]]:
        """Ranges of rows whose product stays small."""
        cost = np.concatenate(([0], np.cumsum(self._holders[queries.indices], dtype=np.int64)))
        reached = cost[queries.indptr]
        begin, rows = 0, len(reached) - 1
        while begin < rows:
            limit = reached[begin] + _BLOCK_PRODUCTS
            end = max(int(np.searchsorted(reached, limit, side="right")) - 1, begin + 1)
            yield begin, end
            begin = end


class KmerBits:
    """Which k-mers N sequences hold, as bits; with ``both_strands`` also those of the reverse complements."""

    def __init__(self, sequences: Sequence[str], k: int, alphabet: Alphabet, *, both_strands: bool) -> None:
        letters = len(alphabet.letters)
        self._bits: list[np.ndarray] = []  # of either strand
        for reverse in (False, True) if both_strands else (False,):
            parts = [np.empty((0, letters**k // 16), dtype=np.uint16)]
            for _, stack in chunks(sequences, alphabet, _CHUNK_LETTERS):
                parts += _kmer_bits(reverse_complement_stack(stack) if reverse else stack, k, letters)
            self._bits.append(np.concatenate(parts))
        ends = range(0, len(sequences), _ROWS_AT_ONCE)
        counts = [_count_ones(self._bits[0][row : row + _ROWS_AT_ONCE]) for row in ends]
        self._counts = np.concatenate([np.empty(0, dtype=np.int64), *counts])

    def shared_fraction(self, one: Ints, two: Ints, reverse: bool) -> Floats:
        """Share of the k-mers of the sequence with fewer that both of a pair hold: (P,)."""
        shared = np.empty(len(one), dtype=np.int64)
        for begin in range(0, len(one), _PAIRS_AT_ONCE):
            block = slice(begin, begin + _PAIRS_AT_ONCE)
            shared[block] = _count_ones(self._bits[0][one[block]] & self._bits[int(reverse)][two[block]])
        return shared / np.maximum(np.minimum(self._counts[one], self._counts[two]), 1)


def _count_ones(bits: np.ndarray) -> Ints:
    return np.bitwise_count(bits).sum(axis=1, dtype=np.int64)


def _kmer_bits(stack: CodeStack, k: int, letters: int) -> Iterator[np.ndarray]:
    """Bits of the k-mers that each sequence holds: blocks of uint16 (rows, letters**k / 16)."""
    start, owner, _ = kmer_starts(stack, k, letters)
    word = kmer_indices(stack, start, k, letters)
    for begin in range(0, len(stack), _ROWS_AT_ONCE):
        rows = min(_ROWS_AT_ONCE, len(stack) - begin)
        first, last = np.searchsorted(owner, (begin, begin + rows))
        held = np.zeros((rows, letters**k), dtype=bool)
        held[owner[first:last] - begin, word[first:last]] = True
        yield np.packbits(held, axis=1).view(np.uint16)


# ----------------------------------------------------------------- the most similar sequence of another set

_MAX_EXHAUSTIVE_CELLS = 2e7  # of alignment: a fraction of a second; smaller tasks need no seeds
_SEED_IDENTITY = 0.6  # that the seeds of `best_matches` are chosen to find
_MAX_SEED_PAIRS = 2e7  # that may be examined; see `make_plan`
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
    """For each of M sequences the most similar training sequence: identity and index (M,), or 0 and -1.

    Those with most shared seeds are aligned: exact for relatives but 1 %, a lower bound below.
    """
    both_strands = both_strands and alphabet.is_nucleotide
    targets, queries = (_rows_of(plain_letters(s, alphabet), alphabet, both_strands) for s in (train, test))
    unique = list(targets)
    copies = {key: row for row, key in enumerate(unique) if key.strip(alphabet.unknown_letter)}
    others = [query for query in queries if query not in copies]
    aligned = _align(others, unique, alphabet, (False, True) if both_strands else (False,), candidates)
    identity, index = np.zeros(len(test)), np.full(len(test), -1, dtype=np.int64)
    for query in track(queries, len(queries), "align held-out sequences", on_progress):
        value, target = (1.0, copies[query]) if query in copies else next(aligned)
        if target >= 0:
            identity[queries[query]], index[queries[query]] = value, targets[unique[target]][0]
    return identity, index


def _rows_of(sequences: Sequence[str], alphabet: Alphabet, both_strands: bool) -> dict[str, list[int]]:
    """Rows of each distinct sequence, or of either strand of it, in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for row, sequence in enumerate(sequences):
        key = canonical_strand(sequence, alphabet) if both_strands else sequence
        rows.setdefault(key, []).append(row)
    return rows


def _align(
    queries: list[str], targets: list[str], alphabet: Alphabet, strands: tuple[bool, ...], candidates: int
) -> Iterator[tuple[float, int]]:
    """Identity and row of the best target of each query; (0, -1) where there is none."""
    cells = float(sum(map(len, queries))) * sum(map(len, targets)) * len(strands)
    if cells <= _MAX_EXHAUSTIVE_CELLS or len(targets) <= candidates:
        proposed = repeat(list(product(range(len(targets)), strands)), len(queries))
    else:
        proposed = _proposed(queries, targets, alphabet, strands, candidates)
    measure = identity_function(alphabet)
    for query, pairs in zip(queries, proposed, strict=True):
        turned = reverse_complement(query, alphabet) if len(strands) > 1 else ""
        best = (0.0, -1)
        for target, reverse in pairs:
            value = measure(turned if reverse else query, targets[target])
            best = (value, target) if value > best[0] else best
        yield best


def _proposed(
    queries: list[str], targets: list[str], alphabet: Alphabet, strands: tuple[bool, ...], count: int
) -> list[list[tuple[int, bool]]]:
    """Targets that share most seeds with each query, in order, and whether the query is reversed."""
    lengths = [np.array([len(s) for s in side], dtype=np.int64) for side in (queries, targets)]
    plan = make_plan(lengths[0], lengths[1], _SEED_IDENTITY, alphabet, budget=_MAX_SEED_PAIRS)
    index = SeedIndex(targets, plan.patterns, alphabet)
    proposed: list[list[tuple[float, int, bool]]] = [[] for _ in queries]
    for reverse in strands:
        for query, target, shared, seeds in index.shared(queries, reverse=reverse):
            best = _top_pairs(query, target, shared / np.minimum(seeds, index.counts[target]), count)
            for row, other, value in zip(*(column.tolist() for column in best), strict=True):
                proposed[row].append((-value, other, reverse))
    return [sorted((target, reverse) for _, target, reverse in sorted(row)[:count]) for row in proposed]


def _top_pairs(query: Ints, target: Ints, value: Floats, count: int) -> tuple[Ints, Ints, Floats]:
    """Keep the ``count`` best pairs of each query, ties by target, packed into numbers that sort fast."""
    fresh = np.concatenate(([0], np.flatnonzero(query[1:] != query[:-1]) + 1)) if len(query) else query
    rank = np.zeros(len(query), dtype=np.uint64)
    rank[fresh[1:]] = 1
    bits = np.uint64(int(target.max(initial=0)).bit_length())
    steps = np.round((1 - value) * _VALUE_STEPS).astype(np.uint64)
    key = (np.cumsum(rank, dtype=np.uint64) << np.uint64(_VALUE_BITS)) | steps
    key = np.sort((key << bits) | target.astype(np.uint64))
    place = np.arange(len(key)) - np.repeat(fresh, np.diff(np.append(fresh, len(key))))
    key = key[place < count]
    value = 1 - ((key >> bits) & np.uint64(_VALUE_STEPS)).astype(np.float64) / _VALUE_STEPS
    row = (key >> bits) >> np.uint64(_VALUE_BITS)
    return query[fresh][row], (key & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64), value


# ------------------------------------------------------------------------------------------------ groups


def homology_groups(
    sequences: Sequence[str],
    identity: float = 0.8,
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    on_progress: OnProgress | None = None,
) -> Ints:
    """Group N sequences of at least this identity, directly or through others (single linkage): int64 (N,).

    Every joined pair was aligned, 50 of each at most; `group_plan` estimates how many are missed.
    """
    if not 0 < identity <= 1:
        raise InputError(f"an identity of {identity:g}", remedy="give one above 0 and up to 1")
    both_strands = both_strands and alphabet.is_nucleotide
    rows = _rows_of(plain_letters(sequences, alphabet), alphabet, both_strands)
    # In an order that follows from the letters alone, so that limits cut the same pairs in any input order.
    unique = sorted(rows, key=lambda s: blake2b(s.encode(), digest_size=16).digest())
    plan, measure = group_plan(unique, identity, alphabet), identity_function(alphabet)
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


def group_plan(sequences: Sequence[str], identity: float, alphabet: Alphabet) -> SeedPlan:
    """How `homology_groups` finds pairs of this identity."""
    lengths = np.array([len(s) for s in sequences], dtype=np.int64)
    return make_plan(lengths, lengths, identity, alphabet)


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


# ------------------------------------------------------------- groups by any kind of relation


@dataclass(frozen=True, repr=False)
class Related(Brief):
    """Groups of relatives: (N,) from 0 by first appearance, and by kind of relation what it joins."""

    groups: Ints
    reasons: dict[str, str] = field(default_factory=dict)


def find_relatives(
    sequences: Sequence[str],
    alphabet: Alphabet,
    options: RelationOptions,
    others: Mapping[str, Ints] | None = None,
    on_progress: OnProgress | None = None,
) -> Related:
    """Group N examples by all kinds of relation, also ``others`` by name (N,), where below 0 is no group."""
    kinds: dict[str, Ints] = {}
    strands = alphabet.is_nucleotide and options.both_strands
    where = " on either strand" if strands else ""
    if options.word:
        name = f"a shared {options.word}-mer{where}"
        kinds[name] = kmer_groups(sequences, options.word, options.both_strands, alphabet)
    if options.identity:
        name = f"an identity of {options.identity:g} or more{where}, found by seqray"
        kinds[name] = homology_groups(
            sequences, options.identity, alphabet, both_strands=options.both_strands, on_progress=on_progress
        )
    kinds |= others or {}
    reasons = {}
    for name, groups in kinds.items():
        sizes = np.bincount(groups[groups >= 0])
        larger = sizes[sizes > 1]
        joined = f"joins {larger.sum()} examples in {len(larger)} groups"
        reasons[name] = f"{joined}, the largest of {sizes.max(initial=0)}"
    plain = np.arange(len(sequences), dtype=np.int64)
    return Related(merge_groups(plain, *kinds.values()), reasons)
