"""Inputs of a verb."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self, TypeVar

from seqray.cli.model import naming_other_models
from seqray.cli.options import Options, PositiveInt, option
from seqray.core.errors import ConfigError, InputError, NoRecordsError

if TYPE_CHECKING:
    from Bio.SeqRecord import SeqRecord

    from seqray.core.alphabet import Alphabet
    from seqray.core.records import Alignment, SequenceRecord
    from seqray.core.results import SkippedRecord
    from seqray.genome.genes import Annotation
    from seqray.io.records import Duplicates, OnSkip


# --- Input files: they are checked before anything heavy is loaded, and read one after the other

T = TypeVar("T")
Record = TypeVar("Record", "SequenceRecord", "Alignment")

SEQUENCE_FILES = "FASTA or GenBank; plain or compressed, '-' is standard input"
SEQUENCES_OR_ALIGNMENTS = (
    f"{SEQUENCE_FILES}; or a TSV or CSV with the column sequence[, id]; alignments for a model that reads "
    "them; several files are read in the order given"
)
SKIPPED_HELP = "write skipped records and reasons to a TSV"
SEQUENCE_COLUMNS = option(
    "--columns NAME=COLUMN,..",
    "how a table of sequences calls its columns, such as sequence=seq,id=name",
    only_for="sequences",
)
ALIGNMENTS_HEADING = "alignments, for models that read them"


class RowOptions(Options, heading=ALIGNMENTS_HEADING, only_for="alignments"):
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


class RecordOptions(Options, heading="records"):
    """Which records are used, and what happens to the others."""

    duplicates: Literal["error", "rename", "keep"] = option(
        "--duplicates", "ids that occur again: refuse (error), write as id_2 (rename), or keep", "error"
    )
    strict: bool = option("--strict", "make the first skipped record an error")
    skip_unusable: bool = option(
        "--skip-unusable",
        "skip records that the model can't read: too long, too short, or with unknown characters "
        "(default: an error)",
    )
    skipped: str | None = option("--skipped FILE", SKIPPED_HELP, only_for="whole scans")
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
"""Opens a path; its keywords are those of `seqray.io.records.ReadOptions`."""


def open_records(
    read: Reader[Record], paths: Sequence[str], options: RecordOptions, alphabet: Alphabet, on_skip: OnSkip
) -> Counted[Record]:
    """Read files one after the other, with one rule on ids for all of them."""
    if options.strict and options.skip_unusable:
        raise ConfigError("--strict and --skip-unusable are both given", remedy="give one of them")
    chosen = None if options.strict else options.skip_unusable
    skips = {"on_skip": None if options.strict else on_skip, "skip_unusable": chosen}
    opened = partial(read, alphabet=alphabet, **skips)
    return Counted(_read_inputs(paths, options, opened))


def _read_inputs(paths: Sequence[str], options: RecordOptions, read: Reader[Record]) -> Iterator[Record]:
    from seqray.io.files import display_name
    from seqray.io.records import UniqueIds

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
    from seqray.io.files import display_name

    return display_name(paths[0]) if len(paths) == 1 else f"one of {len(paths)} files"


def check_files(
    sources: Sequence[str], outputs: Iterable[str | None], beside: Iterable[str | None] = ()
) -> None:
    """Check the files of a run before anything heavy is loaded; none is opened."""
    from seqray.io.files import cannot_write

    if sources.count("-") > 1:
        raise InputError("is named twice as an input", where="standard input")
    for source in filter("-".__ne__, sources):
        try:
            if os.path.isdir(source):
                raise IsADirectoryError
            os.stat(source)
            if not os.access(source, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise cannot_write(error, source, "read") from None
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


def format_of(path: str, formats: Mapping[str, str], chosen: str | None, suffixes: str) -> str:
    """The format of an output: by its suffix, else the one chosen, else TSV on standard output."""
    suffix = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    if known := formats.get(suffix, chosen or ("tsv" if path == "-" else None)):
        return known
    excel = suffix in (".xlsx", ".xls", ".ods")
    remedy = "use .csv, which spreadsheets open" if excel else f"use {suffixes}, or --format"
    raise InputError("does not end in the suffix of a known format", where=path, remedy=remedy)


_SUFFIX = re.compile(
    r"\.(tsv|csv|xlsx|ods|parquet|json|ya?ml|html?|pdf|svg|png|gff3?|gtf|bed|bw|bedgraph|fa|fasta|f[na]a|ffn|gbk?|gbff)$"
)
"""Of formats that a reader of the name expects; others, such as the .dat of Galaxy, promise none."""


def check_suffix(path: str | None, *suffixes: str, decides: bool = False) -> None:
    """Refuse an output whose suffix is that of another format, or where it ``decides`` of none of these."""
    name = (path or "").lower().removesuffix(".gz")
    other = os.path.splitext(name)[1] if decides else _SUFFIX.search(name)
    if other and not name.endswith(suffixes):
        raise InputError(
            "ends in the suffix of another format", where=path or "", remedy=f"use {' or '.join(suffixes)}"
        )


# --- The genes that a locator reads: of a file, of a GenBank input, or predicted

GIVE_GENES = "give --genes FILE; those of bacteria and archaea are also predicted (pip install pyrodigal)"


class GeneOptions(Options, heading="genes, with a model for genomes", only_for="genomes"):
    """Where genes are from."""

    genes: str | None = option(
        "--genes FILE|predict|none",
        "GenBank or GFF3 file; predict: genes are predicted; none: no genes are used (default: those of a "
        "GenBank input, else predicted where the extra 'genes' is installed)",
    )
    codon_table: PositiveInt | None = option(
        "--codon-table N", "of predicted genes (default: 11 or 4, whichever fits)"
    )


class GenomeInput(Iterable["SequenceRecord"]):
    """The sequences of a scan, or of a genome whose calls are explained: opened once, and streamed.

    ``held`` are those that genes are learned from, or all of a GenBank file; None for a model without genes.
    """

    def __init__(
        self,
        path: str,
        alphabet: Alphabet,
        reading: RecordOptions,
        genes: GeneOptions | None,
        *,
        soft_masks: bool = False,
        again: bool = False,
        features: bool = False,
    ) -> None:
        """``again``: the sequences may be needed twice; ``features``: those of GenBank are written."""
        from seqray.io.files import keep_pipes
        from seqray.io.sequences import read_sequences

        self.path, self._alphabet, self._reading, self._genes = path, alphabet, reading, genes
        self.duplicates: Duplicates = reading.duplicates
        self.annotation: Annotation | None = None
        self.notes: list[str] = []
        self.held: list[SequenceRecord] | None = None if genes is None else []
        self.is_whole = False  # whether all are held
        self._parsed: list[SeqRecord] = []  # of a GenBank file, with all that it says beside the letters
        self._early: list[SkippedRecord] = []
        self._on_skip: OnSkip = self._early.append
        wanted = genes.genes if genes else "none"
        if again or wanted not in (None, "none", "predict"):
            keep_pipes(path)
        parses = wanted is None or (features and wanted != "none")
        read = partial(
            read_sequences, soft_masks=soft_masks, on_genbank=self._parsed.append if parses else None
        )
        self._read = open_records(read, [path], reading, alphabet, lambda record: self._on_skip(record))
        self.records: Iterable[SequenceRecord] = self._read

    @property
    def count(self) -> int:
        """Records read so far."""
        return self._read.count

    def find_genes(
        self, is_circular: Callable[[SequenceRecord], bool], *, ahead: bool = False, introns: bool = False
    ) -> None:
        """Read or predict the genes for a locator; the options are those of `choose_genes`."""
        if self._genes is None or self.held is None:
            return
        from seqray.genome.find import MAX_TRAINING_LETTERS, choose_genes, genes_of_records

        genes, records = self._genes.genes or "auto", self.held
        if genes != "none":
            self.hold(MAX_TRAINING_LETTERS)
            if not records:
                return
        own = partial(genes_of_records, self._parsed, self.path, duplicates=self.duplicates)
        self.annotation, reason = choose_genes(
            genes,
            records if genes in ("auto", "predict") else self,
            is_circular,
            table=self._genes.codon_table,
            own=own if self._parsed and genes == "auto" else None,
            ahead=ahead,
            introns=introns,
        )
        self.notes = [f"no genes: {reason}"] if reason else []
        self.notes += self.annotation.notes if self.annotation else ()

    def hold(self, most: int) -> list[SequenceRecord]:
        """The first records of the input, up to at least so many letters; they stay in memory."""
        held = [] if self.held is None else self.held
        if held:
            return held
        letters = 0
        try:
            for record in self._read:
                held.append(record)
                letters += len(record)
                if letters >= most and not self._parsed:
                    break
            else:
                self.is_whole = True
        except InputError as error:
            own = self._genes is not None and self._genes.genes is None
            if not own or not re.search("feature(?!s? table)|location", error.what):
                raise  # else the file may be sound but for its features
            remedy = "correct the genes, or give --genes predict"
            raise InputError(error.what, where=error.where, remedy=remedy) from None
        self.records = chain(held, self._read)
        return held

    def __iter__(self) -> Iterator[SequenceRecord]:
        """All records once more: those that are held, or by reading the file again."""
        from seqray.io.sequences import read_sequences

        if self.is_whole and self.held is not None:
            return iter(self.held)
        return read_sequences(
            self.path,
            self._alphabet,
            duplicates=self.duplicates,
            on_skip=lambda record: None,
            skip_unusable=self._reading.skip_unusable,
        )

    def for_genbank(self) -> str | Iterable[tuple[str, SeqRecord]]:
        """The sequences for an output that holds them; the path of those that were streamed."""
        from seqray.io.files import display_name
        from seqray.io.genbank import named_records, plain_record

        if self._parsed:
            return named_records(self._parsed, display_name(self.path), self.duplicates)
        return map(plain_record, self) if self.is_whole or self._reading.skip_unusable else self.path

    def skip_to(self, log: OnSkip) -> None:
        """Hand over the records that were skipped before there was a log, and all later ones."""
        for record in self._early:
            log(record)
        self._on_skip = log

    def letters(self) -> int | None:
        """Letters of all records, as far as known before they are read: about the size of plain FASTA."""
        if self.is_whole:
            return sum(map(len, self))
        is_plain = self.path.lower().endswith((".fa", ".fasta", ".fna")) and os.path.isfile(self.path)
        return os.path.getsize(self.path) if is_plain else None


# --- Records that are skipped: counted, the first ones named, all of them written to a file

MAX_SHOWN_SKIPS = 3  # the rest are counted, and all of them are in --skipped


class SkipLog:
    """Counts the records that are not used, names the first on standard error and writes all to a file."""

    def __init__(
        self, path: str | Path | None, lines: Iterable[str], *, quiet: bool, keep: bool = False
    ) -> None:
        self.count, self.kept, self._keep, self._first = 0, list[tuple[str, str]](), keep, ""
        self._path, self._lines, self._quiet = path, list(lines), quiet
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        from seqray.io.tables import open_table

        table = open_table(self._path, ("id", "reason"), self._lines) if self._path else None
        self._write = self._stack.enter_context(table) if table else None
        return self

    def __exit__(self, *reason: Any) -> bool | None:
        hidden = self.count - MAX_SHOWN_SKIPS
        if reason[0] is None and hidden > 0 and not self._quiet:
            print(f"seqray: skipped {hidden} more", file=sys.stderr)
        return self._stack.__exit__(*reason)

    def __call__(self, record: SkippedRecord) -> None:
        self.count += 1
        self._first = self._first or f"'{record.id}': {record.reason}"
        if self._write:
            self._write([(record.id, record.reason)])
        if self._keep:
            self.kept.append((record.id, record.reason))
        if self.count <= MAX_SHOWN_SKIPS and not self._quiet:
            print(f"seqray: skipped record '{record.id}': {record.reason}", file=sys.stderr)

    def check_some_left(self, used: int, source: str) -> None:
        """Raise `NoRecordsError` if all records of a file were skipped."""
        if self.count and not used:
            from seqray.io.files import display_name

            many = f"all {self.count} records were skipped, such as"
            raise NoRecordsError(
                f"{many if self.count > 1 else 'the only record was skipped,'} {self._first}",
                where=display_name(source),
                remedy="--allow-empty gives an empty output instead",
            )


def refuse_skipped(source: str, record: SkippedRecord) -> NoReturn:
    """Raise `InputError` for a record of a file that would be skipped: under ``--strict``."""
    from seqray.io.files import display_name
    from seqray.io.records import describe_record

    where = describe_record(display_name(source), record.id)
    raise InputError(record.reason, where=where, remedy="remove it, or don't use --strict")
