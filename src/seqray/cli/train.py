"""``seqray train``: train a calibrated model on labeled sequences, alignments or genomes with sites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seqray.cli.inputs import SEQUENCE_FILES, check_files
from seqray.cli.labeled import AlignmentLabelOptions, DataOptions, describe_learned
from seqray.cli.messages import Progress, calibration_cautions
from seqray.cli.model import THREADS, use_threads
from seqray.cli.options import (
    ClassName,
    Options,
    Outcome,
    PositiveInt,
    Printable,
    Request,
    Threads,
    WholeNumber,
    given,
    option,
    refuse_unused,
)
from seqray.cli.train_settings import (
    check_positive,
    complete_from_data,
    configure,
    model_name,
    read_examples,
    read_metrics,
    settings_of,
    write_config,
)
from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, InputError, Terminated, reset_termination
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig, load_named_config
from seqray.core.text import Truncation, describe_truncation
from seqray.modelfile.header import check_model_path

if TYPE_CHECKING:
    from seqray.training.members import RunOptions, TrainResult


# --- Options of ``seqray train``

CONFIG = option("--config YAML", "settings of the model and its training")


class FitOptions(Options):
    """What training and pre-training have in common."""

    work_dir: str | None = option("--work-dir DIR", "checkpoints and logs (default: OUT.training)")
    no_resume: bool = option("--no-resume", "start again if DIR holds an earlier run")
    restart_if_changed: bool = option(
        "--restart-if-changed",
        "start again if DIR holds a run with other settings or data (default: an error)",
    )
    set: tuple[str, ...] = option(
        "--set KEY=VALUE", "setting that overrides the one in YAML, such as trainer.max_epochs=10"
    )
    seed: WholeNumber | None = option("--seed N", "seed of the first member")
    threads: Threads | None = THREADS
    device: str = option(
        "--device DEVICE", "auto (as in YAML, else a GPU if there is one), cpu, cuda or cuda:N", "auto"
    )

    def named(self) -> frozenset[str]:
        """Settings that ``--set`` names."""
        return frozenset(assignment.partition("=")[0].strip() for assignment in self.set)

    def folder(self, out: str) -> Path:
        """Where checkpoints and logs are kept."""
        return Path(self.work_dir or f"{out}.training")

    def run_options(self, folder: Path, progress: Progress) -> RunOptions:
        """Where and with what a training runs; networks train side by side where that is faster."""
        from seqray.training.members import RunOptions

        return RunOptions(
            folder,
            resume=not self.no_resume,
            restart_if_changed=self.restart_if_changed,
            progress=progress.update,
            threads=use_threads(self.threads),
            side_by_side=True,
        )


class GenomeOptions(
    Options, heading="data: genomes with sites, for a locator ('model.kind: locator')", only_for="genomes"
):
    """What a locator learns from."""

    genome: str | None = option("--genome FILE", f"one genome: {SEQUENCE_FILES}")
    sites: str | None = option(
        "--sites FILE",
        "its sites: TSV with the columns contig, position (1-based), strand[, site, weight], BED or GFF3",
    )
    genes: str | None = option(
        "--genes FILE|predict|none",
        "its genes: GFF3 or GenBank; by default those of a GenBank genome, else predicted ones",
    )
    species: Printable | None = option(
        "--species NAME", "its species (default: the name of the genome's file)"
    )
    sheet: str | None = option(
        "--sheet TSV",
        "several genomes: columns genome, genes, sites, species, weight[, group, inside, held_out]; paths "
        "are relative to the sheet",
    )
    site_class: ClassName | None = option(
        "--site-class NAME", "class of sites whose file names none, such as those of BED"
    )
    hold_out: tuple[str, ...] = option(
        "--hold-out NAME", "species or group that is not learned from; may be repeated"
    )
    fold: tuple[str, ...] = option(
        "--fold MODEL",
        "model trained with --hold-out: its figures of the species left out go onto the card, to say what to "
        "expect in a new species; may be repeated",
    )

    def files(self) -> list[str]:
        """Files that are named on the command line."""
        genes = None if self.genes in ("predict", "none") else self.genes
        return [path for path in (self.genome, self.sites, genes, self.sheet, *self.fold) if path]


class TrainRequest(Request):
    """Options of ``seqray train``."""

    config: str | None = option(
        "--config YAML", "settings of the model and its training (default: chosen from the data)"
    )
    like: str | None = option(
        "--like NAME|FILE", "take the settings of this model, with the classes and the length of the data"
    )
    save_config: str | None = option("--save-config YAML", "write the settings of this run, for --config")
    data: DataOptions
    genomes: GenomeOptions
    labels: AlignmentLabelOptions
    backbone: str | None = option(
        "--backbone DIR",
        "directory of a Hugging Face encoder to train a classifier on ('model.kind: backbone')",
    )
    out: str = option("--out -o FILE", "model file, ends in .safetensors")
    truncate: Truncation | None = option(
        "--truncate",
        "what is read of sequences longer than 'data.window': both ends, a half each, or the start; none "
        "refuses them (default: as in the settings)",
        only_for="sequences",
    )
    members: PositiveInt | None = option("--members N", "networks in the file, 1 to 5")
    teacher: str | None = option(
        "--teacher NAME|FILE",
        "model whose probabilities are learned beside the labels, to distill an ensemble into one member",
        only_for="examples",
    )
    init: str | None = option(
        "--init NAME|FILE",
        "start from the weights of seqray pretrain, or of the members of a model of the same shape",
    )
    metrics: str | None = option("--metrics JSON", "figures measured elsewhere, for the card")
    fit: FitOptions


# --- Check, read what is learned from, train, sum up


class Training(NamedTuple):
    """Settings, and data that are ready to be learned from: a number of examples or genomes.

    ``train`` gives the result and its settings, ``summary`` the lines for the user.
    """

    config: RunConfig
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
    from seqray.modelfile.header import locate_model
    from seqray.modelfile.initial_weights import load_initial_weights
    from seqray.training.trainer import is_main_process

    folder = request.fit.folder(request.out)
    start = {"start": load_initial_weights(locate_model(request.init))} if request.init else {}
    try:
        with (
            Staging() as staging,
            Progress(
                "train", "steps", quiet=request.quiet or not is_main_process(training.config)
            ) as progress,
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
    if is_main_process(training.config):
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
    from seqray.kinds.kinds import kind_of

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
    reads = f"is for models that read sequences, and this one reads {kind_of(config).unit}"
    if config.model.is_locator:
        only = "is not for locators ('model.kind: locator')", "give --genome and --sites"
        refuse_unused(request, {"examples": only, "sequences": (reads, "")})
        return learn_genomes(request, config)
    only = f"is for locators, but 'model.kind' is {config.model.kind}"
    remedy = "give --train TABLE, or settings of a locator: --like bacteria-genome, or --config YAML"
    absent = {"genomes": (only, remedy)} | (
        {"sequences": (reads, "")} if config.model.reads_alignments else {}
    )
    refuse_unused(request, absent)
    if data is None:
        data = read_examples(request.data.located(request, request.labels), config)
        config = complete_from_data(config, named | request.fit.named(), data)
    return learn_examples(request, config, data, alternatives)


def choose_settings(
    request: TrainRequest,
) -> tuple[RunConfig, Sequence[Example], Sequence[Mapping[str, Any]]]:
    """Read labeled examples, and choose the settings from them, or fit those of the model of ``--like``.

    The third value holds changes that a training tries, where the data must decide.
    """
    remedy = "give --like bacteria-genome, or --config YAML such as configs/genome.yaml"
    absent = {"genomes": ("needs settings of a locator", remedy)}
    if request.like is None:
        remedy = "give --like rna-family-type or --config YAML"
        absent["stated settings"] = "needs settings for alignments", remedy
    refuse_unused(request, absent)
    files = request.data.located(request, request.labels)
    from seqray.kinds.kinds import read_inferred_examples
    from seqray.training import settings_from_data as rules
    from seqray.training.data_facts import measure_data

    if request.like is None:
        data, alphabet = read_inferred_examples(files)
        facts = measure_data(data, alphabet)
        config = rules.choose_settings(facts)
    else:
        config = settings_of(request.like)
        if config.model.is_locator:
            what = "is a locator, which learns from genomes"
            raise ConfigError(what, where=request.like, remedy="give --genome and --sites")
        data = read_examples(files, config)
        facts = measure_data(data, ALPHABETS[config.model.alphabet])
        config = rules.fit_settings(config, facts)
    config = override_settings(replace(config, name=model_name(request.out)), request)
    check_positive(config, request.fit.named(), facts.counts)
    alphabet = ALPHABETS[config.model.alphabet]
    if alphabet != facts.alphabet:  # --set names another one
        data = [
            replace(one, sequence=alphabet.normalize(one.sequence, one.where))
            if isinstance(one, LabeledSequence)
            else one
            for one in data
        ]
    request.note(*rules.describe_settings(config, facts, request.like or "the data"))
    decided = request.like or request.teacher or request.init
    return config, data, () if decided else rules.alternatives_of(config, facts, request.fit.named())


def override_settings(config: RunConfig, request: TrainRequest) -> RunConfig:
    """Override settings by those of the command line."""
    if request.truncate is not None:
        config = replace(config, data=replace(config.data, truncate=request.truncate))
    named = {"members": request.members, "backbone": request.backbone}
    return configure(config, request.fit.set, request.fit.device, seed=request.fit.seed, **named)


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
    from seqray.modelfile.file import load_model
    from seqray.training.fit import train
    from seqray.training.trial import train_best

    if alternatives:

        def train_tried(**more: Any) -> tuple[TrainResult, RunConfig]:
            return train_best(config, alternatives, data, on_trial=request.note, **more)

        return Training(config, len(data), train_tried, summary)
    teacher = load_model(request.teacher) if request.teacher else None
    return Training(
        config, len(data), lambda **more: (train(config, data, teacher=teacher, **more), config), summary
    )


def _learned_before(init: str, config: RunConfig, data: Sequence[Example]) -> Iterator[str]:
    """Caution where the model of the first weights was trained on what may be held out from training."""
    from seqray.modelfile.header import locate_model, read_card
    from seqray.modelfile.initial_weights import is_pretrained
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
    """Read which genomes and sites a locator learns from."""
    from seqray.training.genomes.fit import train_locator
    from seqray.training.genomes.sheet import GenomeRow, read_sheet

    asked = request.genomes
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
        config,
        len(rows),
        lambda **more: (train_locator(config, rows, **options, **more), config),
        genome_summary,
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
        *facts.get("input_notes", ()),
    ]
