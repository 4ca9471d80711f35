"""``seqray explain``: which letters or columns a call rests on, ranked, and whether to believe that."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.common import (
    Progress,
    SkipLog,
    add_common_arguments,
    add_input_arguments,
    add_row_arguments,
    check_end,
    check_files,
    describe_input,
    open_model,
    open_records,
    positive_int,
    probability,
    provenance,
    refuse_row_options,
    whole_number,
)
from seqray.core import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seqray.cli.explain.outputs import Gathered
    from seqray.core import SequenceRecord
    from seqray.core.results import Faithfulness, HeadFigures, Place
    from seqray.explanations import ExplainOptions
    from seqray.modelfile import TrainedModel

METHODS = (
    *("rollout", "grad-rollout", "value-rollout"),
    *("input-x-gradient", "integrated-gradients", "ism", "occlusion"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_input_arguments(parser, alignments=True)
    _add_question_arguments(parser.add_argument_group("what is explained"))
    _add_output_arguments(parser.add_argument_group("output; all files appear together, or none"))
    _add_check_arguments(parser.add_argument_group("checks"))
    _add_method_arguments(parser.add_argument_group("settings of single methods"))
    add_row_arguments(parser)
    _add_alignment_outputs(parser.add_argument_group("output for models of alignments"))
    add_common_arguments(parser, precision=False)


def _add_question_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--method",
        action="append",
        default=[],
        choices=METHODS,
        metavar="METHOD",
        help=f"{', '.join(METHODS)}; for alignments rollout, grad-rollout and occlusion; may be repeated "
        "(default: rollout)",
    )
    group.add_argument(
        "--class",
        dest="target",
        metavar="NAME",
        help="the class explained; 'called': the one that each record is called (default: the positive one)",
    )
    group.add_argument(
        "--members",
        choices=("mean", "each"),
        default="mean",
        help="of the model: their mean (default), or each as well",
    )
    group.add_argument(
        "--calls",
        metavar="FILE",
        help="calls of 'seqray scan' as GFF3: SEQUENCES is the genome, each call is explained in its place",
    )
    group.add_argument(
        "--best-calls",
        type=positive_int,
        metavar="N",
        help="with --calls: the N calls of highest score only, from the highest down",
    )


def _add_output_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--out", "-o", default="-", metavar="FILE", help=".tsv or .tsv.gz (default: TSV on stdout)"
    )
    group.add_argument(
        "--top", type=positive_int, metavar="N", help="write the N best positions of each record only"
    )
    group.add_argument("--html", metavar="FILE", help="a page with everything, which needs no network")
    group.add_argument(
        "--html-records",
        type=positive_int,
        default=100,
        metavar="N",
        help="most records in the page and the plot, the first ones (default: 100)",
    )
    group.add_argument("--plot", metavar="FILE", help=".png, .svg or .pdf of the first records")
    group.add_argument(
        "--track",
        action="append",
        default=[],
        metavar="FILE",
        help="scores as .bw or .bedgraph[.gz], a file per strand: x.bw gives x.plus.bw and x.minus.bw; with "
        "several methods x.METHOD.plus.bw; may be repeated",
    )
    group.add_argument(
        "--motifs",
        action="append",
        default=[],
        metavar="FILE",
        help="what high scores have in common, as .meme, .jaspar or .tsv; may be repeated",
    )
    group.add_argument("--heads", metavar="FILE", help="a TSV of what each attention head does")


def _add_check_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--no-check", action="store_true", help="don't measure whether rankings can be believed"
    )
    group.add_argument(
        "--faithfulness",
        metavar="FILE",
        help="figures of the checks as TSV (default: OUT.faithfulness.tsv where --out names a file)",
    )
    group.add_argument(
        "--check-records",
        type=positive_int,
        metavar="N",
        help="records that the checks use, drawn evenly from those called the class (default: 200, or 40 "
        "alignments)",
    )
    group.add_argument(
        "--shuffles",
        type=whole_number,
        default=20,
        metavar="N",
        help="shuffled copies of each record for p-values; 0: none (default: 20)",
    )
    group.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="of the random draws (default: 0)"
    )


def _add_method_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--residual",
        type=probability,
        default=0.5,
        metavar="W",
        help="rollouts: share of the residual connection (default: 0.5)",
    )
    group.add_argument(
        "--fuse",
        choices=("mean", "max", "min"),
        default="mean",
        help="rollout: how heads are made one (default: mean)",
    )
    group.add_argument(
        "--spread",
        choices=("read", "span"),
        default="read",
        help="rollouts: a token's share goes to all letters that its convolutions read, by how much they "
        "change it (default), or evenly to those under its stride",
    )
    group.add_argument(
        "--steps",
        type=positive_int,
        default=32,
        metavar="N",
        help="integrated-gradients: points on the way (default: 32)",
    )
    group.add_argument(
        "--block",
        type=positive_int,
        metavar="N",
        help="occlusion: letters or columns hidden at a time (default: 10 letters, 1 column)",
    )


def _add_alignment_outputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--row-profile", metavar="FILE", help="a TSV of what each row of an alignment adds")
    group.add_argument(
        "--pairs",
        metavar="FILE",
        help="a TSV of pairs of columns: row attention, covariation and, of RNA and DNA, helices",
    )
    group.add_argument(
        "--pairs-by",
        choices=("attention", "covariation", "helix"),
        help="what ranks the pairs (default: attention, the model's; helix finds far more base pairs)",
    )
    group.add_argument(
        "--best-pairs",
        type=whole_number,
        metavar="N",
        help="pairs of each alignment in the table; 0: all (default: as many as columns are read)",
    )
    group.add_argument(
        "--separation",
        type=positive_int,
        metavar="N",
        help="least distance of the two columns of a pair (default: 4)",
    )


def run(args: argparse.Namespace) -> int:
    """Read, explain, check, write."""
    from seqray.cli.explain.outputs import Gathered, Outputs, write_outputs
    from seqray.io import Staging

    started = time.monotonic()
    check_end(args.html, ".html", ".htm")
    outputs = Outputs.of(args)
    if args.track and args.duplicates == "keep":
        raise ConfigError("a track needs ids that tell records apart", remedy="use --duplicates rename")
    check_files(args.input, [*outputs.paths(), args.skipped], beside=(args.model, args.calls))
    if args.calls == "-":
        raise InputError("calls are read from a file", where="standard input")
    model = open_model(args, alignments=True)
    if model.card.model.kind == "alignment":
        from seqray.cli.explain.alignments import run_alignments

        return run_alignments(args, model, outputs, started)
    refuse_row_options(args)
    if args.heads:
        from seqray.explanations.attribution import check_heads

        check_heads(model)
    settings = _settings(args)
    gathered = Gathered(args, settings)
    with Staging() as staging:
        staged = outputs.stage(staging)
        skip_path = args.skipped and staging.path(args.skipped)
        lines = provenance(args, model, _facts(args, model, settings))
        with SkipLog(skip_path, lines, quiet=args.quiet) as skipped:
            _explain(args, model, settings, gathered, skipped, staged[args.out], lines)
        faithfulness, heads = _check(args, model, settings, gathered)
        write_outputs(outputs, staged, gathered, model, lines, faithfulness, heads)
    if not args.quiet:
        for verdict in faithfulness.verdicts.values() if faithfulness else ():
            print(f"seqray: {verdict}", file=sys.stderr)
        seconds = time.monotonic() - started
        print(f"{gathered.records} records, {skipped.count} skipped, {seconds:.1f} s", file=sys.stderr)
    return 0


def _settings(args: argparse.Namespace) -> ExplainOptions:
    from seqray.explanations import ExplainOptions, MethodSettings

    return ExplainOptions(
        methods=tuple(args.method) or ("rollout",),
        target=args.target,
        members=args.members,
        shuffles=args.shuffles,
        effects=not args.no_check,
        attention=bool(args.html),
        seed=args.seed,
        settings=MethodSettings(
            residual=args.residual,
            heads=args.fuse,
            steps=args.steps,
            block=args.block,
            spread=args.spread,
        ),
    )


def _explain(
    args: argparse.Namespace,
    model: TrainedModel,
    settings: ExplainOptions,
    gathered: Gathered,
    skipped: SkipLog,
    table: Path,
    lines: list[str],
) -> None:
    """Explain and write the table, gathering what the other outputs need."""
    from seqray.explanations import explain_records
    from seqray.io.tables import write_explanations

    with Progress("records explained", quiet=args.quiet) as progress:
        records, places = _records(args, model, skipped)
        source = describe_input(args)
        explanations = explain_records(model, records, settings, places=places, source=source)
        write_explanations(table, gathered.watch(explanations, progress), lines, args.top)


def _records(
    args: argparse.Namespace, model: TrainedModel, skipped: SkipLog
) -> tuple[Iterable[SequenceRecord], list[Place] | None]:
    """The records of the file, or the windows of the calls and where they lie."""
    records = open_records(args, model.alphabet, skipped)
    if not args.calls:
        return records, None
    from seqray.explanations import extract_call_windows
    from seqray.io.tracks import read_gff3_calls

    calls = read_gff3_calls(args.calls)
    if not calls and not args.allow_empty:
        remedy = "--allow-empty gives an empty output instead"
        raise InputError("holds no calls of 'seqray scan'", where=args.calls, remedy=remedy)
    return extract_call_windows(
        records, calls, model.alphabet, model.card.window, args.calls, args.best_calls
    )


def _check(
    args: argparse.Namespace, model: TrainedModel, settings: ExplainOptions, gathered: Gathered
) -> tuple[Faithfulness | None, tuple[HeadFigures, ...]]:
    """Check the rankings on a sample of the records, and describe the heads where somebody will look."""
    from seqray.explanations import check, heads

    sample = gathered.sample()
    with Progress("records checked", quiet=args.quiet) as progress:
        faithfulness = None if args.no_check else check(model, progress.watch(sample), settings)
        shown = args.html and model.card.model.backbone is None  # a page does without what can't be had
        return faithfulness, heads(model, sample, settings) if args.heads or shown else ()


def _facts(args: argparse.Namespace, model: TrainedModel, settings: ExplainOptions) -> dict[str, str]:
    """What the columns mean, for the header."""
    from seqray.explanations.attribution import METHODS as KNOWN

    kinds = [f"{m} ({'signed' if KNOWN[m].signed else 'unsigned shares'})" for m in settings.methods]
    target = settings.target or f"{model.card.positive} (the positive one)"
    facts = {
        "methods": ", ".join(kinds),
        "class": f"{target}; rollout and value-rollout are the same for every class",
        "score": "associated with the model's output, no proof of a cause; rank 1 is the highest",
        "ism_delta": "change of the log-odds of the class, mean over the three or more other letters",
    }
    if settings.shuffles:
        facts["p"] = (
            f"share of letters in {settings.shuffles} shuffled copies of the record that score as high"
        )
        facts["q"] = "p after Benjamini and Hochberg over the positions of the record"
    if args.calls:
        facts["calls"] = Path(args.calls).name
    return facts
