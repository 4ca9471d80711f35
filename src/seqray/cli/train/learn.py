"""What ``seqray train`` learns from, and how: labeled examples or genomes, with settings or a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from seqray.cli.common import describe_learned, given
from seqray.cli.train.arguments import TrainRequest
from seqray.cli.train.search import (
    Changes,
    check_search,
    search_examples,
    search_status,
    search_summary,
    tried_summary,
    try_examples,
)
from seqray.cli.train.settings import (
    choose_config,
    complete_from_data,
    in_alphabet,
    model_name,
    override_settings,
    read_examples,
    set_by_words,
    settings_of,
)
from seqray.cli.train.summary import genome_summary, summary
from seqray.core import (
    ALPHABETS,
    ConfigError,
    Example,
    InputError,
    LabeledSequence,
    RunConfig,
    describe_truncation,
    load_named_config,
)

SEARCH_MEMBERS = 3
"""Networks for which a search keeps time: they gain more than the last configurations that it would try."""


@dataclass(frozen=True)
class Training:
    """Data of a kind of model, ready to be learned from.

    ``records`` counts examples or genomes. ``summary`` maps result and model file to lines for the user,
    ``status`` the result to the exit status; ``finds_settings`` says whether the settings are known only when
    it ends.
    """

    config: RunConfig
    train: Callable[..., Any]
    records: int
    summary: Callable[[Any, str], list[str]]
    status: Callable[[Any], int] = lambda _: 0
    finds_settings: bool = False


def learn(request: TrainRequest) -> Training:
    """Read or choose the settings, and read the data."""
    if request.config and request.like:
        raise ConfigError("both --config and --like are given", remedy="give one of them")
    named: frozenset[str] = frozenset()
    alternatives: Sequence[Changes] = ()
    data: Sequence[Example] | None = None
    if request.config:
        config, named = load_named_config(request.config)
        config = override_settings(config, request)
    elif request.like and given(request.genomes):
        config = replace(settings_of(request.like), name=model_name(request.out))
        config = override_settings(config, request)
    else:
        data, config, alternatives = choose(request)
    if request.budget:
        check_search({"--teacher": request.teacher, "--init": request.init}, config)
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


def choose(request: TrainRequest) -> tuple[Sequence[Example], RunConfig, Sequence[Changes]]:
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
    if request.budget and request.like is None:
        config = replace(config, members=max(config.members, SEARCH_MEMBERS))
    config = override_settings(replace(config, name=model_name(request.out)), request)
    data = in_alphabet(data, facts.alphabet, ALPHABETS[config.model.alphabet])
    from seqray.training import alternatives_of, describe_settings

    request.note(*describe_settings(config, facts, request.like or "the data"))
    chosen = not (request.like or request.teacher or request.init)
    return data, config, alternatives_of(config, facts, set_by_words(request.fit)) if chosen else ()


def learn_examples(
    request: TrainRequest, config: RunConfig, data: Sequence[Example], alternatives: Sequence[Changes] = ()
) -> Training:
    """Prepare a training on labeled sequences or alignments, or a search.

    ``alternatives`` are changes of the settings among which the data decide.
    """
    from seqray.training import data_cautions

    window, rule = config.data.window, config.data.truncate
    longer = sum(len(one.sequence) > window for one in data if isinstance(one, LabeledSequence))
    if rule != "none" and longer:
        request.note(describe_truncation(longer, len(data), window, rule))
    request.note(*(f"caution: {text}" for text in data_cautions(data)))
    if request.init:
        request.note(*_learned_before(request.init, config, data))
    if request.budget:
        found = partial(search_examples, request, request.budget, config, data)
        return Training(config, found, len(data), partial(search_summary, request), search_status, True)
    if alternatives:
        tried = partial(try_examples, request, config, alternatives, data)
        return Training(config, tried, len(data), tried_summary, finds_settings=True)
    from seqray.modelfile import load_model
    from seqray.training import train

    teacher = load_model(request.teacher) if request.teacher else None
    trained = partial(train, config, data, teacher=teacher)
    return Training(config, trained, len(data), summary)


def _learned_before(init: str, config: RunConfig, data: Sequence[Example]) -> Iterator[str]:
    """Caution where the model of the first weights was trained on what may be held out from training."""
    from seqray.modelfile import is_pretrained, locate_model, read_card
    from seqray.training import count_training_data

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
    from seqray.io import keep_pipes
    from seqray.training import GenomeInput, GenomeRow, read_sheet, train_locator

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
    data = GenomeInput(rows, asked.hold_out, asked.site_class, asked.fold)
    return Training(config, partial(train_locator, config, data), len(rows), genome_summary)
