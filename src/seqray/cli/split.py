"""``seqray split``: split labeled sequences, relatives together."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.labeled import INFERRED_ALPHABET, TableOptions, describe_letters, read_examples
from seqray.cli.messages import Progress
from seqray.cli.options import (
    Options,
    Outcome,
    PositiveInt,
    Probability,
    Request,
    WholeNumber,
    fill,
    option,
    refuse_unused,
)
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import files_of
from seqray.core.text import parse_float
from seqray.homology.options import BLOCK, PARTS, RelationOptions, SplitOptions

if TYPE_CHECKING:
    from seqray.core.results import SkippedRecord


# --- Options of ``seqray split``

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
        "--word K",
        "sequences that share a k-mer of K positions; 0 for none (default: half a length, up to 40, protein "
        "10, as in seqray audit)",
    )
    one_strand: bool = option("--one-strand", "don't compare with the reverse complement")
    group_by: tuple[str, ...] = option(
        "--group-by COLUMN",
        "examples with the same text in a column, such as a gene or species; may be repeated",
    )
    positions: str | None = option(
        "--positions id|CONTIG,POSITION",
        "neighbors in the genome: ids such as chr1:1234:+, or the names of two columns",
    )
    block: PositiveInt = option(
        "--block N", "with --positions: bases of the genome that stay together", BLOCK, only_for="positions"
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
        only_for="keep",
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
    strict: bool = option("--strict", f"exit with {LEAK} if the proof finds a leak")


# --- Read, group, divide, prove, write and report

MIN_IDENTITY = {"dna": 0.65, "rna": 0.65, "protein": 0.3}  # below, unrelated sequences reach it by chance
OWN_COLUMNS = ("id", "label", "group", "split", "context", "subclass")


def run(request: SplitRequest) -> Outcome:
    """Split labeled sequences so that no relative of a test sequence is in training."""
    _check(request)
    skipped: list[SkippedRecord] = []
    named = request.relation
    used = [name.lower() for name in (*named.group_by, *(named.positions or "").split(",")) if name]
    columns = {name: list[str]() for name in used if name not in OWN_COLUMNS}
    if columns and request.data.fastas():
        raise InputError(f"FASTA files have no column '{next(iter(columns))}'", remedy="give a table")
    files = replace(request.data.located(request, used=used), keep=columns)
    data, alphabet = read_examples(request.alphabet, files, on_skip=skipped.append)
    from seqray.cli.split_outputs import SplitResult, shared_group
    from seqray.homology.kmers import named_relations, word_length
    from seqray.homology.similarity import find_relatives
    from seqray.homology.split import split_data

    lowest = MIN_IDENTITY[alphabet.name]
    if 0 < named.identity < lowest:
        what = f"which unrelated {alphabet.name} sequences may reach by chance"
        remedy = f"give {lowest:g} or more, or 0 for none"
        raise ConfigError(f"--identity is {named.identity:g}, {what}", remedy=remedy)
    division = fill(SplitOptions, request.division, keep=tuple(dict.fromkeys(request.division.keep)))
    sequences = [example.sequence for example in data]
    word = word_length(sequences, alphabet) if named.word is None else named.word
    relation = fill(RelationOptions, named, word=word, both_strands=not named.one_strand)
    columns |= {name: [getattr(example, name) or "" for example in data] for name in OWN_COLUMNS}
    others = named_relations(data, columns, named.group_by, named.positions, named.block)
    with Progress("align similar sequences", "pairs", quiet=request.quiet) as progress:
        related = find_relatives(sequences, alphabet, relation, others, progress.update)
    try:
        with Progress("align held-out sequences", "sequences", quiet=request.quiet) as progress:
            divided = split_data(data, related, alphabet, division, relation, progress.update)
    except InputError as error:
        remedy = error.remedy and (shared_group(data) or error.remedy)
        raise InputError(error.what, where=error.where or files_of(data), remedy=remedy) from None
    result = SplitResult(data, alphabet, relation, division, related, divided, len(skipped))
    result.write(request.out, request.proof, request.command)
    if request.alphabet is None and alphabet.name != "dna":
        request.note(f"the letters are those of {describe_letters(alphabet.name)} (--alphabet names others)")
    if not division.keep and any(example.split for example in data):
        request.note("the column 'split' of the data is replaced; to keep a part as it is, give --keep test")
    if relation.word > max(map(len, sequences), default=relation.word):
        request.note(f"no sequence has {relation.word} letters, so none share a k-mer: give a smaller --word")
    request.note(*result.summary())
    return Outcome(records=len(data), status=LEAK if request.strict and result.leaks else 0)


def _check(request: SplitRequest) -> None:
    check_suffix(request.out, ".tsv", ".csv")
    check_suffix(request.proof, ".tsv")
    check_files(request.data.files(), [request.out, request.proof])
    absent = {}
    if request.relation.positions is None:
        absent["positions"] = ("is for neighbors in a genome", "add --positions")
    if not request.division.keep:
        absent["keep"] = ("is for relatives of kept examples", "add --keep")
    refuse_unused(request, absent)
    if request.division.folds is not None and request.division.shares is not None:
        raise ConfigError("--folds and --shares are given", remedy="choose one")
    if request.division.folds == 1:
        raise ConfigError("--folds is 1", remedy="give 2 or more")
    positions = request.relation.positions
    if positions not in (None, "id") and not re.fullmatch("[^,]+,[^,]+", positions):
        remedy = "write id, or two columns CONTIG,POSITION"
        raise ConfigError(f"--positions is '{positions}'", remedy=remedy)
