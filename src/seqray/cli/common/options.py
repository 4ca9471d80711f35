"""What verbs that take a model have in common: arguments, opening model and input, telling of progress."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

from seqray.core import InputError, NoRecordsError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from seqray.core import Alignment, Alphabet, SequenceRecord
    from seqray.core.results import SkippedRecord
    from seqray.inference import Engine
    from seqray.io.sequences import Duplicates
    from seqray.modelfile import TrainedModel

T = TypeVar("T")
Record = TypeVar("Record", "SequenceRecord", "Alignment")

SHOWN_SKIPS = 3  # named on the terminal; the rest are counted, and all of them are in --skipped
PROGRESS_SECONDS = 0.2


def positive_int(text: str) -> int:
    """Type of an argument: 1 or more."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


def whole_number(text: str) -> int:
    """Type of an argument: 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def auto_or_positive_int(text: str) -> int | str:
    """Type of an argument: ``auto``, or 1 or more."""
    return text if text == "auto" else positive_int(text)


def probability(text: str) -> float:
    """Type of an argument: 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value


def add_input_arguments(parser: argparse.ArgumentParser, *, alignments: bool = False) -> None:
    """The sequences, or alignments where the verb reads them, and the model."""
    formats = "FASTA or GenBank" + (", or alignments for a model that reads them" if alignments else "")
    parser.add_argument(
        "input",
        nargs="+" if alignments else 1,
        metavar="SEQUENCES",
        help=f"{formats}; plain or compressed, '-' is standard input"
        + ("; several files are read one after the other" if alignments else ""),
    )
    parser.add_argument(
        "--model", "-m", required=True, metavar="NAME|FILE", help="a shipped model (seqray models) or a file"
    )
    parser.add_argument(
        "--context",
        metavar="NAME",
        help="what the sequences are, such as their species; 'seqray models show' lists what a model knows",
    )
    add_backbone_argument(parser)


def add_backbone_argument(parser: argparse.ArgumentParser) -> None:
    """Where the encoder lies that a model stands on."""
    parser.add_argument(
        "--backbone",
        metavar="DIR",
        help="directory of the encoder that the model stands on, where it has moved since training",
    )


def add_scan_outputs(group: argparse._ArgumentGroup) -> None:
    """What a scan writes, whole or gathered."""
    group.add_argument(
        "--out",
        "-o",
        action="append",
        default=[],
        metavar="FILE",
        help="calls as .gff3, .bed or .tsv (+ .gz); may be repeated (default: TSV on stdout)",
    )
    group.add_argument(
        "--format", choices=("gff3", "bed", "tsv"), help="format where a name doesn't tell, as '-'"
    )
    group.add_argument(
        "--track",
        action="append",
        default=[],
        metavar="FILE",
        help="score of every window at its site, a file per strand: x.bw gives x.plus.bw and x.minus.bw; "
        ".bw or .bedgraph[.gz]; may be repeated",
    )


def add_common_arguments(parser: argparse.ArgumentParser, *, precision: bool = True) -> None:
    """How records are read, where it is computed (and how exactly), and what is told."""
    records = parser.add_argument_group("records")
    records.add_argument(
        "--duplicates",
        choices=("error", "rename", "keep"),
        default="error",
        help="ids that occur again: refuse (default), write as id_2, or keep",
    )
    records.add_argument("--strict", action="store_true", help="make the first skipped record an error")
    records.add_argument("--skipped", metavar="FILE", help="write skipped records and reasons to a TSV")
    records.add_argument(
        "--allow-empty",
        action="store_true",
        help="a file without records gives an empty output, not an error",
    )
    compute = parser.add_argument_group("computing")
    compute.add_argument("--threads", type=positive_int, metavar="N", help="processor threads (default: all)")
    compute.add_argument(
        "--device", default="auto", metavar="DEVICE", help="auto (a GPU if there is one), cpu, cuda or cuda:N"
    )
    if precision:
        compute.add_argument(
            "--precision", choices=("fp32", "bf16"), default="fp32", help="bf16 is faster and less exact"
        )
        compute.add_argument(
            "--batch-size",
            type=auto_or_positive_int,
            default="auto",
            metavar="N|auto",
            help="sequences at once",
        )
        compute.add_argument(
            "--engine",
            choices=("torch", "onnx", "openvino"),
            default="torch",
            help="what computes; others need an extra: pip install 'seqray[onnx]' or 'seqray[openvino]' "
            "(default: torch)",
        )
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="write nothing but errors to standard error"
    )


def check_files(
    sources: Sequence[str], outputs: Iterable[str | None], beside: Iterable[str | None] = ()
) -> None:
    """Find what is wrong with the files of a run before anything heavy is loaded.

    Parameters
    ----------
    sources
        What is read; tried at once.
    outputs
        What is written, ``-`` for standard output; None for nothing.
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
            raise InputError(
                "is named twice as an output", where="standard output" if output == "-" else output
            )
        if output != "-" and os.path.isfile(output) and key in read:
            raise InputError(
                "is an input and would be overwritten", where=output, remedy="name another output"
            )
        seen.add(key)


_KNOWN_ENDS = (".tsv", ".csv", ".parquet", ".html", ".htm", ".json", ".fa", ".fasta", ".png", ".svg", ".pdf")


def check_end(path: str | None, *ends: str) -> None:
    """Refuse the name of an output that promises another format than what is written.

    Raises
    ------
    InputError
        For one that ends as files of a known format do, and not in one of ``ends``; ``.gz`` may follow.
    """
    name = (path or "").lower().removesuffix(".gz")
    if name.endswith(_KNOWN_ENDS) and not name.endswith(ends):
        raise InputError(
            "names another format by its end", where=path or "", remedy=f"use {' or '.join(ends)}"
        )


def open_model(args: argparse.Namespace, *, alignments: bool = False) -> TrainedModel:
    """Load ``--model`` onto ``--device``, with ``--threads`` set; ``alignments``: it may read those.

    Raises
    ------
    ConfigError
        For a device or an engine that isn't there, or a model of alignments where sequences are meant.
    ModelFileError
        As `seqray.modelfile.load_model`.
    """
    from seqray.modelfile import load_model, locate_model

    locate_model(args.model)  # a misspelt name is told before torch is loaded
    import torch

    from seqray.models import torch_device

    if args.threads:
        torch.set_num_threads(args.threads)
    engine: Engine = getattr(args, "engine", "torch")  # not every verb asks for one, nor for a context
    on_cpu = engine != "torch" and args.device == "auto"
    device = "cpu" if on_cpu else torch_device(args.device)
    model = load_model(args.model, args.backbone).to(device)
    if not alignments:
        model.check_reads_sequences()
    model = model.with_context(getattr(args, "context", None))
    if getattr(args, "verbose", False):
        about = f"model {model.card.name} sha256:{model.sha256}, torch {torch.__version__}"
        print(f"seqray: {about}, {torch.get_num_threads()} threads, {model.device}", file=sys.stderr)
    if engine == "torch":
        return model
    from seqray.inference import with_engine

    return with_engine(model, engine, args.precision)


def open_records(
    args: argparse.Namespace,
    alphabet: Alphabet,
    skipped: Callable[[SkippedRecord], None],
    *,
    soft_masks: bool = False,
) -> Iterator[SequenceRecord]:
    """Read ``SEQUENCES`` under the options on duplicates, skipped records and empty files."""
    from seqray.io.sequences import read_sequences

    on_skip = None if args.strict else skipped

    def read(path: str, duplicates: Duplicates) -> Iterator[SequenceRecord]:
        return read_sequences(path, alphabet, duplicates=duplicates, soft_masks=soft_masks, on_skip=on_skip)

    return read_inputs(args, read)


def read_inputs(
    args: argparse.Namespace, read: Callable[[str, Duplicates], Iterator[Record]]
) -> Iterator[Record]:
    """Read the files of ``args.input`` one after the other, with one rule on ids for all of them.

    Parameters
    ----------
    read
        Opens a file, under a rule on ids that occur twice in it.

    Raises
    ------
    InputError
        For an id that occurs twice, within a file or between files; and for a file without records, unless
        ``--allow-empty`` is given.
    """
    from seqray.io import display_name
    from seqray.io.sequences import UniqueIds

    several = len(args.input) > 1
    ids = UniqueIds(args.duplicates, "")
    args.records = 0
    for path in args.input:
        try:
            for record in read(path, "keep" if several else args.duplicates):
                args.records += 1
                yield replace(record, id=ids.resolve(record.id, display_name(path))) if several else record
        except NoRecordsError as error:
            if not args.allow_empty:
                allowed = "passes over it" if several else "gives an empty output instead"
                raise NoRecordsError(
                    error.what, where=error.where, remedy=f"--allow-empty {allowed}"
                ) from None


def describe_input(args: argparse.Namespace) -> str:
    """The input, for an error about one of its records."""
    from seqray.io import display_name

    return display_name(args.input[0]) if len(args.input) == 1 else f"one of {len(args.input)} files"


def provenance(args: argparse.Namespace, model: TrainedModel, extra: Mapping[str, object]) -> list[str]:
    """The header of every output of this run."""
    from seqray.io.tables import describe_alphabet, provenance_lines

    policy = describe_alphabet(model.alphabet)
    return provenance_lines(args.command, model.card.name, model.sha256, policy, extra)


class SkipLog:
    """Counts the records that are not used, names the first on standard error and writes all to a file.

    To be used in ``with``, and given to a reader as ``on_skip``.

    Parameters
    ----------
    path
        Where to write them; None for nowhere.
    lines
        Provenance of the file.
    """

    def __init__(self, path: str | Path | None, lines: Iterable[str], *, quiet: bool) -> None:
        self.count = 0
        self._path, self._lines, self._quiet = path, list(lines), quiet
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        from seqray.io.tables import open_skipped

        self._write = self._stack.enter_context(open_skipped(self._path, self._lines)) if self._path else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        hidden = self.count - SHOWN_SKIPS
        if error is None and hidden > 0 and not self._quiet:
            print(f"seqray: skipped {hidden} more", file=sys.stderr)
        return self._stack.__exit__(kind, error, trace)

    def __call__(self, record: SkippedRecord) -> None:
        self.count += 1
        if self._write:
            self._write(record)
        if self.count <= SHOWN_SKIPS and not self._quiet:
            print(f"seqray: skipped record '{record.id}': {record.reason}", file=sys.stderr)


class Progress:
    """One line on a terminal's standard error that counts; silent anywhere else.

    To be used in ``with``; the line is gone when the block ends.
    """

    def __init__(self, unit: str, *, quiet: bool) -> None:
        self._unit = unit
        self._shown = not quiet and sys.stderr.isatty()
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._next:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def show(self, count: int) -> None:
        """Show a count, a few times a second at most."""
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_SECONDS
            print(f"\r\033[K{count:,} {self._unit}", end="", file=sys.stderr, flush=True)

    def watch(self, things: Iterable[T]) -> Iterator[T]:
        """Pass things on, counting them."""
        for count, thing in enumerate(things, start=1):
            self.show(count)
            yield thing
