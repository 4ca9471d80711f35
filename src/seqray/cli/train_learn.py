"""A training and what it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from seqray.cli.labeled import describe_learned
from seqray.cli.messages import calibration_cautions
from seqray.cli.options import Request, given
from seqray.cli.train_options import TrainRequest
from seqray.core.alphabet import ALPHABETS, Alphabet
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig, change_settings, load_named_config, read_small_text
from seqray.core.serialization import check_plain, from_mapping, parse_yaml, to_mapping
from seqray.core.text import describe_truncation

if TYPE_CHECKING:
    from seqray.cli.train_options import FitOptions
    from seqray.kinds.labeled import LabeledFiles
    from seqray.training.data_facts import DataFacts
    from seqray.training.members import TrainResult


# --- Settings of ``seqray train``: chosen, taken from a model, or written; and figures for the card


def choose_config(files: LabeledFiles, like: str | None) -> tuple[RunConfig, Sequence[Example], DataFacts]:
    """Read labeled examples, and choose settings for them.

    Settings of the model ``like`` are fitted to the data; None chooses by the data alone. ConfigError is
    raised for the settings of a locator.
    """
    from seqray.kinds.labeled import read_inferred_examples
    from seqray.training.data_facts import measure_data
    from seqray.training.settings_from_data import choose_settings, fit_settings

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
    from seqray.modelfile.header import read_card
    from seqray.modelfile.zoo import locate_model

    card = read_card(locate_model(model))
    known = {"data": {"window": card.window}, **card.training.get("config", {})}
    try:
        return from_mapping(RunConfig, {**known, "model": to_mapping(card.model)})
    except ConfigError as error:
        raise ConfigError(error.what, where=model, remedy=error.remedy) from None


def read_examples(files: LabeledFiles, config: RunConfig) -> Sequence[Example]:
    """Read what the kind of model learns from."""
    from seqray.kinds.kinds import kind_of

    kind = kind_of(config)
    examples = kind.read_labeled(files, ALPHABETS[config.model.alphabet])
    return kind.adapt(examples, config.data.window)


def complete_from_data(config: RunConfig, named: Set[str], data: Sequence[Example]) -> RunConfig:
    """Take from the data what they state and nobody has set: classes, positive class, and a longer window.

    ``named`` are the settings that the user has set, as in ``section.key``.
    """
    from seqray.training.data_facts import choose_positive

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


def set_by_words(fit: FitOptions) -> frozenset[str]:
    """Settings that ``--set`` names."""
    return frozenset(assignment.partition("=")[0].strip() for assignment in fit.set)


def override_settings(config: RunConfig, request: TrainRequest) -> RunConfig:
    """Override settings by those of the command line."""
    from seqray.kinds.kinds import check_options, kind_of

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
    from seqray.models.batches import trainer_device

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


# --- What ``seqray train`` tells its user at the end

FEW_HELD_OUT = 50
"""Fewer examples give figures that can be off by .2 and more: the standard error of an MCC of 0 is 1/√n."""


def summary(result: TrainResult, out: str) -> list[str]:
    """Summarize what was trained and its metrics on validation data."""
    card, facts = result.card, result.card.training
    counts = {part: sum(by_class.values()) for part, by_class in facts["counts"].items()}
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    kind = "alignments" if card.model.kind == "alignment" else "sequences"
    own, held_out = facts["held_out"] != counts["validation"], f"{facts['held_out']} {kind}"
    if own:  # each network has its own part
        held_out += f" (about {facts['held_out'] / card.members:.0f} that each network held out)"
    lines = [
        f"{'each network trained on about' if own else 'trained on'} {counts['train']} {kind} of "
        f"{len(card.classes)} classes; members: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"validation on {held_out}: {figures_line(result)}",
    ]
    if facts["held_out"] < FEW_HELD_OUT:
        lines.append(
            f"caution: {facts['held_out']} held-out {kind} are few: these figures may be far off; "
            "'seqray evaluate' gives intervals"
        )
    if facts["related_validation"]:
        from seqray.homology.kmers import kmer_length

        alphabet = ALPHABETS[card.model.alphabet]
        strands = ", on either strand" if alphabet.is_nucleotide else ""
        lines.append(
            f"caution: {facts['related_validation']} validation sequences have a relative in training (same "
            f"group, the same letters, or {kmer_length(alphabet)} letters in common{strands}), so these "
            "figures are too good; 'seqray split' keeps relatives together"
        )
    return [*lines, *calibration_cautions(facts["calibration"]), f"wrote {out}"]


def genome_summary(result: TrainResult, out: str) -> list[str]:
    """Summarize what a locator was trained on and its figures on the development regions."""
    from seqray.training.genomes.fit import left_out_figures

    card, facts = result.card, result.card.training
    counts = dict(facts["counts"]["train"])
    letters = counts.pop("letters")
    sites = ", ".join(f"{count} {name}" for name, count in counts.items())
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    figures = _as_text(result.validation)
    repeated = facts["repeated_sites"]
    merged = f" ({repeated} rows that name a site again are merged)" if repeated else ""
    return [
        f"learned from {letters / 1e6:.2f} Mb (all strands together) of {len(facts['species'])} species, "
        f"with {sites} sites{merged}; members: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"development regions, mean over species: {figures} (threshold {card.threshold:.3f})",
        *(f"species left out, {name}: {_as_text(means)}" for name, means in left_out_figures(card).items()),
        f"wrote {out}",
    ]


def _as_text(figures: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:.3f}" for name, value in figures.items())


def figures_line(result: TrainResult) -> str:
    """Write the figures of merit of the calibrated model as one line.

    Of more than two classes they are means over the classes, and no threshold divides them.
    """
    names = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "ece")
    figures = [f"{name} {result.validation[name]:.3f}" for name in names if name in result.validation]
    card = result.card
    several = len(card.classes) > 2
    settings = "" if several else f"threshold {card.threshold:.3f}, "
    return (
        f"{'mean of classes: ' if several else ''}{' '.join(figures)} "
        f"({settings}temperature {card.temperature:.3f})"
    )


def try_examples(
    request: Request,
    config: RunConfig,
    alternatives: Sequence[Mapping[str, Any]],
    data: Sequence[Any],
    *,
    save_config: Path | None = None,
    **training: Any,
) -> TrainResult:
    """Try alternatives, train with the best, and write its settings if they are asked for."""
    from seqray.training.trial import train_best

    result, chosen = train_best(config, alternatives, data, on_trial=request.note, **training)
    if save_config:
        write_config(save_config, chosen)
    return result


def tried_summary(result: TrainResult, out: str) -> list[str]:
    """State what was tried, and summarize the model."""
    facts = result.card.training["search"]
    tried = ", ".join(f"{abs(score):.4f} with {title}" for title, score in facts["tried"].items())
    chosen = " ".join(f"{key}={value}" for key, value in facts["changes"].items())
    return [
        f"{facts['figure']} of the first network on its held-out part: {tried}; chosen: {chosen}",
        *summary(result, out),
    ]


# --- What ``seqray train`` learns from, and how: labeled examples or genomes


@dataclass(frozen=True)
class Training:
    """Data of a kind of model, ready to be learned from.

    ``records`` counts examples or genomes. ``summary`` maps result and model file to lines for the user;
    ``finds_settings`` says whether the settings are known only when it ends.
    """

    config: RunConfig
    train: Callable[..., Any]
    records: int
    summary: Callable[[Any, str], list[str]]
    finds_settings: bool = False


def learn(request: TrainRequest) -> Training:
    """Read or choose the settings, and read the data."""
    if request.config and request.like:
        raise ConfigError("both --config and --like are given", remedy="give one of them")
    named: frozenset[str] = frozenset()
    alternatives: Sequence[Mapping[str, Any]] = ()
    data: Sequence[Example] | None = None
    if request.config:
        config, named = load_named_config(request.config)
        config = override_settings(config, request)
    elif request.like and given(request.genomes):
        config = replace(settings_of(request.like), name=model_name(request.out))
        config = override_settings(config, request)
    else:
        data, config, alternatives = choose(request)
    if config.model.kind == "locator":
        return learn_genomes(request, config)
    if words := given(request.genomes):
        raise ConfigError(
            f"{words[0]} is for locators, but 'model.kind' is {config.model.kind}",
            remedy="give --train TABLE, or settings of a locator: --like bacteria-genome, or --config YAML",
        )
    if data is None:
        data = read_examples(request.data.located(request, request.labels), config)
        config = complete_from_data(config, named | set_by_words(request.fit), data)
    return learn_examples(request, config, data, alternatives)


def choose(request: TrainRequest) -> tuple[Sequence[Example], RunConfig, Sequence[Mapping[str, Any]]]:
    """Read labeled examples, and choose the settings from them, or fit those of the model of ``--like``.

    The third value holds changes that a training tries, where the data must decide. ConfigError is raised for
    genomes, and for alignments without a model to take the settings of.
    """
    if words := given(request.genomes):
        raise ConfigError(
            f"{words[0]} needs settings of a locator",
            remedy="give --like bacteria-genome, or --config YAML such as configs/genome.yaml",
        )
    if request.like is None and (words := given(request.labels)):
        raise ConfigError(
            f"{words[0]} needs settings for alignments", remedy="give --like rna-family-type or --config YAML"
        )
    files = request.data.located(request, request.labels)
    config, data, facts = choose_config(files, request.like)
    config = override_settings(replace(config, name=model_name(request.out)), request)
    data = in_alphabet(data, facts.alphabet, ALPHABETS[config.model.alphabet])
    from seqray.training.settings_from_data import alternatives_of, describe_settings

    request.note(*describe_settings(config, facts, request.like or "the data"))
    chosen = not (request.like or request.teacher or request.init)
    return data, config, alternatives_of(config, facts, set_by_words(request.fit)) if chosen else ()


def learn_examples(
    request: TrainRequest,
    config: RunConfig,
    data: Sequence[Example],
    alternatives: Sequence[Mapping[str, Any]] = (),
) -> Training:
    """Prepare a training on labeled sequences or alignments.

    ``alternatives`` are changes of the settings among which the data decide.
    """
    from seqray.training.data_facts import data_cautions

    window, rule = config.data.window, config.data.truncate
    longer = sum(len(one.sequence) > window for one in data if isinstance(one, LabeledSequence))
    if rule != "none" and longer:
        request.note(describe_truncation(longer, len(data), window, rule))
    request.note(*(f"caution: {text}" for text in data_cautions(data)))
    if request.init:
        request.note(*_learned_before(request.init, config, data))
    if alternatives:
        tried = partial(try_examples, request, config, alternatives, data)
        return Training(config, tried, len(data), tried_summary, finds_settings=True)
    from seqray.modelfile.zoo import load_model
    from seqray.training.fit import train

    teacher = load_model(request.teacher) if request.teacher else None
    trained = partial(train, config, data, teacher=teacher)
    return Training(config, trained, len(data), summary)


def _learned_before(init: str, config: RunConfig, data: Sequence[Example]) -> Iterator[str]:
    """Caution where the model of the first weights was trained on what may be held out from training."""
    from seqray.modelfile.header import read_card
    from seqray.modelfile.initial_weights import is_pretrained
    from seqray.modelfile.zoo import locate_model
    from seqray.training.recalibration import count_training_data

    path = locate_model(init)
    if is_pretrained(path) or (card := read_card(path)).model.kind != config.model.kind:
        return
    held_out = [one for one in data if one.split not in (None, "train")] or data
    count = count_training_data(card, held_out)
    if count and count.known:
        which = describe_learned(count.known, count.checked, len(held_out))
        yield (
            f"caution: the training of the --init model used {which}: if they are held out, the figures, the "
            "threshold and the probabilities are too good; hold out others (column 'split')"
        )


def learn_genomes(request: TrainRequest, config: RunConfig) -> Training:
    """Read which genomes and sites a locator learns from.

    ConfigError is raised where labeled sequences or a teacher are given, InputError where no genome is given,
    or one and a sheet.
    """
    if words := given(request.data) + given(request.labels) + (["--teacher"] if request.teacher else []):
        raise ConfigError(
            f"{words[0]} is not for locators ('model.kind: locator')", remedy="give --genome and --sites"
        )
    from seqray.io.files import keep_pipes
    from seqray.training.genomes.fit import train_locator
    from seqray.training.genomes.sheet import GenomeRow, read_sheet

    asked = request.genomes
    keep_pipes(*asked.files())
    if asked.sheet:
        if asked.genome or asked.sites:
            raise InputError("a sheet and a genome are given", remedy="give --sheet or --genome")
        for name, value in (("species", asked.species), ("genes", asked.genes)):
            if value is not None:
                raise ConfigError(
                    f"--{name} is for one genome", remedy=f"use the column '{name}' of the sheet"
                )
        rows = read_sheet(asked.sheet)
    elif asked.genome and asked.sites:
        species = asked.species or Path(asked.genome).name.partition(".")[0]
        rows = [GenomeRow(genome=asked.genome, sites=asked.sites, genes=asked.genes or "", species=species)]
    else:
        raise InputError("no genome with sites is given", remedy="give --genome and --sites, or --sheet")
    options = {"hold_out": asked.hold_out, "site_class": asked.site_class, "folds": asked.fold}
    return Training(config, partial(train_locator, config, rows, **options), len(rows), genome_summary)
