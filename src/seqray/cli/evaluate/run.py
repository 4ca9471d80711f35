"""``seqray evaluate``: predictions and labels in, honest figures out, with a floor beside them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.common import (
    add_backbone_argument,
    add_data_arguments,
    add_label_arguments,
    auto_or_positive_int,
    check_end,
    check_files,
    data_files,
    positive_int,
    probability,
    whole_number,
)
from seqray.core import InputError

if TYPE_CHECKING:
    from seqray.cli.evaluate.data import Material
    from seqray.core.results import Answers, Evaluation

NO_FLOOR = "no floor stands beside these figures: they don't tell what a simple rule would reach"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add = parser.add_argument
    add("--model", "-m", metavar="NAME|FILE", help="model to evaluate on labelled data")
    add_backbone_argument(parser)
    add_data_arguments(parser)
    add_label_arguments(parser)
    _add_prediction_arguments(parser)
    _add_measuring_arguments(parser)
    _add_output_arguments(parser)
    compute = parser.add_argument_group("computing")
    compute.add_argument("--threads", type=positive_int, metavar="N", help="processor threads (default: all)")
    compute.add_argument(
        "--device", default="auto", metavar="DEVICE", help="auto (a GPU if there is one), cpu, cuda or cuda:N"
    )
    compute.add_argument(
        "--precision", choices=("fp32", "bf16"), default="fp32", help="bf16 is faster and less exact"
    )
    compute.add_argument(
        "--batch-size",
        type=auto_or_positive_int,
        default="auto",
        metavar="N|auto",
        help="sequences at once",
    )
    add("--quiet", "-q", action="store_true", help="no summary")


def _add_prediction_arguments(parser: argparse.ArgumentParser) -> None:
    given = parser.add_argument_group("predictions instead of a model")
    given.add_argument(
        "--predictions",
        metavar="FILE",
        help="of 'seqray predict' or another tool; '-' is standard input",
    )
    given.add_argument(
        "--labels",
        metavar="TABLE",
        help="id, label[, sequence, group, split, context]; or two columns without a header",
    )
    given.add_argument("--id-column", default="id", metavar="NAME", help="of the predictions (default: id)")
    given.add_argument("--score-column", metavar="NAME", help="score of the positive class, of any kind")
    given.add_argument("--positive", metavar="LABEL", help="the positive class, where the table doesn't say")
    given.add_argument(
        "--alphabet", choices=("dna", "rna", "protein"), help="of the sequences in tables (default: dna)"
    )


def _add_measuring_arguments(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("measuring")
    how.add_argument(
        "--split",
        choices=("train", "validation", "test", "all"),
        help="part to evaluate (default: test if there is one, else all)",
    )
    how.add_argument("--map", action="append", default=[], metavar="LABEL=CLASS", help="rename a label")
    how.add_argument(
        "--threshold",
        type=number,
        metavar="X",
        help="call the positive class from here on (default: the model's)",
    )
    how.add_argument(
        "--prior",
        type=probability,
        metavar="P",
        help="re-weight the model's probabilities to this share of positives",
    )
    how.add_argument(
        "--no-context", action="store_true", help="don't tell the model the context of the records"
    )
    how.add_argument("--against", metavar="MODEL|TABLE", help="compare with another model or its predictions")
    how.add_argument("--no-floor", action="store_true", help="fit no floor, and say so")
    how.add_argument(
        "--groups",
        choices=("auto", "column", "words", "none"),
        default="auto",
        help="what the bootstrap draws whole: the column 'group', sequences that share words, or nothing "
        "(default: the first of these that the data have)",
    )
    how.add_argument(
        "--bootstrap",
        type=whole_number,
        default=1000,
        metavar="N",
        help="draws for the intervals; 0 for none (default: 1000)",
    )
    how.add_argument("--seed", type=whole_number, default=0, metavar="N", help="of draws and folds")


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    out.add_argument("--out", "-o", metavar="FILE", help="figures as .tsv or .tsv.gz; '-' is standard output")
    out.add_argument("--json", metavar="FILE", help="the same as JSON, with facts of the model")
    out.add_argument("--html", metavar="FILE", help="a page with curves and tables")
    out.add_argument("--multiqc", metavar="FILE", help="a table for MultiQC; ends in _mqc.json")
    out.add_argument("--sample", metavar="NAME", help="row of the MultiQC table (default: name of the model)")


def number(text: str) -> float:
    """Type of an argument: a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return value


def run(args: argparse.Namespace) -> int:
    """Read, score, measure, write."""
    _check(args)
    from seqray.cli.evaluate.inputs import gather

    material = gather(args)
    evaluation = _evaluate(args, material)
    _write(args, material, evaluation)
    if not args.quiet:
        from seqray.evaluation import summary

        piped = "-" in (args.out, args.json, args.html, args.multiqc)
        print("\n".join(summary(evaluation, material.name)), file=sys.stderr if piped else sys.stdout)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Find what is wrong with the files before anything heavy is loaded."""
    from seqray.io.tables import check_multiqc_path

    if args.out and not args.out.lower().endswith((".tsv", ".tsv.gz")) and args.out != "-":
        remedy = "use .tsv, .tsv.gz or '-'; --json, --html and --multiqc write the other forms"
        raise InputError("does not name a TSV by its end", where=args.out, remedy=remedy)
    check_end(args.json, ".json")
    check_end(args.html, ".html", ".htm")
    if args.multiqc:
        check_multiqc_path(args.multiqc)
    given = [path for path in (args.predictions, args.labels, *data_files(args)) if path]
    outputs = (args.out, args.json, args.html, args.multiqc)
    check_files(given, outputs, beside=(args.model, args.against))


def _evaluate(args: argparse.Namespace, material: Material) -> Evaluation:
    from seqray.cli.evaluate.data import group_keys
    from seqray.evaluation import by_context, by_similarity, evaluate_answers, label_indices

    examples = material.examples
    labels = label_indices([example.label for example in examples], material.classes)
    groups, grouping = group_keys(examples, material.alphabet, args.groups)
    lettered = all(example.sequence for example in examples)
    beside, notes = _floor(args, material, groups, lettered)
    subsets = by_context(examples)
    if material.train and lettered:
        subsets |= by_similarity(examples, material.train, material.alphabet)
    return evaluate_answers(
        labels,
        [*material.answers, *beside],
        material.classes,
        material.positive,
        groups,
        subsets=subsets,
        draws=args.bootstrap,
        seed=args.seed,
        split=material.split,
        grouping=grouping,
        notes=[*material.notes, *notes],
    )


def _floor(
    args: argparse.Namespace, material: Material, groups: list[object] | None, lettered: bool
) -> tuple[list[Answers], list[str]]:
    """The floor and the rules, or a note that they are missing."""
    if args.no_floor:
        return [], [f"--no-floor: {NO_FLOOR}"]
    if not lettered:
        return [], [f"the labels come without sequences: {NO_FLOOR}"]
    from seqray.evaluation import floor_answers, fold_count

    examples, train = material.examples, material.train
    keys = list(range(len(examples))) if groups is None else groups
    folds = fold_count([example.label for example in examples], keys)
    if not train and folds < 2:
        return [], [f"records of one group, or one of each class: nothing can be held out, {NO_FLOOR}"]
    note = (
        "without training data the floor and the rules are cross-validated on the evaluated records "
        f"({folds} folds by groups): give the model's own with --train for a fair comparison"
    )
    found = floor_answers(
        examples, train, material.classes, material.positive, material.alphabet, keys, seed=args.seed
    )
    return found, [] if train else [note]


def _write(args: argparse.Namespace, material: Material, evaluation: Evaluation) -> None:
    from seqray.io import Staging
    from seqray.io.tables import (
        describe_alphabet,
        evaluation_mapping,
        multiqc_mapping,
        provenance_lines,
        write_figures,
        write_json,
    )

    policy = describe_alphabet(material.alphabet)
    lines = provenance_lines(args.command, material.name, material.sha256, policy)
    sample = args.sample or Path(material.name).name.split(".")[0]
    with Staging() as staging:
        if args.out:
            write_figures(staging.path(args.out), evaluation, lines)
        if args.json:
            write_json(staging.path(args.json), evaluation_mapping(evaluation, lines, material.card))
        if args.multiqc:
            write_json(staging.path(args.multiqc), multiqc_mapping(evaluation, sample))
        if args.html:
            _write_page(staging.path(args.html), evaluation, material, lines)


def _write_page(path: str | Path, evaluation: Evaluation, material: Material, lines: list[str]) -> None:
    from seqray.io import open_output
    from seqray.report.pages import render_evaluation

    with open_output(path) as handle:
        page = render_evaluation(evaluation, material.name, lines, material.card)
        handle.write(page.encode("utf-8", "replace"))
