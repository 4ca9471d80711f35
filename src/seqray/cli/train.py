"""``seqray train``: train a calibrated model on labeled sequences, alignments or genomes with sites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seqray.cli.inputs import check_files
from seqray.cli.labeled import describe_learned
from seqray.cli.messages import Progress, calibration_cautions
from seqray.cli.options import Outcome, given
from seqray.cli.train_options import FitOptions, TrainRequest
from seqray.cli.train_settings import (
    choose_settings,
    complete_from_data,
    model_name,
    override_settings,
    read_examples,
    read_metrics,
    settings_of,
    write_config,
)
from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, InputError, Terminated, reset_termination
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig, load_named_config
from seqray.core.text import describe_truncation
from seqray.modelfile.header import check_model_path

if TYPE_CHECKING:
    from seqray.training.members import TrainResult


class Training(NamedTuple):
    """Data that are ready to be learned from: a number of examples or genomes.

    ``train`` gives the result and its settings, ``summary`` the lines for the user.
    """

    records: int
    train: Callable[..., tuple[TrainResult, RunConfig]]
    summary: Callable[[TrainResult], list[str]]


def run(request: TrainRequest) -> Outcome:
    """Train, save, and sum up on standard error."""
    check_model_path(request.out)
    beside = (request.config, request.like, request.labels.alignment_labels)
    beside += (request.teacher, request.init, request.metrics)
    outputs = [request.out, request.save_config]
    check_files(request.data.files() + request.genomes.files(), outputs, beside=beside)
    training = learn(request)
    metrics = read_metrics(request.metrics) if request.metrics else None
    from seqray.io.files import Staging, cannot_write
    from seqray.modelfile.initial_weights import load_initial_weights
    from seqray.modelfile.zoo import locate_model
    from seqray.training.trainer import is_main_process

    folder = request.fit.folder(request.out)
    start = {"start": load_initial_weights(locate_model(request.init))} if request.init else {}
    try:
        with (
            Staging() as staging,
            Progress("train", "steps", quiet=request.quiet or not is_main_process()) as progress,
        ):
            out = Path(staging.path(request.out))
            settings = staging.path(request.save_config) if request.save_config else None
            run_options = request.fit.run_options(folder, progress)
            result, config = training.train(out=out, run=run_options, metrics=metrics, **start)
            if settings:
                write_config(settings, config)
    except (KeyboardInterrupt, Terminated) as signal:
        return Outcome(records=training.records, status=report_interruption(signal, request.fit, folder))
    except OSError as error:
        if error.filename or isinstance(error, BrokenPipeError):
            raise
        raise cannot_write(error, str(folder)) from error  # PyTorch does not name what it can't write
    if is_main_process():
        request.say(*training.summary(result), f"wrote {request.out}")
    return Outcome(records=training.records)


def report_interruption(signal: BaseException, fit: FitOptions, folder: Path) -> int:
    """Explain how to resume a training that a signal ended; the exit status. The signal is heard so."""
    reset_termination()
    word, status = ("terminated", 143) if isinstance(signal, Terminated) else ("interrupted", 130)
    again = " without --no-resume" if fit.no_resume else ""
    print(f"seqray: {word}; the same command{again} resumes from {folder}", file=sys.stderr)
    return status


# --- What is learned from, and how


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
        config, data, alternatives = choose_settings(request)
    if config.model.is_locator:
        return learn_genomes(request, config)
    if words := given(request.genomes):
        raise ConfigError(
            f"{words[0]} is for locators, but 'model.kind' is {config.model.kind}",
            remedy="give --train TABLE, or settings of a locator: --like bacteria-genome, or --config YAML",
        )
    if data is None:
        data = read_examples(request.data.located(request, request.labels), config)
        config = complete_from_data(config, named | request.fit.named(), data)
    return learn_examples(request, config, data, alternatives)


def learn_examples(
    request: TrainRequest,
    config: RunConfig,
    examples: Sequence[Example],
    alternatives: Sequence[Mapping[str, Any]] = (),
) -> Training:
    """Prepare a training on labeled sequences or alignments.

    ``alternatives`` are changes of the settings among which the data decide.
    """
    from seqray.training.data_facts import data_cautions

    data: Any = examples  # of the kind that the settings name
    window, rule = config.data.window, config.data.truncate
    longer = sum(len(one.sequence) > window for one in data if isinstance(one, LabeledSequence))
    if rule != "none" and longer:
        request.note(describe_truncation(longer, len(data), window, rule))
    request.note(*(f"caution: {text}" for text in data_cautions(data)))
    if request.init:
        request.note(*_learned_before(request.init, config, data))
    from seqray.modelfile.zoo import load_model
    from seqray.training.fit import train
    from seqray.training.trial import train_best

    if alternatives:

        def train_tried(**more: Any) -> tuple[TrainResult, RunConfig]:
            return train_best(config, alternatives, data, on_trial=request.note, **more)

        return Training(len(data), train_tried, summary)
    teacher = load_model(request.teacher) if request.teacher else None
    return Training(len(data), lambda **more: (train(config, data, teacher=teacher, **more), config), summary)


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
                remedy = f"use the column '{name}' of the sheet"
                raise ConfigError(f"--{name} is for one genome", remedy=remedy)
        rows = read_sheet(asked.sheet)
    elif asked.genome and asked.sites:
        species = asked.species or Path(asked.genome).name.partition(".")[0]
        rows = [GenomeRow(genome=asked.genome, sites=asked.sites, genes=asked.genes or "", species=species)]
    else:
        raise InputError("no genome with sites is given", remedy="give --genome and --sites, or --sheet")
    options = {"hold_out": asked.hold_out, "site_class": asked.site_class, "folds": asked.fold}
    return Training(
        len(rows), lambda **more: (train_locator(config, rows, **options, **more), config), genome_summary
    )


# --- The summary at the end of a training

FEW_HELD_OUT = 50
"""Fewer examples give figures that can be off by .2 and more: the standard error of an MCC of 0 is 1/√n."""


def summary(result: TrainResult) -> list[str]:
    """What was tried and trained, and its metrics on validation data."""
    card, facts = result.card, result.card.training
    lines = []
    if search := facts.get("search"):
        tried = ", ".join(f"{abs(score):.4f} with {title}" for title, score in search["tried"].items())
        chosen = " ".join(f"{key}={value}" for key, value in search["changes"].items())
        of_first = f"{search['figure']} of the first network on its held-out part"
        lines.append(f"{of_first}: {tried}; chosen: {chosen}")
    counts = {part: sum(by_class.values()) for part, by_class in facts["counts"].items()}
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    kind = "alignments" if card.model.reads_alignments else "sequences"
    own, held_out = facts["held_out"] != counts["validation"], f"{facts['held_out']} {kind}"
    if own:  # each network has its own part
        held_out += f" (about {facts['held_out'] / card.members:.0f} that each network held out)"
    names = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "ece")
    figures = " ".join(f"{name} {result.validation[name]:.3f}" for name in names if name in result.validation)
    several = len(card.classes) > 2  # then they are means over the classes, and no threshold divides them
    lines += [
        f"{'each network trained on about' if own else 'trained on'} {counts['train']} {kind} of "
        f"{len(card.classes)} classes; members: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"validation on {held_out}: {'mean of classes: ' if several else ''}{figures} "
        f"({'' if several else f'threshold {card.threshold:.3f}, '}temperature {card.temperature:.3f})",
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
    return [*lines, *calibration_cautions(facts["calibration"])]


def genome_summary(result: TrainResult) -> list[str]:
    """What a locator was trained on, and its figures on the development regions."""
    from seqray.training.genomes.fit import left_out_figures

    def shown(figures: Mapping[str, float]) -> str:
        return " ".join(f"{name} {value:.3f}" for name, value in figures.items())

    card, facts = result.card, result.card.training
    counts = dict(facts["counts"]["train"])
    letters = counts.pop("letters")
    sites = ", ".join(f"{count} {name}" for name, count in counts.items())
    epochs = ", ".join(str(epoch) for epoch in facts["best_epochs"])
    repeated = facts["repeated_sites"]
    merged = f" ({repeated} rows that name a site again are merged)" if repeated else ""
    return [
        f"learned from {letters / 1e6:.2f} Mb (all strands together) of {len(facts['species'])} species, "
        f"with {sites} sites{merged}; members: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"development regions, mean over species: {shown(result.validation)} "
        f"(threshold {card.threshold:.3f})",
        *(f"species left out, {name}: {shown(means)}" for name, means in left_out_figures(card).items()),
    ]
