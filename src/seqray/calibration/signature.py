"""Signatures of genomes, and the sketch of training data."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from seqray.core.alphabet import DNA, Alphabet, CodeStack, kmer_indices, kmer_starts, stack_sequences
from seqray.core.arrays import Codes
from seqray.core.card import Card
from seqray.core.card_parts import SIGNATURE_WORDS, ContextWords, Sketch
from seqray.core.records import SequenceRecord

# --- Which training data a whole file resembles, by its 4-mer frequencies

K, LETTERS = 4, 4
MIN_WORDS = 10_000  # fewer, about 130 windows of 81 letters, are too few
MAX_GENOME_DISTANCE = 0.03  # below, it is the genome itself or one that is hard to distinguish from it
MAX_SPECIES_DISTANCE = 0.05  # along one genome .01 or .02, another genus .05 to .15: benchmarks/signature.py
MIN_LEAD = 0.001  # contexts that differ by less, such as strains, can not be distinguished
_UNITS = 100_000  # shares are kept as whole numbers of these parts
_CHUNK = 1 << 18  # letters counted at once


_words = np.indices((LETTERS,) * K).reshape(K, -1)
_place = LETTERS ** np.arange(K - 1, -1, -1)
# Each 4-mer and its reverse complement have the same number: int64 (256,), from 0 to 135.
_STRANDLESS = np.unique(
    np.minimum(_place @ _words, _place @ (LETTERS - 1 - _words[::-1])), return_inverse=True
)[1]
SIZE = SIGNATURE_WORDS


class KmerCounter:
    """Counts 4-mers in a stream of sequences, on both strands together."""

    _k = K

    def __init__(self, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._counts = np.zeros(SIZE, dtype=np.int64)
        self._held: list[str] = []
        self._letters = 0

    def watch(self, records: Iterable[SequenceRecord]) -> Iterator[SequenceRecord]:
        """Hand records on, counted."""
        for record in records:
            self.add(record.sequence)
            yield record
            del record  # else it is in memory while the next one is read

    def add(self, sequence: str) -> None:
        """Take the words of one sequence."""
        for start in range(0, len(sequence), _CHUNK):  # pieces overlap, so that each word lies in just one
            piece = sequence[start : start + _CHUNK + self._k - 1]
            self._held.append(piece)
            self._letters += len(piece)
            if self._letters >= _CHUNK:
                self._flush()

    @property
    def counts(self) -> np.ndarray:
        """Count of each 4-mer so far: int64 (136,)."""
        self._flush()
        return self._counts.copy()

    def _flush(self) -> None:
        self._counts += strandless_counts(stack_sequences(self._held, self._alphabet))
        self._held, self._letters = [], 0


def strandless_counts(stack: CodeStack) -> np.ndarray:
    """Count the 4-mers of all sequences, each with its reverse complement: int64 (136,)."""
    words = kmer_indices(stack, kmer_starts(stack, K, LETTERS)[0], K, LETTERS)
    return np.bincount(_STRANDLESS[words], minlength=SIZE)


@dataclass(frozen=True, slots=True)
class ContextDistance:
    """How far a file is from one context of the training data."""

    context: str | None  # name of the context; None for all training data of a model without contexts
    # total variation distance (0 to 1) of the 4-mer frequencies from the best mixture of the classes of that
    # context, minus the distance expected from sampling
    distance: float

    @property
    def is_foreign(self) -> bool:
        """Whether the file is farther away than another genome of the same species would be."""
        return self.distance > MAX_SPECIES_DISTANCE

    @property
    def is_close(self) -> bool:
        """Whether the file is as near as pieces of the same genome are."""
        return self.distance <= MAX_GENOME_DISTANCE


def fit_signature(
    stack: CodeStack, labels: np.ndarray, contexts: Sequence[str | None]
) -> tuple[ContextWords, ...] | None:
    """Count the 4-mers of N training sequences by context, without unknown ones; None if all are few."""
    names = np.array([name or "" for name in contexts], dtype=str)
    entries = []
    for name in sorted({name for name in contexts if name}) or [""]:
        tables = []
        for label in np.unique(labels):
            chosen = (names == name) & (labels == label)
            codes = stack.codes[np.repeat(chosen, stack.lengths)]
            tables.append(strandless_counts(CodeStack(codes, stack.lengths[chosen])))
        large = [table / table.sum() for table in tables if table.sum() >= MIN_WORDS]
        if large:
            shares = np.rint(np.array(large) * _UNITS).astype(np.int64)
            entries.append(ContextWords(name or None, shares, sum(int(table.sum()) for table in tables)))
    return tuple(entries) or None


class Signature:
    """4-mer frequencies (classes, 136) of each context of the training data, (None,) without any."""

    def __init__(self, entries: Sequence[ContextWords]) -> None:
        self.entries = entries
        self.contexts = tuple(entry.context for entry in entries)
        self.shares = tuple(entry.shares / entry.shares.sum(axis=1, keepdims=True) for entry in entries)
        self.words = tuple(entry.words for entry in entries)

    def compare(self, counts: np.ndarray) -> list[ContextDistance]:
        """Compare 4-mer counts (136,) with each context, the nearest first; none below `MIN_WORDS`.

        The shares of classes are unknown, so the distance is from the best-fitting mixture of them.
        """
        n = int(counts.sum())
        if n < MIN_WORDS:
            return []
        observed = counts / n
        found = [
            ContextDistance(
                name, max(_mixture_distance(observed, shares) - _sampling_distance(observed, n, words), 0.0)
            )
            for name, shares, words in zip(self.contexts, self.shares, self.words, strict=True)
        ]
        return sorted(found, key=lambda likeness: likeness.distance)

    def is_mixture(self, counts: np.ndarray) -> bool:
        """Whether 4-mer counts (136,) are nearer to all contexts, more than two, together than to any one."""
        found = self.compare(counts)
        if not found or len(self.contexts) < 3:
            return False
        n, words = int(counts.sum()), np.array(self.words)
        together = words @ np.array([shares.mean(axis=0) for shares in self.shares]) / words.sum()
        distance = np.abs(counts / n - together).sum() / 2 - _sampling_distance(together, n, words.sum())
        return bool(distance <= min(MAX_SPECIES_DISTANCE, found[0].distance))

    def nearest_context(self, counts: np.ndarray) -> str | None:
        """The context that 4-mer counts (136,) are as near to as pieces of its genome; None if none.

        None, too, where the next one is not foreign, and less than twice as far or within `MIN_LEAD`.
        """
        nearest, *others = self.compare(counts) or [ContextDistance(None, np.inf)]
        near = [other for other in others if not other.is_foreign]
        tied = any(other.distance < 2 * nearest.distance + MIN_LEAD for other in near)
        return nearest.context if nearest.is_close and not tied else None

    def closest_pair(self, counts: np.ndarray) -> tuple[ContextDistance, ContextDistance] | None:
        """The two contexts whose mixture is nearest to 4-mer counts (136,); None for too few of either."""
        n = int(counts.sum())
        pairs = list(combinations(range(len(self.contexts)), 2))
        if n < MIN_WORDS or not pairs:
            return None
        observed = counts / n
        distances = [
            _mixture_distance(observed, np.concatenate((self.shares[i], self.shares[j])))
            - _sampling_distance(observed, n, min(self.words[i], self.words[j]))
            for i, j in pairs
        ]
        (i, j), distance = pairs[int(np.argmin(distances))], max(min(distances), 0.0)
        return ContextDistance(self.contexts[i], distance), ContextDistance(self.contexts[j], distance)


def signature_of(card: Card) -> Signature | None:
    """The `Signature` of a model; None if its card has none."""
    return Signature(card.domain.signature) if card.domain and card.domain.signature else None


def _mixture_distance(observed: np.ndarray, shares: np.ndarray) -> float:
    """Total variation distance from the mixture of the rows that is nearest by least squares."""
    from scipy.optimize import nnls  # slow to import, and few inputs need it

    weights, _ = nnls(shares.T, observed)
    if not weights.any():  # nothing in common
        return 1.0
    mixture = weights @ shares
    return float(np.abs(observed - mixture / mixture.sum()).sum() / 2)


def _sampling_distance(shares: np.ndarray, n: int, words: int) -> float:
    """Total variation distance to expect of two samples of one distribution: ``n`` and ``words`` k-mers."""
    deviation = np.sqrt(shares * (1 - shares) * (1 / n + 1 / words))
    return float(deviation.sum() * np.sqrt(2 / np.pi) / 2)


# --- A sample of the training sequences on the card, as hashes, to recognize some of them in other data

SAMPLE = 1000  # hashes: 5 kB on the card
_ALL = 1 << 32


@dataclass(frozen=True, slots=True)
class SketchCount:
    """How many of some sequences, or words of a genome, are known to be training data."""

    known: int  # those that the model was trained on
    # those that the sample decides on: ``known`` of them are in it, the others were not trained on
    checked: int

    @property
    def share(self) -> float:
        """Of those that the sample decides on."""
        return self.known / self.checked if self.checked else 0.0


def make_sketch(keys: Iterable[str]) -> Sketch:
    """Keep the lowest hashes of the training sequences, each in one form; the limit is 2^32 if all are kept.

    Hashes of another set below the limit are a random part of it, which is in training or not (Broder 1997).
    """
    return _lowest(np.unique(_hashes(keys)), SAMPLE, _ALL)


def _lowest(hashes: np.ndarray, most: int, limit: int) -> Sketch:
    """The lowest of hashes that are unique, in ascending order, and all that there are below a limit."""
    packed = base64.b64encode(hashes[:most].astype("<u4").tobytes()).decode()
    return Sketch(packed, limit if len(hashes) <= most else int(hashes[most - 1]) + 1)


def count_in_sketch(sketch: Sketch, keys: Iterable[str]) -> SketchCount:
    """Count which of some sequences, in the form that `make_sketch` got, are training data."""
    return _count_hashes(sketch, _hashes(keys))


def _count_hashes(sketch: Sketch, hashes: np.ndarray) -> SketchCount:
    return SketchCount(int(np.isin(hashes, sketch.numbers).sum()), int((hashes < sketch.limit).sum()))


def _hashes(keys: Iterable[str]) -> np.ndarray:
    digests = (hashlib.blake2b(key.encode(), digest_size=4).digest() for key in keys)
    return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint32)


# --- A sample of the words of a genome, as hashes, to recognize its species by what other files share of it

WORD = 21  # bases; genomes of one identity share its 21st power: .95 gives .34, .85 gives .03
GENOME_SAMPLE = 2000  # hashes of a genome: 11 kB on the card
MIN_SHARE = 0.25  # of the words: another strain has .56 or more, another species .04 or less
MIN_CHECKED = 12  # hashes, of about 28 kb where a genome has 4.6 Mb
MIN_RELATED = 0.05  # of the words: a nearer relative than the species of benchmarks/identity.py
MIN_STATED = 100  # hashes, so that five or more are shared by it; of about 230 kb where a genome has 4.6 Mb
_MAX_HELD = 1 << 18  # hashes of a file of any size


class GenomeSketcher(KmerCounter):
    """Keeps the lowest hashes, below ``limit``, of words of `WORD` letters; both strands are one.

    Their share estimates identity (Ondov et al. 2016, Mash; Brown and Irber 2016, sourmash).
    """

    _k = WORD

    def __init__(self, alphabet: Alphabet, most: int = _MAX_HELD, limit: int = _ALL) -> None:
        super().__init__(alphabet)
        self._most, self._kept = most, _lowest(np.empty(0, np.uint32), most, limit)

    @property
    def sketch(self) -> Sketch:
        """Of all that was added."""
        self._flush()
        return self._kept

    def compare(self, genomes: Mapping[str, Sketch]) -> list[tuple[str, SketchCount]]:
        """What was added shares so many words with each genome, the nearest first."""
        mine = self.sketch.numbers
        found = [(name, _count_hashes(sketch, mine)) for name, sketch in genomes.items()]
        return sorted(found, key=lambda one: -one[1].share)

    def _flush(self) -> None:
        # A letter that is unknown ends each sequence, so that no word lies in two.
        hashes = _word_hashes(self._alphabet.encode("N".join(self._held)))
        hashes = np.union1d(hashes[hashes < self._kept.limit], self._kept.numbers)
        self._kept = _lowest(hashes, self._most, self._kept.limit)
        self._held, self._letters = [], 0


def sketch_genome(contigs: Iterable[str]) -> Sketch:
    """Sketch a genome for the card."""
    sketcher = GenomeSketcher(DNA, GENOME_SAMPLE)
    for contig in contigs:
        sketcher.add(contig)
    return sketcher.sketch


def _word_hashes(codes: Codes) -> np.ndarray:
    """Hashes of all words without unknown letters: uint32, mixed by the finalizer of SplitMix64."""
    n = max(len(codes) - WORD + 1, 0)
    forward, backward = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    for offset in range(WORD if n else 0):
        letter = codes[offset : offset + n].astype(np.uint64) & 3
        forward = 4 * forward + letter
        backward += (3 - letter) << (2 * offset)
    unknown = np.concatenate(([0], np.cumsum(codes >= LETTERS)))
    mixed = np.minimum(forward, backward)[unknown[WORD:] == unknown[:n]] if n else forward
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> shift)) * np.uint64(factor)
    return ((mixed ^ (mixed >> 31)) >> 32).astype(np.uint32)
