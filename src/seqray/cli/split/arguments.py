"""What ``seqray split`` is asked for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import ClassVar, Literal

from seqray.cli.common import (
    Request,
    TableOptions,
    alphabet_option,
    choice,
    default_of,
    flag,
    group,
    option,
    positive_int,
    probability,
    repeated,
    whole_number,
)
from seqray.homology import PARTS, RelationOptions, SplitOptions

LEAK = 3  # exit status under --strict


def shares(text: str) -> tuple[float, float, float]:
    """Type of an argument: shares of train, validation and test, scaled to sum to 1."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 2:
        numbers.insert(1, 0.0)
    total = sum(numbers)
    if len(numbers) != 3 or not all(0 <= n < float("inf") for n in numbers) or numbers[0] == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of shares such as 0.8,0.1,0.1")
    train, validation, test = (n / total for n in numbers)
    return train, validation, test


@dataclass(frozen=True, kw_only=True)
class RelativesOptions:
    """Which examples are related."""

    title: ClassVar[str] = "relatives: what is never divided"

    identity: float = option(
        "--identity",
        "X",
        "sequences of this identity or more, by alignment; 0 for none",
        type=probability,
        default=default_of(RelationOptions, "identity"),
    )
    word: int | None = option(
        "--word",
        "K",
        "sequences that share a word of K letters; 0 for none (default: 40, protein 20)",
        type=whole_number,
    )
    one_strand: bool = flag("--one-strand", "don't compare with the reverse complement")
    tool: Literal["seqray", "mmseqs"] = choice(
        "--tool",
        ("seqray", "mmseqs"),
        "program that finds pairs of that identity; mmseqs must be installed",
        default=default_of(RelationOptions, "tool"),
    )
    group_by: tuple[str, ...] = repeated(
        "--group-by",
        "COLUMN",
        "examples with the same text in a column, such as a gene or species; may be repeated",
    )
    positions: str | None = option(
        "--positions",
        "id|CONTIG,POSITION",
        "neighbors in the genome: ids such as chr1:1234:+, or the names of two columns",
    )
    block: int = option(
        "--block",
        "N",
        "with --positions: letters of the genome that stay together",
        type=positive_int,
        default=10_000,
    )


@dataclass(frozen=True, kw_only=True)
class DivisionOptions:
    """How groups of relatives are divided."""

    title: ClassVar[str] = "division"

    shares: tuple[float, float, float] | None = option(
        "--shares",
        "A,B,C",
        "shares of train, validation and test, or of train and test (default: "
        f"{','.join(map(str, default_of(SplitOptions, 'shares')))})",
        type=shares,
    )
    folds: int | None = option(
        "--folds", "K", "write a column 'fold' with 1 to K instead of three parts", type=positive_int
    )
    keep: tuple[str, ...] = repeated(
        "--keep",
        None,
        "leave the examples of this split as the data have them; may be repeated",
        choices=PARTS,
    )
    relatives: Literal["drop", "join"] = choice(
        "--relatives",
        ("drop", "join"),
        "other examples related to kept ones: leave them out (drop), or move them to their split (join)",
        default=default_of(SplitOptions, "relatives"),
    )
    seed: int = option(
        "--seed", "N", "seed of the division", type=whole_number, default=default_of(SplitOptions, "seed")
    )


@dataclass(frozen=True, kw_only=True)
class SplitRequest(Request):
    """All options of ``seqray split``."""

    data: TableOptions = group(TableOptions)
    alphabet: str = alphabet_option()
    out: str = option("--out -o", "FILE", "table with the split (default: standard output)", default="-")
    proof: str | None = option("--proof", "FILE", "write how similar the parts are to a TSV")
    relation: RelativesOptions = group(RelativesOptions)
    division: DivisionOptions = group(DivisionOptions)
    threads: int = option(
        "--threads",
        "N",
        "threads of mmseqs",
        type=positive_int,
        default=default_of(RelationOptions, "threads"),
    )
    strict: bool = flag("--strict", f"exit with {LEAK} if the proof finds a leak")
