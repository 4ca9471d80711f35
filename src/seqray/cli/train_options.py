"""Options of ``seqray train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.inputs import SEQUENCE_FILES
from seqray.cli.labeled import AlignmentLabelOptions, DataOptions
from seqray.cli.messages import Progress
from seqray.cli.model import THREADS, use_threads
from seqray.cli.options import (
    ClassName,
    Options,
    PositiveInt,
    Printable,
    Request,
    Threads,
    WholeNumber,
    option,
)
from seqray.core.text import Truncation

if TYPE_CHECKING:
    from seqray.training.members import RunOptions


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


class GenomeOptions(Options, heading="data: genomes with sites, for a locator ('model.kind: locator')"):
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
    )
    members: PositiveInt | None = option("--members N", "networks in the file, 1 to 5")
    teacher: str | None = option(
        "--teacher NAME|FILE",
        "model whose probabilities are learned beside the labels, to distill an ensemble into one member",
    )
    init: str | None = option(
        "--init NAME|FILE",
        "start from the weights of seqray pretrain, or of the members of a model of the same shape",
    )
    metrics: str | None = option("--metrics JSON", "figures measured elsewhere, for the card")
    fit: FitOptions
