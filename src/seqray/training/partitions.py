"""Parts for training, validation and test."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.alphabet import ALPHABETS, Alphabet, canonical_strand
from seqray.core.arrays import number_by_appearance
from seqray.core.card import Card
from seqray.core.errors import InputError
from seqray.core.records import Alignment, Example, LabeledSequence, files_of
from seqray.core.run_config import RunConfig
from seqray.homology.kmers import kmer_groups, merge_groups, named_groups, word_length
from seqray.homology.options import PARTS
from seqray.homology.split import deal_groups
from seqray.training.data_facts import check_classes, check_lengths

# --- Hashes of training data, which tell whether sequences were learned from


def content_sha256(data: Sequence[Example]) -> str:
    """Hash only sequences and labels, to recognize the same data in another order or split."""
    rows = sorted({f"{_letters(example)}\t{example.label or ''}\n" for example in data})
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def learned_keys(card: Card, data: Sequence[Example]) -> Iterator[str]:
    """What `seqray.calibration.signature.make_sketch` hashes: windows without flanks, or alignments."""
    alphabet = ALPHABETS[card.model.alphabet]
    for example in data:
        letters = _letters(example)
        is_sequence = isinstance(example, LabeledSequence)
        yield canonical_strand(card.trim_flanks(letters), alphabet) if is_sequence else letters


def data_sha256(data: Sequence[Example]) -> str:
    """Hash sequence, label, group, split, context and subclass of all examples in their order."""
    digest = hashlib.sha256()
    for example in data:
        row = [_letters(example), example.label or "", example.group or "", example.split or ""]
        row += [example.context] if example.context else []
        row += [f"subclass={example.subclass}"] if example.subclass else []
        digest.update(("\t".join(row) + "\n").encode())
    return digest.hexdigest()


def _letters(example: Example) -> str:
    """Letters of a sequence, checksum of an alignment."""
    if isinstance(example, Alignment):
        return hashlib.sha256(repr(example.codes.shape).encode() + example.codes.tobytes()).hexdigest()
    return example.sequence


# --- Groups of relatives, and validation parts that keep them together


def related_groups(data: Sequence[Example], alphabet: Alphabet) -> np.ndarray:
    """Numbers (N,) that members of one group and copies, on either strand of nucleotides, share."""
    copies = number_by_appearance(canonical_strand(example.sequence, alphabet) for example in data)
    return merge_groups(copies, named_groups([example.group for example in data]))


def hold_out(labels: np.ndarray, groups: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Hold out a ``share`` of each class by whole groups: bool (N,); those of one row are drawn at random."""
    alone = np.bincount(groups)[groups] == 1
    held = np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng(seed)
    for k in np.unique(labels):
        rows = np.flatnonzero(alone & (labels == k))
        count = min(max(round(share * len(rows)), 1), len(rows) - 1)  # both parts get some of each class
        held[rng.permutation(rows)[: max(count, 0)]] = True
    shared = np.flatnonzero(~alone)
    n_groups = len(np.unique(groups[shared]))
    if n_groups >= (2 if not alone.any() else 1 / min(share, 1 - share)):  # else all are learned from
        held[shared] = deal_groups(labels[shared], groups[shared], (1 - share, share), seed) == 1
    return held


# --- From labeled sequences to checked classes, and to training and validation parts that don't leak


@dataclass(frozen=True)
class Partition:
    """The data of a run, checked and divided: class index (N,) of each; test examples are in no part."""

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


MIN_GROUPS = 10  # of each class, to hold out relatives together


def learned_rows(
    data: Sequence[Example], config: RunConfig, classes: Sequence[str] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Check the labels; rows that are no test examples, and the names of the classes in their order."""
    for example in data:
        if example.split not in (None, "", *PARTS):
            remedy = "give " + ", ".join(PARTS)
            raise InputError(f"unknown split '{example.split}'", where=example.where, remedy=remedy)
    rows = np.array([i for i, example in enumerate(data) if example.split != "test"], dtype=np.int64)
    if not len(rows):
        raise InputError("no example to train on", remedy="give examples of split 'train' or of none")
    try:
        names = check_classes(Counter(data[i].label for i in rows), config, classes)
    except InputError as error:
        raise InputError(error.what, where=files_of(data), remedy=error.remedy) from None
    return rows, names


def partition(data: Sequence[Example], config: RunConfig, classes: Sequence[str] | None = None) -> Partition:
    """Check labels and lengths, and choose the validation part, which all members hold out.

    Parts that the data name are taken. Classes are sorted, the positive one last, without ``classes``.
    """
    rows, names = learned_rows(data, config, classes)
    check_lengths([data[i] for i in rows], config)
    index = {name: i for i, name in enumerate(names)}
    labels = np.array([index.get(example.label or "", -1) for example in data], dtype=np.int64)
    learned, alphabet = [data[i] for i in rows], ALPHABETS[config.model.alphabet]
    groups = word_groups(learned, alphabet)
    each = min(len(np.unique(groups[labels[rows] == k])) for k in np.unique(labels[rows]))
    if each < MIN_GROUPS or np.bincount(groups).max() > config.data.validation * len(groups):
        # Windows cover a genome, or all sequences are mutants of one: k-mers make few groups.
        groups = related_groups(learned, alphabet)
    chosen = np.array([data[i].split == "validation" for i in rows])
    named = bool(chosen.any())
    if not named:
        chosen = hold_out(labels[rows], groups, config.data.validation, config.seed)
    result = Partition(names, labels, rows[~chosen], rows[chosen])
    for part, counts in result.counts().items():
        for name, count in counts.items():
            if count == 0:
                what = f"the {part} part holds no example of class '{name}'"
                if named:
                    raise InputError(what, remedy="name some in the column 'split'")
                own = len(np.unique(groups[labels[rows] == index[name]]))
                raise InputError(
                    f"{what}: copies and examples of one group stay together, and this class has {own} of "
                    "these",
                    remedy="give examples that differ more, or name their split in a column 'split'",
                )
    return result


def word_groups(data: Sequence[Example], alphabet: Alphabet) -> np.ndarray:
    """Number the examples so that those of `related_groups`, and those that share a k-mer, share a number."""
    groups = related_groups(data, alphabet)
    word = relative_word(data, alphabet)
    if not word:
        return groups
    return merge_groups(groups, kmer_groups([one.sequence for one in data], word, alphabet=alphabet))


def relative_word(data: Sequence[Example], alphabet: Alphabet) -> int:
    """Letters of a k-mer that makes two sequences relatives; 0 for alignments."""
    if not isinstance(data[0], LabeledSequence):
        return 0
    return word_length([one.sequence for one in data], alphabet)


def count_related(data: Sequence[Example], part: Partition, alphabet: Alphabet) -> int:
    """Count the validation examples with a relative in the training part, as `word_groups` finds them."""
    examples = [data[i] for i in np.concatenate([part.train, part.validation])]
    known, count = word_groups(examples, alphabet), len(part.train)
    return int(np.isin(known[count:], known[:count]).sum())
