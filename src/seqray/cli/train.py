"""``seqray train``: train a calibrated model on labeled sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from seqray.cli.common import (
    SEQUENCE_FILES,
    THREADS,
    AlignmentLabelOptions,
    ClassName,
    DataOptions,
    Options,
    Outcome,
    PositiveInt,
    Printable,
    Progress,
    Request,
    Threads,
    WholeNumber,
    check_files,
    given,
    option,
    use_threads,
)
from seqray.cli.train_search import (
    BudgetWord,
    SearchPlan,
    check_search,
    search_examples,
    search_path,
    search_status,
    search_summary,
    tried_summary,
    try_examples,
)
from seqray.cli.train_settings import (
    choose_config,
    complete_from_data,
    in_alphabet,
    model_name,
    read_examples,
    read_metrics,
    write_config,
)
from seqray.cli.train_summary import genome_summary, summary
from seqray.core import (
    ALPHABETS,
    ConfigError,
    Example,
    InputError,
    LabeledSequence,
    RunConfig,
    Truncation,
    change_settings,
    describe_truncation,
    load_named_config,
    parse_yaml,
    reset_termination,
)

INTERRUPTED = 130
Changes = Mapping[str, Any]
"""Settings by ``section.key``, as in ``--set``."""

CONFIG = option("--config YAML", "settings of the model and its training")


class FitOptions(Options):
    """What training and pre-training have in common."""

    work_dir: str | None = option("--work-dir DIR", "checkpoints and logs (default: OUT.training)")
    no_resume: bool = option("--no-resume", "start again if DIR holds an earlier run")
    set: tuple[str, ...] = option(
        "--set KEY=VALUE", "setting that overrides the one in YAML, such as trainer.max_epochs=10"
    )
    seed: WholeNumber | None = option("--seed N", "seed of the first member")
    threads: Threads | None = THREADS
    device: str = option(
        "--device DEVICE", "auto (as in YAML, else a GPU if there is one), cpu, cuda or cuda:N", "auto"
    )

    def folder(self, out: str) -> Path:
        """Where checkpoints and logs are kept."""
        return Path(self.work_dir or f"{out}.training")


class GenomeOptions(Options, heading="data: genomes with sites, for a locator ('model.kind: locator')"):
    """What a locator learns from."""

    genome: str | None = option("--genome FILE", f"one genome: {SEQUENCE_FILES}")
    sites: str | None = option(
        "--sites FILE",
        "its sites: TSV with the columns contig, position (1-based), strand[, site, weight], BED or GFF3",
    )
    genes: str = option("--genes FILE|predict|none", "its genes: GFF3 or GenBank", "predict")
    species: Printable | None = option(
        "--species NAME", "its species (default: the name of the genome's file)"
    )
    sheet: str | None = option(
        "--sheet TSV",
        "several genomes: columns genome, genes, sites, species, weight[, group, inside, held_out]; paths "
        "are relative to the sheet",
    )
    site_class: ClassName | None = option(
        "--site-class NAME", "class of all sites, where the files name none"
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
    )
    budget: BudgetWord | None = option(
        "--budget TIME",
        "search for better settings for so long (90s, 10m, 1h), or for so many training steps (5000steps), "
        "starting from the settings that are chosen or given; OUT.search.tsv lists all trials; Ctrl-C and "
        "SIGTERM write the best model so far",
    )
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
    beside = (request.config, request.like, request.labels.alignment_labels)
    beside += (request.teacher, request.init, request.metrics)
    outputs = [request.out, request.save_config, search_path(request.out) if request.budget else None]
    check_files(request.data.files() + request.genomes.files(), outputs, beside=beside)
    training = learn(request)
    metrics = read_metrics(request.metrics) if request.metrics else None
    from seqray.io import Staging
    from seqray.modelfile import load_initial_weights, locate_model
    from seqray.training import is_main_process

    folder = request.fit.folder(request.out)
    more: dict[str, Any] = {"start": load_initial_weights(locate_model(request.init))} if request.init else {}
    try:
        with (
            Staging() as staging,
            Progress("train", "steps", quiet=request.quiet or not is_main_process()) as progress,
        ):
            out = Path(staging.path(request.out))
            config = Path(staging.path(request.save_config)) if request.save_config else None
            if request.budget:
                more |= {"table": Path(staging.path(search_path(request.out)))}
            if training.finds_settings:
                more |= {"save_config": config}
            elif config:
                write_config(config, training.config)
            result = training.train(
                out=out,
                work_dir=folder,
                resume=not request.fit.no_resume,
                progress=progress.update,
                threads=use_threads(request.fit.threads),
                metrics=metrics,
                **more,
            )
    except KeyboardInterrupt:
        report_interruption(request.fit, folder)
        return Outcome(records=training.records, status=INTERRUPTED)
    if is_main_process():
        request.say(*training.summary(result, request.out))
    return Outcome(records=training.records, status=training.status(result))


@dataclass(frozen=True)
class Training:
    """Data of a kind of model, ready to be learned from.

    Attributes
    ----------
    config
        The settings.
    train
        Runs the training, see `seqray.training.train`.
    records
        Examples or genomes.
    summary, status
        Result and model file to lines for the user, and result to exit status.
    finds_settings
        Whether the settings are known only when it ends.
    """

    config: RunConfig
    train: Callable[..., Any]
    records: int
    summary: Callable[[Any, str], list[str]]
    status: Callable[[Any], int] = lambda _: 0
    finds_settings: bool = False


def learn(request: TrainRequest) -> Training:
    """Read or choose the settings, and read the data."""
    named: frozenset[str] = frozenset()
    alternatives: Sequence[Changes] = ()
    if request.config is None:
        data, config, alternatives = choose(request)
    else:
        if request.like:
            raise ConfigError("both --config and --like are given", remedy="give one of them")
        config, named = load_named_config(request.config)
        data, config = None, settle(config, request)
    if request.budget:
        check_search({"--teacher": request.teacher, "--init": request.init}, config)
    if config.model.kind == "locator":
        return learn_genomes(request, config)
    if words := given(request.genomes):
        raise ConfigError(
            f"{words[0]} is for locators, but 'model.kind' is {config.model.kind}",
            remedy="write 'kind: locator' in the section 'model', or give --train TABLE",
        )
    if data is None:
        data = read_examples(request.data.located(request.labels), config)
        config = complete_from_data(config, named | set_by_words(request.fit), data)
    return learn_examples(request, config, data, alternatives)


def set_by_words(fit: FitOptions) -> frozenset[str]:
    """Settings that ``--set`` names."""
    return frozenset(assignment.partition("=")[0].strip() for assignment in fit.set)


def choose(request: TrainRequest) -> tuple[Sequence[Example], RunConfig, Sequence[Changes]]:
    """Read labeled examples, and choose the settings from them, or fit those of the model of ``--like``.

    The third value holds changes that a training tries, where the data must decide.

    Raises
    ------
    ConfigError
        For genomes, and for alignments without a model to take the settings of.
    """
    if words := given(request.genomes):
        raise ConfigError(f"{words[0]} needs settings of a locator", remedy="give --config YAML")
    if request.like is None and (words := given(request.labels)):
        raise ConfigError(
            f"{words[0]} needs settings for alignments", remedy="give --like rna-family-type or --config YAML"
        )
    config, data, facts = choose_config(request.data.located(request.labels), request.like)
    config = settle(replace(config, name=model_name(request.out)), request)
    data = in_alphabet(data, facts.alphabet, ALPHABETS[config.model.alphabet])
    from seqray.training import alternatives_of, describe_settings

    request.note(*describe_settings(config, facts, request.like or "the data"))
    chosen = not (request.like or request.teacher or request.init)
    return data, config, alternatives_of(config, facts, set_by_words(request.fit)) if chosen else ()


def learn_examples(
    request: TrainRequest, config: RunConfig, data: Sequence[Example], alternatives: Sequence[Changes] = ()
) -> Training:
    """Prepare a training on labeled sequences or alignments, or a search.

    Parameters
    ----------
    request, config, data
        Words of the command line, settings, and examples.
    alternatives
        Changes of the settings among which the data decide.
    """
    window, rule = config.data.window, config.data.truncate
    longer = sum(len(one.sequence) > window for one in data if isinstance(one, LabeledSequence))
    if rule != "none" and longer:
        request.note(describe_truncation(longer, len(data), window, rule))
    if request.budget:
        plan = SearchPlan(request, request.budget, request.out, set_by_words(request.fit))
        found = partial(search_examples, plan, config, data)
        return Training(config, found, len(data), partial(search_summary, plan), search_status, True)
    if alternatives:
        tried = partial(try_examples, request, config, alternatives, data)
        return Training(config, tried, len(data), tried_summary, finds_settings=True)
    from seqray.modelfile import load_model
    from seqray.training import train

    teacher = load_model(request.teacher) if request.teacher else None
    trained = partial(train, config, data, teacher=teacher, processes=None)
    return Training(config, trained, len(data), summary)


def learn_genomes(request: TrainRequest, config: RunConfig) -> Training:
    """Read which genomes and sites a locator learns from.

    Raises
    ------
    ConfigError
        Where labeled sequences or a teacher are given.
    InputError
        Where no genome is given, or one and a sheet.
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
        rows = read_sheet(asked.sheet)
    elif asked.genome and asked.sites:
        species = asked.species or Path(asked.genome).name.partition(".")[0]
        rows = [GenomeRow(genome=asked.genome, sites=asked.sites, genes=asked.genes, species=species)]
    else:
        raise InputError("no genome with sites is given", remedy="give --genome and --sites, or --sheet")
    data = GenomeInput(rows, asked.hold_out, asked.site_class, asked.fold)
    return Training(config, partial(train_locator, config, data), len(rows), genome_summary)


def report_interruption(fit: FitOptions, folder: Path) -> None:
    """Explain how to resume an interrupted training; the interrupt is heard so."""
    reset_termination()
    again = " without --no-resume" if fit.no_resume else ""
    print(f"seqray: interrupted; the same command{again} resumes from {folder}", file=sys.stderr)


def settle(config: RunConfig, request: TrainRequest) -> RunConfig:
    """Override settings by those of the command line."""
    if request.truncate is not None:
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
