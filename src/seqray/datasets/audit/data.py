"""Labelled sequences as columns: classes, splits, and the letters as they stood in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet, InputError, LabelledSequence

WHOLE = "all"  # the split of data that name none
LARGEST = 20  # classes that have rules and histograms of their own


@dataclass(frozen=True, slots=True, eq=False)
class AuditSet:
    """Labelled sequences, column by column.

    Attributes
    ----------
    sequences
        N sequences, folded and validated.
    letters
        The same N as they stood in the file.
    labels : int64 (N,)
        Index of each class.
    classes
        Names of the classes, sorted.
    splits : str (N,)
        ``train``, ``validation`` or ``test``; ``all`` everywhere if the data name no split.
    groups, contexts
        (N,) as the data name them, None where they don't.
    alphabet
        Of the sequences.
    in_file_order
        Whether the order of the examples is that of one table, so that it may tell something.
    """

    sequences: list[str]
    letters: Sequence[str]
    labels: np.ndarray
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

    def rows(self, split: str, label: int | None = None) -> np.ndarray:
        """Indices of the sequences of a split, and of one class of it."""
        chosen = self.splits == split
        return np.flatnonzero(chosen if label is None else chosen & (self.labels == label))

    def largest_classes(self, most: int = LARGEST) -> list[tuple[int, str]]:
        """Index and name of the largest classes, in the order of their names."""
        sizes = np.bincount(self.labels, minlength=len(self.classes))
        chosen = sorted(np.argsort(-sizes, kind="stable")[:most].tolist())
        return [(label, self.classes[label]) for label in chosen]

    def take(self, rows: np.ndarray) -> list[str]:
        """Sequences of these rows."""
        return [self.sequences[row] for row in rows.tolist()]


def make_set(
    examples: Sequence[LabelledSequence],
    alphabet: Alphabet,
    letters: Sequence[str] | None = None,
    in_file_order: bool = True,
) -> AuditSet:
    """Arrange examples for an audit.

    Parameters
    ----------
    examples
        Those without a split belong to training where others name one. Where none names a split, or nothing
        is left for training, the data are taken as a whole.
    alphabet
        Of the sequences.
    letters
        Letters of each example as they stood in the file; those of the examples where not given.
    in_file_order
        Whether the order of the examples is that of one table.

    Raises
    ------
    InputError
        For fewer than two classes, or letters that don't go with the examples.
    """
    classes = tuple(sorted({example.label for example in examples}))
    if len(classes) < 2:
        found = f"all examples have the label '{classes[0]}'" if classes else "no examples"
        raise InputError(found, remedy="an audit compares two classes or more")
    if letters is not None and len(letters) != len(examples):
        raise InputError(f"{len(letters)} sequences as read but {len(examples)} examples")
    index = {name: i for i, name in enumerate(classes)}
    splits = np.array([example.split or "train" for example in examples])
    if "train" not in splits or not any(example.split for example in examples):
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
