"""Labeled examples in files: tables, one FASTA file per class, or alignments with a table of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict, TypeVar, Unpack

from seqray.core.alphabet import ANY_LETTERS, PROTEIN, Alphabet, infer_alphabet
from seqray.core.errors import InputError, OtherLettersError
from seqray.core.records import Alignment, LabeledSequence
from seqray.io.alignments import read_labeled_alignments, read_labeled_stockholm
from seqray.io.labeled import OnUnread, read_labeled_fastas, read_labeled_table
from seqray.io.records import OnLetters, OnSkip

E = TypeVar("E", LabeledSequence, Alignment)

SplitExamples = tuple[str | None, list[LabeledSequence]]
"""Examples of one file, with the split that is assigned to all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledFiles:
    """Where labeled examples are.

    Attributes
    ----------
    tables
        Split that is assigned to a file, or None, and the file: a table, or alignments.
    fastas
        Split, or None, to the FASTA file of each class.
    alignment_labels
        Table of the labels of alignments.
    query_only
        Whether to take the first row of each alignment alone.
    on_unread
        Called for each table with columns that are not read.
    on_unlabeled
        Called with the table of labels and the number of alignments that it lacks, which are left out.
    """

    tables: Sequence[tuple[str | None, str]] = ()
    fastas: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)
    alignment_labels: str | None = None
    query_only: bool = False
    on_unread: OnUnread | None = None
    on_unlabeled: Callable[[str, int], None] | None = None


class ReadCallbacks(TypedDict, total=False):
    """What is called while sequences are read, see `seqray.io.tables.read_labeled_fastas`."""

    on_letters: OnLetters
    on_skip: OnSkip | None


def read_parts(
    files: LabeledFiles, alphabet: Alphabet, **callbacks: Unpack[ReadCallbacks]
) -> list[SplitExamples]:
    """Read labeled sequences with the splits that their files name.

    Parameters
    ----------
    files, alphabet
        Tables, or FASTA files of classes, and the letters that they may use.
    **callbacks
        See `ReadCallbacks`.
    """
    tables = [
        (split, read_labeled_table(path, alphabet, callbacks.get("on_letters"), files.on_unread))
        for split, path in files.tables
    ]
    fastas = [
        (split, read_labeled_fastas(classes, alphabet, **callbacks))
        for split, classes in files.fastas.items()
    ]
    if not tables and not fastas:
        remedy = "give --train TABLE, or --class LABEL=FASTA for each class"
        raise InputError("no training data", remedy=remedy)
    return tables + fastas


def read_sequence_examples(
    files: LabeledFiles, alphabet: Alphabet, **callbacks: Unpack[ReadCallbacks]
) -> list[LabeledSequence]:
    """Read labeled sequences, each with the split of its file.

    Parameters
    ----------
    files, alphabet, **callbacks
        See `read_parts`.
    """
    return with_named_splits(read_parts(files, alphabet, **callbacks))


def read_inferred_examples(
    files: LabeledFiles, **callbacks: Unpack[ReadCallbacks]
) -> tuple[list[LabeledSequence], Alphabet]:
    """Read labeled sequences, and tell their alphabet by their letters, see `seqray.core.infer_alphabet`.

    Parameters
    ----------
    files, **callbacks
        See `read_parts`.
    """
    return in_inferred_alphabet(read_sequence_examples(files, ANY_LETTERS, **callbacks))


def in_inferred_alphabet(examples: Sequence[LabeledSequence]) -> tuple[list[LabeledSequence], Alphabet]:
    """Write examples in the letters of their alphabet, see `seqray.core.infer_alphabet`.

    Parameters
    ----------
    examples
        With any letters.
    """
    alphabet = infer_alphabet(example.sequence for example in examples)
    try:
        return [replace(e, sequence=alphabet.normalize(e.sequence, e.where)) for e in examples], alphabet
    except OtherLettersError as error:
        letters = alphabet.name if alphabet is PROTEIN else alphabet.name.upper()
        remedy = f"most letters of the data are {letters}: give sequences of one kind"
        raise InputError(error.what, where=error.where, remedy=remedy) from None


def with_named_splits(parts: Sequence[SplitExamples]) -> list[LabeledSequence]:
    """The examples of all parts, each of the split that is assigned to its file, if there is one.

    Raises `InputError` for an example that its file says is of another split.
    """
    return [one for split, examples in parts for one in _assigned(split, examples)]


def _assigned(split: str | None, examples: Sequence[E]) -> Sequence[E]:
    if split is None:
        return examples
    others = [one for one in examples if one.split not in (None, split)]
    if others:
        count = f" ({len(others)} records are not of '{split}')"
        raise InputError(
            f"is of the split '{others[0].split}', but --{split} takes its whole file as '{split}'{count}",
            where=others[0].where,
            remedy="give the file with --train, which keeps its splits, or leave out the column 'split'",
        )
    return [replace(one, split=split) for one in examples]


def read_alignment_examples(files: LabeledFiles, alphabet: Alphabet) -> list[Alignment]:
    """Read labeled alignments.

    InputError is raised where none are named, FASTA files of classes are, or a file can't be used.
    """
    if files.fastas:
        raise InputError("--class takes sequences, not alignments", remedy="give --train TABLE")
    if not files.tables:
        remedy = "give --train TABLE, or --train FILE --alignment-labels TABLE"
        raise InputError("no training data", remedy=remedy)
    paths = [path for _, path in files.tables]
    if files.alignment_labels:
        parts, unlabeled = read_labeled_stockholm(paths, files.alignment_labels, alphabet, files.on_unread)
        if unlabeled and files.on_unlabeled is not None:
            files.on_unlabeled(files.alignment_labels, unlabeled)
    else:
        parts = [read_labeled_alignments(path, alphabet, files.on_unread) for path in paths]
    splits = [split for split, _ in files.tables]
    examples = [one for split, part in zip(splits, parts, strict=True) for one in _assigned(split, part)]
    return [one.take_rows([0]) for one in examples] if files.query_only else examples


def queries(alignments: Sequence[Alignment], window: int) -> list[LabeledSequence]:
    """First rows without gaps, cut to the window: the training input of a sequence model."""
    return [
        LabeledSequence(one.sequence[:window], one.label or "", one.id, one.group, one.split)
        for one in alignments
    ]
