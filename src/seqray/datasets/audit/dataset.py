"""Labeled data under audit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Floats, Ints
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence, files_of
from seqray.core.results import AuditFigure
from seqray.core.text import format_interval
from seqray.homology.split import grouped_folds, random_folds
from seqray.metrics.bootstrap import mcc_and_auroc

# --- Labeled sequences as columns: classes, splits, and the letters as written in the file

WHOLE = "all"  # the split of data without splits
EVERY_CLASS = "*"  # the label of figures over all classes
MAX_DESCRIBED_CLASSES = 20  # that have rules and histograms of their own


@dataclass(frozen=True, slots=True, eq=False)
class AuditSet:
    """Labeled sequences, column by column.

    Attributes
    ----------
    sequences
        N sequences, folded and validated.
    letters
        The same N as written in the file.
    labels : int64 (N,)
        Index of each class.
    classes
        Names of the classes, sorted.
    splits : str (N,)
        ``train``, ``validation`` or ``test``; ``all`` everywhere if the data have no split.
    groups, contexts
        (N,) names in the data, or None.
    alphabet
        Of the sequences.
    in_file_order
        Whether the order of the examples is that of one table, so that it may be informative.
    """

    sequences: list[str]
    letters: Sequence[str]
    labels: Ints
    classes: tuple[str, ...]
    splits: np.ndarray
    groups: Sequence[str | None]
    contexts: Sequence[str | None]
    alphabet: Alphabet
    in_file_order: bool

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def parts(self) -> list[str]:
        """Splits that occur, training first."""
        return [name for name in ("train", "validation", "test", WHOLE) if np.any(self.splits == name)]

    @property
    def held_out(self) -> str | None:
        """The split that scores are measured on, if there are both it and a training split."""
        measured = [name for name in ("test", "validation") if name in self.parts]
        return measured[0] if measured and "train" in self.parts else None

    def pairs_of_parts(self) -> list[tuple[str, str]]:
        """Pairs of splits to compare, the held-out one first."""
        order = [name for name in ("test", "validation", "train") if name in self.parts]
        return [(one, other) for i, one in enumerate(order) for other in reversed(order[i + 1 :])]

    def labels_and_all(self) -> Iterator[tuple[int | None, str]]:
        """Index and name for figures: None and ``*`` for all classes, then each class."""
        yield None, EVERY_CLASS
        yield from enumerate(self.classes)

    def target_classes(self) -> list[tuple[int, str]]:
        """Index and name of classes that rules are learned for: one of two, as ``*``, else the largest."""
        return [(1, EVERY_CLASS)] if len(self.classes) == 2 else self.largest_classes()

    def rows(self, split: str, label: int | None = None) -> Ints:
        """Indices of the sequences of a split, or of one class of it."""
        chosen = self.splits == split
        return np.flatnonzero(chosen if label is None else chosen & (self.labels == label))

    def largest_classes(self) -> list[tuple[int, str]]:
        """Index and name of the largest classes, in the order of their names."""
        sizes = np.bincount(self.labels, minlength=len(self.classes))
        chosen = sorted(np.argsort(-sizes, kind="stable")[:MAX_DESCRIBED_CLASSES].tolist())
        return [(label, self.classes[label]) for label in chosen]

    def take(self, rows: Ints) -> list[str]:
        """Sequences of these rows."""
        return [self.sequences[row] for row in rows.tolist()]


def make_set(
    examples: Sequence[LabeledSequence],
    alphabet: Alphabet,
    letters: Sequence[str] | None = None,
    in_file_order: bool = True,
) -> AuditSet:
    """Arrange examples for an audit.

    Raises an InputError for fewer than two classes, or letters that don't match the examples.

    Parameters
    ----------
    examples
        Those without a split belong to training. If all do, or none does, the data are one whole.
    letters
        Letters of each example as written in the file; by default those of the examples.
    in_file_order
        Whether the order of the examples is that of one table.
    """
    classes = tuple(sorted({example.label for example in examples}))
    if len(classes) < 2:
        found = f"all examples have the label '{classes[0]}'" if classes else "no examples"
        raise InputError(found, where=files_of(examples), remedy="an audit compares two classes or more")
    if letters is not None and len(letters) != len(examples):
        raise InputError(f"{len(letters)} sequences as read but {len(examples)} examples")
    index = {name: i for i, name in enumerate(classes)}
    splits = np.array([example.split or "train" for example in examples])
    if "train" not in splits or np.all(splits == "train"):
        splits = np.full(len(examples), WHOLE)
    return AuditSet(
        sequences=[example.sequence for example in examples],
        letters=[example.sequence for example in examples] if letters is None else letters,
        labels=np.array([index[example.label] for example in examples], dtype=np.int64),
        classes=classes,
        splits=splits,
        groups=[example.group for example in examples],
        contexts=[example.context for example in examples],
        alphabet=alphabet,
        in_file_order=in_file_order,
    )


# --- Figures by name, and numbers as text


class FigureTable:
    """Figures by section, split, class and quantity."""

    def __init__(self, figures: Iterable[AuditFigure]) -> None:
        self.figures = list(figures)
        self._by_key = {(f.section, f.split, f.label, f.quantity): f for f in self.figures}

    def get(self, section: str, split: str, quantity: str, label: str = EVERY_CLASS) -> AuditFigure | None:
        """One figure, None if it is missing; by default that of all classes."""
        return self._by_key.get((section, split, label, quantity))

    def value(self, section: str, split: str, quantity: str, label: str = EVERY_CLASS) -> float:
        """Value of a figure, by default that of all classes; NaN if it is missing."""
        found = self.get(section, split, quantity, label)
        return found.value if found else math.nan

    def named(self, section: str, quantity: str) -> list[AuditFigure]:
        """Figures of one name in a section."""
        return [f for f in self.figures if f.section == section and f.quantity == quantity]

    def ending(self, section: str, end: str) -> list[AuditFigure]:
        """Figures of a section whose name ends so."""
        return [f for f in self.figures if f.section == section and f.quantity.endswith(end)]

    def counts_across(self, section: str, quantity: str) -> list[tuple[str, str, float, float]]:
        """Counts above 0 that compare two splits: their names, the count, the size of the first."""
        found = []
        for f in self.named(section, quantity):
            one, to, other = f.split.partition(" to ")
            if to and f.label == EVERY_CLASS and f.value > 0:
                found.append((one, other, f.value, self.value("counts", one, "sequences")))
        return found


def percent(share: float) -> str:
    """Write ``0.73 %`` or ``55 %``."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def part(count: float, of: float) -> str:
    """Write ``43 of 5920`` with the share."""
    return f"{count:.0f} of {of:.0f} ({percent(count / of)})"


def with_interval(f: AuditFigure) -> str:
    """Write a figure of merit with its interval."""
    return f"{f.value:.3f}{format_interval(f.low, f.high)}"


def of_class(label: str) -> str:
    """Name the class a figure is about; nothing where it is about all of them."""
    return "" if label == EVERY_CLASS else f" '{label}'"


def place_of_given(settings: Mapping[str, str]) -> str:
    """Where figures of the type ``given`` were measured: on random folds of data without a split."""
    return "on the given split" if settings["held_out"] else "on random folds"


def plural(count: float, one: str, many: str) -> str:
    """``one`` for a count of 1, else ``many``."""
    return one if count == 1 else many


def baseline_name(quantity: str) -> str:
    """Name of a baseline in words."""
    names = {"kmer_logistic": "logistic regression on k-mers", "position_weights": "a position weight matrix"}
    return names.get(quantity.rpartition("_")[0], quantity)


# --- Training and test rows: the split of the data, random folds, or folds that keep relatives together

FOLDS = 5
GIVEN, UNRELATED, GROUPED = "given", "unrelated", "grouped"


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Pairs of rows to train and to test on; no row is tested twice.

    ``name`` is ``given`` (the split of the data, or random folds if there is none) or ``grouped``; the
    description is in words. A pair is (training rows, test rows), int64 arrays.
    """

    name: str
    description: str
    pairs: tuple[tuple[Ints, Ints], ...]

    @property
    def tested(self) -> Ints:
        """All test rows, in the order of the pairs."""
        return np.concatenate([rows for _, rows in self.pairs])

    def covers(self, truth: Bools) -> bool:
        """Whether every training part has examples of a class, truth (N,), and others."""
        return all(truth[train].any() and not truth[train].all() for train, _ in self.pairs)


def given_validation(data: AuditSet, seed: int) -> Validation | None:
    """Train and test on the given split, or on random folds if there is none."""
    if data.held_out:
        description = f"the given split, measured on '{data.held_out}'"
        pair = (data.rows("train"), data.rows(data.held_out))
        return _if_possible(Validation(GIVEN, description, (pair,)), data)
    return cross_validation(data, None, seed)


def cross_validation(data: AuditSet, groups: Ints | None, seed: int) -> Validation | None:
    """Cross-validate over all of the data.

    Classes of fewer examples (or groups) than folds are left out, if two others remain.

    ``groups`` (N,) are numbers of groups to keep whole, None for random folds. The result is None if fewer
    than two classes have two examples or groups.
    """
    units = np.arange(len(data)) if groups is None else groups
    pairs = np.unique(np.stack((data.labels, units), axis=1), axis=0)
    sizes = np.bincount(pairs[:, 0], minlength=len(data.classes))
    least = FOLDS if np.sum(sizes >= FOLDS) >= 2 else 2
    kept = np.flatnonzero(sizes >= least)
    if len(kept) < 2:
        return None
    rows = np.flatnonzero(np.isin(data.labels, kept))
    count = min(FOLDS, int(sizes[kept].min()))
    if groups is None:
        name, kind, folds = GIVEN, "random folds", random_folds(data.labels[rows], count, seed)
    else:
        name, kind = GROUPED, "folds that keep relatives together"
        folds = grouped_folds(data.labels[rows], groups[rows], count, seed)
    left = f", without classes of fewer than {least}" if len(kept) < len(sizes) else ""
    parts = tuple((rows[folds != fold], rows[folds == fold]) for fold in range(count))
    return _if_possible(Validation(name, f"{count} {kind}{left}", parts), data)


def _if_possible(validation: Validation, data: AuditSet) -> Validation | None:
    """None if a training part has fewer than two classes, or a test part is empty."""
    possible = all(len(np.unique(data.labels[train])) >= 2 and len(rows) for train, rows in validation.pairs)
    return validation if possible else None


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """How intervals are computed: (N,) numbers of groups that are drawn whole, number of draws, and seed."""

    groups: Ints
    resamples: int
    seed: int

    def figures(
        self, prefix: AuditFigure, rows: Ints, truth: Bools, scores: Floats, calls: Bools
    ) -> list[AuditFigure]:
        """MCC and AUROC of a two-class rule, with intervals.

        ``prefix`` has section, split, label and beginning of the name of the figures. ``rows`` (M,) are those
        of the data that were tested; truth, scores and calls (M,) are of these rows.
        """
        found = mcc_and_auroc(truth, scores, calls, self.groups[rows], self.resamples, self.seed)
        return [
            replace(prefix, quantity=f"{prefix.quantity}_{metric}", value=m.value, low=m.low, high=m.high)
            for metric, m in found.items()
        ]
