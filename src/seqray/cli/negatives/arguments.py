"""What ``seqray negatives`` is asked for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal

from seqray.cli.common import (
    SKIPPED_HELP,
    Request,
    alphabet_option,
    choice,
    default_of,
    flag,
    group,
    option,
    positional,
    positive_int,
    repeated,
    whole_number,
)
from seqray.datasets.negatives import RECIPES, NegativeOptions

STARTS = ("gene", "pseudogene", "mRNA", "transcript", "promoter", "TSS")
_default = partial(default_of, NegativeOptions)


def positive_number(text: str) -> Fraction:
    """Type of an argument: a number above 0."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


@dataclass(frozen=True, kw_only=True)
class RecipeOptions:
    """Which negatives are made, and how many."""

    title: ClassVar[str] = "what to make"

    recipe: tuple[str, ...] = repeated(
        "--recipe",
        "NAME[=SHARE]",
        "how to make them, see below; may be repeated, shares are relative",
        required=True,
    )
    ratio: Fraction = option(
        "--ratio", "N", "negatives per positive", type=positive_number, default=_default("ratio")
    )
    seed: int = option("--seed", "N", "seed of all random draws", type=whole_number, default=_default("seed"))
    shuffle_words: int | None = choice(
        "--shuffle-words",
        (1, 2),
        "shuffles keep the counts of letters (1) or of pairs (2); default: 2, for protein 1",
        type=int,
    )
    segments: int = option(
        "--segments",
        "N",
        "substitution: segments of a positive",
        type=positive_int,
        default=_default("segments"),
    )
    keep: int = option(
        "--keep",
        "N",
        "substitution: segments that stay as they are",
        type=whole_number,
        default=_default("keep"),
    )


@dataclass(frozen=True, kw_only=True)
class GenomeOptions:
    """Where windows are cut from."""

    title: ClassVar[str] = "windows of a genome"

    genome: str | None = option("--genome", "FILE", "FASTA or GenBank; held in memory")
    annotation: str | None = option(
        "--annotation", "FILE", "genes, as GFF3 or GenBank (default: those of a genome in GenBank)"
    )
    starts: str | None = option(
        "--starts",
        "FILE|none",
        "starts that windows of every recipe keep away from: GFF3, GenBank, BED, or a TSV with "
        "contig and site, 0-based (default: those of the annotation, for recipe 'genome' only)",
    )
    feature: str = option(
        "--feature",
        "TYPE,..",
        "features that count as starts: of genes and transcripts the 5' end, of others every letter, as "
        "every line of a BED file",
        default=",".join(STARTS),
    )
    distance: int = option(
        "--distance", "N", "letters between a window and a start", type=whole_number, default=200
    )
    strands: Literal["both", "same"] = choice(
        "--strands",
        ("both", "same"),
        "keep away from starts of both strands or of the window's own",
        default="both",
    )
    match: Literal["gc", "length"] = choice(
        "--match",
        ("gc", "length"),
        "windows match positives in length and GC content (gc), or in length alone",
        default="gc",
    )
    gc_bins: int = option(
        "--gc-bins", "N", "bins of GC content", type=positive_int, default=_default("gc_bins")
    )
    max_overlap: int = option(
        "--max-overlap",
        "N",
        "letters that two windows may share",
        type=whole_number,
        default=_default("max_overlap"),
    )
    block: int = option(
        "--block",
        "N",
        "letters of the genome that form one group",
        type=positive_int,
        default=_default("block"),
    )


@dataclass(frozen=True, kw_only=True)
class TableOutput:
    """What is written, and under which labels."""

    title: ClassVar[str] = "output"

    out: str = option("--out -o", "FILE", ".tsv or .csv (+ .gz) (default: TSV on stdout)", default="-")
    only_negatives: bool = flag("--only-negatives", "leave the positives out; allows .fa, too")
    format: str | None = choice(
        "--format", ("tsv", "fasta"), "format of a file whose name has none, such as '-' (default: tsv)"
    )
    label_positive: str = option("--label-positive", "LABEL", "label of positives", default="promoter")
    label: str = option("--label-negative", "LABEL", "label of negatives", default=_default("label"))


@dataclass(frozen=True, kw_only=True)
class PositiveOptions:
    """Which positives are used, and what happens to the others."""

    title: ClassVar[str] = "records"

    alphabet: str = alphabet_option()
    duplicates: Literal["error", "rename"] = choice(
        "--duplicates",
        ("error", "rename"),
        "ids of positives that occur again: refuse (error), or write as id_2 (rename)",
        default="error",
    )
    skipped: str | None = option("--skipped", "FILE", SKIPPED_HELP)
    strict: bool = flag("--strict", "make too few negatives, or a skipped record, an error")
    allow_empty: bool = flag(
        "--allow-empty", "a file without records gives an empty table instead of an error"
    )


def _recipes() -> str:
    lines = [f"  {name:13} {r.makes}\n{'':16}teaches: {r.teaches}" for name, r in RECIPES.items()]
    return "\n".join(
        ["recipes:", *lines, "", "A score depends on the negatives: see docs/concepts/negatives.md."]
    )


@dataclass(frozen=True, kw_only=True)
class NegativesRequest(Request):
    """All options of ``seqray negatives``."""

    epilog: ClassVar[str] = _recipes()
    raw_epilog: ClassVar[bool] = True

    positives: str = positional(
        "POSITIVES",
        "FASTA or GenBank, or a table with the columns sequence and label; '-' is standard input",
    )
    recipes: RecipeOptions = group(RecipeOptions)
    genome: GenomeOptions = group(GenomeOptions)
    output: TableOutput = group(TableOutput)
    records: PositiveOptions = group(PositiveOptions)
