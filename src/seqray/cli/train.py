"""``seqray train``: train a calibrated model on labeled sequences."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from seqray.cli.common import (
    THREADS,
    AlignmentLabelOptions,
    DataOptions,
    Options,
    Outcome,
    PositiveInt,
    Progress,
    Request,
    WholeNumber,
    check_files,
    option,
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


CONFIG = option("--config YAML", "settings of the model and its training")


class FitOptions(Options):
    """What training and pre-training have in common."""

    work_dir: str | None = option("--work-dir DIR", "checkpoints and logs (default: OUT.training)")
    no_resume: bool = option("--no-resume", "start again if DIR holds an earlier run")
    set: tuple[str, ...] = option(
        "--set KEY=VALUE", "setting that overrides the one in YAML, such as optimizer.epochs=10"
    )
    seed: WholeNumber | None = option("--seed N", "seed of the first member")
    threads: PositiveInt | None = THREADS
    device: str = option(
        "--device DEVICE", "auto (as in YAML, else a GPU if there is one), cpu, cuda or cuda:N", "auto"
    )

    def folder(self, out: str) -> Path:
        """Where checkpoints and logs are kept."""
        return Path(self.work_dir or f"{out}.training")


class TrainRequest(Request):
    """Options of ``seqray train``."""

    config: str = CONFIG
    data: DataOptions
    labels: AlignmentLabelOptions
    backbone: str | None = option(
        "--backbone DIR",
        "directory of a Hugging Face encoder to train a classifier on ('model.kind: backbone')",
    )
    out: str = option("--out -o FILE", "model file, ends in .safetensors")
    members: PositiveInt | None = option("--members N", "networks in the file, 1 to 5")
    teacher: str | None = option(
        "--teacher NAME|FILE",
        "model whose probabilities are learned beside the labels, to distill an ensemble into one member",
    )
    init: str | None = option(
        "--init NAME|FILE", "start from the weights of seqray pretrain, or of a model of the same shape"
    )
    metrics: str | None = option("--metrics JSON", "figures measured elsewhere, for the card")
    fit: FitOptions


def run(request: TrainRequest) -> Outcome:
    """Train, save, and sum up on standard error."""
    beside = (request.config, request.labels.alignment_labels, request.teacher, request.init, request.metrics)
    check_files(request.data.files(), [request.out], beside=beside)
    config = configure(request.config, request.fit, members=request.members, backbone=request.backbone)
    data = training_data(request, config)
    metrics = read_metrics(request.metrics) if request.metrics else None
    from seqray.modelfile import load_initial_weights, load_model, locate_model
    from seqray.training import is_main_process, train

    folder = request.fit.folder(request.out)
    try:
        with Progress("train", "steps", quiet=request.quiet or not is_main_process()) as progress:
            result = train(
                config,
                data,
                Path(request.out),
                work_dir=folder,
                resume=not request.fit.no_resume,
                progress=progress.update,
                threads=request.fit.threads,
                metrics=metrics,
                teacher=load_model(request.teacher) if request.teacher else None,
                start=load_initial_weights(locate_model(request.init)) if request.init else None,
            )
    except KeyboardInterrupt:
        report_interruption(request.fit, folder)
        return Outcome(records=len(data), status=INTERRUPTED)
    if is_main_process():
        request.say(*summary(result, request.out))
    return Outcome(records=len(data))


def report_interruption(fit: FitOptions, folder: Path) -> None:
    """Explain how to resume an interrupted training."""
    again = " without --no-resume" if fit.no_resume else ""
    print(f"seqray: interrupted; the same command{again} resumes from {folder}", file=sys.stderr)


def training_data(request: TrainRequest, config: RunConfig) -> Sequence[Example]:
    """Read what the kind of model learns from."""
    from seqray.kinds import kind_of  # here, for it loads torch

    kind, files = kind_of(config), request.data.located(request.labels)
    examples = kind.read_labeled(files, ALPHABETS[config.model.alphabet])
    return kind.adapt(examples, config.data.window)


def configure(
    path: str, fit: FitOptions, *, members: int | None = None, backbone: str | None = None
) -> RunConfig:
    """Read the settings, and override them by those of the command line.

    Parameters
    ----------
    path
        YAML file.
    fit
        Settings by ``--set``, the seed and the device.
    members, backbone
        Number of networks and directory of the encoder, where given.
    """
    config = override(load_run_config(path), fit.set)
    if backbone is not None:
        config = on_backbone(config, backbone)
    changed = {"seed": fit.seed, "members": members}
    config = replace(config, **{key: value for key, value in changed.items() if value is not None})
    from seqray.models import trainer_device  # here, for it loads torch

    return replace(config, trainer=config.trainer | trainer_device(fit.device))


def on_backbone(config: RunConfig, path: str) -> RunConfig:
    """Name the directory of the encoder in the settings.

    Raises
    ------
    ConfigError
        For settings of another kind of model.
    """
    if config.model.backbone is None:
        raise ConfigError(
            f"--backbone is given, but 'model.kind' is {config.model.kind}",
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
            raise ConfigError(f"'--set {assignment}' is not an assignment", remedy="write section.key=value")
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
        raise InputError("is not a JSON object", where=path, remedy='write {"figure": value, ...}')
    return content


def summary(result: TrainResult, out: str) -> list[str]:
    """Summarize what was trained and its metrics on validation data."""
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
