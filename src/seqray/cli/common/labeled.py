"""Labeled sequences on the command line: the options that name their files, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seqray.cli.common.arguments import Options, option
from seqray.core import InputError

if TYPE_CHECKING:
    from seqray.core import Alphabet, LabelledSequence
    from seqray.io.sequences import OnLetters, OnSkip

REMEDY = "give --train TABLE, or --class LABEL=FASTA for each class"
ALPHABET_NAMES = ("dna", "rna", "protein")
Part = tuple["str | None", "list[LabelledSequence]"]
"""Examples of one file, with the split that its option assigns to all of them."""


ALPHABET = option("--alphabet", "letters of the sequences", "dna", choices=ALPHABET_NAMES)


class DataOptions(Options, heading="data: tables, or one FASTA file per class"):
    """Tables of labeled sequences, or one FASTA file per class."""

    train: tuple[str, ...] = option(
        "--train TABLE",
        "TSV or CSV with the columns sequence, label[, id, group, split, context]; may be repeated",
    )
    validation: tuple[str, ...] = option("--validation TABLE", "the same, all of it of split 'validation'")
    test: tuple[str, ...] = option("--test TABLE", "the same, all of it of split 'test'")
    class_files: tuple[str, ...] = option(
        "--class LABEL=FASTA", "FASTA file of one class; repeat for each class"
    )
    test_class_files: tuple[str, ...] = option("--test-class LABEL=FASTA", "the same, of split 'test'")

    def tables(self) -> list[tuple[str | None, str]]:
        """Tables, each with the split that its option names."""
        named = {None: self.train, "validation": self.validation, "test": self.test}
        return [(split, table) for split, tables in named.items() for table in tables]

    @property
    def has_fastas(self) -> bool:
        """Whether FASTA files of classes are given."""
        return bool(self.class_files or self.test_class_files)

    def files(self) -> list[str]:
        """All files, ``-`` for standard input.

        Raises
        ------
        InputError
            Where tables and FASTA files are given, or for a class without a file or one that is named twice.
        """
        if self.tables() and self.has_fastas:
            raise InputError("both tables and --class are given", remedy=REMEDY)
        fastas = (
            class_paths("--class", self.class_files),
            class_paths("--test-class", self.test_class_files),
        )
        return [table for _, table in self.tables()] + [path for paths in fastas for path in paths.values()]


class TableOptions(DataOptions):
    """The same, where tables may also be named without an option."""

    unnamed: tuple[str, ...] = option("TABLE*", "the same as --train TABLE; '-' is standard input")

    def tables(self) -> list[tuple[str | None, str]]:
        """Tables, those without an option first."""
        return [*((None, table) for table in self.unnamed), *super().tables()]


def read_data(
    options: DataOptions,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[LabelledSequence]:
    """Read labeled sequences, as `read_parts` does, each of the split that its option names."""
    return with_named_splits(read_parts(options, alphabet, on_letters, on_skip))


def with_named_splits(parts: Sequence[Part]) -> list[LabelledSequence]:
    """The examples of all parts, each of the split that its option names, if it names one."""
    return [replace(e, split=split) if split else e for split, examples in parts for e in examples]


def read_parts(
    options: DataOptions,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[Part]:
    """Read labeled sequences with the splits that their files name.

    Parameters
    ----------
    options
        Names of the files.
    alphabet
        Letters of the sequences.
    on_letters
        Receives the letters of each example, in order, as its file has them before case is folded.
    on_skip
        Receives each FASTA record without letters; where None, such a record is an error.

    Raises
    ------
    InputError
        Where tables and FASTA files or neither are given, a class is named twice, or a file can't be used.
    """
    from seqray.io.tables import read_labelled_fastas, read_labelled_table

    if not options.files():
        raise InputError("no training data", remedy=REMEDY)
    if not options.has_fastas:
        return [
            (split, read_labelled_table(table, alphabet, on_letters)) for split, table in options.tables()
        ]
    data = class_paths("--class", options.class_files)
    test = class_paths("--test-class", options.test_class_files)
    return [
        (split, read_labelled_fastas(files, alphabet, on_letters, on_skip))
        for split, files in ((None, data), ("test", test))
    ]


def class_paths(name: str, items: Sequence[str]) -> dict[str, str]:
    """Turn ``LABEL=FASTA`` words into a mapping of label to path."""
    paths: dict[str, str] = {}
    for item in items:
        label, equals, path = item.partition("=")
        if not (label and equals and path):
            raise InputError(f"'{name} {item}' names no file", remedy=f"write {name} LABEL=FASTA")
        if label in paths:
            raise InputError(f"class '{label}' is given twice", remedy="put its sequences into one file")
        paths[label] = path
    return paths
