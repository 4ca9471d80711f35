"""``seqray predict``: one row per record with its label and the probability of each class."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from seqray.cli.common import (
    Origin,
    Progress,
    SkipLog,
    add_common_arguments,
    add_input_arguments,
    add_row_arguments,
    check_files,
    describe_input,
    open_alignments,
    open_model,
    open_records,
    probability,
    provenance,
    refuse_row_options,
    wanted_rows,
)

if TYPE_CHECKING:
    from seqray.core import Card
    from seqray.core.results import Prediction
    from seqray.modelfile import TrainedModel


ODD_SHARE, FEWEST_ODD = 0.05, 5  # out-of-domain records that a warning needs
_LABEL, _ODD = "label ", "out-of-domain"  # what is counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_input_arguments(parser, alignments=True)
    parser.add_argument(
        "--out", "-o", default="-", metavar="FILE", help=".tsv, .tsv.gz or .parquet (default: TSV on stdout)"
    )
    parser.add_argument(
        "--threshold",
        type=probability,
        metavar="P",
        help="call the positive class at this probability and above (default: the model's)",
    )
    parser.add_argument(
        "--prior",
        type=probability,
        metavar="P",
        help="share of the positive class among your records; re-weights the probabilities",
    )
    parser.add_argument(
        "--coverage",
        type=probability,
        metavar="C",
        help="add the column 'set': the classes that can't be ruled out, which hold the true one of a record "
        "with at least this probability, whatever its class",
    )
    add_row_arguments(parser)
    add_common_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read, classify, write."""
    from seqray.io import Staging
    from seqray.io.tables import table_format, write_predictions

    started = time.monotonic()
    table_format(args.out)
    check_files(args.input, (args.out, args.skipped), beside=(args.model,))
    model = open_model(args, alignments=True)
    lines = provenance(args, model, _facts(args, model.card))
    seen: Counter[str] = Counter()
    origin = Origin(model)
    with Staging() as staging:
        out, skip_path = staging.path(args.out), args.skipped and staging.path(args.skipped)
        with (
            SkipLog(skip_path, lines, quiet=args.quiet) as skipped,
            Progress("records", quiet=args.quiet) as progress,
        ):
            predictions = _predictions(args, model, skipped, origin)
            counted = progress.watch(_counted(predictions, seen))
            sets = args.coverage is not None
            count = write_predictions(out, counted, model.card.classes, lines, sets)
    if not args.quiet:
        _warn_of_odd_input(count, seen[_ODD])
        for remark in origin.remarks():
            print(f"seqray: {remark}", file=sys.stderr)
        called = f"{seen[_LABEL + model.card.positive]} {model.card.positive}"
        seconds = time.monotonic() - started
        print(f"{count} records, {called}, {skipped.count} skipped, {seconds:.1f} s", file=sys.stderr)
    return 0


def _predictions(
    args: argparse.Namespace, model: TrainedModel, skipped: SkipLog, origin: Origin
) -> Iterator[Prediction]:
    from seqray.inference import predict_alignments, predict_records

    settings: dict[str, Any] = {
        "batch_size": args.batch_size,
        "threshold": args.threshold,
        "prior": args.prior,
        "coverage": args.coverage,
        "precision": args.precision,
    }
    if model.card.model.kind == "alignment":
        alignments = open_alignments(args, model.alphabet, skipped)
        return predict_alignments(model, alignments, rows=wanted_rows(args), **settings)
    refuse_row_options(args)
    records = origin.watch(open_records(args, model.alphabet, skipped))
    return predict_records(model, records, source=describe_input(args), **settings)


def _counted(predictions: Iterable[Prediction], seen: Counter[str]) -> Iterator[Prediction]:
    for prediction in predictions:
        seen[_LABEL + prediction.label] += 1
        seen[_ODD] += "out-of-domain" in prediction.flags
        yield prediction


def _warn_of_odd_input(count: int, odd: int) -> None:
    """One window rarely shows that it is foreign; a whole file of them does."""
    if odd >= FEWEST_ODD and odd > ODD_SHARE * count:
        print(
            f"seqray: {odd} of {count} records ({odd / count:.0%}) are out-of-domain: unlike what the model "
            "was trained on, where about 1 % are; its probabilities may not hold for this file",
            file=sys.stderr,
        )


def _facts(args: argparse.Namespace, card: Card) -> dict[str, str]:
    """What decided the labels and probabilities, for the header."""
    if len(card.classes) == 2:
        threshold = card.threshold if args.threshold is None else args.threshold
        origin = "the model's" if args.threshold is None else "as asked"
        rule = f"'{card.positive}' where its probability is at least {threshold:.6g} ({origin})"
    else:
        rule = "the class of highest probability"
    prior = f"{card.prevalence:.6g} (of the calibration data)"
    if args.prior is not None:
        prior = f"{args.prior:.6g} (as asked; {card.prevalence:.6g} in the calibration data)"
    facts = {
        "classes": ", ".join(
            f"{name} (positive)" if name == card.positive else name for name in card.classes
        ),
        "label": rule,
        "prior": prior,
        "columns": "p_<class> is a calibrated probability; flags are reasons for caution, '.' for none",
    }
    if args.coverage is None:
        return facts
    sets = "set holds the classes that can't be ruled out, '-' for none; it does not depend on the prior"
    return facts | {"coverage": f"{args.coverage:.6g} of the records of each class; {sets}"}
