"""``seqray split``: divide labelled sequences so that no relative of a test sequence is learned from."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqray.cli.common import (
    add_data_arguments,
    check_end,
    check_files,
    data_files,
    positive_int,
    probability,
    read_data,
    whole_number,
)
from seqray.core import ALPHABETS, ConfigError, InputError

if TYPE_CHECKING:
    import numpy as np

    from seqray.core import Alphabet, LabelledSequence
    from seqray.core.results import SkippedRecord
    from seqray.homology import Division, Related, RelationOptions, SplitOptions

LEAK = 3  # exit status under --strict
PARTS = ("train", "validation", "test")
SHARES = (0.8, 0.1, 0.1)
WORDS = {"dna": 40, "rna": 40, "protein": 20}
LOWEST = {"dna": 0.65, "rna": 0.65, "protein": 0.3}  # below, unrelated sequences reach it by chance
OWN_COLUMNS = ("id", "label", "group", "split", "context")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add("tables", nargs="*", metavar="TABLE", help="the same as --train TABLE; '-' is standard input")
    add_data_arguments(parser)
    add("--alphabet", choices=tuple(ALPHABETS), default="dna", help="of the sequences (default: dna)")
    add("--out", "-o", default="-", metavar="FILE", help="table with the split (default: standard output)")
    add("--proof", metavar="FILE", help="write how like the parts are to a TSV")
    _add_relations(parser)
    _add_division(parser)
    add("--threads", type=positive_int, default=1, metavar="N", help="of mmseqs (default: 1)")
    add("--strict", action="store_true", help=f"exit with {LEAK} where the proof finds a leak")
    add("--quiet", "-q", action="store_true", help="write nothing but errors to standard error")


def _add_relations(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("relatives: what is never divided").add_argument
    add(
        "--identity",
        type=probability,
        default=0.8,
        metavar="X",
        help="sequences of this identity or more, by alignment; 0 looks for none (default: 0.8)",
    )
    add(
        "--word",
        type=whole_number,
        metavar="K",
        help="sequences that share a word of K letters; 0 looks for none (default: 40, protein 20)",
    )
    add("--one-strand", action="store_true", help="don't compare with the reverse complement")
    add(
        "--tool",
        choices=("seqray", "mmseqs"),
        default="seqray",
        help="what finds pairs of that identity (default: seqray; mmseqs must be installed)",
    )
    add(
        "--group-by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="examples with the same text in a column, such as a gene or species; may be repeated",
    )
    add(
        "--positions",
        metavar="id|CONTIG,POSITION",
        help="neighbours in the genome: ids such as chr1:1234:+, or the names of two columns",
    )
    add(
        "--block",
        type=positive_int,
        default=10_000,
        metavar="N",
        help="letters of the genome that stay together, with --positions (default: 10000)",
    )


def _add_division(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("division").add_argument
    add(
        "--shares",
        type=shares,
        metavar="A,B,C",
        help="of train, validation and test, or of train and test (default: 0.8,0.1,0.1)",
    )
    add("--folds", type=positive_int, metavar="K", help="a column 'fold' of 1 to K instead of three parts")
    add(
        "--keep",
        action="append",
        choices=PARTS,
        default=[],
        help="leave the examples of this split as the data say; may be repeated",
    )
    add(
        "--relatives",
        choices=("drop", "join"),
        default="drop",
        help="other examples related to kept ones: leave them out (default), or let them join their split",
    )
    add("--seed", type=whole_number, default=0, metavar="N", help="of the division (default: 0)")


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


def run(args: argparse.Namespace) -> int:
    """Read, group, divide, prove, write and tell; returns the exit status."""
    args.train = [*args.tables, *args.train]
    _check(args)
    alphabet = ALPHABETS[args.alphabet]
    skipped: list[SkippedRecord] = []
    data = read_data(args, alphabet, on_skip=skipped.append)
    from seqray.homology import RelationOptions, SplitOptions, find_relatives, split_data

    relation = RelationOptions(args.identity, args.word, not args.one_strand, args.tool, args.threads)
    division = SplitOptions(
        args.shares or SHARES, args.folds or 0, tuple(dict.fromkeys(args.keep)), args.relatives, args.seed
    )
    others = named_relations(args, data)
    related = find_relatives([example.sequence for example in data], alphabet, relation, others)
    result = split_data(data, related, alphabet, division, relation)
    return _finish(args, alphabet, data, relation, division, related, result, len(skipped))


def _check(args: argparse.Namespace) -> None:
    check_end(args.out, ".tsv", ".csv")
    check_end(args.proof, ".tsv")
    check_files(data_files(args), [args.out, args.proof])
    if args.word is None:
        args.word = WORDS[args.alphabet]
    lowest = LOWEST[args.alphabet]
    if 0 < args.identity < lowest:
        raise ConfigError(
            f"--identity is {args.identity:g}, which unrelated {args.alphabet} sequences may reach by chance",
            remedy=f"give {lowest:g} or more, or 0 for none",
        )
    if args.folds is not None and args.shares is not None:
        raise ConfigError("--folds and --shares are given", remedy="choose one")
    if args.folds == 1:
        raise ConfigError("--folds is 1", remedy="give 2 or more")


def named_relations(args: argparse.Namespace, data: Sequence[LabelledSequence]) -> dict[str, np.ndarray]:
    """Groups that the data name: their own group, columns and positions."""
    from seqray.homology import named_groups, near_groups, parse_places, parse_positions

    columns = list(dict.fromkeys(name.lower() for name in args.group_by))
    if any(example.group for example in data) and "group" not in columns:
        columns.insert(0, "group")
    found = {f"the same {name}": named_groups(_column(args, data, name)) for name in columns}
    if args.positions:
        if args.positions == "id":
            contigs, positions = parse_places([example.id for example in data])
        else:
            contigs, column = _two_columns(args, data)
            positions = parse_positions(_column(args, data, column), column)
        name = f"neighbours within a block of {args.block} letters"
        lengths = [len(example.sequence) for example in data]
        found[name] = near_groups(contigs, positions, lengths, args.block)
    return found


def _two_columns(args: argparse.Namespace, data: Sequence[LabelledSequence]) -> tuple[list[str], str]:
    names = args.positions.split(",")
    if len(names) != 2 or not all(names):
        raise ConfigError(
            f"--positions is '{args.positions}'", remedy="write id, or two columns CONTIG,POSITION"
        )
    return _column(args, data, names[0]), names[1]


def _column(args: argparse.Namespace, data: Sequence[LabelledSequence], name: str) -> list[str]:
    """One text for each example, in the order in which they were read."""
    if name in OWN_COLUMNS:
        return [getattr(example, name) or "" for example in data]
    if args.class_files or args.test_class_files:
        raise InputError(f"FASTA files have no column '{name}'", remedy="give a table")
    from seqray.io.tables import read_column

    tables = [*args.train, *args.validation, *args.test]
    return [text for table in tables for text in read_column(table, name)]


def _finish(
    args: argparse.Namespace,
    alphabet: Alphabet,
    data: Sequence[LabelledSequence],
    relation: RelationOptions,
    options: SplitOptions,
    related: Related,
    result: Division,
    skipped: int,
) -> int:
    from seqray.cli.split.outputs import Outcome, header, leaking, summary, write

    outcome = Outcome(data, alphabet, relation, options, related, result, skipped)
    write(args, outcome, header(args, outcome))
    if not args.quiet:
        print("\n".join(f"seqray: {line}" for line in summary(outcome)), file=sys.stderr)
    return LEAK if args.strict and leaking(outcome) else 0
