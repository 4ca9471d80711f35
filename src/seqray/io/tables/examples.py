"""Tables: labelled sequences in; predictions and skipped records out, below lines of provenance."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqray.core import Alphabet, InputError, LabelledSequence, __version__
from seqray.core.results import Prediction, SkippedRecord
from seqray.io.files import open_output
from seqray.io.sequences import OnLetters, OnSkip, read_fasta
from seqray.io.tables.delimited import quoted, read_rows

REQUIRED = ("sequence", "label")
REMEDY = "name the columns sequence,label[,id,group,split,context]"
SPLITS = ("train", "validation", "test")
PARQUET_ROWS = 10_000  # rows of a row group: bounds memory


# ---------------------------------------------------------------------------------------------- reading


def _example(
    row: Mapping[str, str], number: int, file: str, where: str, alphabet: Alphabet
) -> LabelledSequence:
    if not row["label"]:
        raise InputError("has no label", where=where)
    if not row["sequence"]:
        raise InputError("has no sequence", where=where)
    split = row.get("split") or None
    if split not in (None, *SPLITS):
        raise InputError(
            f"has the split '{split}'", where=where, remedy=f"use {', '.join(SPLITS)} or nothing"
        )
    return LabelledSequence(
        sequence=alphabet.normalize(row["sequence"], where=where),
        label=row["label"],
        id=row.get("id") or f"row{number}",
        group=row.get("group") or None,
        split=split,
        context=row.get("context") or None,
        file=file,
    )


def read_labelled_table(
    path: str | Path, alphabet: Alphabet, on_letters: OnLetters | None = None
) -> list[LabelledSequence]:
    """Read training examples from a TSV or CSV table, plain or compressed.

    Parameters
    ----------
    path
        The header names the columns ``sequence`` and ``label``, and optionally ``id``, ``group``,
        ``split`` (``train``, ``validation``, ``test`` or empty) and ``context``; others are ignored.
        The table is a TSV where the header holds a tab. Comments are told by `seqray.io.tables.delimited`.
    alphabet
        Validates and folds the sequences.
    on_letters
        Is told the letters of each example as they stand in the file, before case is folded.

    Returns
    -------
    list of LabelledSequence
        In the order of the file; an example without an id is ``row<N>``, counted from 1.

    Raises
    ------
    InputError
        Naming file and line, for a missing column, a row of another width, an empty label or sequence, an
        unknown split or letter, and for a table without rows.
    """
    examples: list[LabelledSequence] = []
    for where, row in read_rows(path, REQUIRED, REMEDY):
        examples.append(_example(row, len(examples) + 1, str(path), where, alphabet))
        if on_letters is not None:
            on_letters(row["sequence"])
    if not examples:
        raise InputError("holds a header but no examples", where=str(path))
    return examples


def read_labelled_fastas(
    paths: Mapping[str, str | Path],
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[LabelledSequence]:
    """Read training examples from one FASTA file per class.

    Parameters
    ----------
    paths
        Name of each class and its file. Ids may repeat, within a file and between files.
    on_letters
        Is told the letters of each record as they stand in the file, before case is folded.
    on_skip
        Is told of each record without letters; where None, such a record is an error.
    """
    return [
        LabelledSequence(record.sequence, label, record.id, file=str(path))
        for label, path in paths.items()
        for record in read_fasta(path, alphabet, duplicates="keep", on_letters=on_letters, on_skip=on_skip)
    ]


# ------------------------------------------------------------------------------------------- provenance


def _basenames(argument: str) -> str:
    """An argument of the command line without folders: ``--class=a=/x/p.fa`` becomes ``--class=a=p.fa``."""
    return re.sub(r"[^=,\s]*/(?=[^/=,\s]*(?:$|[=,\s]))", "", argument.rstrip("/"))


def provenance_lines(
    command: Sequence[str],
    model_name: str,
    model_sha256: str,
    alphabet_policy: str,
    extra: Mapping[str, object] | None = None,
) -> list[str]:
    """What made a table, without date or folder, so that the same input gives the same bytes.

    Parameters
    ----------
    command
        The words of the command line; file names are cut to their last part.
    model_name, model_sha256
        Of the model used; no line tells of it where the name is empty.
    alphabet_policy
        Which letters were accepted and how they were read, see `describe_alphabet`.
    extra
        Further settings and the meaning of columns, one line each: ``key: value``.
    """
    return [
        f"seqray {__version__}",
        f"command: {shlex.join(_basenames(word) for word in command)}",
        *([f"model: {model_name} sha256:{model_sha256}"] if model_name else []),
        f"alphabet: {alphabet_policy}",
        *(f"{key}: {value}" for key, value in (extra or {}).items()),
    ]


def describe_alphabet(alphabet: Alphabet) -> str:
    """The letter policy in one line, for `provenance_lines`."""
    same = {"dna": ", U read as T", "rna": ", T read as U"}.get(alphabet.name, "")
    return f"{alphabet.name} {alphabet.letters}, case folded{same}; {alphabet.ambiguous} read as unknown"


def comment_lines(provenance: Iterable[str]) -> bytes:
    """Provenance as ``#`` lines; a line break inside an entry can't start a line of its own."""
    return "".join(f"# {' '.join(line.split())}\n" for line in provenance).encode()


# ---------------------------------------------------------------------------------------------- writing


def format_number(value: float) -> str:
    """Six significant digits, as everywhere in seqray's text output."""
    return f"{value:.6g}"


def table_format(path: str | Path) -> str:
    """``tsv`` or ``parquet`` by the end of the name; ``-`` is TSV on standard output.

    Raises
    ------
    InputError
        For a name that ends in anything else.
    """
    name = str(path).lower()
    if name == "-" or name.endswith((".tsv", ".tsv.gz")):
        return "tsv"
    if name.endswith(".parquet"):
        return "parquet"
    raise InputError(
        "does not name a table by its end", where=str(path), remedy="use .tsv, .tsv.gz, .parquet or '-'"
    )


def prediction_columns(classes: Sequence[str], sets: bool = False) -> list[str]:
    """Column names of a prediction table; ``set`` is the last where sets of classes are given."""
    names = [f"p_{'_'.join(name.split())}" for name in classes]
    return ["id", "length", "label", *names, "flags", *(["set"] if sets else [])]


def write_predictions(
    path: str | Path,
    predictions: Iterable[Prediction],
    classes: Sequence[str],
    provenance: Sequence[str],
    sets: bool = False,
) -> int:
    """Write one row per prediction as they come, and return how many.

    Parameters
    ----------
    path
        ``.tsv``, ``.tsv.gz`` or ``.parquet``; ``-`` is standard output.
    classes
        Names of the classes in the order of the probabilities, for the columns ``p_<class>``.
    provenance
        Written as ``#`` lines above the header, or under the key ``seqray`` in the schema of a Parquet file.
    sets
        Whether to write the column ``set``.

    Notes
    -----
    Flags are joined by commas, ``.`` where there are none; the classes of a set by ``|``, ``-`` for the empty
    set. Probabilities carry six significant digits.
    """
    if table_format(path) == "parquet":
        return _write_parquet(path, predictions, classes, provenance, sets)
    count = 0
    with open_output(path) as handle:
        handle.write(comment_lines(provenance))
        handle.write(("\t".join(prediction_columns(classes, sets)) + "\n").encode())
        for p in predictions:
            probabilities = "\t".join(map(format_number, p.probabilities))
            row = f"{quoted(p.id)}\t{p.length}\t{p.label}\t{probabilities}\t{flag_text(p)}"
            handle.write(f"{row}\t{set_text(p)}\n".encode() if sets else f"{row}\n".encode())
            count += 1
    return count


def flag_text(p: Prediction) -> str:
    """Flags of a prediction as a cell."""
    return ",".join(p.flags) or "."


def set_text(p: Prediction) -> str:
    """Classes of a prediction's set as a cell."""
    return "|".join(p.label_set or ()) or "-"


def _write_parquet(
    path: str | Path,
    predictions: Iterable[Prediction],
    classes: Sequence[str],
    provenance: Sequence[str],
    sets: bool,
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = [pa.string(), pa.int64(), pa.string(), *[pa.float64()] * len(classes), pa.string()]
    types += [pa.string()] * sets
    fields = list(zip(prediction_columns(classes, sets), types, strict=True))
    schema = pa.schema(fields, metadata={"seqray": "\n".join(provenance)})
    count = 0
    rows = iter(predictions)
    with open_output(path) as handle, pq.ParquetWriter(handle, schema) as writer:
        while chunk := list(itertools.islice(rows, PARQUET_ROWS)):
            columns: list[list[Any]] = [
                list(column) for column in zip(*(_parquet_row(p, sets) for p in chunk), strict=True)
            ]
            arrays = [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(chunk)
    return count


def _parquet_row(p: Prediction, sets: bool) -> tuple[Any, ...]:
    # The same digits as in a TSV: a table says the same in both formats.
    probabilities = (float(format_number(value)) for value in p.probabilities)
    return (p.id, p.length, p.label, *probabilities, flag_text(p), *([set_text(p)] if sets else []))


@contextmanager
def open_skipped(
    path: str | Path, provenance: Sequence[str] = ()
) -> Iterator[Callable[[SkippedRecord], None]]:
    """Open a TSV of skipped records; what it yields writes the ``id`` and ``reason`` of one."""
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + b"id\treason\n")

        def write(record: SkippedRecord) -> None:
            handle.write(f"{quoted(record.id)}\t{record.reason}\n".encode())

        yield write
