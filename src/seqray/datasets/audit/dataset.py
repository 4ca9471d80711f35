"""Labeled sequences as columns: classes, splits, and the letters as written in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet, InputError, Ints, LabeledSequence, files_of

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
