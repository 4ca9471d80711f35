"""Alignments on the command line: how they are read, labelled and cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from seqray.cli.common.argument_types import PositiveInt
from seqray.cli.common.arguments import Options, option
from seqray.cli.common.inputs import Counted, RecordOptions, read_inputs
from seqray.core import ConfigError, InputError

if TYPE_CHECKING:
    from seqray.cli.common.labeled import DataOptions
    from seqray.core import Alignment, Alphabet, LabelledSequence
    from seqray.io.sequences import Duplicates, OnSkip

TITLE = "alignments, for models that read them"


class RowOptions(Options, heading=TITLE):
    """What a model of alignments reads."""

    rows: PositiveInt | None = option(
        "--rows N", "read at most N rows, including the query (default: the model's)"
    )
    query_only: bool = option("--query-only", "read the first row alone, to see what the others add")

    def limit(self) -> int | None:
        """Most rows to read; None for the model's own number."""
        if self.query_only and self.rows not in (None, 1):
            raise ConfigError("--query-only and --rows disagree", remedy="give one of them")
        return 1 if self.query_only else self.rows


class AlignmentLabelOptions(Options, heading=TITLE):
    """Labels of alignments."""

    alignment_labels: str | None = option(
        "--alignment-labels TABLE",
        "labels of the alignments in the file --train (or --test): columns id, label[, group, split]; "
        "without it --train is a table with the columns file, label[, id, group, split]",
    )
    query_only: bool = option("--query-only", "take the first row alone, to see what the others add")

    def reads_alignments(self, kind: str) -> bool:
        """Whether the labelled examples are alignments: for a model of them, or for the queries alone."""
        if kind != "alignment" and self.alignment_labels and not self.query_only:
            raise ConfigError(
                "--alignment-labels is for models that read alignments, and this one reads sequences",
                remedy="choose another model, or add --query-only to take the first rows",
            )
        return kind == "alignment" or self.query_only


def refuse_row_options(*groups: Options) -> None:
    """Refuse options for alignments that are given to a model of sequences."""
    for options in groups:
        for one in fields(options):  # pyright: ignore[reportArgumentType]
            given = getattr(options, one.name)
            if given is not None and given is not False:  # --best-pairs 0 is given
                name = one.metadata["names"][0]
                raise ConfigError(f"{name} is for models that read alignments, and this one reads sequences")


def open_alignments(
    paths: Sequence[str], options: RecordOptions, alphabet: Alphabet, on_skip: OnSkip
) -> Counted[Alignment]:
    """Read alignments under the options on duplicates, skipped records and empty files."""
    from seqray.io.alignments import read_alignments

    skip = None if options.strict else on_skip

    def read(path: str, duplicates: Duplicates) -> Iterator[Alignment]:
        return read_alignments(path, alphabet, duplicates=duplicates, on_skip=skip)

    return read_inputs(paths, options, read)


def read_labelled(data: DataOptions, labels: AlignmentLabelOptions, alphabet: Alphabet) -> list[Alignment]:
    """Read what ``--train``, ``--validation`` and ``--test`` name as labelled alignments.

    Parameters
    ----------
    data
        Names of tables, or of files of alignments.
    labels
        The table of their labels, and whether the query alone is read.
    alphabet
        Letters of the alignments.

    Raises
    ------
    InputError
        Where none is given, FASTA files of classes are, or a file can't be used.
    """
    from seqray.io.alignments import read_labelled_alignments, read_labelled_stockholm

    if data.has_fastas:
        raise InputError("--class takes sequences, not alignments", remedy="give --train TABLE")
    files = data.tables()
    if not files:
        raise InputError(
            "no training data", remedy="give --train TABLE, or --train FILE --alignment-labels TABLE"
        )
    if labels.alignment_labels:
        found, _ = read_labelled_stockholm([path for _, path in files], labels.alignment_labels, alphabet)
    else:
        found = [read_labelled_alignments(path, alphabet) for _, path in files]
    examples: list[Alignment] = []
    for (split, _), part in zip(files, found, strict=True):
        examples += part if split is None else [replace(one, split=split) for one in part]
    return [one.take_rows([0]) for one in examples] if labels.query_only else examples


def queries(data: Sequence[Alignment], window: int) -> list[LabelledSequence]:
    """First rows without their gaps, cut to the window: what a model of sequences learns from alignments."""
    from seqray.core import LabelledSequence

    return [
        LabelledSequence(one.sequence[:window], one.label or "", one.id, one.group, one.split) for one in data
    ]
