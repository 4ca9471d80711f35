"""Counts, lengths, letters, ends, case and ambiguous letters of each class and split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from seqray.core import Alphabet, Floats, Ints, kmer_counts, stack_sequences
from seqray.core.results import AuditFigure, Histogram
from seqray.datasets.audit.dataset import AuditSet

BINS = 30
_LOWER = bytes(range(ord("a"), ord("z") + 1))
_UPPER = bytes(range(ord("A"), ord("Z") + 1))


class SequenceFeatures:
    """Simple features of each sequence, (N,) each.

    Attributes
    ----------
    length, ambiguous : int64
        Letters, and those of them that are ambiguous.
    letters : int64 (N, letters)
        Counts of the canonical letters.
    first, last : int64
        Code of the first and last letter.
    lower, first_capital : float64
        Share of lower-case letters as written in the file; index of the first capital, or the length.
    gc : float64
        Share of G and C among the canonical letters; NaN for protein.
    """

    def __init__(self, data: AuditSet) -> None:
        alphabet = data.alphabet
        self.letters = letter_counts(data.sequences, alphabet)
        self.length = np.array([len(s) for s in data.sequences], dtype=np.int64)
        self.ambiguous = self.length - self.letters.sum(axis=1)
        unknown = alphabet.unknown_letter  # for a sequence without letters
        self.first = alphabet.encode("".join(s[:1] or unknown for s in data.sequences)).astype(np.int64)
        self.last = alphabet.encode("".join(s[-1:] or unknown for s in data.sequences)).astype(np.int64)
        raw = [text.encode("ascii", "replace") for text in data.letters]
        lower = [len(text) - len(text.translate(None, _LOWER)) for text in raw]
        upper = [len(text) - len(text.translate(None, _UPPER)) for text in raw]
        cased = np.maximum(np.add(lower, upper), 1)
        self.lower = np.array(lower) / cased
        self.first_capital = np.array([_first_capital(text) for text in raw], dtype=np.float64)
        self.gc = _gc(self.letters, alphabet)


def _first_capital(text: bytes) -> int:
    return len(text) - len(text.lstrip(_LOWER))


def letter_counts(sequences: Sequence[str], alphabet: Alphabet) -> Ints:
    """Count the canonical letters of each sequence: (N, letters)."""
    size = len(alphabet.letters)
    blocks = [
        kmer_counts(stack_sequences(sequences[i : i + 5000], alphabet), 1, size)
        for i in range(0, len(sequences), 5000)
    ]
    return np.concatenate(blocks)


def _gc(letters: Ints, alphabet: Alphabet) -> Floats:
    if not alphabet.is_nucleotide:
        return np.full(len(letters), np.nan)
    strong = letters[:, [alphabet.letters.index("G"), alphabet.letters.index("C")]].sum(axis=1)
    return strong / np.maximum(letters.sum(axis=1), 1)


def composition_figures(data: AuditSet, features: SequenceFeatures, groups: Ints) -> list[AuditFigure]:
    """Describe each class in each split, and each split as a whole.

    ``groups`` (N,) are numbers of groups of relatives, to be counted.
    """
    figures = []
    for split in data.parts:
        everything = len(data.rows(split))
        for label, name in data.labels_and_all():
            rows = data.rows(split, label)
            figures += [
                AuditFigure("counts", split, name, "sequences", len(rows)),
                AuditFigure("counts", split, name, "groups", len(np.unique(groups[rows]))),
                AuditFigure("counts", split, name, "share", len(rows) / everything),
            ]
            if len(rows):
                figures += [
                    AuditFigure(section, split, name, quantity, float(value))
                    for section, quantity, value in _describe(features, rows, data.alphabet)
                ]
    return figures


def _describe(features: SequenceFeatures, rows: Ints, alphabet: Alphabet) -> Iterator[tuple[str, str, float]]:
    length = features.length[rows]
    for quantity, q in {"min": 0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1}.items():
        yield "length", quantity, float(np.quantile(length, q))
    if alphabet.is_nucleotide:
        yield "composition", "gc_mean", float(features.gc[rows].mean())
        yield "composition", "gc_sd", float(features.gc[rows].std())
    counts = features.letters[rows].sum(axis=0)
    for letter, count in zip(alphabet.letters, counts, strict=True):
        yield "composition", f"letter_{letter}", count / max(counts.sum(), 1)
    for end, codes in (("first", features.first[rows]), ("last", features.last[rows])):
        for code, letter in enumerate(alphabet.letters):
            yield "ends", f"{end}_{letter}", float(np.mean(codes == code))
    lower = features.lower[rows]
    yield "case", "all_lower", float(np.mean(lower == 1))
    yield "case", "all_upper", float(np.mean(lower == 0))
    yield "case", "mixed", float(np.mean((lower > 0) & (lower < 1)))
    yield "ambiguity", "with_ambiguous", float(np.mean(features.ambiguous[rows] > 0))
    yield "ambiguity", "letters", features.ambiguous[rows].sum() / max(length.sum(), 1)


def composition_histograms(data: AuditSet, features: SequenceFeatures) -> list[Histogram]:
    """Count lengths, and GC of nucleotides, of each class in each split, in the same bins."""
    quantities = {"length": features.length.astype(np.float64)}
    if data.alphabet.is_nucleotide:
        quantities["gc"] = features.gc
    return [
        histogram(quantity, split, name, values[data.rows(split, label)], edges)
        for quantity, values in quantities.items()
        for edges in [_edges(values)]
        for split in data.parts
        for label, name in data.largest_classes()
    ]


def _edges(values: Floats) -> Floats:
    low, high = float(values.min()), float(values.max())
    if high == low:
        return np.array([low - 0.5, high + 0.5])
    return np.linspace(low, high, BINS + 1)


def histogram(quantity: str, split: str, label: str, values: Floats, edges: Floats) -> Histogram:
    """Count values (n,) between edges (bins + 1,), the borders of the bins."""
    counts = np.histogram(values, bins=edges)[0]
    return Histogram(quantity, split, label, tuple(edges.tolist()), tuple(counts.tolist()))
