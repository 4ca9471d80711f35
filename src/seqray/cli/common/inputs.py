"""Input files: they are checked before anything heavy is loaded, and read one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from seqray.cli.common.arguments import Options, option
from seqray.cli.common.model import naming_other_models
from seqray.core import InputError, NoRecordsError

if TYPE_CHECKING:
    from seqray.core import Alignment, Alphabet, SequenceRecord
    from seqray.io.sequences import OnSkip

T = TypeVar("T")
Record = TypeVar("Record", "SequenceRecord", "Alignment")

SEQUENCE_FILES = "FASTA or GenBank; plain or compressed, '-' is standard input"
SEQUENCES_OR_ALIGNMENTS = (
    f"{SEQUENCE_FILES}; alignments for a model that reads them; several files are read in the order given"
)
SKIPPED_HELP = "write skipped records and reasons to a TSV"


class RecordOptions(Options, heading="records"):
    """Which records are used, and what happens to the others."""

    duplicates: Literal["error", "rename", "keep"] = option(
        "--duplicates",
        "ids that occur again: refuse (error), write as id_2 (rename), or keep",
        "error",
    )
    strict: bool = option("--strict", "make the first skipped record an error")
    skipped: str | None = option("--skipped FILE", SKIPPED_HELP)
    allow_empty: bool = option(
        "--allow-empty", "a file without records gives an empty output instead of an error"
    )


class Counted(Generic[T], Iterator[T]):
    """Items of an iterable, with the number of those taken so far as ``count``."""

    def __init__(self, items: Iterable[T]) -> None:
        self.count = 0
        self._items = iter(items)

    def __next__(self) -> T:
        item = next(self._items)
        self.count += 1
        return item


Reader = Callable[..., "Iterator[Record]"]
"""Opens a path; its keywords are ``alphabet``, ``duplicates`` and ``on_skip``, as in `Kind.read`."""


def open_records(
    read: Reader[Record],
    paths: Sequence[str],
    options: RecordOptions,
    alphabet: Alphabet,
    on_skip: OnSkip,
) -> Counted[Record]:
    """Read files one after the other, with one rule on ids for all of them.

    Parameters
    ----------
    read
        Opens a file, such as `seqray.kinds.Kind.read`.
    paths
        Files, ``-`` for standard input.
    options
        What happens to ids that occur twice, within a file or between files, and to empty files.
    alphabet
        Letters of the sequences.
    on_skip
        Receives each record that is skipped, unless ``--strict`` is given.
    """
    opened = partial(read, alphabet=alphabet, on_skip=None if options.strict else on_skip)
    return Counted(_read_inputs(paths, options, opened))


def _read_inputs(paths: Sequence[str], options: RecordOptions, read: Reader[Record]) -> Iterator[Record]:
    from seqray.io import display_name
    from seqray.io.sequences import UniqueIds

    several = len(paths) > 1
    ids = UniqueIds(options.duplicates, "")
    for path in paths:
        try:
            with naming_other_models():
                for record in read(path, duplicates="keep" if several else options.duplicates):
                    if several:
                        name = ids.resolve(record.id, display_name(path), record.ID_SOURCE)
                        record = replace(record, id=name)
                    yield record
                    del record  # else it is in memory while the next one is read
        except NoRecordsError as error:
            if not options.allow_empty:
                allowed = "skips it" if several else "gives an empty output instead"
                raise NoRecordsError(
                    error.what, where=error.where, remedy=f"--allow-empty {allowed}"
                ) from None


def describe_input(paths: Sequence[str]) -> str:
    """The input, for an error about one of its records."""
    from seqray.io import display_name

    return display_name(paths[0]) if len(paths) == 1 else f"one of {len(paths)} files"


def check_files(
    sources: Sequence[str], outputs: Iterable[str | None], beside: Iterable[str | None] = ()
) -> None:
    """Check the files of a run before anything heavy is loaded.

    Parameters
    ----------
    sources
        Files that are read; each is opened once.
    outputs
        Files that are written, ``-`` for standard output; None for nothing.
    beside
        Further files that are read, and names that may be files, such as those of models.

    Raises
    ------
    InputError
        For an input that can't be read, an output that would overwrite it, or one that is named twice.
    """
    if sources.count("-") > 1:
        raise InputError("is named twice as an input", where="standard input")
    for source in sources:
        if source != "-" and (os.path.isfile(source) or os.path.isdir(source) or not os.path.exists(source)):
            from seqray.io import open_input

            with open_input(source):  # not a pipe: what is read from one is gone
                pass
    read = {os.path.realpath(source) for source in (*sources, *filter(None, beside))}
    seen: set[str] = set()
    for output in filter(None, outputs):
        key = output if output == "-" else os.path.realpath(output)
        if key in seen:
            where = "standard output" if output == "-" else output
            raise InputError("is named twice as an output", where=where)
        if output != "-" and os.path.isfile(output) and key in read:
            raise InputError(
                "is an input and would be overwritten", where=output, remedy="name another output"
            )
        seen.add(key)


_KNOWN_SUFFIXES = (
    *(".tsv", ".csv", ".parquet", ".html", ".htm", ".json"),
    *(".fa", ".fasta", ".png", ".svg", ".pdf"),
)


def check_suffix(path: str | None, *suffixes: str) -> None:
    """Refuse an output whose suffix is that of another format.

    Raises
    ------
    InputError
        For one with the suffix of a known format that is none of ``suffixes``; ``.gz`` may follow.
    """
    name = (path or "").lower().removesuffix(".gz")
    if name.endswith(_KNOWN_SUFFIXES) and not name.endswith(suffixes):
        raise InputError(
            "ends in the suffix of another format", where=path or "", remedy=f"use {' or '.join(suffixes)}"
        )
