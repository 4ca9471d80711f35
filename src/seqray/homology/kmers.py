"""Groups of records by name, by place and by shared k-mers, and k-mers of stretches of a genome."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqray.core.alphabet import (
    DNA,
    Alphabet,
    CodeStack,
    canonical_strand,
    kmer_starts,
    reverse_complement_codes,
    stack_codes,
    stack_sequences,
)
from seqray.core.arrays import Bools, Codes, Ints, mark_intervals, number_by_appearance
from seqray.core.errors import InputError, setting
from seqray.core.records import LabeledSequence

# --------------------------------------------------------------- by name, by position on a genome, and merged

_POSITION_ID = re.compile(r"(?P<contig>.+?):(?P<position>\d+)(?:-\d+)?(?::?\(?[+-]\)?)?(?::.*)?")


def connected_groups(n: int, left: Ints, right: Ints) -> Ints:
    """Connected components of n items: group numbers int64 (n,), from 0 in order of first appearance."""
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n))
    return number_by_appearance(connected_components(graph, directed=False)[1])


def merge_groups(*groupings: np.ndarray) -> Ints:
    """Join groups (N,) of several kinds, below 0 for none: what is together in one is together: (N,)."""
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
    """Group N sites by blocks of a genome, with neighbors closer than ``min_gap``: int64 (N,), in order."""
    if block < 1:
        raise InputError(f"a block of {block} letters", remedy="give 1 or more")
    _, contig = np.unique(np.asarray(contigs), return_inverse=True)
    position = np.asarray(positions, dtype=np.int64)
    order = np.lexsort((position, contig))
    c, p = contig[order], position[order]
    crosses = (p[1:] // block != p[:-1] // block) & (p[1:] - p[:-1] >= min_gap)
    groups = np.empty(len(p), dtype=np.int64)
    groups[order] = np.concatenate(([0], np.cumsum((c[1:] != c[:-1]) | crosses)))[: len(p)]
    return groups


def named_groups(names: Sequence[str | None]) -> Ints:
    """Number names: int64 (N,), -1 where there is none (None or empty)."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(n, len(numbers)) if n else -1 for n in names], dtype=np.int64)


def positions_from_ids(examples: Sequence[LabeledSequence]) -> tuple[list[str], Ints]:
    """Read contig and position from ids such as ``chr1:1234``, ``chr1:1234:+`` or ``chr1:1234-1315(-)``."""
    contigs, positions = [], []
    for example in examples:
        match = _POSITION_ID.fullmatch(example.id)
        if match is None:
            what = "the id is not a position such as chr1:1234:+"
            remedy = f"name the columns instead: {setting('positions', 'contig,position')}"
            raise InputError(what, where=example.where, remedy=remedy)
        contigs.append(match["contig"])
        positions.append(int(match["position"]))
    return contigs, np.array(positions, dtype=np.int64)


# ------------------------------------------------------------------------- by shared k-mers, which are hashed

_BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)
_LETTER_SEED = 20_240_229
_CHUNK_LETTERS = 4_000_000  # hashed at once: bounds memory


@dataclass(frozen=True, slots=True, eq=False)
class KmerTable:
    """k-mers of ``count`` sequences by hash: keys uint64 (M,) and owners (M,), both sorted."""

    keys: np.ndarray
    owners: Ints
    count: int

    def groups(self) -> Ints:
        """Group sequences that share a k-mer, directly or through others: (N,), numbered by appearance."""
        same = np.flatnonzero(self.keys[1:] == self.keys[:-1])
        return connected_groups(self.count, self.owners[same], self.owners[same + 1])

    def sharing_across(self, rows: Ints, others: Ints) -> Bools:
        """Whether each of ``rows`` shares a k-mer with one of ``others``: (len(rows),)."""
        here, there = self._mask(rows)[self.owners], self._mask(others)[self.owners]
        sharing = self.owners[here][np.isin(self.keys[here], np.unique(self.keys[there]))]
        return self._mask(sharing)[rows]

    def sharing_within(self, rows: Ints, labels: np.ndarray | None = None) -> Bools:
        """Whether each of ``rows`` shares a k-mer with another, of the same label (N,) if given."""
        inside = self._mask(rows)[self.owners]
        keys, owners = self.keys[inside], self.owners[inside]
        label = np.zeros(len(keys), dtype=np.int64) if labels is None else labels[owners]
        order = np.lexsort((owners, label, keys))
        keys, owners, label = keys[order], owners[order], label[order]
        same = (keys[1:] == keys[:-1]) & (label[1:] == label[:-1]) & (owners[1:] != owners[:-1])
        pairs = np.flatnonzero(same)
        return self._mask(np.concatenate((owners[pairs], owners[pairs + 1])))[rows]

    def sharing_between(self, groups: Ints) -> Bools:
        """Whether each sequence shares a k-mer with one of another group: (N,); -1 means no group."""
        inside = groups[self.owners] >= 0
        keys, owners = self.keys[inside], self.owners[inside]
        _, begin, which = np.unique(keys, return_index=True, return_inverse=True)
        if not len(begin):
            return np.zeros(self.count, dtype=bool)
        low, high = (end.reduceat(groups[owners], begin) for end in (np.minimum, np.maximum))
        return self._mask(owners[(low != high)[which]])

    def _mask(self, rows: Ints) -> Bools:
        mask = np.zeros(self.count, dtype=bool)
        mask[rows] = True
        return mask


def kmer_table(
    sequences: Sequence[str],
    k: int,
    alphabet: Alphabet = DNA,
    *,
    both_strands: bool = True,
    most: int | None = None,
) -> KmerTable:
    """The k-mers of N sequences without ambiguous letters, and each sequence shorter than ``k``.

    Of more letters than ``most``, only k-mers whose hash ends in some zero bits are kept.
    """
    if k < 1:
        raise InputError(f"k is {k}", remedy="give k of 1 or more")
    both_strands = both_strands and alphabet.is_nucleotide
    excess = sum(map(len, sequences)) / most if most else 1.0
    mask = np.uint64((1 << max(0, math.ceil(math.log2(max(excess, 1.0))))) - 1)
    keys, owners = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
    for first, stack in chunks(sequences, alphabet, _CHUNK_LETTERS):
        start, owner, _ = kmer_starts(stack, k, len(alphabet.letters))
        short = np.flatnonzero(stack.lengths < k)
        whole = [np.empty(0, dtype=np.uint64)]
        for sequence in (sequences[first + int(i)] for i in short):
            strand = canonical_strand(sequence, alphabet) if both_strands else sequence
            codes = np.frombuffer(f"short:{strand}".encode("ascii"), dtype=np.uint8)
            whole.append(_window_hashes(codes, len(codes)))
        key = np.concatenate((_canonical_hashes(stack, k, both_strands)[start], *whole))
        sampled = (key & mask) == 0
        keys.append(key[sampled])
        owners.append(first + np.concatenate((owner, short))[sampled])
    key, owner = np.concatenate(keys), np.concatenate(owners)
    order = np.argsort(key, kind="stable")
    return KmerTable(key[order], owner[order], len(sequences))


MAX_NUCLEOTIDE_KMER = 40
MAX_PROTEIN_KMER = 10
MAX_SHARED_BY_CHANCE = 0.001  # expected number of k-mers that a sequence shares with all the others


def word_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Length of k-mers that relatives share: half the lower quartile, so that few share one by chance."""
    lengths = [len(sequence) for sequence in sequences] or [0]
    half = int(np.quantile(lengths, 0.25, method="lower")) // 2
    longest = MAX_NUCLEOTIDE_KMER if alphabet.is_nucleotide else MAX_PROTEIN_KMER
    return max(min(half, longest), chance_length(sequences, alphabet), 1)


def chance_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Shortest k-mer of which a sequence shares at most `MAX_SHARED_BY_CHANCE` with all the others."""
    counts = np.array([sum(s.count(letter) for s in sequences) for letter in alphabet.letters], dtype=float)
    total = counts.sum()
    match = float(((counts / total) ** 2).sum()) if total else 1.0
    if match >= 1:  # a single letter: every k-mer of it is shared, whatever its length
        return 1
    strands = 2 if alphabet.is_nucleotide else 1
    pairs = strands * total * total / len(sequences)  # k-mers of one sequence times k-mers of all
    return max(1, math.ceil(math.log(max(pairs, 1.0) / MAX_SHARED_BY_CHANCE) / -math.log(match)))


def kmer_groups(
    sequences: Sequence[str], k: int = 40, both_strands: bool = True, alphabet: Alphabet = DNA
) -> Ints:
    """Group sequences that share a k-mer, see `kmer_table`; a shorter one is with its exact copies only."""
    return kmer_table(sequences, k, alphabet, both_strands=both_strands).groups()


def chunks(sequences: Sequence[str], alphabet: Alphabet, letters: int) -> Iterator[tuple[int, CodeStack]]:
    """Yield runs of sequences of so many ``letters`` or more: the first row and the codes of each."""
    begin, size = 0, 0
    for row, sequence in enumerate(sequences):
        size += len(sequence)
        if size >= letters or row + 1 == len(sequences):
            yield begin, stack_sequences(sequences[begin : row + 1], alphabet)
            begin, size = row + 1, 0


class KmerSet:
    """The k-mers of known letters of some stretches of DNA (codes), the same as their reverse complements."""

    def __init__(self, stretches: Iterable[Codes], k: int) -> None:
        self.k = k
        hashes = [self._kmers(codes)[1] for codes in stretches]
        self._keys = np.unique(np.concatenate([*hashes, np.empty(0, dtype=np.uint64)]))

    def __len__(self) -> int:
        return len(self._keys)

    def marks(self, codes: Codes) -> Bools:
        """Mark the letters (n,) that lie in a k-mer of the set."""
        starts, keys = self._kmers(codes)
        if not len(keys) or not len(self._keys):
            return np.zeros(len(codes), dtype=bool)
        order = np.argsort(keys)  # a search in order stays in the cache
        at = np.minimum(np.searchsorted(self._keys, keys[order]), len(self._keys) - 1)
        shared = starts[order[self._keys[at] == keys[order]]]
        return mark_intervals(shared, shared + self.k, len(codes))

    def _kmers(self, codes: Codes) -> tuple[Ints, np.ndarray]:
        """First letter and hash of every k-mer of known letters."""
        if len(codes) < self.k:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        stack = stack_codes([codes])
        starts, _, _ = kmer_starts(stack, self.k, DNA.unknown)
        return starts, _canonical_hashes(stack, self.k, both_strands=True)[starts]


# ----------------------------------------------------------------------------------------------- hashes


def _window_hashes(codes: np.ndarray, k: int) -> np.ndarray:
    """Polynomial hash of every window of ``k`` codes, modulo 2^64, its bits mixed: uint64 (T - k + 1,)."""
    n = len(codes)
    if n < k:
        return np.empty(0, dtype=np.uint64)
    values = np.random.default_rng(_LETTER_SEED).integers(0, 2**64, size=256, dtype=np.uint64)
    prefix = np.zeros(n + 1, dtype=np.uint64)
    np.cumsum(values[codes] * _powers(_BASE, n), out=prefix[1:])
    z = (prefix[k:] - prefix[:-k]) * _powers(_INVERSE, n - k + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _powers(base: int, n: int) -> np.ndarray:
    """Return base**0 ... base**(n-1) modulo 2^64: uint64 (n,)."""
    powers = np.full(n, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


def _canonical_hashes(stack: CodeStack, k: int, both_strands: bool) -> np.ndarray:
    """Hash every window; with both strands a k-mer and its reverse complement have the same hash."""
    forward = _window_hashes(stack.codes, k)
    if not both_strands:
        return forward
    return np.minimum(forward, _window_hashes(reverse_complement_codes(stack.codes), k)[::-1])


def named_relations(
    data: Sequence[LabeledSequence],
    columns: Mapping[str, Sequence[str]],
    group_by: Sequence[str],
    positions: str | None,
    block: int,
) -> dict[str, Ints]:
    """Groups that data name: own, ``columns``, neighbors by ``positions`` (``id`` or two columns)."""
    names = list(dict.fromkeys(name.lower() for name in group_by))
    if any(example.group for example in data) and "group" not in names:
        names.insert(0, "group")
    groups = {f"the same {name}": named_groups(columns[name]) for name in names}
    if positions is None:
        return groups
    if positions == "id":
        contigs, places = positions_from_ids(data)
    else:
        contig, _, place = positions.partition(",")
        contigs = columns[contig.lower()]
        texts = columns[place.lower()]
        for example, text in zip(data, texts, strict=True):
            if not (text.isascii() and text.isdigit()):
                what = f"'{text}' in column '{place}' is not a position"
                raise InputError(what, where=example.where, remedy="give a whole number")
        places = [int(text) for text in texts]
    longest = max((len(example.sequence) for example in data), default=0)
    name = f"neighbors within a block of {block} letters"
    return groups | {name: position_groups(contigs, places, block, longest)}
