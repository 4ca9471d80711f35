"""Options of a scan, and the command that it records."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from seqray.cli.inputs import SEQUENCE_FILES, GeneOptions, RecordOptions
from seqray.cli.model import EngineOptions, ModelOptions
from seqray.cli.options import (
    CallPrecision,
    Number,
    Options,
    PositiveInt,
    Probability,
    Request,
    WholeNumber,
    option,
)
from seqray.scanning.options import ScanOptions

# --- The command line that a scan records, and the share of a scan that it names

OUTPUT_OPTIONS = ("--out", "-o", "--html", "--track", "--format", "--skipped")
_SHARD_OPTIONS = ("--shard",)
_SHORT = re.compile("-[^-]")
_MESSAGE_OPTIONS = ("--quiet", "-q", "--verbose", "--log-json", "--debug")


def _parse_shard(text: str) -> tuple[int, int]:
    """``I/N``, from ``1/N`` to ``N/N``."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not I/N with I from 1 to N")
    return int(match[1]), int(match[2])


Shard = Annotated[tuple[int, int], _parse_shard]


def divide_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into what decides the scan, and the options that name its outputs."""
    settings: list[str] = []
    outputs: list[str] = []
    rest = iter(words)
    for given in rest:
        word = re.sub("^-q+(?=[^q])", "-", given)  # -qo FILE is -q -o FILE
        name = word[:2] if _SHORT.match(word) else word.partition("=")[0]
        valued = name in (*OUTPUT_OPTIONS, *_SHARD_OPTIONS)
        parts = [word, next(rest, "")] if valued and word == name else [word]
        if name in OUTPUT_OPTIONS:
            outputs += parts
        elif name not in (*_SHARD_OPTIONS, *_MESSAGE_OPTIONS):
            settings += parts
    return settings, outputs


def recorded_command(words: Sequence[str]) -> tuple[str, ...]:
    """The command line as the headers of results name it."""
    settings, outputs = divide_words(words)
    return (*settings, *outputs)


# --- Options of ``seqray scan``

DEFAULTS = ScanOptions()


class CallOutputs(Options, heading="output; all files appear together, or none"):
    """What a scan writes, whole or gathered."""

    out: tuple[str, ...] = option(
        "--out -o FILE",
        "calls as .gff3, .bed or .tsv (+ .gz), or .gb (not of shards); may be repeated (default: TSV on "
        "stdout)",
    )
    html: str | None = option("--html FILE", "a page with figures, maps of calls and a table to search")
    format: Literal["gff3", "bed", "tsv", "genbank"] | None = option(
        "--format", "format of an output without a known suffix, such as '-'"
    )
    track: tuple[str, ...] = option(
        "--track FILE",
        "score of every window at its site, or of every position, a file per strand: x.bw gives x.plus.bw "
        "and x.minus.bw; .bw or .bedgraph[.gz]; may be repeated",
    )


class ScanOutputs(CallOutputs):
    """The same, or one shard."""

    shard: Shard | None = option(
        "--shard I/N",
        "do the I-th of N shares of the scan and write it to --out FILE.shard, for 'seqray gather'",
    )


class CallingOptions(Options, heading="calling"):
    """Which peaks are called."""

    threshold: Probability | None = option("--threshold P", "lowest score of a call (default: the model's)")
    expected_precision: CallPrecision | None = option(
        "--precision P",
        "choose the lowest threshold at which this share of calls is expected to be right, with a locator",
    )
    species: str | None = option(
        "--species NAME",
        "expect the precision measured on this species (default: the one that the input is like; for "
        "--precision the median of species left out of training)",
    )
    per_kb: Number | None = option(
        "--per-kb N", "call the best N sites per thousand positions that score .001 or more, with a locator"
    )
    fdr: Probability | None = option(
        "--fdr Q",
        "choose the lowest threshold at which expected false calls are at most this share of all calls",
    )
    null_mb: Number | None = option(
        "--null-mb MB",
        "most Mb of shuffled input to scan for comparison; 0 for none (default: 1, for a locator 0)",
    )
    seed: WholeNumber = option("--seed N", "seed of the shuffles", DEFAULTS.seed)
    min_distance: PositiveInt | None = option(
        "--min-distance N",
        "smallest distance between two sites on one strand (default: 50, for a locator 25)",
    )


class WindowOptions(Options, heading="sequences"):
    """Which windows are scored."""

    strand: Literal["both", "plus", "minus"] = option("--strand", "strands to scan", DEFAULTS.strand)
    stride: PositiveInt | None = option(
        "--stride N",
        "letters between windows; peaks are refined at 1 (default: 1 where a prefilter is used, else 10)",
    )
    prefilter: Literal["auto", "none"] = option(
        "--prefilter",
        "auto: a model with a prefilter scores only the windows that may reach the threshold, unless "
        "--stride is given; none: the prefilter is not used",
        DEFAULTS.prefilter,
    )
    region: tuple[str, ...] = option(
        "--region NAME[:START[-END]]",
        "only sites within this part, 1-based, both ends included; may be repeated",
    )
    bed: str | None = option(
        "--bed FILE", "only sites within the parts in a BED file; its strand column is ignored"
    )
    circular: bool = option("--circular", "every sequence is circular")
    circular_ids: tuple[str, ...] = option(
        "--circular-id NAME",
        "this sequence is circular, as are those marked in the input; may be repeated",
    )
    max_ambiguous: Probability = option(
        "--max-ambiguous SHARE",
        "windows with a larger share of ambiguous letters are not scored",
        DEFAULTS.max_ambiguous,
    )
    skip_soft_masked: bool = option(
        "--skip-soft-masked", "leave out windows whose site is a lower-case letter"
    )


class ScanRecords(RecordOptions):
    """Calls name their contig, so ids are unique."""

    duplicates: Literal["error", "rename"] = option(
        "--duplicates", "ids that occur again: refuse (error), or write as id_2 (rename)", "error"
    )


class ScanRequest(Request):
    """All options of ``seqray scan``."""

    input: str = option("SEQUENCES", SEQUENCE_FILES)
    model: ModelOptions
    outputs: ScanOutputs
    calling: CallingOptions
    windows: WindowOptions
    genes: GeneOptions
    records: ScanRecords
    computing: EngineOptions
