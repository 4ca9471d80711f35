"""Options of ``seqray split``."""

from __future__ import annotations

import argparse
from typing import Annotated, Literal

from seqray.cli.common import (
    INFERRED_ALPHABET,
    Options,
    PositiveInt,
    Probability,
    Request,
    TableOptions,
    Threads,
    WholeNumber,
    option,
)
from seqray.core import parse_float
from seqray.homology import PARTS, RelationOptions, SplitOptions

LEAK = 3  # exit status under --strict
RELATION, SPLIT = RelationOptions(), SplitOptions()


def _shares(text: str) -> tuple[float, float, float]:
    """Shares of train, validation and test; whole numbers are ratios, others sum to 1 or to 100."""
    numbers = [parse_float(part) for part in text.split(",")]
    if len(numbers) == 2:
        numbers.insert(1, 0.0)
    total = sum(numbers)
    if len(numbers) != 3 or not all(0 <= n < float("inf") for n in numbers) or numbers[0] == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of shares such as 0.8,0.1,0.1")
    is_ratio = all(n.is_integer() for n in numbers)
    if not is_ratio and min(abs(total - 1), abs(total / 100 - 1)) > 1e-6:
        raise argparse.ArgumentTypeError(
            f"'{text}' sums to {total:g}; give shares that sum to 1, or ratios such as 8,1,1"
        )
    train, validation, test = (n / total for n in numbers)
    return train, validation, test


Shares = Annotated[tuple[float, float, float], _shares]


class RelativesOptions(Options, heading="relatives: which examples stay together"):
    """Which examples are related."""

    identity: Probability = option(
        "--identity X", "sequences of this identity or more, by alignment; 0 for none", RELATION.identity
    )
    word: WholeNumber | None = option(
        "--word K", "sequences that share a k-mer of K letters; 0 for none (default: 40, protein 20)"
    )
    one_strand: bool = option("--one-strand", "don't compare with the reverse complement")
    tool: Literal["seqray", "mmseqs"] = option(
        "--tool", "program that finds pairs of that identity; mmseqs must be installed", RELATION.tool
    )
    group_by: tuple[str, ...] = option(
        "--group-by COLUMN",
        "examples with the same text in a column, such as a gene or species; may be repeated",
    )
    positions: str | None = option(
        "--positions id|CONTIG,POSITION",
        "neighbors in the genome: ids such as chr1:1234:+, or the names of two columns",
    )
    block: PositiveInt = option(
        "--block N", "with --positions: letters of the genome that stay together", 10_000
    )


class DivisionOptions(Options, heading="division"):
    """How groups of relatives are divided."""

    shares: Shares | None = option(
        "--shares A,B,C",
        "shares of train, validation and test, or of train and test, that sum to 1; or ratios such as 8,1,1 "
        f"(default: {','.join(map(str, SPLIT.shares))})",
    )
    folds: PositiveInt | None = option(
        "--folds K", "write a column 'fold' with 1 to K instead of three parts"
    )
    keep: tuple[str, ...] = option(
        "--keep", "leave the examples of this split as the data have them; may be repeated", choices=PARTS
    )
    relatives: Literal["drop", "join"] = option(
        "--relatives",
        "other examples related to kept ones: leave them out (drop), or move them to their split (join)",
        SPLIT.relatives,
    )
    seed: WholeNumber = option("--seed N", "seed of the division", SPLIT.seed)


class SplitRequest(Request):
    """All options of ``seqray split``."""

    data: TableOptions
    alphabet: str | None = INFERRED_ALPHABET
    out: str = option("--out -o FILE", "table with the split (default: standard output)", "-")
    proof: str | None = option("--proof FILE", "write how similar the parts are to a TSV")
    relation: RelativesOptions
    division: DivisionOptions
    threads: Threads = option("--threads N", "threads of mmseqs", RELATION.threads)
    strict: bool = option("--strict", f"exit with {LEAK} if the proof finds a leak")
