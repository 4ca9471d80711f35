"""Options of ``seqray negatives``."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from seqray.cli.common import (
    ALPHABET,
    SKIPPED_HELP,
    ClassName,
    Options,
    PositiveInt,
    Request,
    WholeNumber,
    option,
)
from seqray.datasets.negatives import RECIPES, NegativeOptions

STARTS = ("gene", "pseudogene", "mRNA", "transcript", "promoter", "TSS")
DEFAULTS = NegativeOptions({})


def _positive_number(text: str) -> Fraction:
    """A number above 0; a long exponent would stand for endless digits."""
    try:
        value = Fraction(text if re.fullmatch("[0-9.]{1,12}(e[0-9]|/[0-9]{1,6})?", text) else 0)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


PositiveNumber = Annotated[Fraction, _positive_number]


class RecipeOptions(Options, heading="what to make"):
    """Which negatives are made, and how many."""

    recipe: tuple[str, ...] = option(
        "--recipe NAME[=SHARE]",
        "how to make them, see below; may be repeated, shares are relative",
        required=True,
    )
    ratio: PositiveNumber = option("--ratio N", "negatives per positive", DEFAULTS.ratio)
    seed: WholeNumber = option("--seed N", "seed of all random draws", DEFAULTS.seed)
    shuffle_words: Literal[1, 2] | None = option(
        "--shuffle-words",
        "shuffles keep the counts of letters (1) or of pairs (2); default: 2, for protein 1",
    )
    segments: PositiveInt = option("--segments N", "substitution: segments of a positive", DEFAULTS.segments)
    keep: WholeNumber = option("--keep N", "substitution: segments that stay as they are", DEFAULTS.keep)


class GenomeOptions(Options, heading="windows of a genome"):
    """Where windows are cut from."""

    genome: str | None = option("--genome FILE", "FASTA or GenBank; held in memory")
    annotation: str | None = option(
        "--annotation FILE", "genes, as GFF3 or GenBank (default: those of a genome in GenBank)"
    )
    starts: str | None = option(
        "--starts FILE|none",
        "starts that windows of every recipe keep away from: GFF3, GenBank, BED, or a TSV with "
        "contig and site, 0-based (default: those of the annotation, for recipe 'genome' only)",
    )
    feature: str = option(
        "--feature TYPE,..",
        "features that count as starts: of genes and transcripts the 5' end, of others every letter, as "
        "every line of a BED file",
        ",".join(STARTS),
    )
    distance: WholeNumber = option("--distance N", "letters between a window and a start", 200)
    strands: Literal["both", "same"] = option(
        "--strands", "keep away from starts of both strands or of the window's own", "both"
    )
    match: Literal["gc", "length"] = option(
        "--match", "windows match positives in length and GC content (gc), or in length alone", "gc"
    )
    gc_bins: PositiveInt = option("--gc-bins N", "bins of GC content", DEFAULTS.gc_bins)
    max_overlap: WholeNumber = option(
        "--max-overlap N", "letters that two windows may share", DEFAULTS.max_overlap
    )
    block: PositiveInt = option("--block N", "letters of the genome that form one group", DEFAULTS.block)


class TableOutput(Options, heading="output"):
    """The output and its labels."""

    out: str = option("--out -o FILE", ".tsv or .csv (+ .gz) (default: TSV on stdout)", "-")
    only_negatives: bool = option("--only-negatives", "leave the positives out; allows .fa, too")
    format: Literal["tsv", "fasta"] | None = option(
        "--format", "format of an output without a known suffix, such as '-' (default: tsv)"
    )
    label_positive: ClassName = option("--label-positive LABEL", "label of positives", "promoter")
    label: ClassName = option("--label-negative LABEL", "label of negatives", DEFAULTS.label)


class PositiveOptions(Options, heading="records"):
    """Which positives are used, and what happens to the others."""

    alphabet: str = ALPHABET
    duplicates: Literal["error", "rename"] = option(
        "--duplicates",
        "ids of positives that occur again: refuse (error), or write as id_2 (rename)",
        "error",
    )
    skipped: str | None = option("--skipped FILE", SKIPPED_HELP)
    strict: bool = option("--strict", "make too few negatives, or a skipped record, an error")
    allow_empty: bool = option(
        "--allow-empty", "a file without records gives an empty table instead of an error"
    )


def _recipes() -> str:
    lines = [f"  {name:13} {r.makes}\n{'':16}teaches: {r.teaches}" for name, r in RECIPES.items()]
    return "\n".join(
        ["recipes:", *lines, "", "A score depends on the negatives: see docs/concepts/negatives.md."]
    )


class NegativesRequest(Request):
    """All options of ``seqray negatives``."""

    epilog: ClassVar[str] = _recipes()
    keep_epilog_lines: ClassVar[bool] = True

    positives: str = option(
        "POSITIVES", "FASTA or GenBank, or a table with the columns sequence and label; '-' is standard input"
    )
    recipes: RecipeOptions
    genome: GenomeOptions
    output: TableOutput
    records: PositiveOptions
