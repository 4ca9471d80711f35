"""From labeled sequences to checked classes, and to training and validation parts that don't leak."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import ALPHABETS, Alphabet, Example, InputError, LabeledSequence, RunConfig, files_of
from seqray.homology import PARTS, kmer_groups, kmer_length, merge_groups
from seqray.training.data_checks import check_classes, check_lengths
from seqray.training.hold_out import hold_out_in_turn, related_groups


@dataclass(frozen=True)
class Partition:
    """The data of a run, checked and divided.

    Attributes
    ----------
    classes
        Class names [K] in the order of the logits.
    labels
        (N,) class index of each sequence, those of the test part included.
    train, validation
        Indices of the sequences of each part; test sequences are in neither.
    """

    classes: tuple[str, ...]
    labels: np.ndarray
    train: np.ndarray
    validation: np.ndarray

    def sha256(self) -> str:
        """Hash of which sequences are learned from and which are held out."""
        return hashlib.sha256(self.train.tobytes() + b"/" + self.validation.tobytes()).hexdigest()

    def counts(self) -> dict[str, dict[str, int]]:
        """Sequences of each class in each part."""
        parts = {"train": self.train, "validation": self.validation}
        return {
            part: {name: int(np.sum(self.labels[rows] == i)) for i, name in enumerate(self.classes)}
            for part, rows in parts.items()
        }


def partition(
    data: Sequence[Example],
    config: RunConfig,
    classes: Sequence[str] | None = None,
    member: int = 1,
) -> Partition:
    """Check labels and lengths, and choose the validation part of a member.

    Where the data name a split, their training and validation parts are taken; a validation part that they
    don't name is held out from training by whole groups, another one for each member.

    Parameters
    ----------
    data
        All examples; those of split ``test`` are left alone.
    config
        Of the run; ``seed`` decides what is held out.
    classes
        Order of the class names; sorted, with the positive one last, by default.
    member
        Number of the member, from 1.

    Raises
    ------
    InputError, ConfigError
        For data that can't be trained on.
    """
    rows = np.array([i for i, example in enumerate(data) if _split_of(example) != "test"], dtype=np.int64)
    if not len(rows):
        raise InputError("no example to train on", remedy="give examples of split 'train' or of none")
    try:
        names = check_classes(Counter(data[i].label for i in rows), config, classes)
    except InputError as error:
        raise InputError(error.what, where=files_of(data), remedy=error.remedy) from None
    check_lengths([data[i] for i in rows], config)
    index = {name: i for i, name in enumerate(names)}
    labels = np.array([index.get(example.label or "", -1) for example in data], dtype=np.int64)
    groups = related_groups([data[i] for i in rows], ALPHABETS[config.model.alphabet])
    chosen = np.array([data[i].split == "validation" for i in rows])
    named = bool(chosen.any())
    if not named:
        chosen = hold_out_in_turn(labels[rows], groups, config.data.validation, config.seed, member)
    result = Partition(names, labels, rows[~chosen], rows[chosen])
    for part, counts in result.counts().items():
        for name, count in counts.items():
            if count == 0:
                own = 0 if named else len(np.unique(groups[labels[rows] == index[name]]))
                raise _no_example(part, name, own)
    return result


def _no_example(part: str, name: str, groups: int) -> InputError:
    """The error of a part without examples of a class; without groups, the data name the parts."""
    what = f"the {part} part holds no example of class '{name}'"
    if not groups:
        return InputError(what, remedy="name some in the column 'split'")
    return InputError(
        f"{what}: copies and examples of one group stay together, and this class has {groups} of these",
        remedy="give examples that differ more, or name their split in a column 'split'",
    )


def _split_of(example: Example) -> str:
    split = example.split or "train"
    if split not in PARTS:
        raise InputError(f"unknown split '{split}'", where=example.where, remedy="give " + ", ".join(PARTS))
    return split


def count_related(data: Sequence[Example], part: Partition, alphabet: Alphabet) -> int:
    """Count the validation examples with a relative in the training part.

    Relatives are those of `related_groups`, and sequences that share a k-mer of `kmer_length`, such as
    overlapping windows. The latter decide no part: where windows cover a genome, all are one group.
    """
    examples = [data[i] for i in np.concatenate([part.train, part.validation])]
    groups = [related_groups(examples, alphabet)]
    if isinstance(examples[0], LabeledSequence):
        sequences = [one.sequence for one in examples]
        groups.append(kmer_groups(sequences, kmer_length(alphabet), alphabet=alphabet))
    known, count = merge_groups(*groups), len(part.train)
    return int(np.isin(known[count:], known[:count]).sum())
