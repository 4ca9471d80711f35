"""From files, or examples in memory, and what a user asks, to the settings and the data of a training."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import yaml

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, InputError, setting
from seqray.core.labels import choose_positive, refuse_joined_labels, unknown_positive
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig, change_settings, load_named_config, read_small_text
from seqray.core.serialization import check_plain, from_mapping, parse_yaml, to_mapping
from seqray.core.text import Truncation, describe_learned, describe_truncation
from seqray.io.files import write_file
from seqray.kinds.kinds import LabeledFiles, kind_of, read_sequence_examples
from seqray.modelfile.file import load_model
from seqray.modelfile.header import locate_model, read_card
from seqray.modelfile.initial_weights import is_pretrained, load_initial_weights
from seqray.models.batches import trainer_device
from seqray.training import settings_from_data as rules
from seqray.training.data_facts import count_labels, data_cautions, measure_data
from seqray.training.genomes.sheet import GenomeRow, read_sheet
from seqray.training.partitions import learned_rows
from seqray.training.recalibration import count_training_data

if TYPE_CHECKING:
    from seqray.training.members import TrainResult

# --- What is asked of a training


class TrainSettings(TypedDict, total=False):
    """The options of a training, from Python or the command line; `seqray.train` explains them."""

    config: str | Path | RunConfig | None
    like: str | None
    set: Mapping[str, Any] | Sequence[str]
    seed: int | None
    members: int | None
    device: str
    truncate: Truncation | None
    backbone: str | None
    teacher: str | None
    init: str | None
    genome: str | None
    sites: str | None
    genes: str | None
    species: str | None
    sheet: str | None
    site_class: str | None
    hold_out: Sequence[str]
    fold: Sequence[str]


class Plan(NamedTuple):
    """Settings, and data that are ready to be learned from: a number of examples or genomes."""

    config: RunConfig
    records: int
    train: Callable[..., tuple[TrainResult, RunConfig]]


def plan_training(
    name: str,
    files: LabeledFiles,
    asked: TrainSettings,
    *,
    refuse: Callable[[RunConfig | None], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Plan:
    """Read or choose the settings, read the data, and prepare the training of a model of some name.

    ``refuse`` is called with settings, or None where data choose them, first; ``note`` receives lines.
    """
    if asked.get("config") and asked.get("like"):
        both = f"{setting('config')} and {setting('like')}"
        raise ConfigError(f"both {both} are given", remedy="give one of them")
    config, named = _stated_settings(name, asked)
    refuse(config)
    if config is not None and config.model.is_locator:
        return _plan_locator(config, asked)
    alternatives: Sequence[Mapping[str, Any]] = ()
    if config is not None and asked.get("config"):
        data = read_examples(files, config)
        config = complete_from_data(config, named, data)
    else:
        config, data, alternatives = _choose(config, name, files, asked, named, note)
    learned_rows(data, config)  # refuses faulty labels before Lightning is loaded, which takes long
    return _plan_examples(config, data, alternatives, asked, note)


def _stated_settings(name: str, asked: TrainSettings) -> tuple[RunConfig | None, Set[str]]:
    """The settings that are asked for, or None, and the names of those that were set one by one."""
    source = asked.get("config")
    named: Set[str] = {str(word).partition("=")[0].strip() for word in asked.get("set") or ()}
    if source is None:
        like = asked.get("like")
        config = None if like is None else replace(settings_of(like), name=name)
    elif isinstance(source, RunConfig):
        config = source
    else:
        config, stated = load_named_config(source)
        named |= stated
    is_whole = config is not None and (source is not None or config.model.is_locator)
    return _overridden(config, asked) if config is not None and is_whole else config, named


def _overridden(config: RunConfig, asked: TrainSettings) -> RunConfig:
    if (truncate := asked.get("truncate")) is not None:
        config = replace(config, data=replace(config.data, truncate=truncate))
    return configure(
        config,
        asked.get("set") or (),
        asked.get("device", "auto"),
        seed=asked.get("seed"),
        members=asked.get("members"),
        backbone=asked.get("backbone"),
    )


def _choose(
    config: RunConfig | None,
    name: str,
    files: LabeledFiles,
    asked: TrainSettings,
    named: Set[str],
    note: Callable[[str], None],
) -> tuple[RunConfig, Sequence[Example], Sequence[Mapping[str, Any]]]:
    """Choose the settings from the data, or fit those of a model; also changes that a training tries."""
    if config is None:
        data, alphabet = read_sequence_examples(files)
    else:
        data, alphabet = read_examples(files, config), ALPHABETS[config.model.alphabet]
    check_positive(config or RunConfig(), named, count_labels(data))
    facts = measure_data(data, alphabet)
    if config is not None:
        config = rules.fit_settings(config, facts)
    else:
        config = rules.choose_settings(facts)
        if "model.kind" in named:  # the floor is part of networks of seqray alone
            config = replace(config, floor=False)
    config = _overridden(replace(config, name=name), asked)
    alphabet = ALPHABETS[config.model.alphabet]
    if alphabet != facts.alphabet:  # a setting names another one
        data = [
            replace(one, sequence=alphabet.normalize(one.sequence, one.where))
            if isinstance(one, LabeledSequence)
            else one
            for one in data
        ]
    like = asked.get("like")
    for line in rules.describe_settings(config, facts, like or "the data"):
        note(line)
    decided = not config.model.is_plain or like or asked.get("teacher") or asked.get("init")
    return config, data, () if decided else rules.alternatives_of(config, facts, named)


def _plan_examples(
    config: RunConfig,
    examples: Sequence[Example],
    alternatives: Sequence[Mapping[str, Any]],
    asked: TrainSettings,
    note: Callable[[str], None],
) -> Plan:
    """A training on labeled sequences or alignments, with changes of settings among which the data decide."""
    from seqray.training.fit import train, train_best

    data: Any = examples  # of the kind that the settings name
    window, rule = config.data.window, config.data.truncate
    longer = sum(len(one.sequence) > window for one in data if isinstance(one, LabeledSequence))
    if rule != "none" and longer:
        note(describe_truncation(longer, len(data), window, rule))
    for text in data_cautions(data):
        note(f"caution: {text}")
    teacher, init = asked.get("teacher"), asked.get("init")
    more: dict[str, Any] = {}
    if init:
        for line in _learned_before(init, config, data):
            note(line)
        more["start"] = load_initial_weights(locate_model(init))
    if alternatives:
        tried = {"on_trial": note}
        return Plan(config, len(data), lambda **run: train_best(config, alternatives, data, **tried, **run))
    if teacher:
        more["teacher"] = load_model(teacher)
    return Plan(config, len(data), lambda **run: (train(config, data, **more, **run), config))


def _learned_before(init: str, config: RunConfig, data: Sequence[Example]) -> Iterator[str]:
    """Caution where the model of the first weights was trained on what may be held out from training."""
    path = locate_model(init)
    if is_pretrained(path) or (card := read_card(path)).model.kind != config.model.kind:
        return
    held_out = [one for one in data if one.split not in (None, "train")] or data
    count = count_training_data(card, held_out)
    if count and count.known:
        which = describe_learned(count.known, count.checked, len(held_out))
        yield (
            f"caution: the training of the {setting('init')} model used {which}: if they are held out, the "
            "figures, the threshold and the probabilities are too good; hold out others (column 'split')"
        )


def _plan_locator(config: RunConfig, asked: TrainSettings) -> Plan:
    """A training on genomes with sites."""
    from seqray.training.genomes.fit import train_locator

    genome, sites, sheet = asked.get("genome"), asked.get("sites"), asked.get("sheet")
    if sheet:
        if genome or sites:
            remedy = f"give {setting('sheet')} or {setting('genome')}"
            raise InputError("a sheet and a genome are given", remedy=remedy)
        for name in ("species", "genes"):
            if asked.get(name) is not None:
                remedy = f"use the column '{name}' of the sheet"
                raise ConfigError(f"{setting(name)} is for one genome", remedy=remedy)
        rows = read_sheet(sheet)
    elif genome and sites:
        species = asked.get("species") or Path(genome).name.partition(".")[0]
        rows = [GenomeRow(genome=genome, sites=sites, genes=asked.get("genes") or "", species=species)]
    else:
        remedy = f"give {setting('genome')} and {setting('sites')}, or {setting('sheet')}"
        raise InputError("no genome with sites is given", remedy=remedy)
    options: dict[str, Any] = {
        "hold_out": tuple(asked.get("hold_out") or ()),
        "site_class": asked.get("site_class"),
        "folds": tuple(asked.get("fold") or ()),
    }
    if init := asked.get("init"):
        options["start"] = load_initial_weights(locate_model(init))
    if teacher := asked.get("teacher"):
        options["teacher"] = load_model(teacher)
    return Plan(config, len(rows), lambda **run: (train_locator(config, rows, **options, **run), config))


# --- Settings: taken from a model, completed from the data, overridden, or written


def settings_of(model: str) -> RunConfig:
    """The settings that a model was trained with; the name, summary and text of its card are left out."""
    card = read_card(locate_model(model))
    settings = {"data": {"window": card.window}, **card.training.get("config", {})}
    try:
        return from_mapping(RunConfig, {**settings, "model": to_mapping(card.model)})
    except ConfigError as error:
        raise ConfigError(error.what, where=model, remedy=error.remedy) from None


def read_examples(files: LabeledFiles, config: RunConfig) -> Sequence[Example]:
    """Read what the kind of model learns from."""
    kind = kind_of(config)
    return kind.adapt(kind.read_labeled(files, ALPHABETS[config.model.alphabet]), config.data.window)


def complete_from_data(config: RunConfig, named: Set[str], data: Sequence[Example]) -> RunConfig:
    """Take from the data what they state and nobody has ``named``: classes, and a longer window."""
    learned = [example for example in data if example.split != "test"]
    counts = count_labels(data)
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
    told = "data.positive" in named or config.data.positive in counts or choose_positive(counts)
    if not told and len(counts) == 2:
        raise unknown_positive(sorted(counts), setting("set", {"data.positive": "CLASS"}))


def configure(
    config: RunConfig,
    assignments: Mapping[str, Any] | Sequence[str],
    device: str,
    *,
    seed: int | None = None,
    members: int | None = None,
    backbone: str | None = None,
) -> RunConfig:
    """Override settings by assignments, seed, device, number of networks and directory of the encoder."""
    config = override(config, assignments)
    if backbone is not None:
        if config.model.backbone is None:
            raise ConfigError(
                f"{setting('backbone')} is given, but 'model.kind' is {config.model.kind}",
                remedy="write 'kind: backbone' in the section 'model'",
            )
        encoder = replace(config.model.backbone, path=backbone)
        config = replace(config, model=replace(config.model, backbone=encoder))
    changed = {"seed": seed, "members": members}
    config = replace(config, **{key: value for key, value in changed.items() if value is not None})
    return replace(config, trainer=config.trainer | trainer_device(device))


def override(config: RunConfig, assignments: Mapping[str, Any] | Sequence[str]) -> RunConfig:
    """Change settings by a mapping of ``section.key``, or by ``section.key=value`` with values as YAML.

    A value of a setting that is text is text, also where YAML reads ``no`` or ``1`` as something else.
    """
    if isinstance(assignments, Mapping):
        return change_settings(config, assignments)
    changes: dict[str, Any] = {}
    current = to_mapping(config)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        path = path.strip()
        if not equals or not all(path.split(".")):
            raise ConfigError(f"'--set {assignment}' is not an assignment", remedy="write section.key=value")
        try:
            value = parse_yaml(text)
            value_now: Any = current
            for key in path.split("."):
                value_now = value_now.get(key) if isinstance(value_now, Mapping) else None
            changes[path] = (
                text.strip() if isinstance(value_now, str) and not isinstance(value, str) else value
            )
        except ConfigError as error:
            raise ConfigError(f"the value of '--set {assignment}' {error.what}") from None
    return change_settings(config, changes)


def model_name(out: str) -> str:
    """Name of a model: that of its file, in one word."""
    return re.sub(r"[^\w.+-]+", "-", Path(out).name.removesuffix(".safetensors")).strip("-") or "model"


def write_config(path: str | Path, config: RunConfig) -> None:
    """Write settings as YAML that ``--config`` reads; those of genomes only for a locator."""
    mapping = to_mapping(config)
    if not config.model.is_locator:
        del mapping["genomes"]
    write_file(path, yaml.safe_dump(mapping, sort_keys=False, allow_unicode=True))


def read_metrics(path: str) -> dict[str, Any]:
    """Read figures for the card: a JSON object."""
    text = read_small_text(path)
    try:
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ConfigError("is not a JSON object", remedy='write {"figure": value, ...}')
        check_plain(content, "metrics")
    except ConfigError as error:
        raise InputError(error.what, where=path, remedy=error.remedy) from None
    except (ValueError, RecursionError):
        raise InputError("is not valid JSON", where=path) from None
    return content
