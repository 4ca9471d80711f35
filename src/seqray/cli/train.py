"""``seqray train``: train a calibrated model on labeled sequences, alignments or genomes with sites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.cli import options
from seqray.cli.inputs import SEQUENCE_FILES, check_files, check_suffix
from seqray.cli.labeled import AlignmentLabelOptions, DataOptions
from seqray.cli.messages import Progress
from seqray.cli.model import THREADS, use_threads
from seqray.cli.options import Options, Outcome, Request, given, option, refuse_unused
from seqray.core.errors import ConfigError, Terminated, reset_termination
from seqray.core.run_config import RunConfig
from seqray.core.text import Truncation
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
    seed: options.WholeNumber | None = option("--seed N", "seed of the first network")
    threads: options.Threads | None = THREADS
    device: str = option(
        "--device DEVICE", "auto (as in YAML, else a GPU if there is one), cpu, cuda or cuda:N", "auto"
    )

    def folder(self, out: str) -> Path:
        """Where checkpoints and logs are kept."""
        return Path(self.work_dir or f"{out}.training")

    def run_options(self, folder: Path, progress: Progress, note: Callable[[str], None]) -> RunOptions:
        """Where and with what a training runs; networks train side by side where that is faster."""
        from seqray.training.members import RunOptions

        return RunOptions(
            folder,
            resume=not self.no_resume,
            restart_if_changed=self.restart_if_changed,
            progress=progress.update,
            threads=use_threads(self.threads),
            side_by_side=True,
            note=note,
        )


class GenomeOptions(
    Options, heading="data: genomes with sites, with 'model.kind: locator'", only_for="genomes"
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
    species: options.Printable | None = option(
        "--species NAME", "its species (default: the name of the genome's file)"
    )
    sheet: str | None = option(
        "--sheet TSV",
        "several genomes: columns genome, genes, sites, species, weight[, group, inside, held_out]; paths "
        "are relative to the sheet",
    )
    site_class: options.ClassName | None = option(
        "--site-class NAME", "class of sites whose file names none, such as those of BED"
    )
    hold_out: tuple[str, ...] = option(
        "--hold-out NAME", "species or group that is not learned from; may be repeated"
    )
    fold: tuple[str, ...] = option(
        "--fold MODEL",
        "model trained with --hold-out: its figures of the species left out are kept, to say what to "
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
    members: options.PositiveInt | None = option("--members N", "networks in the file, 1 to 5")
    teacher: str | None = option(
        "--teacher NAME|FILE",
        "model whose probabilities are learned beside the labels, to distill an ensemble into one network",
    )
    init: str | None = option(
        "--init NAME|FILE",
        "start from the weights of seqray pretrain, or of the networks of a model of the same shape",
    )
    metrics: str | None = option("--metrics JSON", "figures measured elsewhere, for the model description")
    fit: FitOptions


# --- Check, read what is learned from, train, sum up


def run(request: TrainRequest) -> Outcome:
    """Train, save, and sum up on standard error."""
    check_model_path(request.out)
    beside = (request.config, request.like, request.labels.alignment_labels)
    beside += (request.teacher, request.init, request.metrics)
    outputs = [request.out, request.save_config]
    check_files(request.data.files() + request.genomes.files(), outputs, beside=beside)
    check_suffix(request.save_config, ".yaml", ".yml")
    from seqray.training.plan import TrainSettings, model_name, plan_training, read_metrics, write_config

    asked = {**vars(request), **vars(request.fit), **vars(request.genomes)}
    training = plan_training(
        model_name(request.out),
        request.data.located(request, request.labels),
        TrainSettings(**{name: asked[name] for name in TrainSettings.__annotations__}),
        refuse=lambda config: refuse_others(request, config),
        note=request.note,
    )
    metrics = read_metrics(request.metrics) if request.metrics else None
    from seqray.io.files import Staging, cannot_write
    from seqray.training.trainer import is_main_process

    folder = request.fit.folder(request.out)
    try:
        with (
            Staging() as staging,
            Progress(
                "train", "steps", quiet=request.quiet or not is_main_process(training.config)
            ) as progress,
        ):
            out = Path(staging.path(request.out))
            settings = staging.path(request.save_config) if request.save_config else None
            run_options = request.fit.run_options(folder, progress, request.note)
            result, config = training.train(out=out, run=run_options, metrics=metrics)
            if settings:
                write_config(settings, config)
    except (KeyboardInterrupt, Terminated) as signal:
        return Outcome(records=training.records, status=report_interruption(signal, request.fit, folder))
    except OSError as error:
        if error.filename or isinstance(error, BrokenPipeError):
            raise
        raise cannot_write(error, str(folder)) from error  # PyTorch does not name what it can't write
    if is_main_process(training.config):
        sum_up = genome_summary if config.model.is_locator else summary
        request.say(*sum_up(result), f"wrote {request.out}")
    return Outcome(records=training.records)


def report_interruption(signal: BaseException, fit: FitOptions, folder: Path) -> int:
    """Explain how to resume a training that a signal ended; the exit status. The signal is heard so."""
    reset_termination()
    word, status = ("terminated", 143) if isinstance(signal, Terminated) else ("interrupted", 130)
    again = " without --no-resume" if fit.no_resume else ""
    resume = f"; the same command{again} resumes from {folder}" if folder.exists() else ""
    print(f"seqray: {word}{resume}", file=sys.stderr)
    return status


def refuse_others(request: TrainRequest, config: RunConfig | None) -> None:
    """Refuse options for another kind of model than that of the settings; None: the data choose them."""
    from seqray.kinds.kinds import kind_of

    absent, like = {}, request.like
    if config is None:
        remedy = "give --like bacteria-genome, or --config YAML such as configs/genome.yaml"
        absent["genomes"] = "needs settings of a model for genomes", remedy
        remedy = "give --like rna-family-type or --config YAML"
        absent["stated settings"] = "needs settings for alignments", remedy
    elif config.model.is_locator:
        if like and not given(request.genomes):
            what = "is a model for genomes, which learns from genomes"
            raise ConfigError(what, where=like, remedy="give --genome and --sites")
        absent["examples"] = (
            "is not for models for genomes ('model.kind: locator')",
            "give --genome and --sites",
        )
    else:
        remedy = (
            "give --train TABLE, or settings of a model for genomes: --like bacteria-genome, or --config YAML"
        )
        absent["genomes"] = f"is for models for genomes, but 'model.kind' is {config.model.kind}", remedy
    if config is not None and not config.model.reads_sequences:
        reads = f"is for models that read sequences, and this one reads {kind_of(config).unit}"
        absent["sequences"] = reads, ""
    refuse_unused(request, absent)


# --- The summary at the end of a training


def summary(result: TrainResult) -> list[str]:
    """What was tried and trained, and its metrics on validation data."""
    from seqray.training.final_card import card_cautions

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
    names = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "ece")
    figures = " ".join(f"{name} {result.validation[name]:.3f}" for name in names if name in result.validation)
    several = len(card.classes) > 2  # then they are means over the classes, and no threshold divides them
    lines += [
        f"trained on {counts['train']} {kind} of "
        f"{len(card.classes)} classes; networks: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"validation on {facts['held_out']} {kind}: {'mean of classes: ' if several else ''}{figures} "
        f"({'' if several else f'threshold {card.threshold:.3f}, '}calibrated by "
        f"{facts['calibration']['method']}, temperature {card.temperature:.3f})",
    ]
    if floor := facts.get("floor"):
        reads = "k-mers, ends and helices" if card.model.reads_alignments else "k-mers and places"
        lines.append(_baseline_line(floor, reads))
    return [*lines, *(f"caution: {text}" for text in card_cautions(card))]


def _baseline_line(facts: Mapping[str, Any], reads: str) -> str:
    """What a linear model reaches on the same records."""

    def shown(name: str) -> str:
        return " ".join(f"{key} {facts[name][key]:.3f}" for key in ("mcc", "auroc") if key in facts[name])

    share = facts["share"]
    kept = {0: "the networks alone", 1: "the baseline alone"}.get(
        share, f"their sum, {share:.0%} of it the baseline"
    )
    return (
        f"baseline, a linear model of {reads}, on the same data: {shown('linear')}; networks alone: "
        f"{shown('networks')}; the model is {kept}: {shown('together')}"
    )


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
        f"with {sites} sites{merged}; networks: {card.members}; parameters of each: {facts['parameters']}; "
        f"best epochs: {epochs}",
        f"development regions, mean over species: {shown(result.validation)} "
        f"(threshold {card.threshold:.3f})",
        *(f"species left out, {name}: {shown(means)}" for name, means in left_out_figures(card).items()),
        *facts.get("input_notes", ()),
    ]
