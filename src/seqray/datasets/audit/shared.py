"""Which sequences share a word: the length of word that is no coincidence, keys of words, and relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import (
    Alphabet,
    CodeStack,
    reverse_complement,
    reverse_complement_codes,
    stack_sequences,
    word_indices,
    word_starts,
)

LONGEST_NUCLEOTIDE_WORD = 40
LONGEST_PROTEIN_WORD = 10
CHANCE = 0.001  # expected number of words that a sequence shares with all the others by chance, at most
CHUNK = 4_000_000  # letters hashed at once: bounds memory
MOST_WORDS = 1 << 25  # words kept; of more, an even sample by their hash


def word_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Choose the length of the words that relatives share.

    Half the lower quartile of the lengths, at most 40 nucleotides or 10 residues; but never so short that
    more than 1 sequence in 1000 would share a word with any other by chance. Chance is judged by the
    composition: letters that meet with probability q make words of k letters meet with q**k.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    half = int(np.quantile(lengths, 0.25, method="lower")) // 2
    longest = LONGEST_NUCLEOTIDE_WORD if alphabet.is_nucleotide else LONGEST_PROTEIN_WORD
    return max(min(half, longest), chance_length(sequences, alphabet), 1)


def chance_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Shortest word of which a sequence shares fewer than `CHANCE` with all the others by coincidence."""
    counts = np.zeros(len(alphabet.letters))
    for i in range(0, len(sequences), 10_000):
        codes = stack_sequences(sequences[i : i + 10_000], alphabet).codes
        counts += np.bincount(codes, minlength=len(counts) + 1)[: len(counts)]
    total = counts.sum()
    meet = float(((counts / total) ** 2).sum()) if total else 1.0
    if meet >= 1:  # a single letter: every word of it is shared, whatever its length
        return 1
    strands = 2 if alphabet.is_nucleotide else 1
    pairs = strands * total * total / len(sequences)  # words of one sequence times words of all
    return max(1, math.ceil(math.log(max(pairs, 1.0) / CHANCE) / -math.log(meet)))


@dataclass(frozen=True, slots=True, eq=False)
class WordTable:
    """Words of many sequences, sorted by word and then by sequence.

    Attributes
    ----------
    key : uint64 (M,)
        Hash of each word; a word and its reverse complement have the same.
    owner : int32 (M,)
        The sequence it stands in. A word that occurs in it twice is listed once.
    count
        Number of sequences.
    """

    key: np.ndarray
    owner: np.ndarray
    count: int


def word_table(sequences: Sequence[str], k: int, alphabet: Alphabet) -> WordTable:
    """List the words of ``k`` letters, and each sequence shorter than that as a whole.

    Words that hold an ambiguous letter are left out. Above `MOST_WORDS` letters only words whose hash ends in
    some zero bits are kept, the same ones in every sequence, so that memory is bounded and long shared
    stretches are still seen.
    """
    total = sum(map(len, sequences))
    mask = np.uint64((1 << max(0, math.ceil(math.log2(max(total, 1) / MOST_WORDS)))) - 1)
    keys, owners, first, letters = [], [], 0, 0
    for i, sequence in enumerate(sequences):
        letters += len(sequence)
        if letters >= CHUNK or i == len(sequences) - 1:
            key, owner = _chunk(sequences[first : i + 1], k, alphabet)
            kept = (key & mask) == 0
            keys.append(key[kept])
            owners.append((owner[kept] + first).astype(np.int32))
            first, letters = i + 1, 0
    if not keys:
        return WordTable(np.empty(0, np.uint64), np.empty(0, np.int32), 0)
    return _sorted(np.concatenate(keys), np.concatenate(owners), len(sequences))


def _sorted(key: np.ndarray, owner: np.ndarray, count: int) -> WordTable:
    order = np.lexsort((owner, key))
    key, owner = key[order], owner[order]
    fresh = np.ones(len(key), dtype=bool)
    fresh[1:] = (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])
    return WordTable(key[fresh], owner[fresh], count)


def _chunk(sequences: Sequence[str], k: int, alphabet: Alphabet) -> tuple[np.ndarray, np.ndarray]:
    stack = stack_sequences(sequences, alphabet)
    start, owner, _ = word_starts(stack, k, len(alphabet.letters))
    key = _hashes(stack, start, k, len(alphabet.letters))
    if alphabet.is_nucleotide:
        other = CodeStack(reverse_complement_codes(stack.codes), stack.lengths[::-1])
        key = np.minimum(key, _hashes(other, len(stack.codes) - k - start, k, 4))
    short = np.flatnonzero((stack.lengths < k) & (stack.lengths > 0))
    whole = np.array([_whole(sequences[i], alphabet) for i in short.tolist()], dtype=np.uint64)
    return np.concatenate((key, whole)), np.concatenate((owner, short))


def _hashes(stack: CodeStack, start: np.ndarray, k: int, letters: int) -> np.ndarray:
    """Hash words in pieces whose number fits 62 bits: uint64 (M,)."""
    piece = int(62 / math.log2(letters))
    key = np.full(len(start), k, dtype=np.uint64)
    for begin in range(0, k, piece):
        word = word_indices(stack, start + begin, min(piece, k - begin), letters)
        key = _mix(key * np.uint64(0x9E3779B97F4A7C15) + word.astype(np.uint64))
    return key


def _whole(sequence: str, alphabet: Alphabet) -> int:
    if alphabet.is_nucleotide:
        sequence = min(sequence, reverse_complement(sequence, alphabet))
    key = np.zeros(1, dtype=np.uint64)
    for letter in sequence.encode("ascii"):
        key = _mix(key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(letter))
    return int(key[0])


def _mix(z: np.ndarray) -> np.ndarray:
    """Scatter 64 bits (the finaliser of splitmix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def related_across(table: WordTable, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which of ``rows`` share a word with one of ``others``, none of them a row: bool (len(rows),)."""
    here, there = np.zeros(table.count, dtype=bool), np.zeros(table.count, dtype=bool)
    here[rows], there[others] = True, True
    known = np.unique(table.key[there[table.owner]])
    mine = here[table.owner]
    found = np.zeros(table.count, dtype=bool)
    found[table.owner[mine][np.isin(table.key[mine], known)]] = True
    return found[rows]


def related_within(table: WordTable, rows: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
    """Tell which of ``rows`` share a word with another one of them: bool (len(rows),).

    With ``labels`` (N,) only words shared with a sequence of the same label count.
    """
    chosen = np.zeros(table.count, dtype=bool)
    chosen[rows] = True
    inside = chosen[table.owner]
    key, owner = table.key[inside], table.owner[inside]
    label = np.zeros(len(key), dtype=np.int64) if labels is None else labels[owner]
    if labels is not None:
        order = np.lexsort((label, key))
        key, owner, label = key[order], owner[order], label[order]
    same = np.flatnonzero((key[1:] == key[:-1]) & (label[1:] == label[:-1]))  # neighbours differ in owner
    found = np.zeros(table.count, dtype=bool)
    found[owner[same]] = True
    found[owner[same + 1]] = True
    return found[rows]
