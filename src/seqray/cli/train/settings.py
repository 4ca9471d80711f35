"""Settings of ``seqray train``: chosen, taken from a model, or written; and figures for the card."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from seqray.core import (
    ALPHABETS,
    Alphabet,
    ConfigError,
    Example,
    InputError,
    LabeledSequence,
    RunConfig,
    change_settings,
    check_plain,
    from_mapping,
    parse_yaml,
    read_small_text,
    to_mapping,
)

if TYPE_CHECKING:
    from seqray.cli.train.arguments import FitOptions, TrainRequest
    from seqray.kinds import LabeledFiles
    from seqray.training import DataFacts


def choose_config(files: LabeledFiles, like: str | None) -> tuple[RunConfig, Sequence[Example], DataFacts]:
    """Read labeled examples, and choose settings for them.

    Settings of the model ``like`` are fitted to the data; None chooses by the data alone. ConfigError is
    raised for the settings of a locator.
    """
    from seqray.kinds import read_inferred_examples
    from seqray.training import choose_settings, fit_settings, measure_data

    if like is None:
        data, alphabet = read_inferred_examples(files)
        facts = measure_data(data, alphabet)
        return choose_settings(facts), data, facts
    config = settings_of(like)
    if config.model.kind == "locator":
        what = "is a locator, which learns from genomes"
        raise ConfigError(what, where=like, remedy="give --genome and --sites")
    data = read_examples(files, config)
    facts = measure_data(data, ALPHABETS[config.model.alphabet])
    return fit_settings(config, facts), data, facts


def settings_of(model: str) -> RunConfig:
    """The settings that a model was trained with; the name, summary and text of its card are left out."""
    from seqray.modelfile import locate_model, read_card

    card = read_card(locate_model(model))
    known = {"data": {"window": card.window}, **card.training.get("config", {})}
    try:
        return from_mapping(RunConfig, {**known, "model": to_mapping(card.model)})
    except ConfigError as error:
        raise ConfigError(error.what, where=model, remedy=error.remedy) from None


def read_examples(files: LabeledFiles, config: RunConfig) -> Sequence[Example]:
    """Read what the kind of model learns from."""
    from seqray.kinds import kind_of  # here, for it loads torch

    kind = kind_of(config)
    examples = kind.read_labeled(files, ALPHABETS[config.model.alphabet])
    return kind.adapt(examples, config.data.window)


def complete_from_data(config: RunConfig, named: Set[str], data: Sequence[Example]) -> RunConfig:
    """Take from the data what they state and nobody has set: classes, positive class, and a longer window.

    ``named`` are the settings that the user has set, as in ``section.key``.
    """
    from seqray.training import choose_positive

    learned = [example for example in data if example.split != "test"]
    counts = Counter(example.label or "" for example in learned)
    lengths = [len(one.sequence) for one in learned if isinstance(one, LabeledSequence)]
    changes: dict[str, Any] = {}
    if "model.classes" not in named:
        changes["model.classes"] = max(len(counts), 2)
    if "data.positive" not in named and config.data.positive not in counts:
        changes["data.positive"] = choose_positive(counts)
    if "data.window" not in named and max(lengths, default=0) > config.data.window + 2 * config.data.flank:
        changes["data.window"] = max(lengths)
        changes["model.max_length"] = max(config.model.max_length, max(lengths))
    return change_settings(config, changes)


def in_alphabet(data: Sequence[Example], before: Alphabet, alphabet: Alphabet) -> Sequence[Example]:
    """The same examples in the letters of another alphabet; they have those of ``before``."""
    if alphabet == before:
        return data
    return [
        replace(one, sequence=alphabet.normalize(one.sequence, one.where))
        if isinstance(one, LabeledSequence)
        else one
        for one in data
    ]


def model_name(out: str) -> str:
    """Name of a model: that of its file, in one word."""
    return re.sub(r"[^\w.+-]+", "-", Path(out).name.removesuffix(".safetensors")).strip("-") or "model"


def write_config(path: str | Path, config: RunConfig) -> None:
    """Write settings as YAML that ``--config`` reads; those of genomes only for a locator."""
    mapping = to_mapping(config)
    if config.model.kind != "locator":
        del mapping["genomes"]
    from seqray.io import write_file

    write_file(path, yaml.safe_dump(mapping, sort_keys=False, allow_unicode=True))


def read_metrics(path: str) -> dict[str, Any]:
    """Read figures for the card: a JSON object."""
    text = read_small_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("is not valid JSON", where=path) from None
    if not isinstance(content, dict):
        raise InputError("is not a JSON object", where=path, remedy='write {"figure": value, ...}')
    try:
        check_plain(content, "metrics")
    except ConfigError as error:
        raise InputError(error.what, where=path, remedy=error.remedy) from None
    return content


def set_by_words(fit: FitOptions) -> frozenset[str]:
    """Settings that ``--set`` names."""
    return frozenset(assignment.partition("=")[0].strip() for assignment in fit.set)


def override_settings(config: RunConfig, request: TrainRequest) -> RunConfig:
    """Override settings by those of the command line."""
    from seqray.kinds import check_options, kind_of

    if request.truncate is not None:
        check_options(kind_of(config), ["--truncate"])
        config = replace(config, data=replace(config.data, truncate=request.truncate))
    return configure(config, request.fit, members=request.members, backbone=request.backbone)


def configure(
    config: RunConfig, fit: FitOptions, *, members: int | None = None, backbone: str | None = None
) -> RunConfig:
    """Override settings by those of the command line.

    Parameters
    ----------
    config
        The settings.
    fit
        Settings by ``--set``, the seed and the device.
    members, backbone
        Number of networks and directory of the encoder, where given.
    """
    config = override(config, fit.set)
    if backbone is not None:
        config = on_backbone(config, backbone)
    changed = {"seed": fit.seed, "members": members}
    config = replace(config, **{key: value for key, value in changed.items() if value is not None})
    from seqray.models import trainer_device  # here, for it loads torch

    return replace(config, trainer=config.trainer | trainer_device(fit.device))


def on_backbone(config: RunConfig, path: str) -> RunConfig:
    """Name the directory of the encoder in the settings; ConfigError for those of another kind of model."""
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
    changes: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        path = path.strip()
        if not equals or not all(path.split(".")):
            raise ConfigError(f"'--set {assignment}' is not an assignment", remedy="write section.key=value")
        try:
            changes[path] = parse_yaml(text)
        except ConfigError as error:
            raise ConfigError(f"the value of '--set {assignment}' {error.what}") from None
    return change_settings(config, changes)
