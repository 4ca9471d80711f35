"""Labeled inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from seqray.cli.inputs import ALIGNMENTS_HEADING
from seqray.cli.options import ColumnNames, Options, Request, option
from seqray.core.errors import InputError, OtherLettersError
from seqray.core.text import class_name_fault, counted, describe_labels, first_and_more

if TYPE_CHECKING:
    from seqray.core.records import LabeledSequence
    from seqray.io.sequences import OnUnread
    from seqray.kinds.kinds import LabeledFiles


class AlignmentLabelOptions(Options, heading=ALIGNMENTS_HEADING, only_for="model, examples, stated settings"):
    """Labels of alignments."""

    alignment_labels: str | None = option(
        "--alignment-labels TABLE",
        "labels of the alignments in the file --train (or --test): columns id, label[, group, split]; "
        "without it --train is a table with the columns file, label[, id, group, split]",
    )
    query_only: bool = option("--query-only", "take the first row alone, to see what the others add")


# --- Labeled sequences on the command line: the options that name their files, and how they are read

REMEDY = "give --train TABLE, or --class LABEL=FASTA for each class"
ALPHABET_NAMES = ("dna", "rna", "protein")

ALPHABET = option("--alphabet", "alphabet of the sequences", "dna", choices=ALPHABET_NAMES)
INFERRED_ALPHABET = option(
    "--alphabet", "alphabet of the sequences (default: what they look like)", choices=ALPHABET_NAMES
)
COLUMNS = option(
    "--columns NAME=COLUMN,..", "how tables call their columns, such as sequence=seq,label=class"
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

    columns: ColumnNames | None = COLUMNS

    def tables(self) -> list[tuple[str | None, str]]:
        """Tables, each with the split that its option names."""
        named = {None: self.train, "validation": self.validation, "test": self.test}
        return [(split, table) for split, tables in named.items() for table in tables]

    def fastas(self) -> dict[str, str]:
        """FASTA file of each class."""
        paths: dict[str, str] = {}
        for item in self.class_files:
            label, equals, path = item.partition("=")
            if not (label and equals and path):
                lacks = "label" if equals and path else "file"
                raise InputError(f"'--class {item}' has no {lacks}", remedy="write --class LABEL=FASTA")
            if fault := class_name_fault(label):
                raise InputError(f"the label {label!r} {fault}", where="--class", remedy="rename it")
            if label in paths:
                what = f"class '{label}' is given twice"
                raise InputError(what, remedy="put its sequences into one file")
            paths[label] = path
        return paths

    def files(self) -> list[str]:
        """All files, ``-`` for standard input."""
        if self.tables() and self.class_files:
            raise InputError("both tables and --class are given", remedy=REMEDY)
        return [*(table for _, table in self.tables()), *self.fastas().values()]

    def located(
        self, request: Request, labels: AlignmentLabelOptions | None = None, used: Sequence[str] = ()
    ) -> LabeledFiles:
        """The files, for the library."""
        from seqray.kinds.kinds import LabeledFiles

        self.files()  # refuses files that don't go together
        return LabeledFiles(
            tables=self.tables(),
            fastas=self.fastas(),
            columns=self.columns,
            alignment_labels=labels.alignment_labels if labels else None,
            query_only=labels is not None and labels.query_only,
            on_unread=noting_unread(request, used),
            on_unlabeled=lambda table, count: request.notes_at_end.append(
                f"{table}: no label for {counted(count, 'alignment')}, left out"
            ),
        )


class TableOptions(DataOptions):
    """Labeled sequences, where tables may also be named without an option."""

    unnamed: tuple[str, ...] = option("TABLE*", "the same as --train TABLE; '-' is standard input")

    def tables(self) -> list[tuple[str | None, str]]:
        """Tables, those without an option first."""
        return [*((None, table) for table in self.unnamed), *super().tables()]


def noting_unread(request: Request, used: Sequence[str] = ()) -> OnUnread:
    """Make what notes, at the end, the columns of a table that are not read, nor ``used`` elsewhere."""

    def note(where: str, columns: Sequence[str], known: Sequence[str]) -> None:
        if unread := [name for name in columns if name not in used]:
            line = f"{where}: columns not read: {', '.join(unread)} (known: {', '.join(known)})"
            request.notes_at_end.append(line)

    return note


def describe_letters(alphabet: str) -> str:
    """An alphabet as people write it."""
    return alphabet if alphabet == "protein" else alphabet.upper()


@contextmanager
def naming_alphabet() -> Iterator[None]:
    """Let an error about letters of another alphabet name the option."""
    try:
        yield
    except OtherLettersError as error:
        remedy = "give --alphabet protein" if error.found == "protein" else "give --alphabet dna or rna"
        raise InputError(error.what, where=error.where, remedy=remedy) from None


def drop_unknown_labels(
    examples: Sequence[LabeledSequence], classes: Sequence[str], notes: list[str]
) -> list[LabeledSequence]:
    """Leave out examples whose label is none of the classes, and note how many."""
    dropped = Counter(example.label for example in examples if example.label not in classes)
    kept = [example for example in examples if example.label in classes]
    if examples and not kept:
        raise InputError(
            f"no example has a label of the model, but {first_and_more(sorted(dropped), 8)}",
            remedy=f"its classes are {', '.join(classes)}",
        )
    if dropped:
        left_out = describe_labels(dropped)
        notes.append(f"examples of labels that the model does not know are left out: {left_out}")
    return kept
