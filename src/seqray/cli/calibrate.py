"""``seqray calibrate``: a model and labelled sequences that it has not seen in, a recalibrated model out."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from seqray.cli.common import (
    add_backbone_argument,
    add_data_arguments,
    auto_or_positive_int,
    check_files,
    data_files,
    marked,
    open_model,
    positive_int,
    read_parts,
)
from seqray.core import InputError, ModelFileError

if TYPE_CHECKING:
    from seqray.core import Card


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a shipped model (seqray models) or a model file")
    add_backbone_argument(parser)
    add_data_arguments(parser)
    add("--out", "-o", required=True, metavar="FILE", help="new model file, ends in .safetensors")
    add(
        "--method",
        choices=("temperature", "platt", "isotonic"),
        default="temperature",
        help="temperature divides the logits by one number (default); for two classes platt also shifts "
        "them, and isotonic bends them by a rising map, given some hundred examples or more",
    )
    add("--threads", type=positive_int, metavar="N", help="processor threads (default: all)")
    add(
        "--device", default="auto", metavar="DEVICE", help="auto (a GPU if there is one), cpu, cuda or cuda:N"
    )
    add(
        "--batch-size",
        type=auto_or_positive_int,
        default="auto",
        metavar="N|auto",
        help="sequences at once",
    )
    add("--quiet", "-q", action="store_true", help="write nothing but errors to standard error")
    parser.epilog = (
        "Examples of split 'train' are left out: give held-out sequences by --test or --validation, or one "
        "FASTA file a class. The weights of the model stay as they are."
    )


def run(args: argparse.Namespace) -> int:
    """Read, calibrate, write; returns the exit status."""
    from seqray.modelfile import locate_model

    source = locate_model(args.model)
    _check_output(args.out, str(source))
    files = data_files(args)
    if not files:
        remedy = "give --test TABLE, or --class LABEL=FASTA for each class"
        raise InputError("no sequences to calibrate on", remedy=remedy)
    check_files(files, [args.out])
    model = open_model(args)
    parts = read_parts(args, model.alphabet)
    from seqray.modelfile import save_model
    from seqray.training import recalibrate, refuse_training_data

    data = marked(parts)
    as_filed = [example for _, examples in parts for example in examples]
    if data != as_filed:  # an option says that what the files call training may be used
        refuse_training_data(model.card, as_filed, parts_are_left_out=False)
    card = recalibrate(model, data, args.method, batch_size=args.batch_size)
    save_model(args.out, model.networks, card)
    if not args.quiet:
        print("\n".join(_summary(card, args.out)), file=sys.stderr)
    return 0


def _check_output(out: str, source: str) -> None:
    """Refuse what can't be written before the model is loaded."""
    if not out.endswith(".safetensors"):
        raise ModelFileError("a model file ends in .safetensors", where=out)
    if os.path.exists(out) and os.path.samefile(out, source):
        raise InputError("is the model and would be overwritten", where=out, remedy="name another output")
    if not os.path.isdir(os.path.dirname(out) or "."):
        raise InputError("can't be written: its folder does not exist", where=out)


def _summary(card: Card, out: str) -> list[str]:
    facts = card.training["calibrated_on"]
    counts = ", ".join(f"{n} {name}" for name, n in facts["classes"].items())
    lines = [
        f"calibrated on {facts['examples']} sequences ({counts}) by {facts['method']}: "
        f"ece {facts['ece_before']:.3f} before, {facts['ece_after']:.3f} after; "
        f"log loss {facts['log_loss_before']:.3f} before, {facts['log_loss_after']:.3f} after "
        f"(after: {facts['figures']})",
        f"threshold {card.threshold:.3f}, temperature {card.temperature:.3f}, "
        f"prevalence {card.prevalence:.3f}",
        "the card does not list the training sequences: whether any of these are among them can't be known, "
        "and if so the probabilities are too sure",
    ]
    if facts["log_loss_after"] > facts["log_loss_before"]:
        lines.append("caution: the new probabilities are no better than the old ones")
    if facts["log_loss_after"] >= facts["log_loss_of_shares"]:
        lines.append(
            "caution: the probabilities are no better than the share of each class, whose log loss is "
            f"{facts['log_loss_of_shares']:.3f}: the model says nothing about these sequences"
        )
    if facts["at_bounds"]:
        lines.append(
            f"caution: cut at the end of what is tried: {' and '.join(facts['at_bounds'])}; "
            "these sequences are too few, too easy or too hard to tell it"
        )
    return [*lines, f"wrote {out}"]
