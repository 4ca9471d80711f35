"""Labeled inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from seqray.cli.options import ColumnNames, Options, PositiveInt, Request, fill, option
from seqray.core.errors import ConfigError, InputError, OtherLettersError
from seqray.core.text import class_name_fault, counted, first_and_more

if TYPE_CHECKING:
    from seqray.core.alphabet import Alphabet
    from seqray.core.records import LabeledSequence
    from seqray.io.labeled import OnUnread
    from seqray.kinds.kinds import LabeledFiles, ReadCallbacks


# --- Options for alignments: which rows are read, and where their labels are

TITLE = "alignments, for models that read them"


class RowOptions(Options, heading=TITLE, only_for="alignments"):
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


class AlignmentLabelOptions(Options, heading=TITLE, only_for="model, examples, stated settings"):
    """Labels of alignments."""

    alignment_labels: str | None = option(
        "--alignment-labels TABLE",
        "labels of the alignments in the file --train (or --test): columns id, label[, group, split]; "
        "without it --train is a table with the columns file, label[, id, group, split]",
    )
    query_only: bool = option("--query-only", "take the first row alone, to see what the others add")


# --- Labeled sequences on the command line: the options that name their files, and how they are read

REMEDY = "give --train TABLE, or --class LABEL=FASTA for each class"
MAX_SHOWN_LABELS = 8
ALPHABET_NAMES = ("dna", "rna", "protein")


ALPHABET = option("--alphabet", "alphabet of the sequences", "dna", choices=ALPHABET_NAMES)
INFERRED_ALPHABET = option(
    "--alphabet", "alphabet of the sequences (default: what they look like)", choices=ALPHABET_NAMES
)


COLUMNS = option(
    "--columns NAME=COLUMN,..", "how tables call their columns, such as sequence=seq,label=class"
)

SEQUENCE_COLUMNS = option(
    "--columns NAME=COLUMN,..",
    "how a table of sequences calls its columns, such as sequence=seq,id=name",
    only_for="sequences",
)

UnknownLabels = Literal["error", "drop"]
UNKNOWN_LABELS = option(
    "--unknown-labels",
    "examples whose label is none of the classes: refuse (error), or leave out and count (drop)",
    "error",
)


class DataOptions(Options, heading="data: tables, or one FASTA file per class", only_for="examples"):
    """Tables of labeled sequences, or one FASTA file per class."""

    train: tuple[str, ...] = option(
        "--train TABLE",
        "TSV or CSV with the columns sequence, label[, id, group, split, context, subclass]; may be repeated",
    )
    validation: tuple[str, ...] = option("--validation TABLE", "the same, all of it of split 'validation'")
    test: tuple[str, ...] = option("--test TABLE", "the same, all of it of split 'test'")
    class_files: tuple[str, ...] = option(
        "--class LABEL=FASTA", "FASTA file of one class; repeat for each class"
    )
    test_class_files: tuple[str, ...] = option("--test-class LABEL=FASTA", "the same, of split 'test'")
    columns: ColumnNames | None = COLUMNS

    def tables(self) -> list[tuple[str | None, str]]:
        """Tables, each with the split that its option names."""
        named = {None: self.train, "validation": self.validation, "test": self.test}
        return [(split, table) for split, tables in named.items() for table in tables]

    def fastas(self) -> dict[str | None, dict[str, str]]:
        """FASTA file of each class, by the split that its option names; empty if none is given."""
        if not (self.class_files or self.test_class_files):
            return {}
        test = class_paths("--test-class", self.test_class_files)
        return {None: class_paths("--class", self.class_files), "test": test}

    def files(self) -> list[str]:
        """All files, ``-`` for standard input."""
        if self.tables() and self.fastas():
            raise InputError("both tables and --class are given", remedy=REMEDY)
        fastas = [path for paths in self.fastas().values() for path in paths.values()]
        return [table for _, table in self.tables()] + fastas

    def located(
        self, request: Request, labels: AlignmentLabelOptions | None = None, used: Sequence[str] = ()
    ) -> LabeledFiles:
        """The files, for the library."""
        from seqray.kinds.kinds import LabeledFiles

        def note_unlabeled(table: str, count: int) -> None:
            request.notes_at_end.append(f"{table}: no label for {counted(count, 'alignment')}, left out")

        self.files()  # refuses files that don't go together
        more = fill(LabeledFiles, labels) if labels else LabeledFiles()
        return replace(
            more,
            tables=self.tables(),
            fastas=self.fastas(),
            columns=self.columns,
            on_unread=noting_unread(request, used),
            on_unlabeled=note_unlabeled,
        )


class TableOptions(DataOptions):
    """Labeled sequences, where tables may also be named without an option."""

    unnamed: tuple[str, ...] = option("TABLE*", "the same as --train TABLE; '-' is standard input")

    def tables(self) -> list[tuple[str | None, str]]:
        """Tables, those without an option first."""
        return [*((None, table) for table in self.unnamed), *super().tables()]


def noting_unread(request: Request, used: Sequence[str] = ()) -> OnUnread:
    """Make what notes the columns of a table that are not read, but for those that are ``used`` elsewhere.

    The notes appear when the run has succeeded.
    """

    def note(where: str, columns: Sequence[str], known: Sequence[str]) -> None:
        if unread := [name for name in columns if name not in used]:
            line = f"{where}: columns not read: {', '.join(unread)} (known: {', '.join(known)})"
            request.notes_at_end.append(line)

    return note


def class_paths(name: str, items: Sequence[str]) -> dict[str, str]:
    """Turn ``LABEL=FASTA`` words into a mapping of label to path."""
    paths: dict[str, str] = {}
    for item in items:
        label, equals, path = item.partition("=")
        if not (label and equals and path):
            lacks = "label" if equals and path else "file"
            raise InputError(f"'{name} {item}' has no {lacks}", remedy=f"write {name} LABEL=FASTA")
        if fault := class_name_fault(label):
            raise InputError(f"the label {label!r} {fault}", where=name, remedy="rename it")
        if label in paths:
            raise InputError(f"class '{label}' is given twice", remedy="put its sequences into one file")
        paths[label] = path
    return paths


def describe_letters(alphabet: str) -> str:
    """An alphabet as people write it."""
    return alphabet if alphabet == "protein" else alphabet.upper()


def read_examples(
    alphabet: str | None, files: LabeledFiles, **callbacks: Unpack[ReadCallbacks]
) -> tuple[list[LabeledSequence], Alphabet]:
    """Read labeled sequences, and tell their alphabet by their letters unless it is named."""
    from seqray.core.alphabet import ALPHABETS
    from seqray.kinds.kinds import read_inferred_examples, read_sequence_examples

    if alphabet is None:
        return read_inferred_examples(files, **callbacks)
    with naming_alphabet():
        return read_sequence_examples(files, ALPHABETS[alphabet], **callbacks), ALPHABETS[alphabet]


@contextmanager
def naming_alphabet() -> Iterator[None]:
    """Let an error about letters of another alphabet name the option."""
    try:
        yield
    except OtherLettersError as error:
        remedy = "give --alphabet protein" if error.found == "protein" else "give --alphabet dna or rna"
        raise InputError(error.what, where=error.where, remedy=remedy) from None


def drop_unknown_labels(
    examples: Sequence[LabeledSequence], classes: Sequence[str]
) -> tuple[list[LabeledSequence], list[str]]:
    """Leave out examples whose label is none of the classes."""
    dropped = Counter(example.label for example in examples if example.label not in classes)
    kept = [example for example in examples if example.label in classes]
    if examples and not kept:
        raise InputError(
            f"no example has a label of the model, but {', '.join(sorted(dropped)[:MAX_SHOWN_LABELS])}",
            remedy=f"its classes are {', '.join(classes)}",
        )
    if not dropped:
        return kept, []
    return kept, [f"examples of labels that the model does not know are left out: {describe_labels(dropped)}"]


def describe_labels(counts: Counter[str]) -> str:
    """Labels with their counts, the most frequent first, as ``25 'background', 1 'odd'``."""
    words = (f"{count} '{label}'" for label, count in counts.most_common())
    return first_and_more(words, MAX_SHOWN_LABELS, of="labels")
