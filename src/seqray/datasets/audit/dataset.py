"""Labeled sequences under audit, and what is counted of them: content, order, copies, relatives, identity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from seqray.core.alphabet import Alphabet, canonical_strand, kmer_counts, stack_sequences
from seqray.core.arrays import Floats, Ints, number_by_appearance
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence, files_of
from seqray.core.results import AuditFigure, Histogram
from seqray.homology.kmers import KmerTable, merge_groups, named_groups
from seqray.homology.similarity import best_matches, homology_groups

WHOLE = "all"  # the split of data without splits
EVERY_CLASS = "*"  # the label of figures over all classes
MAX_DESCRIBED_CLASSES = 20  # that have rules and histograms of their own
_LOWER = bytes(range(ord("a"), ord("z") + 1))
_UPPER = bytes(range(ord("A"), ord("Z") + 1))


class AuditSet:
    """N labeled sequences, column by column, with simple features of each, and what scores are measured on.

    ``lower`` is the share of lower-case letters, ``first_capital`` its index, or the length without any.
    """

    def __init__(
        self,
        examples: Sequence[LabeledSequence],
        alphabet: Alphabet,
        as_written: Sequence[str] | None = None,
        in_file_order: bool = True,
    ) -> None:
        self.classes = tuple(sorted({example.label for example in examples}))
        if len(self.classes) < 2:
            what = f"all examples have the label '{self.classes[0]}'" if self.classes else "no examples"
            raise InputError(what, where=files_of(examples), remedy="an audit compares two classes or more")
        self.alphabet, self.in_file_order = alphabet, in_file_order
        self.sequences = [example.sequence for example in examples]
        self.groups = [example.group for example in examples]
        self.contexts = [example.context for example in examples]
        index = {name: i for i, name in enumerate(self.classes)}
        self.labels = np.array([index[example.label] for example in examples], dtype=np.int64)
        self._set_splits(np.array([example.split or "train" for example in examples]))
        self.named_classes: list[tuple[int | None, str]] = [(None, EVERY_CLASS), *enumerate(self.classes)]
        sizes = np.bincount(self.labels, minlength=len(self.classes))
        largest = sorted(np.argsort(-sizes, kind="stable")[:MAX_DESCRIBED_CLASSES].tolist())
        self.largest_classes = [(label, self.classes[label]) for label in largest]
        self._set_features(self.sequences if as_written is None else as_written)

    def _set_splits(self, splits: np.ndarray) -> None:
        if "train" not in splits or np.all(splits == "train"):
            splits = np.full(len(splits), WHOLE)
        self.splits = splits
        self.parts = [name for name in ("train", "validation", "test", WHOLE) if np.any(splits == name)]
        order = [name for name in ("test", "validation", "train") if name in self.parts]
        self.held_out = order[0] if len(order) > 1 else None
        self.pairs = [(one, other) for i, one in enumerate(order) for other in reversed(order[i + 1 :])]

    def _set_features(self, as_written: Sequence[str]) -> None:
        alphabet, unknown = self.alphabet, self.alphabet.unknown_letter  # for a sequence without letters
        self.letters = letter_counts(self.sequences, alphabet)
        self.length = np.array([len(s) for s in self.sequences], dtype=np.int64)
        self.ambiguous = self.length - self.letters.sum(axis=1)
        self.first = alphabet.encode("".join(s[:1] or unknown for s in self.sequences)).astype(np.int64)
        self.last = alphabet.encode("".join(s[-1:] or unknown for s in self.sequences)).astype(np.int64)
        raw = [text.encode("ascii", "replace") for text in as_written]
        lower = np.array([len(text) - len(text.translate(None, _LOWER)) for text in raw])
        upper = np.array([len(text) - len(text.translate(None, _UPPER)) for text in raw])
        self.lower = lower / np.maximum(lower + upper, 1)
        self.first_capital = np.array(
            [len(text) - len(text.lstrip(_LOWER)) for text in raw], dtype=np.float64
        )
        self.gc = np.full(len(raw), np.nan)
        if alphabet.is_nucleotide:
            strong = self.letters[:, [alphabet.letters.index("G"), alphabet.letters.index("C")]].sum(axis=1)
            self.gc = strong / np.maximum(self.letters.sum(axis=1), 1)

    def __len__(self) -> int:
        return len(self.sequences)

    def target_classes(self) -> list[tuple[int, str]]:
        """Index and name of classes that rules are learned for: one of two, as ``*``, else the largest."""
        return [(1, EVERY_CLASS)] if len(self.classes) == 2 else self.largest_classes

    def rows(self, split: str, label: int | None = None) -> Ints:
        """Indices of the sequences of a split, or of one class of it."""
        chosen = self.splits == split
        return np.flatnonzero(chosen if label is None else chosen & (self.labels == label))

    def take(self, rows: Ints) -> list[str]:
        """Sequences of these rows."""
        return [self.sequences[row] for row in rows.tolist()]


def letter_counts(sequences: Sequence[str], alphabet: Alphabet) -> Ints:
    """Count the canonical letters of each sequence: (N, letters)."""
    size, block = len(alphabet.letters), 5000
    blocks = [sequences[first : first + block] for first in range(0, len(sequences), block)]
    return np.concatenate([kmer_counts(stack_sequences(part, alphabet), 1, size) for part in blocks])


def named_figures(section: str, split: str, label: str, values: Mapping[str, float]) -> list[AuditFigure]:
    """Figures of one section, split and class."""
    return [AuditFigure(section, split, label, quantity, value) for quantity, value in values.items()]


# --- Counts, lengths, letters, ends, case and ambiguous letters of each class and split

BINS = 30


def composition_figures(data: AuditSet, groups: Ints) -> Iterator[AuditFigure]:
    """Describe each split and class; ``groups`` (N,) are numbers of groups of relatives, to be counted."""
    for split in data.parts:
        everything = len(data.rows(split))
        for label, name in data.named_classes:
            rows = data.rows(split, label)
            counts = {"sequences": len(rows), "groups": len(np.unique(groups[rows]))}
            yield from named_figures("counts", split, name, counts | {"share": len(rows) / everything})
            if len(rows):
                for section, values in _described(data, rows).items():
                    yield from named_figures(section, split, name, values)


def _described(data: AuditSet, rows: Ints) -> dict[str, dict[str, float]]:
    """Figures of some rows, by section."""
    length, lower, ambiguous = data.length[rows], data.lower[rows], data.ambiguous[rows]
    quantiles = {"min": 0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1}
    composition = {}
    if data.alphabet.is_nucleotide:
        composition = {"gc_mean": float(data.gc[rows].mean()), "gc_sd": float(data.gc[rows].std())}
    counts = data.letters[rows].sum(axis=0)
    for letter, count in zip(data.alphabet.letters, counts.tolist(), strict=True):
        composition[f"letter_{letter}"] = count / max(int(counts.sum()), 1)
    return {
        "length": {name: float(np.quantile(length, q)) for name, q in quantiles.items()},
        "composition": composition,
        "ends": {
            f"{end}_{letter}": float(np.mean(codes == code))
            for end, codes in (("first", data.first[rows]), ("last", data.last[rows]))
            for code, letter in enumerate(data.alphabet.letters)
        },
        "case": {
            "all_lower": float(np.mean(lower == 1)),
            "all_upper": float(np.mean(lower == 0)),
            "mixed": float(np.mean((lower > 0) & (lower < 1))),
        },
        "ambiguity": {
            "with_ambiguous": float(np.mean(ambiguous > 0)),
            "letters": float(ambiguous.sum() / max(length.sum(), 1)),
        },
    }


def composition_histograms(data: AuditSet) -> list[Histogram]:
    """Count lengths, and GC of nucleotides, of each class in each split, in the same bins."""
    quantities = {"length": data.length.astype(np.float64)}
    if data.alphabet.is_nucleotide:
        quantities["gc"] = data.gc
    histograms = []
    for quantity, values in quantities.items():
        low, high = float(values.min()), float(values.max())
        edges = np.linspace(low, high, BINS + 1) if high > low else np.array([low - 0.5, high + 0.5])
        for split in data.parts:
            for label, name in data.largest_classes:
                histograms.append(histogram(quantity, split, name, values[data.rows(split, label)], edges))
    return histograms


def histogram(quantity: str, split: str, label: str, values: Floats, edges: Floats) -> Histogram:
    """Count values (n,) between edges (bins + 1,), the borders of the bins."""
    counts = np.histogram(values, bins=edges)[0]
    return Histogram(quantity, split, label, tuple(edges.tolist()), tuple(counts.tolist()))


# --- Whether the order of the rows depends on their labels, and exact copies


def runs_test(labels: np.ndarray) -> tuple[int, float, float]:
    """Runs of one label in (N,), their mean over orders, and deviations above it (Mood 1940, section 4)."""
    n = len(labels)
    runs = 1 + int(np.count_nonzero(labels[1:] != labels[:-1])) if n else 0
    sizes = np.unique(labels, return_counts=True)[1].astype(np.float64)
    if n < 2:
        return runs, float(runs), math.nan
    square, cube = float((sizes**2).sum()), float((sizes**3).sum())
    expected = (n * (n + 1) - square) / n
    variance = (square * (square + n * (n + 1)) - 2 * n * cube - n**3) / (n**2 * (n - 1))
    return runs, expected, (runs - expected) / math.sqrt(variance) if variance > 1e-12 else math.nan


def order_figures(data: AuditSet) -> Iterator[AuditFigure]:
    """Test the order of the rows of each split, if the data are in the order of one table."""
    for split in data.parts if data.in_file_order else ():
        runs, expected, z = runs_test(data.labels[data.rows(split)])
        yield from named_figures("order", split, "*", {"runs": runs, "expected_runs": expected, "z": z})


def copy_figures(data: AuditSet) -> Iterator[AuditFigure]:
    """Count copies: of a text, of its reverse complement only, and of those with more than one label.

    Across splits, the sequences of the first that also occur in the second.
    """
    plain = number_by_appearance(data.sequences)
    canonical = number_by_appearance(canonical_strand(s, data.alphabet) for s in data.sequences)
    for split in data.parts:
        for label, name in data.named_classes:
            rows = data.rows(split, label)
            texts, sequences = len(np.unique(plain[rows])), len(np.unique(canonical[rows]))
            counts = {"duplicates": len(rows) - texts, "strand_duplicates": texts - sequences}
            yield from named_figures("copies", split, name, counts)
    for one, other in data.pairs:
        theirs = data.rows(other)
        for label, name in data.named_classes:
            rows = data.rows(one, label)
            same = np.isin(plain[rows], plain[theirs])
            reversed_only = np.isin(canonical[rows], canonical[theirs]) & ~same
            counts = {"duplicates": int(same.sum()), "strand_duplicates": int(reversed_only.sum())}
            yield from named_figures("copies", f"{one} to {other}", name, counts)
    pairs = np.unique(np.stack((canonical, data.labels), axis=1), axis=0)
    contradicted = np.bincount(pairs[:, 0]) > 1
    counts = {
        "contradicted": int(contradicted.sum()),
        "contradicted_rows": int(contradicted[canonical].sum()),
    }
    yield from named_figures("copies", "all", "*", counts)


# --- Relatives within a class and across splits: shared k-mers, identities, and named groups that leak

IDENTITY = 0.8
MAX_ALIGNED_LETTERS = 4_000_000  # in about a minute; the time grows with the square
LEVELS = (0.8, 0.9, 0.99)
QUANTILES = {"median": 0.5, "q90": 0.9, "q99": 0.99, "max": 1.0}
MAX_ALIGNED_SEQUENCES = 2000  # of the test part, with training
MAX_ALIGNMENT_CELLS = 1e8  # for all of them; of longer sequences fewer are sampled
MIN_ALIGNED_SEQUENCES = 50


def relative_groups(data: AuditSet, table: KmerTable, k: int) -> tuple[Ints, str]:
    """Group relatives by k-mers, identity or named groups: int64 (N,), and what that is in words."""
    groupings, words = [table.groups(), named_groups(data.groups)], [f"a shared {k}-mer"]
    if data.length.sum() <= MAX_ALIGNED_LETTERS:
        groupings.append(homology_groups(data.sequences, IDENTITY, data.alphabet))
        words.append(f"{100 * IDENTITY:.0f} % identity")
    if any(group is not None for group in data.groups):
        words.append("a named group")
    return merge_groups(*groupings), " or ".join(words)


def relative_figures(data: AuditSet, table: KmerTable) -> Iterator[AuditFigure]:
    """Count sequences that share a k-mer within a split or class, across splits, and between named groups."""
    for split in data.parts:
        rows = data.rows(split)
        in_class = table.sharing_within(rows, data.labels)
        for label, name in data.named_classes:
            chosen = table.sharing_within(rows) if label is None else in_class[data.labels[rows] == label]
            yield from _sharing(split, name, chosen)
    for one, other in data.pairs:
        rows = data.rows(one)
        across = table.sharing_across(rows, data.rows(other))
        for label, name in data.named_classes:
            chosen = across if label is None else across[data.labels[rows] == label]
            yield from _sharing(f"{one} to {other}", name, chosen)
    named = named_groups(data.groups)
    if named.max(initial=-1) < 0:
        return
    yield AuditFigure("groups", "all", "*", "groups", int(named.max()) + 1)
    for one, other in data.pairs:
        mine, theirs = named[data.rows(one)], named[data.rows(other)]
        both = np.isin(mine, theirs) & (mine >= 0)
        counts = {"on_both_sides": len(np.unique(mine[both])), "sequences": int(both.sum())}
        yield from named_figures("groups", f"{one} to {other}", "*", counts)
    yield AuditFigure("groups", "all", "*", "sharing_between", int(table.sharing_between(named).sum()))


def _sharing(split: str, label: str, shares: np.ndarray) -> list[AuditFigure]:
    counts = {"sharing": int(shares.sum()), "sharing_share": shares.sum() / max(len(shares), 1)}
    return named_figures("relatives", split, label, counts)


def identity_figures(
    data: AuditSet, train: Ints, rows: Ints, seed: int
) -> tuple[list[AuditFigure], list[Histogram]]:
    """Identity of tested rows to the most similar training row; ``seed`` draws a sample of too many rows."""
    most = max(MIN_ALIGNED_SEQUENCES, int(MAX_ALIGNMENT_CELLS / int(data.length[rows].max()) ** 2))
    most = min(MAX_ALIGNED_SEQUENCES, most)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    best, _ = best_matches(data.take(train), data.take(rows), data.alphabet)
    pair = f"{data.held_out} to train" if data.held_out else f"{WHOLE}, random fold to the others"
    figures = [AuditFigure("identity", pair, "*", "aligned", len(rows))]
    for label, name in data.named_classes:
        values = best if label is None else best[data.labels[rows] == label]
        if len(values):
            summary = {quantity: float(np.quantile(values, p)) for quantity, p in QUANTILES.items()}
            summary |= {f"at_least_{level:g}": float(np.mean(values >= level)) for level in LEVELS}
            figures += named_figures("identity", pair, name, summary)
    edges = np.linspace(0.0, 1.0, 21)
    histograms = [
        histogram("identity", pair, name, best[data.labels[rows] == label], edges)
        for label, name in data.largest_classes
    ]
    return figures, histograms
