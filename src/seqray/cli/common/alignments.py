"""Alignments on the command line: how they are read, labelled and cut."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from seqray.cli.common.options import positive_int, read_inputs
from seqray.core import ConfigError, InputError

if TYPE_CHECKING:
    from seqray.core import Alignment, Alphabet, LabelledSequence
    from seqray.io.sequences import Duplicates, OnSkip


def add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """What a model of alignments reads."""
    group = parser.add_argument_group("alignments, for models that read them")
    group.add_argument(
        "--rows",
        type=positive_int,
        metavar="N",
        help="read N rows at most, the query counted (default: the model's)",
    )
    group.add_argument(
        "--query-only", action="store_true", help="read the first row alone, to see what the others add"
    )


def add_label_arguments(parser: argparse.ArgumentParser) -> None:
    """Labels of alignments."""
    group = parser.add_argument_group("alignments, for models that read them")
    group.add_argument(
        "--alignment-labels",
        metavar="TABLE",
        help="labels of the alignments that the file --train (or --test) holds: columns id, label[, group, "
        "split]; without it --train is a table with the columns file, label[, id, group, split]",
    )
    group.add_argument(
        "--query-only", action="store_true", help="take the first row alone, to see what the others add"
    )


def wanted_rows(args: argparse.Namespace) -> int | None:
    """Most rows to read, as asked; None for the model's own number."""
    if args.query_only and args.rows not in (None, 1):
        raise ConfigError("--query-only and --rows disagree", remedy="give one of them")
    return 1 if args.query_only else args.rows


def refuse_row_options(args: argparse.Namespace) -> None:
    """Say so where options for alignments are given to a model of sequences."""
    outputs = ("row_profile", "pairs", "pairs_by", "best_pairs", "separation")
    for name in ("rows", "query_only", "alignment_labels", *outputs):
        given = getattr(args, name, None)
        if given is not None and given is not False:  # --best-pairs 0 is given
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"{option} is for models that read alignments, and this one reads sequences")


def open_alignments(args: argparse.Namespace, alphabet: Alphabet, skipped: OnSkip) -> Iterator[Alignment]:
    """Read the alignments of ``args.input`` under the options on duplicates, skips and empty files."""
    from seqray.io.alignments import read_alignments

    on_skip = None if args.strict else skipped

    def read(path: str, duplicates: Duplicates) -> Iterator[Alignment]:
        return read_alignments(path, alphabet, duplicates=duplicates, on_skip=on_skip)

    return read_inputs(args, read)


def read_labelled(args: argparse.Namespace, alphabet: Alphabet) -> list[Alignment]:
    """Read what ``--train``, ``--validation`` and ``--test`` name as labelled alignments.

    Raises
    ------
    InputError
        Where none is given, FASTA files of classes are, or a file can't be used.
    """
    from seqray.cli.common.labelled import (
        SPLIT_TABLES,  # here, for it loads numpy, which 'predict --help' must not
    )
    from seqray.io.alignments import read_labelled_alignments, read_labelled_stockholm

    if args.class_files or args.test_class_files:
        raise InputError("--class takes sequences, not alignments", remedy="give --train TABLE")
    if not any((args.train, *(getattr(args, split) for split in SPLIT_TABLES))):
        raise InputError(
            "no training data", remedy="give --train TABLE, or --train FILE --alignment-labels TABLE"
        )
    files = [(None, path) for path in args.train]
    files += [(split, path) for split in SPLIT_TABLES for path in getattr(args, split)]
    if args.alignment_labels:
        found, _ = read_labelled_stockholm([path for _, path in files], args.alignment_labels, alphabet)
    else:
        found = [read_labelled_alignments(path, alphabet) for _, path in files]
    data: list[Alignment] = []
    for (split, _), examples in zip(files, found, strict=True):
        data += examples if split is None else [replace(one, split=split) for one in examples]
    args.records = len(data)
    return [one.take_rows([0]) for one in data] if args.query_only else data


def reads_alignments(args: argparse.Namespace, kind: str) -> bool:
    """Whether the labelled examples are alignments: for a model of them, or for the queries alone.

    Raises
    ------
    ConfigError
        Where a model of sequences is given alignments without ``--query-only``.
    """
    if kind != "alignment" and args.alignment_labels and not args.query_only:
        raise ConfigError(
            "--alignment-labels is for models that read alignments, and this one reads sequences",
            remedy="choose another model, or add --query-only to take the first rows",
        )
    return kind == "alignment" or args.query_only


def queries(data: list[Alignment], window: int) -> list[LabelledSequence]:
    """First rows without their gaps, cut to the window: what a model of sequences learns from alignments."""
    from seqray.core import LabelledSequence

    return [
        LabelledSequence(one.sequence[:window], one.label or "", one.id, one.group, one.split) for one in data
    ]
