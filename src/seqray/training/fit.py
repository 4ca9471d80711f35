"""Training from labeled data to a model file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, OnProgress
from seqray.core.records import Alignment, Example, LabeledSequence
from seqray.core.run_config import RunConfig, change_settings
from seqray.core.serialization import check_plain
from seqray.core.text import counted
from seqray.modelfile.backbones import resolve_backbone
from seqray.modelfile.file import save_model
from seqray.modelfile.header import check_model_path
from seqray.modelfile.initial_weights import InitialWeights, check_initial_weights
from seqray.modelfile.model import TrainedModel
from seqray.models.sequence import Network
from seqray.training.data import TrainingData, context_numbers, encode
from seqray.training.data_facts import count_subclasses, subclass_indices
from seqray.training.final_card import build_card
from seqray.training.members import RunOptions, TrainResult, call_side_by_side, fit_member, train_members
from seqray.training.module import Classifier, model_logits
from seqray.training.partitions import Partition, data_sha256, partition
from seqray.training.trainer import BEST, LAST, WorkDir, fingerprint, is_main_process, make_trainer, quiet

# --- Knowledge distillation: the student also learns the probabilities of a trained model


def check_teacher(teacher: TrainedModel, config: RunConfig, classes: Sequence[str]) -> None:
    """Refuse a teacher of other inputs, letters, tracks or classes, or shorter windows than the student."""
    if config.data.subclasses:
        raise ConfigError(
            "a teacher knows classes, not their subclasses", remedy="leave 'data.subclasses' out"
        )
    card = teacher.card
    if card.model.is_locator != config.model.is_locator:
        raise ConfigError(f"the teacher '{card.name}' is {card.model.kind}, 'model.kind' {config.model.kind}")
    differing = {
        "tracks": (", ".join(card.model.tracks), ", ".join(config.model.tracks)),
        "alphabet": (card.model.alphabet, config.model.alphabet),
        "classes": (", ".join(card.classes), ", ".join(classes)),
    }
    for what, (theirs, ours) in differing.items():
        if theirs != ours:
            raise ConfigError(f"the teacher '{card.name}' has the {what} {theirs}, the data {ours}")
    if card.model.max_length < config.data.window:
        raise ConfigError(
            f"the teacher '{card.name}' reads {card.model.max_length} letters, 'data.window' is "
            f"{config.data.window}"
        )


def distillation_targets(
    teacher: TrainedModel, data: Sequence[Example], part: Partition, config: RunConfig
) -> np.ndarray:
    """Mix the teacher's calibrated probabilities with the labels: float32 (N, K) for the training part.

    Source: Hinton et al. 2015, Distilling the knowledge in a neural network.
    """
    share = config.optimizer.teacher
    known = encode(data, part.labels, part.train, replace(config, model=teacher.card.model))
    probabilities = teacher.card.calibrate(softmax(model_logits(teacher, known), axis=1))
    labels = np.eye(len(part.classes))[known.labels]
    return (share * probabilities + (1 - share) * labels).astype(np.float32)


# --- A training run from end to end: settings and labeled sequences in, a calibrated model file out


def train(
    config: RunConfig,
    data: Sequence[Example],
    out: Path | None,
    run: RunOptions,
    *,
    classes: Sequence[str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    teacher: TrainedModel | None = None,
    start: InitialWeights | None = None,
) -> TrainResult:
    """Train the members, calibrate them together, and save one model file; None for ``out`` saves nothing.

    ``metrics`` and ``search`` are for the card. ``start`` are weights to begin with, but for the head.
    """
    if config.augment.reverse_complement > 0 and not ALPHABETS[config.model.alphabet].is_nucleotide:
        raise ConfigError("'augment.reverse_complement' is for nucleotides only")
    check_plain(metrics or {}, "metrics")
    run.use_threads()
    if out is not None:
        check_model_path(out)
    config = replace(config, model=replace(resolve_backbone(config.model), linear=None))
    part = partition(data, config, classes)
    sha256 = data_sha256(data)
    context_numbers(data, config.model)  # reports an unknown context before any work
    if teacher is not None:
        check_teacher(teacher, config, part.classes)
    if start is not None:
        check_initial_weights(start, config.model)
    folder = run.folder(config, part.classes, sha256, part=part.sha256(), teacher=teacher, start=start)
    config = count_subclasses(config, data, part.classes)
    shared = {"data": data, "part": part, "teacher": teacher, "start": start}
    members = train_members(
        train_member, config, shared, folder, run, letters=count_letters(data, part.train)
    )
    networks, results = zip(*members, strict=True)
    card, networks, figures = build_card(config, networks, results, data, part, sha256, metrics)
    if search is not None:
        card = replace(card, training={**card.training, "search": dict(search)})
    if out is not None and is_main_process(config):
        card = save_model(out, networks, card)
    return TrainResult(card, networks, figures, tuple(result["history"] for result in results))


def count_letters(data: Sequence[Example], rows: np.ndarray) -> int:
    """Letters of some examples; of alignments, their cells."""
    chosen = (data[i] for i in rows)
    return sum(one.codes.size if isinstance(one, Alignment) else len(one.sequence) for one in chosen)


def class_weights(labels: np.ndarray, config: RunConfig) -> np.ndarray | None:
    """Inverse of each class's share, or the root of it, with mean 1 over the examples: (K,); or None."""
    power = {"none": 0.0, "root": 0.5, "balanced": 1.0}[config.optimizer.class_weights]
    if not power:
        return None
    counts = np.bincount(labels, minlength=config.model.classes)
    weights = (1 / counts) ** power
    return weights * len(labels) / (counts @ weights)


def train_member(
    config: RunConfig,
    number: int,
    data: Sequence[Example],
    part: Partition,
    folder: WorkDir,
    *,
    progress: OnProgress | None = None,
    teacher: TrainedModel | None = None,
    start: InitialWeights | None = None,
) -> tuple[Network, dict[str, Any]]:
    """Train one member, or load it from ``folder`` if it is finished; see `fit_member`."""
    config = count_subclasses(config, data, part.classes)

    def build(seed: int) -> tuple[Classifier, TrainingData]:
        learned = subclass_indices(data, part.classes) if config.data.subclasses else part.labels
        train_set = encode(data, learned, part.train, config)
        if teacher is not None:
            train_set.targets = distillation_targets(teacher, data, part, config)
        validation_set = encode(data, part.labels, part.validation, config)
        labels, positive = part.labels[part.train], part.classes.index(config.data.positive)
        weights, margins = class_weights(labels, config), None
        if config.optimizer.logit_adjustment:
            counts = np.bincount(labels, minlength=config.model.classes)
            margins = config.optimizer.logit_adjustment * np.log(counts / len(labels))
        module = Classifier(config, seed, validation_set.labels, positive, weights, margins)
        if start is not None:
            module.apply_initial_weights(start.for_member(number))
        return module, TrainingData(train_set, validation_set, config, seed)

    return fit_member(config, number, folder, build, progress=progress)


# --- Settings that the data decide on: the first member is trained with each, and the best go on


def train_best(
    config: RunConfig,
    alternatives: Sequence[Mapping[str, Any]],
    data: Sequence[LabeledSequence],
    out: Path | None,
    run: RunOptions,
    *,
    classes: Sequence[str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    on_trial: Callable[[str], None] = lambda _: None,
) -> tuple[TrainResult, RunConfig]:
    """Train the first member with each of ``alternatives`` (by ``section.key``), others with the best."""
    if out is not None:
        check_model_path(out)
    part, sha256 = partition(data, config, classes), data_sha256(data)
    with quiet(config):
        make_trainer(config, run.work_dir)  # settings that Lightning refuses, before any work
        if not run.resume:
            for folder in run.work_dir.glob("settings-*"):
                shutil.rmtree(folder)
        run.use_threads()
        run = replace(run, resume=True)
        calls: list[dict[str, Any]] = []
        for changes in alternatives:
            changed = change_settings(config, changes)
            path = run.work_dir / f"settings-{fingerprint(changed, part.classes)[:12]}"
            own = replace(run, work_dir=path)
            folder = own.folder(changed, part.classes, sha256, part=part.sha256())
            run.claim(folder)
            calls.append({"config": changed, "number": 1, "part": part, "folder": folder})
        if tried := sum(call["folder"].result(1) is not None for call in calls):
            run.note(f"resumes from {run.work_dir}: {tried} of {counted(len(calls), 'trial')} finished")
        run = replace(run, threads=torch.get_num_threads())
        processes, threads = run.plan(config, len(calls), count_letters(data, part.train))
        call_side_by_side(
            train_member,
            [call for call in calls if call["folder"].result(1) is None],
            {"data": data},
            "try settings",
            processes=processes,
            threads=threads,
            on_progress=run.progress,
        )

    monitor = config.stopping.monitor
    steps = -(-len(part.train) // config.optimizer.batch_size)
    titles = [" ".join(f"{key}={value}" for key, value in changes.items()) for changes in alternatives]
    scores: list[float] = []
    for number, (title, call) in enumerate(zip(titles, calls, strict=True), start=1):
        result = call["folder"].result(1)
        epochs = len(result["history"])
        figures = next(row for row in result["history"] if row["epoch"] == result["best_epoch"])
        scores.append(-figures[monitor] if monitor == "loss" else figures[monitor])
        shown = [f"{name} {figures[name]:.4f}" for name in dict.fromkeys((monitor, "mcc")) if name in figures]
        on_trial(
            f"trial {number}: {title}: epochs {epochs}, steps {epochs * steps}, {result['seconds']:.0f} s: "
            + ", ".join(shown)
        )
    best = scores.index(max(scores))
    trained = train(
        calls[best]["config"],
        data,
        out,
        replace(run, work_dir=calls[best]["folder"].path),
        classes=classes,
        metrics=metrics,
        search={
            "figure": monitor,
            "tried": dict(zip(titles, scores, strict=True)),
            "changes": dict(alternatives[best]),
        },
    )
    for call in calls[:best] + calls[best + 1 :]:  # the results stay, the weights go
        for name in (BEST, LAST):
            if path := call["folder"].checkpoint(1, name):
                path.unlink()
    return trained, calls[best]["config"]
