"""Order, copies and composition of records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from seqray.core.alphabet import Alphabet, canonical_strand
from seqray.core.arrays import Floats, Ints, number_by_appearance
from seqray.core.letters import kmer_counts, stack_sequences
from seqray.core.results import AuditFigure, Histogram
from seqray.datasets.audit.dataset import AuditSet

# --- Whether the order of the rows depends on their labels: the runs test


def runs_test(labels: np.ndarray) -> tuple[int, float, float]:
    """Count runs of one label, and compare with labels in random order.

    Parameters
    ----------
    labels
        (N,) of any number of classes.

    Returns
    -------
    runs
        Stretches of equal labels.
    expected
        Their mean over all orders of the same labels.
    z
        Standard deviations above the mean: far below 0 if labels come in blocks; NaN if all orders have the
        same number of runs.

    References
    ----------
    Mood 1940, The distribution theory of runs, section 4: mean and variance for any number of classes.
    """
    n = len(labels)
    runs = 1 + int(np.count_nonzero(labels[1:] != labels[:-1])) if n else 0
    sizes = np.unique(labels, return_counts=True)[1].astype(np.float64)
    if n < 2:
        return runs, float(runs), math.nan
    square, cube = float((sizes**2).sum()), float((sizes**3).sum())
    expected = (n * (n + 1) - square) / n
    variance = (square * (square + n * (n + 1)) - 2 * n * cube - n**3) / (n**2 * (n - 1))
    return runs, expected, (runs - expected) / math.sqrt(variance) if variance > 1e-12 else math.nan


def order_figures(data: AuditSet) -> list[AuditFigure]:
    """Test the order of the rows of each split, if the data are in the order of one table."""
    if not data.in_file_order:
        return []
    figures = []
    for split in data.parts:
        tested = zip(("runs", "expected_runs", "z"), runs_test(data.labels[data.rows(split)]), strict=True)
        figures += [AuditFigure("order", split, "*", quantity, float(value)) for quantity, value in tested]
    return figures


# --- Exact copies, on either strand, within and across splits, and copies with different labels

SECTION = "copies"


def copy_figures(data: AuditSet) -> list[AuditFigure]:
    """Count copies.

    ``duplicates`` are sequences beyond the first of each text, ``strand_duplicates`` those beyond the first
    of each text or its reverse complement, minus the former. Across splits the two count sequences of the
    first split that also occur in the second. ``contradicted`` are different sequences (on either strand)
    with more than one label, ``contradicted_rows`` the examples that carry them.
    """
    plain = number_by_appearance(data.sequences)
    canonical = number_by_appearance(canonical_strand(s, data.alphabet) for s in data.sequences)
    figures = []
    for split in data.parts:
        for label, name in data.labels_and_all():
            rows = data.rows(split, label)
            texts, sequences = len(np.unique(plain[rows])), len(np.unique(canonical[rows]))
            figures += _pair(split, name, len(rows) - texts, texts - sequences)
    for one, other in data.pairs_of_parts():
        theirs = data.rows(other)
        for label, name in data.labels_and_all():
            mine = data.rows(one, label)
            same = np.isin(plain[mine], plain[theirs])
            reversed_only = np.isin(canonical[mine], canonical[theirs]) & ~same
            figures += _pair(f"{one} to {other}", name, int(same.sum()), int(reversed_only.sum()))
    return [*figures, *_contradictions(data, canonical)]


def _pair(split: str, name: str, same: int, reverse: int) -> Iterator[AuditFigure]:
    yield AuditFigure(SECTION, split, name, "duplicates", same)
    yield AuditFigure(SECTION, split, name, "strand_duplicates", reverse)


def _contradictions(data: AuditSet, canonical: Ints) -> Iterator[AuditFigure]:
    pairs = np.unique(np.stack((canonical, data.labels), axis=1), axis=0)
    label_counts = np.bincount(pairs[:, 0])
    yield AuditFigure(SECTION, "all", "*", "contradicted", int(np.sum(label_counts > 1)))
    yield AuditFigure(SECTION, "all", "*", "contradicted_rows", int(np.sum(label_counts[canonical] > 1)))


# --- Counts, lengths, letters, ends, case and ambiguous letters of each class and split

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
