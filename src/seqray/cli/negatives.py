"""``seqray negatives``: make negatives for positives, and note what a model learns from them."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from seqray.cli import options
from seqray.cli.inputs import SKIPPED_HELP, SkipLog, check_files, check_suffix, format_of
from seqray.cli.labeled import ALPHABET, COLUMNS, naming_alphabet, noting_unread
from seqray.cli.options import Options, Outcome, Request, fill, option, refuse_unused
from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, InputError, NoRecordsError
from seqray.core.text import describe_labels
from seqray.datasets.negatives.recipes import RECIPES, GenomeSource, NegativeOptions, parse_mix

if TYPE_CHECKING:
    from seqray.core.alphabet import Alphabet
    from seqray.core.records import LabeledSequence
    from seqray.datasets.negatives.make import NegativeSet
    from seqray.io.records import OnSkip


# --- Options of ``seqray negatives``

DEFAULTS, SOURCE = NegativeOptions({}), GenomeSource()


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
    seed: options.WholeNumber = option("--seed N", "seed of all random draws", DEFAULTS.seed)
    segments: options.PositiveInt = option(
        "--segments N", "substitution: segments of a positive", DEFAULTS.segments, only_for="substitution"
    )
    keep: options.WholeNumber = option(
        "--keep N", "substitution: segments that stay as they are", DEFAULTS.keep, only_for="substitution"
    )


class GenomeOptions(Options, heading="windows of a genome", only_for="windows"):
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
        "features that count as starts: of genes and transcripts the 5' end, of others every base, as "
        "every line of a BED file",
        SOURCE.feature,
    )
    distance: options.WholeNumber = option(
        "--distance N", "bases between a window and a start", SOURCE.distance
    )
    match: Literal["gc", "length"] = option(
        "--match", "windows match positives in length and GC content (gc), or in length alone", "gc"
    )
    gc_bins: options.PositiveInt = option("--gc-bins N", "bins of GC content", DEFAULTS.gc_bins)
    max_overlap: options.WholeNumber = option(
        "--max-overlap N", "bases that two windows may share", DEFAULTS.max_overlap
    )
    block: options.PositiveInt = option(
        "--block N", "bases of the genome that form one group", DEFAULTS.block
    )


class TableOutput(Options, heading="output"):
    """The output and its labels."""

    out: str = option("--out -o FILE", ".tsv or .csv (+ .gz) (default: TSV on stdout)", "-")
    only_negatives: bool = option("--only-negatives", "leave the positives out; allows .fa, too")
    format: Literal["tsv", "fasta"] | None = option(
        "--format", "format of an output without a known suffix, such as '-' (default: tsv)"
    )
    label_positive: options.ClassName = option("--label-positive LABEL", "label of positives", "promoter")
    label: options.ClassName = option("--label-negative LABEL", "label of negatives", DEFAULTS.label)


class PositiveOptions(Options, heading="records"):
    """Which positives are used, and what happens to the others."""

    alphabet: str = ALPHABET
    columns: options.ColumnNames | None = COLUMNS
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


class NegativesRequest(Request):
    """All options of ``seqray negatives``."""

    epilog: ClassVar[str] = "\n".join(
        [
            "recipes:",
            *(f"  {name:13} {r.makes}\n{'':16}teaches: {r.teaches}" for name, r in RECIPES.items()),
            "",
            "A score depends on the negatives: see docs/concepts/negatives.md.",
        ]
    )
    keep_epilog_lines: ClassVar[bool] = True

    positives: str = option(
        "POSITIVES", "FASTA or GenBank, or a table with the columns sequence and label; '-' is standard input"
    )
    recipes: RecipeOptions
    genome: GenomeOptions
    output: TableOutput
    records: PositiveOptions


# --- Read positives and what the recipes need, make the negatives, and note what a model learns from them

FORMATS = {".tsv": "tsv", ".csv": "csv", ".fa": "fasta", ".fasta": "fasta", ".fna": "fasta"}


def run(request: NegativesRequest) -> Outcome:
    """Read, make, write, and report what was made."""
    out, genome, records = request.output, request.genome, request.records
    mix, bins = parse_mix(request.recipes.recipe), genome.gc_bins if genome.match == "gc" else 0
    options = fill(NegativeOptions, request.recipes, genome, mix=mix, label=out.label, gc_bins=bins)
    kind = output_format(out)
    windows = [name for name, recipe in RECIPES.items() if recipe.genome]
    absent = {name: (f"is for recipe '{name}'", "leave it out") for name in RECIPES.keys() - mix.keys()}
    if set(windows) <= absent.keys():
        absent["windows"] = "is for windows of a genome", f"add --recipe {' or '.join(windows)}"
    refuse_unused(request, absent)
    beside = (genome.genome, genome.annotation, genome.starts)
    check_files([request.positives], [out.out, records.skipped], beside=beside)
    check_suffix(records.skipped, ".tsv")
    from seqray.datasets.negatives.genome import read_genome_context
    from seqray.datasets.negatives.make import NegativeSet, make_negatives, shortages
    from seqray.io.files import Staging, encode_text, keep_pipes, open_output
    from seqray.io.sequences import write_labeled_table
    from seqray.io.tables import describe_alphabet, provenance_lines

    keep_pipes(request.positives, genome.genome)  # their format is found before they are read
    alphabet = ALPHABETS[records.alphabet]
    letters = describe_alphabet(alphabet)
    with Staging() as staging:
        skip_path = records.skipped and staging.path(records.skipped)
        head = provenance_lines(request.command, "", "", letters)
        with SkipLog(skip_path, head, quiet=request.quiet) as skipped, naming_alphabet():
            others = Counter[str]()  # labels of rows that are left out, because they are not of the positives
            positives = read_positives(request, alphabet, skipped, others)
        source = fill(GenomeSource, genome)
        context, notes = read_genome_context(source, alphabet, mix, request.notes_at_end.append)
        result = NegativeSet((), (), dict.fromkeys(mix, 0), dict.fromkeys(mix, 0), None)
        if positives:
            result = make_negatives(positives, options, alphabet, context)
        if records.strict and (short := shortages(result)):
            raise InputError(short[0], remedy="ask for fewer, match less closely, or leave out --strict")
        if kind == "fasta":
            with open_output(staging.path(out.out)) as handle:
                for e in result.negatives:
                    handle.write(encode_text(f">{e.id} {e.label}\n{e.sequence}\n"))
        else:
            examples = [*(() if out.only_negatives else result.positives), *result.negatives]
            header = provenance_lines(
                request.command, "", "", letters, facts(result, options, others) | notes
            )
            write_labeled_table(staging.path(out.out), examples, header, subclasses=True)
    request.note(*summary(result, others))
    return Outcome()


def output_format(output: TableOutput) -> str:
    """Format of the output: ``tsv``, ``csv`` or ``fasta``."""
    kind = format_of(output.out, FORMATS, output.format, ".tsv, .csv or .fa")
    if output.format not in (None, kind):
        what = f"--format {output.format} and '{output.out}' are different formats"
        raise ConfigError(what, remedy="leave out --format")
    if kind == "fasta" and not output.only_negatives:
        raise ConfigError("FASTA files can't contain labels", remedy="add --only-negatives, or write a table")
    if output.label_positive == output.label:
        raise ConfigError("positives and negatives have the same label", remedy="give --label-negative")
    return kind


def read_positives(
    request: NegativesRequest, alphabet: Alphabet, on_skip: OnSkip, others: Counter[str]
) -> list[LabeledSequence]:
    """Read positives from sequences, or rows of a table with their label; ``others`` counts other labels."""
    from seqray.datasets.negatives.make import positives_in

    path, label, options = request.positives, request.output.label_positive, request.records
    try:
        return positives_in(
            path,
            label,
            alphabet,
            others,
            noting_unread(request),
            options.columns,
            duplicates=options.duplicates,
            on_skip=None if options.strict else on_skip,
        )
    except NoRecordsError as error:
        if options.allow_empty:
            return []
        remedy = "--allow-empty gives an empty table instead"
        raise NoRecordsError(error.what, where=error.where, remedy=remedy) from None


def facts(result: NegativeSet, options: NegativeOptions, others: Counter[str]) -> dict[str, object]:
    """What was made, for the header; ``others`` counts labels of rows that were left out."""
    about: dict[str, object] = {"positives": len(result.positives), "seed": options.seed}
    if others:
        about["rows left out for their label"] = describe_labels(others)
    for name, count in result.made.items():
        about[f"recipe {name}"] = f"{count} of {result.wanted[name]}; {RECIPES[name].makes}"
        about[f"recipe {name} teaches"] = RECIPES[name].teaches
    if result.placed is not None:
        about["positives found in the genome"] = result.placed
        like = f"length and GC content ({options.gc_bins} bins)" if options.gc_bins else "length"
        about["windows match"] = f"{like} of a positive; share at most {options.max_overlap} bases"
        about["id of a window"] = "recipe:contig:start-end:strand, 0-based, half-open"
    return about


def summary(result: NegativeSet, others: Counter[str]) -> list[str]:
    """Summarize what was made, what a model learns from it, and cautions; ``others`` as in `facts`."""
    from seqray.datasets.negatives.make import cautions

    lines = [
        f"{name}: {count} negatives; teaches {RECIPES[name].teaches}" for name, count in result.made.items()
    ]
    return [*lines, *(f"caution: {caution}" for caution in cautions(result, others))]
