"""Labelled sequences on the command line: the arguments that name them, and how they are read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seqray.core import InputError
from seqray.io.tables import read_labelled_fastas, read_labelled_table

if TYPE_CHECKING:
    from seqray.core import Alphabet, LabelledSequence
    from seqray.io.sequences import OnLetters, OnSkip

SPLIT_TABLES = ("validation", "test")

REMEDY = "give --train TABLE, or --class LABEL=FASTA for each class"
Part = tuple["str | None", "list[LabelledSequence]"]
"""What is read, with the split that an option names for all of it."""


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Tables of labelled sequences, or one FASTA file a class."""
    data = parser.add_argument_group("data: tables, or one FASTA file a class")
    data.add_argument(
        "--train",
        action="append",
        default=[],
        metavar="TABLE",
        help="TSV or CSV with the columns sequence, label[, id, group, split, context]; may be repeated",
    )
    for split in SPLIT_TABLES:
        data.add_argument(
            f"--{split}",
            action="append",
            default=[],
            metavar="TABLE",
            help=f"the same, all of it of split '{split}'",
        )
    data.add_argument(
        "--class",
        action="append",
        default=[],
        dest="class_files",
        metavar="LABEL=FASTA",
        help="FASTA file of one class; repeat for each class",
    )
    data.add_argument(
        "--test-class",
        action="append",
        default=[],
        dest="test_class_files",
        metavar="LABEL=FASTA",
        help="the same, of split 'test'",
    )


def data_files(args: argparse.Namespace) -> list[str]:
    """Files that `add_data_arguments` took, ``-`` for standard input.

    Raises
    ------
    InputError
        Where tables and FASTA files are given, or for a class without a file or one that is named twice.
    """
    if (args.train or args.validation or args.test) and (args.class_files or args.test_class_files):
        raise InputError("both tables and --class are given", remedy=REMEDY)
    files = class_paths("--class", args.class_files)
    test_files = class_paths("--test-class", args.test_class_files)
    return [*args.train, *args.validation, *args.test, *files.values(), *test_files.values()]


def read_data(
    args: argparse.Namespace,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[LabelledSequence]:
    """Read what `add_data_arguments` took; its parameters and errors are those of `read_parts`."""
    return marked(read_parts(args, alphabet, on_letters, on_skip))


def marked(parts: Sequence[Part]) -> list[LabelledSequence]:
    """The examples of all parts, each of the split that its option names, if it names one."""
    return [replace(e, split=split) if split else e for split, examples in parts for e in examples]


def read_parts(
    args: argparse.Namespace,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[Part]:
    """Read what `add_data_arguments` took as the files have it, and count it for the line on resources.

    Parameters
    ----------
    on_letters
        Is told the letters of each example, in order, as they stand in its file before case is folded.
    on_skip
        Is told of each FASTA record without letters; where None, such a record is an error.

    Raises
    ------
    InputError
        Where tables and FASTA files or neither are given, a class is named twice, or a file can't be used.
    """
    if not data_files(args):
        raise InputError("no training data", remedy=REMEDY)
    if args.class_files or args.test_class_files:
        files = class_paths("--class", args.class_files)
        test_files = class_paths("--test-class", args.test_class_files)
        data = read_labelled_fastas(files, alphabet, on_letters, on_skip)
        test = read_labelled_fastas(test_files, alphabet, on_letters, on_skip)
        parts: list[Part] = [(None, data), ("test", test)]
    else:
        named = [(None, table) for table in args.train]
        named += [(split, table) for split in SPLIT_TABLES for table in getattr(args, split)]
        parts = [(split, read_labelled_table(table, alphabet, on_letters)) for split, table in named]
    args.records = sum(len(examples) for _, examples in parts)
    return parts


def class_paths(option: str, items: Sequence[str]) -> dict[str, str]:
    """Turn ``LABEL=FASTA`` words into a mapping of label to path."""
    paths: dict[str, str] = {}
    for item in items:
        label, equals, path = item.partition("=")
        if not (label and equals and path):
            raise InputError(f"'{option} {item}' names no file", remedy=f"write {option} LABEL=FASTA")
        if label in paths:
            raise InputError(f"class '{label}' is given twice", remedy="put its sequences into one file")
        paths[label] = path
    return paths
