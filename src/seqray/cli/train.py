"""``seqray train``: labelled sequences and a configuration in, a calibrated model file out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from seqray.cli.common import (
    add_data_arguments,
    add_label_arguments,
    check_files,
    data_files,
    positive_int,
    queries,
    read_data,
    read_labelled,
    reads_alignments,
    whole_number,
)
from seqray.core import (
    ALPHABETS,
    ConfigError,
    Example,
    InputError,
    RunConfig,
    from_mapping,
    load_run_config,
    to_mapping,
)

if TYPE_CHECKING:
    from seqray.training import TrainResult

INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add("--config", required=True, metavar="YAML", help="settings of the model and its training")
    add_data_arguments(parser)
    add_label_arguments(parser)
    add(
        "--backbone",
        metavar="DIR",
        help="directory of a Hugging Face encoder to train a classifier on ('model.kind: backbone')",
    )
    add("--out", "-o", required=True, metavar="FILE", help="model file, ends in .safetensors")
    add("--members", type=positive_int, metavar="N", help="networks in the file, 1 to 5")
    add(
        "--teacher",
        metavar="NAME|FILE",
        help="model whose probabilities are learned beside the labels, to distil an ensemble into one member",
    )
    add(
        "--init",
        metavar="NAME|FILE",
        help="begin with the weights of seqray pretrain, or of a model of the same shape",
    )
    add("--metrics", metavar="JSON", help="figures measured elsewhere, for the card")
    add_run_arguments(parser)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what training and pre-training have in common."""
    add = parser.add_argument
    add("--work-dir", metavar="DIR", help="checkpoints and logs (default: OUT.training)")
    add("--no-resume", action="store_true", help="start afresh where DIR holds an earlier run")
    add(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="setting that overrides YAML's: a.b=1"
    )
    add("--seed", type=whole_number, metavar="N", help="seed of the first member")
    add("--threads", type=positive_int, metavar="N", help="processor threads (default: all)")
    add(
        "--device",
        default="auto",
        metavar="DEVICE",
        help="auto (YAML's, else a GPU if there is one), cpu, cuda or cuda:N",
    )
    add("--quiet", "-q", action="store_true", help="no progress bar and no summary")


def run(args: argparse.Namespace) -> int:
    """Train, save, and sum up on stderr; returns the exit status."""
    read = (args.config, args.alignment_labels, args.teacher, args.init, args.metrics)
    check_files(data_files(args), [args.out], beside=read)
    config = configure(args)
    data = training_data(args, config)
    metrics = read_metrics(args.metrics) if args.metrics else None
    from seqray.modelfile import load_initial_weights, load_model, locate_model
    from seqray.training import is_main_process, train

    teacher = load_model(args.teacher) if args.teacher else None
    start = load_initial_weights(locate_model(args.init)) if args.init else None
    folder = Path(args.work_dir or f"{args.out}.training")
    try:
        result = train(
            config,
            data,
            Path(args.out),
            work_dir=folder,
            resume=not args.no_resume,
            progress=sys.stderr.isatty() and not args.quiet,
            threads=args.threads,
            metrics=metrics,
            teacher=teacher,
            start=start,
        )
    except KeyboardInterrupt:
        again = " without --no-resume" if args.no_resume else ""
        print(f"seqray: interrupted; the same command{again} resumes from {folder}", file=sys.stderr)
        return INTERRUPTED
    if not args.quiet and is_main_process():
        print("\n".join(summary(result, args.out)), file=sys.stderr)
    return 0


def training_data(args: argparse.Namespace, config: RunConfig) -> Sequence[Example]:
    """Read sequences, or alignments where the model reads them or ``--query-only`` asks for their queries."""
    alphabet = ALPHABETS[config.model.alphabet]
    if not reads_alignments(args, config.model.kind):
        return read_data(args, alphabet)
    alignments = read_labelled(args, alphabet)
    return alignments if config.model.kind == "alignment" else queries(alignments, config.data.window)


def configure(args: argparse.Namespace) -> RunConfig:
    """Read the settings and lay those of the command line over them."""
    config = override(load_run_config(args.config), args.set)
    if args.backbone is not None:
        config = on_backbone(config, args.backbone)
    if args.seed is not None:
        config = replace(config, seed=args.seed)
    if args.members is not None:
        config = replace(config, members=args.members)
    from seqray.models import trainer_device  # here, for it loads torch

    return replace(config, trainer=config.trainer | trainer_device(args.device))


def on_backbone(config: RunConfig, path: str) -> RunConfig:
    """Name the directory of the encoder in the settings.

    Raises
    ------
    ConfigError
        For settings of another kind of model.
    """
    if config.model.backbone is None:
        raise ConfigError(
            f"--backbone is given, and 'model.kind' is {config.model.kind}",
            remedy="write 'kind: backbone' in the section 'model'",
        )
    return replace(config, model=replace(config.model, backbone=replace(config.model.backbone, path=path)))


def override(config: RunConfig, assignments: Sequence[str]) -> RunConfig:
    """Change settings by ``section.key=value``; values are read as YAML.

    Raises
    ------
    ConfigError
        For an unknown key (the nearest is named), or an assignment of another form.
    """
    mapping = to_mapping(config)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        *sections, key = path.strip().split(".")
        if not equals or not all((*sections, key)):
            raise ConfigError(f"'--set {assignment}' is no assignment", remedy="write section.key=value")
        place: dict[str, Any] = mapping
        for section in sections:
            if not isinstance(place.get(section), dict):
                place[section] = {}
            place = place[section]
        try:
            place[key] = yaml.safe_load(text)
        except yaml.YAMLError:
            raise ConfigError(f"the value of '--set {assignment}' is not valid YAML") from None
    return from_mapping(RunConfig, mapping)


def read_metrics(path: str) -> dict[str, Any]:
    """Read figures for the card: a JSON object."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", where=path) from None
    except ValueError:
        raise InputError("is not valid JSON", where=path) from None
    if not isinstance(content, dict):
        raise InputError("holds no JSON object", where=path, remedy='write {"figure": value, ...}')
    return content


def summary(result: TrainResult, out: str) -> list[str]:
    """Say in a few lines what was trained and how well it does on validation."""
    card, facts = result.card, result.card.training
    counts = {part: sum(by_class.values()) for part, by_class in facts["counts"].items()}
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    lines = [
        f"trained on {counts['train']} sequences of {len(card.classes)} classes; members: {card.members}; "
        f"parameters of each: {facts['parameters']}; best epochs: {epochs}",
        f"validation on {facts['held_out']} sequences: " + figures_line(result),
    ]
    if facts["related_validation"]:
        lines.append(
            f"caution: {facts['related_validation']} validation sequences have a relative in training (same "
            "group, or the same letters on either strand), so these figures are too good"
        )
    return [*lines, f"wrote {out}"]


def figures_line(result: TrainResult) -> str:
    """Write the figures of merit of the calibrated model as one line."""
    names = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "ece")
    figures = [f"{name} {result.validation[name]:.3f}" for name in names if name in result.validation]
    card = result.card
    return " ".join(figures) + f" (threshold {card.threshold:.3f}, temperature {card.temperature:.3f})"
