"""Labelled sequences on the command line: the arguments that name them, and how they are read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seqray.errors import InputError
from seqray.io.tables import read_labelled_fastas, read_labelled_table

if TYPE_CHECKING:
    from seqray.alphabet import Alphabet
    from seqray.io.fasta import OnLetters, OnSkip
    from seqray.records import LabelledSequence

SPLIT_TABLES = ("validation", "test")


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


def read_data(
    args: argparse.Namespace,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[LabelledSequence]:
    """Read what `add_data_arguments` took, and count it for the line on resources.

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
    tables = [*args.train, *args.validation, *args.test]
    fastas = [*args.class_files, *args.test_class_files]
    if bool(tables) == bool(fastas):
        wrong = "both tables and --class are given" if tables else "no training data"
        raise InputError(wrong, remedy="give --train TABLE, or --class LABEL=FASTA for each class")
    if fastas:
        files = class_paths("--class", args.class_files)
        test_files = class_paths("--test-class", args.test_class_files)
        data = read_labelled_fastas(files, alphabet, on_letters, on_skip)
        test = read_labelled_fastas(test_files, alphabet, on_letters, on_skip)
        args.records = len(data) + len(test)
        return [*data, *(replace(example, split="test") for example in test)]
    data = [e for table in args.train for e in read_labelled_table(table, alphabet, on_letters)]
    for split in SPLIT_TABLES:
        for table in getattr(args, split):
            examples = read_labelled_table(table, alphabet, on_letters)
            data += [replace(example, split=split) for example in examples]
    args.records = len(data)
    return data


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
