"""``seqray negatives``: positives in, a labelled table with negatives out, and a word on what they teach."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from seqray.cli.common import SkipLog, check_files, positive_int, whole_number
from seqray.cli.negatives import inputs as negatives_inputs, outputs as negatives_outputs
from seqray.core import ALPHABETS, InputError
from seqray.datasets.negatives import RECIPES, parse_mix

if TYPE_CHECKING:
    from seqray.core import Alphabet, LabelledSequence
    from seqray.datasets.negatives import Ground, NegativeOptions, NegativeSet

STARTS = ("gene", "pseudogene", "mRNA", "transcript", "promoter", "TSS")


def positive_number(text: str) -> Fraction:
    """Type of an argument: a number above 0."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options, and below them the recipes."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    lines = [f"  {name:13} {r.makes}\n{'':16}teaches: {r.teaches}" for name, r in RECIPES.items()]
    parser.epilog = "\n".join(
        ["recipes:", *lines, "", "A score depends on the negatives: see docs/concepts/negatives.md."]
    )
    parser.add_argument(
        "positives",
        metavar="POSITIVES",
        help="FASTA or GenBank, or a table with the columns sequence and label; '-' is standard input",
    )
    _add_what(parser.add_argument_group("what to make"))
    _add_genome(parser.add_argument_group("windows of a genome"))
    _add_output(parser.add_argument_group("output"))
    records = parser.add_argument_group("records")
    records.add_argument("--alphabet", choices=tuple(ALPHABETS), default="dna", help="default: dna")
    records.add_argument(
        "--duplicates",
        choices=("error", "rename"),
        default="error",
        help="ids of positives that occur again: refuse (default) or write as id_2",
    )
    records.add_argument("--skipped", metavar="FILE", help="write skipped records and reasons to a TSV")
    records.add_argument(
        "--strict", action="store_true", help="too few negatives, or a skipped record, are an error"
    )
    records.add_argument(
        "--allow-empty", action="store_true", help="a file without records gives an empty table, not an error"
    )
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="write nothing but errors to standard error"
    )


def _add_what(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--recipe",
        action="append",
        required=True,
        metavar="NAME[=SHARE]",
        help="how to make them, see below; may be repeated, shares are relative",
    )
    add(
        "--ratio",
        type=positive_number,
        default=Fraction(1),
        metavar="N",
        help="negatives per positive (default: 1)",
    )
    add("--seed", type=whole_number, default=0, metavar="N", help="of all that is drawn (default: 0)")
    add(
        "--shuffle-words",
        type=int,
        choices=(1, 2),
        help="shuffles keep the counts of letters (1) or of pairs (2); default: 2, for protein 1",
    )
    add(
        "--segments",
        type=positive_int,
        default=20,
        metavar="N",
        help="substitution: segments of a positive (default: 20)",
    )
    add("--keep", type=whole_number, default=8, metavar="N", help="of which N stay (default: 8)")


def _add_genome(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--genome", metavar="FILE", help="FASTA or GenBank; held in memory")
    add(
        "--annotation",
        metavar="FILE",
        help="genes, as GFF3 or GenBank (default: those of a genome in GenBank)",
    )
    add(
        "--starts",
        metavar="FILE|none",
        help="starts that windows of every recipe keep away from: GFF3, GenBank, BED, or a TSV with "
        "contig and site, 0-based (default: those of the annotation, for recipe 'genome' only)",
    )
    add(
        "--feature",
        default=",".join(STARTS),
        metavar="TYPE,..",
        help="features that count as starts; of genes and transcripts the 5' end, of others every letter, as "
        "every line of a BED file (default: %(default)s)",
    )
    add("--distance", type=whole_number, default=200, metavar="N", help="letters kept away (default: 200)")
    add(
        "--strands",
        choices=("both", "same"),
        default="both",
        help="keep away from starts of both strands (default) or of the window's own",
    )
    add(
        "--match",
        choices=("gc", "length"),
        default="gc",
        help="windows are like positives in length and GC content (default), or in length alone",
    )
    add("--gc-bins", type=positive_int, default=20, metavar="N", help="bins of GC content (default: 20)")
    add(
        "--max-overlap",
        type=whole_number,
        default=0,
        metavar="N",
        help="letters that two windows may share (default: 0)",
    )
    add(
        "--block",
        type=positive_int,
        default=10_000,
        metavar="N",
        help="letters of the genome that make one group (default: 10000)",
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--out", "-o", default="-", metavar="FILE", help=".tsv or .csv (+ .gz) (default: TSV on stdout)")
    add("--only-negatives", action="store_true", help="leave the positives out; then .fa, too")
    add(
        "--format",
        choices=("tsv", "fasta"),
        help="format where a name doesn't tell, as '-' (default: tsv)",
    )
    add("--label-positive", default="promoter", metavar="LABEL", help="default: promoter")
    add("--label-negative", default="background", metavar="LABEL", help="default: background")


def run(args: argparse.Namespace) -> int:
    """Read, make, write, and say what was made."""
    from seqray.io import Staging

    mix = parse_mix(args.recipe)
    kind = negatives_outputs.output_format(args)
    read = (args.genome, args.annotation, args.starts)
    check_files([args.positives], [args.out, args.skipped], beside=read)
    options, alphabet = read_options(args, mix), ALPHABETS[args.alphabet]
    with Staging() as staging:
        header = negatives_outputs.provenance(args, alphabet, {})
        with SkipLog(args.skipped and staging.path(args.skipped), header, quiet=args.quiet) as skipped:
            positives = list(negatives_inputs.read_positives(args, alphabet, skipped))
        ground, notes = negatives_inputs.read_ground(args, alphabet, mix)
        result = make(positives, options, alphabet, ground)
        if args.strict and (short := negatives_outputs.shortages(result)):
            raise InputError(short[0], remedy="ask for fewer, match less closely, or leave out --strict")
        facts = negatives_outputs.facts(result, options) | notes
        header = negatives_outputs.provenance(args, alphabet, facts)
        examples = [*(() if args.only_negatives else result.positives), *result.negatives]
        negatives_outputs.write(staging.path(args.out), kind, examples, header)
    if not args.quiet:
        print("\n".join(f"seqray: {line}" for line in negatives_outputs.summary(result)), file=sys.stderr)
    return 0


def read_options(args: argparse.Namespace, mix: dict[str, Fraction]) -> NegativeOptions:
    """What to make, from the words of the command line."""
    from seqray.datasets.negatives import NegativeOptions

    return NegativeOptions(
        mix=mix,
        ratio=args.ratio,
        seed=args.seed,
        label=args.label_negative,
        shuffle_words=args.shuffle_words,
        segments=args.segments,
        keep=args.keep,
        gc_bins=args.gc_bins if args.match == "gc" else 0,
        max_overlap=args.max_overlap,
        block=args.block,
    )


def make(
    positives: Sequence[LabelledSequence],
    options: NegativeOptions,
    alphabet: Alphabet,
    ground: Ground | None,
) -> NegativeSet:
    """Make the negatives; none for no positives."""
    from seqray.datasets.negatives import NegativeSet, make_negatives

    if not positives:
        nothing = dict.fromkeys(options.mix, 0)
        return NegativeSet((), (), nothing, nothing, None)
    return make_negatives(positives, options, alphabet, ground)
