"""What ``seqray scan`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from seqray.cli.common import (
    SEQUENCE_FILES,
    EngineOptions,
    ModelOptions,
    RecordOptions,
    Request,
    choice,
    default_of,
    flag,
    group,
    number,
    option,
    positional,
    positive_int,
    probability,
    repeated,
    whole_number,
)
from seqray.cli.scan.command import parse_shard
from seqray.scanning import ScanOptions

_default = partial(default_of, ScanOptions)


@dataclass(frozen=True, kw_only=True)
class CallOutputs:
    """What a scan writes, whole or gathered."""

    title: ClassVar[str] = "output; all files appear together, or none"

    out: tuple[str, ...] = repeated(
        "--out -o", "FILE", "calls as .gff3, .bed or .tsv (+ .gz); may be repeated (default: TSV on stdout)"
    )
    format: str | None = choice(
        "--format", ("gff3", "bed", "tsv"), "format of a file whose name has none, such as '-'"
    )
    track: tuple[str, ...] = repeated(
        "--track",
        "FILE",
        "score of every window at its site, a file per strand: x.bw gives x.plus.bw and x.minus.bw; "
        ".bw or .bedgraph[.gz]; may be repeated",
    )


@dataclass(frozen=True, kw_only=True)
class ScanOutputs(CallOutputs):
    """The same, or one shard."""

    shard: tuple[int, int] | None = option(
        "--shard",
        "I/N",
        "do the I-th of N shares of the scan and write it to --out FILE.shard, for 'seqray gather'",
        type=parse_shard,
    )


@dataclass(frozen=True, kw_only=True)
class CallingOptions:
    """Which peaks are called."""

    title: ClassVar[str] = "calling"

    threshold: float | None = option(
        "--threshold", "P", "lowest probability (default: the model's)", type=probability
    )
    fdr: float | None = option(
        "--fdr",
        "Q",
        "choose the lowest threshold at which expected false calls are at most this share of all calls",
        type=probability,
    )
    null_mb: float = option(
        "--null-mb",
        "MB",
        "most Mb of shuffled input to scan for the expected false calls; 0 for none",
        type=number,
        default=_default("null_mb"),
    )
    seed: int = option("--seed", "N", "seed of the shuffles", type=whole_number, default=_default("seed"))
    min_distance: int = option(
        "--min-distance",
        "N",
        "smallest distance between two sites on one strand",
        type=positive_int,
        default=_default("min_distance"),
    )


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Which windows are scored."""

    title: ClassVar[str] = "sequences"

    strand: Literal["both", "plus", "minus"] = choice(
        "--strand", ("both", "plus", "minus"), "strands to scan", default=_default("strand")
    )
    stride: int = option(
        "--stride",
        "N",
        "letters between windows; peaks are refined at 1",
        type=positive_int,
        default=_default("stride"),
    )
    region: tuple[str, ...] = repeated(
        "--region",
        "NAME[:START[-END]]",
        "only sites within this part, 1-based, both ends included; may be repeated",
    )
    bed: str | None = option("--bed", "FILE", "only sites within the parts in a BED file")
    circular: bool = flag("--circular", "every sequence is circular")
    circular_ids: tuple[str, ...] = repeated(
        "--circular-id",
        "NAME",
        "this sequence is circular, as are those that GenBank marks so; may be repeated",
    )
    max_ambiguous: float = option(
        "--max-ambiguous",
        "SHARE",
        "windows with a larger share of ambiguous letters are not scored",
        type=probability,
        default=_default("max_ambiguous"),
    )
    skip_soft_masked: bool = flag("--skip-soft-masked", "leave out windows whose site is a lower-case letter")


@dataclass(frozen=True, kw_only=True)
class ScanRequest(Request):
    """All options of ``seqray scan``."""

    input: tuple[str, ...] = positional("SEQUENCES", SEQUENCE_FILES, nargs=1)
    model: ModelOptions = group(ModelOptions)
    outputs: ScanOutputs = group(ScanOutputs)
    calling: CallingOptions = group(CallingOptions)
    windows: WindowOptions = group(WindowOptions)
    records: RecordOptions = group(RecordOptions)
    computing: EngineOptions = group(EngineOptions)
