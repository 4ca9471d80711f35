"""Training of a locator: genomes and sites in, a model file with its card out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from seqray.calibration.domain import fit_domain
from seqray.calibration.signature import sketch_genome
from seqray.core.alphabet import DNA
from seqray.core.arrays import Codes, pick_evenly
from seqray.core.card import Card
from seqray.core.card_parts import Domain, Sketch
from seqray.core.errors import ConfigError, InputError, OnProgress
from seqray.core.run_config import RunConfig
from seqray.core.text import round_number
from seqray.metrics.classification import UNCLAIMED, average_precision, claim_sites
from seqray.modelfile.file import build_network, save_model
from seqray.modelfile.header import check_model_path, read_card
from seqray.modelfile.initial_weights import InitialWeights, check_initial_weights
from seqray.modelfile.model import TrainedModel
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import Network
from seqray.training.final_card import training_facts
from seqray.training.fit import check_teacher
from seqray.training.genomes.chunks import (
    MASKED,
    SHORT_CONTIG_DIVISOR,
    Chunk,
    GenomeData,
    GenomeParts,
    LocatorBatch,
    divide_genomes,
)
from seqray.training.genomes.evaluation import (
    TOLERANCE,
    Measured,
    learned_species,
    locator_facts,
    measure,
    profile_peaks,
    species_metrics,
    threshold_of_best_f1,
)
from seqray.training.genomes.sheet import REGION, SPECIES, GenomeRow, LabeledGenome, data_sha256, read_genomes
from seqray.training.members import RunOptions, TrainResult, fit_member, train_members
from seqray.training.module import NetworkModule
from seqray.training.trainer import WorkDir, is_main_process, on_gpu

# --- The Lightning module of a locator: weighted binary cross-entropy, and genes as an auxiliary task

SCALE = 100.0  # of the loss: sites are rare, and the mean over positions is small
_TRACKS = 0.05  # of the loss of predicted genes


def _site_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    each = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    return SCALE * (each * weights).sum() / (weights.sum() + 1)


class LocatorModule(NetworkModule):
    """A locator in training, whose calls of the class ``positive`` are measured on validation chunks."""

    network: LocatorTransformer

    def __init__(
        self,
        config: RunConfig,
        seed: int,
        validation: list[Chunk],
        positive: int,
        teachers: Sequence[Network] = (),
    ) -> None:
        super().__init__(config, seed, build_network(config.model))
        self._validation, self._positive = validation, positive
        self._teachers = tuple(teachers)  # no part of the module: neither trained nor in its checkpoints

    def training_step(self, batch: LocatorBatch, number: int) -> Tensor:
        self.seed_step(number)
        shown = batch.tracks * (~batch.hidden)[:, None, None]
        out = self.network(batch.letters, shown)
        logits = out.logits.float()
        loss = _site_loss(logits, batch.labels, batch.weights)
        if self._teachers:
            share, told = self.config.optimizer.teacher, self._teach(batch.letters, shown)
            loss = (1 - share) * loss + share * _site_loss(logits, told, (batch.weights > 0).float())
        loss = loss + self._gene_loss(out.tracks.float(), batch)
        self.add_train_loss(loss, len(batch.letters))
        return loss

    @torch.no_grad()
    def _teach(self, letters: Tensor, shown: Tensor) -> Tensor:
        """Mean probability of the teachers, which read what the network reads: (B, C, K)."""
        networks = [network.to(self.device) for network in self._teachers]
        return torch.stack([network(letters, shown).logits.float() for network in networks]).mean(0).sigmoid()

    def _gene_loss(self, logits: Tensor, batch: LocatorBatch) -> Tensor | float:
        """Of the genes that were hidden, all tracks but the first, which says whether they are known."""
        asked = batch.known & batch.hidden
        if not self.config.genomes.auxiliary or logits.shape[2] < 2 or not bool(asked.any()):
            return 0.0
        truth = batch.tracks[asked, 1:].transpose(1, 2).to(logits.dtype) / 255
        each = F.binary_cross_entropy_with_logits(logits[asked, :, 1:], truth)
        return SCALE * _TRACKS * self.config.genomes.auxiliary * each * asked.float().mean()

    def on_validation_epoch_start(self) -> None:
        shape = (len(self._validation), self.config.genomes.chunk)
        self._scores = torch.full(shape, -torch.inf, device=self.device)
        self._sums = torch.zeros(shape[0], 2, device=self.device)  # loss and weight of each chunk

    def validation_step(self, batch: LocatorBatch, _: int) -> None:
        out = self.evaluated_network(batch.letters, batch.tracks)
        logits = out.logits.float()
        self._scores[batch.rows] = self.network.scores(out)[..., self._positive]
        each = F.binary_cross_entropy_with_logits(logits, batch.labels, reduction="none") * batch.weights
        self._sums[batch.rows] = torch.stack((each.sum((1, 2)), batch.weights.sum((1, 2))), dim=1)

    def on_validation_epoch_end(self) -> None:
        reduce = self.trainer.strategy.reduce  # each process holds the rows that it computed
        scores, sums = (reduce(values, reduce_op="max") for values in (self._scores, self._sums))
        assert isinstance(scores, Tensor)
        assert isinstance(sums, Tensor)
        loss, weight = sums.double().sum(dim=0).tolist()
        self.check_finite(loss, "training")
        values = torch.sigmoid(scores.double()).cpu().numpy()
        figure = validation_auprc(values, self._validation, self._positive)
        self.log_figures({"loss": SCALE * loss / (weight + 1), "auprc": figure})


def validation_auprc(scores: np.ndarray, chunks: list[Chunk], positive: int) -> float:
    """Average precision of the calls of all chunks together, by scores (N, C), but for masked places."""
    ranks, claimed, total = [], [], 0
    for row, (strand, start) in zip(scores, chunks, strict=True):
        row = row[: len(strand) - start]
        sites = strand.free_sites(positive, start, start + len(row))
        calls = profile_peaks(row)
        calls = calls[strand.level[start + calls] != MASKED]
        ranks.append(row[calls])
        claimed.append(claim_sites(calls + start, row[calls], sites, TOLERANCE) != UNCLAIMED)
        total += len(sites)
    score, right = np.concatenate(ranks), np.concatenate(claimed)
    right = right[np.argsort(-score, kind="stable")]
    return average_precision(right, right, total)


# --- A training run of a locator


def train_locator(
    config: RunConfig,
    rows: Sequence[GenomeRow],
    out: Path | None,
    run: RunOptions,
    *,
    hold_out: Sequence[str] = (),
    site_class: str | None = None,
    folds: Sequence[str | Path] = (),
    metrics: Mapping[str, Any] | None = None,
    teacher: TrainedModel | None = None,
    start: InitialWeights | None = None,
) -> TrainResult:
    """Train the members on genomes, measure them on development regions, and save one model file."""
    classes = check_config(config)
    if teacher is not None:
        check_teacher(teacher, config, classes)
    threads = run.use_threads()
    if out is not None:
        check_model_path(out)
    if start is not None:
        check_initial_weights(start, config.model)
    fold_cards = [read_card(path) for path in folds]
    for path, fold in zip(folds, fold_cards, strict=True):
        if not any(table.held_out == SPECIES for table in fold.locator.expected):
            what = "has no figures of a species that was left out"
            raise InputError(what, where=str(path), remedy="train it with --hold-out")
    genomes = read_genomes(
        rows,
        classes,
        rename=config.genomes.rename,
        site_class=site_class,
        whole=-(-config.genomes.chunk // SHORT_CONTIG_DIVISOR),
        threads=threads,
    )
    parts = divide_genomes(genomes, classes, hold_out, config)
    sha256 = data_sha256(genomes, hold_out)
    folder = run.folder(config, classes, sha256, teacher=teacher, start=start)
    shared, letters = {"parts": parts, "teacher": teacher, "start": start}, parts.counts["letters"]
    members = train_members(train_member, config, shared, folder, run, letters=letters)
    networks, results = zip(*members, strict=True)
    card, figures = locator_card(config, classes, networks, parts, fold_cards, metrics or {})
    facts = training_facts(config, networks, results, sha256, figures) | {
        "counts": {"train": parts.counts},
        "repeated_sites": sum(genome.repeated for genome in parts.learned()),
        "species": sorted({genome.row.species for genome in parts.learned()}),
    }
    if notes := [note for genome in parts.learned() for note in genome.notes]:
        facts["input_notes"] = notes
    card = replace(card, training=facts)
    if out is not None and is_main_process(config):
        card = save_model(out, networks, card)
    return TrainResult(card, networks, figures, tuple(result["history"] for result in results))


def check_config(config: RunConfig) -> tuple[str, ...]:
    """Refuse settings that don't fit a locator, and return the names of its classes."""
    classes = config.genomes.classes or (config.data.positive,)
    if not config.model.is_locator:
        raise ConfigError(f"'model.kind' is {config.model.kind}", remedy="write 'kind: locator'")
    if config.model.alphabet != "dna":
        raise ConfigError(f"'model.alphabet' is {config.model.alphabet}", remedy="genomes are of dna")
    if len(classes) != config.model.classes:
        names = ", ".join(classes)
        raise ConfigError(f"'model.classes' is {config.model.classes}, but the classes are {names}")
    if config.data.positive not in classes:
        raise ConfigError(f"'data.positive' ({config.data.positive}) is not one of 'genomes.classes'")
    if config.stopping.monitor not in ("auprc", "loss"):
        raise ConfigError(
            f"'stopping.monitor' is {config.stopping.monitor}",
            remedy="a model for genomes has auprc and loss",
        )
    window = 2 * config.model.radius + 1
    if window > config.model.max_length:
        raise ConfigError(f"'model.max_length' is below the {window} bases that a score depends on")
    return tuple(classes)


def teaching_networks(teacher: TrainedModel) -> tuple[Network, ...]:
    """Its networks as they were trained: without dropout, and without what is added to scores afterwards."""
    networks = tuple(build_network(replace(teacher.card.model, dropout=0.0)) for _ in teacher.networks)
    for network, trained in zip(networks, teacher.networks, strict=True):
        network.load_state_dict(trained.state_dict())
    return networks  # in the mode of training, in which nothing is added


def train_member(
    config: RunConfig,
    number: int,
    parts: GenomeParts,
    folder: WorkDir,
    *,
    progress: OnProgress | None = None,
    teacher: TrainedModel | None = None,
    start: InitialWeights | None = None,
) -> tuple[Network, dict[str, Any]]:
    """Train one member, or load it from ``folder`` if it is finished."""

    def build(seed: int) -> tuple[LocatorModule, GenomeData]:
        positive = check_config(config).index(config.data.positive)
        teachers = teaching_networks(teacher) if teacher else ()
        module = LocatorModule(config, seed, parts.validation, positive, teachers)
        if start is not None:
            module.apply_initial_weights(start.for_member(number))
        return module, GenomeData(parts, config, seed)

    return fit_member(config, number, folder, build, progress=progress)


# --- The card: what the members do together on the development regions

PIECE, PIECES = 1000, 300
"""Letters of a piece, and most pieces of a species: they give shares of words to within a few percent."""
_SEEN = {REGION: "region", SPECIES: "species left out"}


def locator_card(
    config: RunConfig,
    classes: Sequence[str],
    networks: Sequence[Network],
    parts: GenomeParts,
    folds: Sequence[Card],
    metrics: Mapping[str, Any],
) -> tuple[Card, dict[str, float]]:
    """Measure the members on the development regions, which also chose the epochs, and describe them."""
    radius = config.model.radius
    card = Card(
        name=config.name,
        summary=config.summary,
        classes=tuple(classes),
        positive=config.data.positive,
        window=2 * radius + 1,
        site=radius,
        model=config.model,
        members=len(networks),
        info=dict(config.card),
    )
    model = TrainedModel(card, tuple(networks)).to("cuda" if on_gpu(config) else "cpu")
    measured = measure(model, parts.measured, genes=False)
    if not measured:
        raise ConfigError("no call lies in a development region with mapped sites", remedy="train longer")
    if config.model.tracks:
        measured += measure(model, parts.measured, genes=True)
    model.to("cpu")
    best = learned_species({one.species: one for one in measured}.values())  # with genes, if measured so
    tables = {_table_name(one): species_metrics(one) for one in measured}
    figures = _means([tables[_table_name(one)] for one in best])
    kingdom = config.genomes.kingdom
    locator = replace(locator_facts(measured), kingdom=None if kingdom == "bacteria" else kingdom)
    for fold in folds:
        left_out = tuple(table for table in fold.locator.expected if table.held_out == SPECIES)
        locator = replace(locator, expected=locator.expected + left_out)
        seen = f", {_SEEN[SPECIES]}, "
        tables |= {name: table for name, table in fold.metrics.items() if seen in name}
    card = replace(
        card,
        threshold=threshold_of_best_f1(best),
        locator=locator,
        domain=species_domain(parts.learned()),
        metrics={"headline": _headline(tables), **tables, **metrics},
    )
    return card, figures


def species_domain(genomes: Sequence[LabeledGenome]) -> Domain | None:
    """Words of each species, to tell of which a genome is; not of those with short contigs only."""
    pieces: list[Codes] = []
    species: list[str] = []
    sketches: dict[str, Sketch] = {}
    for name in sorted({genome.row.species for genome in genomes}):
        contigs = [contig for genome in genomes if genome.row.species == name for contig in genome.contigs]
        of_species = [
            contig.codes[start : start + PIECE]
            for contig in contigs
            for start in range(0, len(contig.codes) - PIECE + 1, PIECE)
        ]
        chosen = pick_evenly(of_species, PIECES)
        pieces += chosen
        species += [name] * len(chosen)
        if chosen:
            sketches[name] = sketch_genome(DNA.decode(contig.codes) for contig in contigs)
    return replace(fit_domain(pieces, DNA, contexts=species), genomes=sketches) if pieces else None


def _headline(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Mean AUPRC over species, or that of the only one: those left out first, with genes before without."""
    for held_out, what in ((SPECIES, "new species"), (REGION, "species")):
        for genes in (True, False):
            ending = _ending(held_out, genes)
            figures = {name: table["auprc"] for name, table in tables.items() if name.endswith(ending)}
            if len(figures) == 1:
                ((name, figure),) = figures.items()
                return {"metric": "auprc", **figure, "split": name}
            if figures:
                mean = round_number(sum(figure["value"] for figure in figures.values()) / len(figures))
                return {"metric": "auprc", "value": mean, "split": f"mean of {len(figures)} {what}"}
    return {}


def _table_name(measured: Measured) -> str:
    """Name of a table of the card."""
    return measured.species + _ending(measured.held_out, measured.genes)


def _ending(held_out: str, genes: bool) -> str:
    return f", {_SEEN[held_out]}, {'with genes' if genes else 'letters alone'}"


def left_out_figures(card: Card) -> dict[str, dict[str, float]]:
    """Means over the species that were left out, with genes and without; empty if there are none."""
    means = {}
    for genes in (True, False):
        ending = _ending(SPECIES, genes)
        chosen = [table for name, table in card.metrics.items() if name.endswith(ending)]
        if chosen:
            how = ending.rpartition(", ")[2]
            means[f"{how}, mean over {len(chosen)} species"] = _means(chosen)
    return means


def _means(tables: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, float]:
    return {name: sum(table[name]["value"] for table in tables) / len(tables) for name in tables[0]}
