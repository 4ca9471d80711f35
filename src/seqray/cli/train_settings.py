"""Settings of ``seqray train``: chosen from the data, taken from a model, or written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, InputError
from seqray.core.labels import choose_positive, refuse_joined_labels, unknown_positive
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig, change_settings, read_small_text
from seqray.core.serialization import check_plain, from_mapping, parse_yaml, to_mapping

if TYPE_CHECKING:
    from seqray.kinds.kinds import LabeledFiles


def settings_of(model: str) -> RunConfig:
    """The settings that a model was trained with; the name, summary and text of its card are left out."""
    from seqray.modelfile.header import locate_model, read_card

    card = read_card(locate_model(model))
    settings = {"data": {"window": card.window}, **card.training.get("config", {})}
    try:
        return from_mapping(RunConfig, {**settings, "model": to_mapping(card.model)})
    except ConfigError as error:
        raise ConfigError(error.what, where=model, remedy=error.remedy) from None


def read_examples(files: LabeledFiles, config: RunConfig) -> Sequence[Example]:
    """Read what the kind of model learns from."""
    from seqray.kinds.kinds import kind_of

    kind = kind_of(config)
    return kind.adapt(kind.read_labeled(files, ALPHABETS[config.model.alphabet]), config.data.window)


def complete_from_data(config: RunConfig, named: Set[str], data: Sequence[Example]) -> RunConfig:
    """Take from the data what they state and nobody has set: classes, positive class, and a longer window.

    ``named`` are the settings that the user has set, as in ``section.key``.
    """
    learned = [example for example in data if example.split != "test"]
    counts = Counter(example.label or "" for example in learned)
    longest = max((len(one.sequence) for one in learned if isinstance(one, LabeledSequence)), default=0)
    changes: dict[str, Any] = {}
    if "model.classes" not in named:
        changes["model.classes"] = max(len(counts), 2)
    if "data.positive" not in named and config.data.positive not in counts:
        changes["data.positive"] = choose_positive(counts) or config.data.positive
    if "data.window" not in named and longest > config.data.window + 2 * config.data.flank:
        changes["data.window"] = longest
        changes["model.max_length"] = max(config.model.max_length, longest)
    config = change_settings(config, changes)
    check_positive(config, named, counts)
    return config


def check_positive(config: RunConfig, named: Set[str], counts: Mapping[str, int]) -> None:
    """Ask for the positive class of two where nobody has set it and the labels do not tell."""
    refuse_joined_labels(counts)
    if "data.positive" not in named and config.data.positive not in counts and len(counts) == 2:
        raise unknown_positive(sorted(counts), "--set data.positive=")


def configure(
    config: RunConfig,
    assignments: Sequence[str],
    device: str,
    *,
    seed: int | None = None,
    members: int | None = None,
    backbone: str | None = None,
) -> RunConfig:
    """Override settings by ``--set``, seed and device, number of networks and directory of the encoder."""
    config = override(config, assignments)
    if backbone is not None:
        if config.model.backbone is None:
            raise ConfigError(
                f"--backbone is given, but 'model.kind' is {config.model.kind}",
                remedy="write 'kind: backbone' in the section 'model'",
            )
        encoder = replace(config.model.backbone, path=backbone)
        config = replace(config, model=replace(config.model, backbone=encoder))
    changed = {"seed": seed, "members": members}
    config = replace(config, **{key: value for key, value in changed.items() if value is not None})
    from seqray.models.batches import trainer_device

    return replace(config, trainer=config.trainer | trainer_device(device))


def override(config: RunConfig, assignments: Sequence[str]) -> RunConfig:
    """Change settings by ``section.key=value``; values are read as YAML.

    A value of a setting that is text is text, also where YAML reads ``no`` or ``1`` as something else.
    """
    changes: dict[str, Any] = {}
    current = to_mapping(config)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        path = path.strip()
        if not equals or not all(path.split(".")):
            raise ConfigError(f"'--set {assignment}' is not an assignment", remedy="write section.key=value")
        try:
            value = parse_yaml(text)
            is_text = isinstance(reduce(_entry, path.split("."), current), str)
            changes[path] = text.strip() if is_text and not isinstance(value, str) else value
        except ConfigError as error:
            raise ConfigError(f"the value of '--set {assignment}' {error.what}") from None
    return change_settings(config, changes)


def _entry(settings: Any, key: str) -> Any:
    """A setting or a section of them; None for an unknown one."""
    return settings.get(key) if isinstance(settings, Mapping) else None


def model_name(out: str) -> str:
    """Name of a model: that of its file, in one word."""
    return re.sub(r"[^\w.+-]+", "-", Path(out).name.removesuffix(".safetensors")).strip("-") or "model"


def write_config(path: str | Path, config: RunConfig) -> None:
    """Write settings as YAML that ``--config`` reads; those of genomes only for a locator."""
    mapping = to_mapping(config)
    if not config.model.is_locator:
        del mapping["genomes"]
    from seqray.io.files import write_file

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
