"""Trainings of a locator, and what its card states."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.calibration.signature import KmerCounter, Signature
from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError
from seqray.core.text import headline_metric
from seqray.genome.genes import TRACKS, Gene
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.initial_weights import load_initial_weights
from seqray.modelfile.model import TrainedModel
from seqray.training.genomes.chunks import Chunk, divide_genomes, read_chunks
from seqray.training.genomes.evaluation import measure
from seqray.training.genomes.fit import (
    PIECE,
    LocatorModule,
    check_config,
    species_domain,
    teaching_networks,
    train_locator,
)
from seqray.training.genomes.sheet import DEV, GenomeRow
from seqray.training.members import RunOptions


def rows(folder, **changes):
    settings = {"genome": str(folder / "g.fa"), "sites": str(folder / "s.tsv"), "species": "Toy"}
    return [GenomeRow(**(settings | {"genes": "none"} | changes))]


def weights_of(result):
    return [network.state_dict() for network in result.networks]


def same(a, b):
    pairs = zip(weights_of(a), weights_of(b), strict=True)
    return all(torch.equal(x[name], y[name]) for x, y in pairs for name in x)


def test_a_planted_motif_is_found(motif_files, make_config, tmp_path):
    """One site in 150 letters, of both strands together: calls at random would find few."""
    config = make_config(
        model={"dropout": 0.0},
        genomes={"steps_per_epoch": 75, "chunk": 512},
        optimizer={"batch_size": 8, "ema": 0.98, "learning_rate": 5e-3},
        trainer={"max_epochs": 3},
    )
    out = tmp_path / "m.safetensors"
    result = train_locator(config, rows(motif_files), out, RunOptions(tmp_path / "w"))
    losses = [row["train_loss"] for row in result.history[0]]
    assert losses[-1] < losses[0] / 2
    card = load_model(out).card  # its self-test passes
    assert result.validation["auprc"] > 0.9
    # 9 kb are held out, with about 60 sites: 2 per kb are 18 calls, so a recall of .3 at best
    assert result.validation["precision_at_2_per_kb"] > 0.95
    assert result.validation["recall_at_2_per_kb"] > 0.25
    assert (card.window, card.site) == (53, 26)  # 4 letters x 4 tokens x 1 layer, and 10 of the stem
    assert card.locator.extent == (0, 0)
    expected = ExpectedPrecision(card.locator)
    [row] = expected.at(card.threshold, genes=False).rows
    assert (row.species, row.held_out) == ("Toy", "region")
    assert row.recall > 0.8
    assert row.precision > 0.8
    assert expected.of_calls(np.array([0.99]), genes=False)[0] > 0.9
    assert card.locator.threshold_without_genes == card.threshold  # no genes were known


def test_an_interrupted_run_ends_with_the_same_weights(motif_files, make_config, tmp_path, monkeypatch):
    config = make_config(members=2, model={"dropout": 0.2})
    data = rows(motif_files)
    whole = train_locator(config, data, None, RunOptions(tmp_path / "whole"))
    original, count = LocatorModule.training_step, [0]

    def step(self, batch, number):
        count[0] += 1
        if count[0] in (6, 13):
            raise KeyboardInterrupt
        return original(self, batch, number)

    monkeypatch.setattr(LocatorModule, "training_step", step)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_locator(config, data, None, RunOptions(tmp_path / "cut"))
    resumed = train_locator(config, data, None, RunOptions(tmp_path / "cut"))
    assert same(whole, resumed)
    assert whole.history == resumed.history
    assert not torch.equal(whole.networks[0].head.weight, whole.networks[1].head.weight)


def test_fine_tuning_begins_with_all_weights_of_a_locator(motif_files, make_config, tmp_path):
    still = {"learning_rate": 1e-12, "weight_decay": 0.0}
    config = make_config(members=2, optimizer=still, trainer={"max_epochs": 1})
    out = tmp_path / "m.safetensors"
    before = train_locator(config, rows(motif_files), out, RunOptions(tmp_path / "a"))
    assert before.card.locator.kingdom is None
    told = replace(config, genomes=replace(config.genomes, kingdom="archaea"))
    other = tmp_path / "archaea.safetensors"
    again = train_locator(told, rows(motif_files), other, RunOptions(tmp_path / "a"))  # the finished networks
    assert load_model(other).card.locator.kingdom == "archaea"
    assert same(before, again)
    start = load_initial_weights(out)
    after = train_locator(
        replace(config, seed=9, members=3), rows(motif_files), None, RunOptions(tmp_path / "b"), start=start
    )
    first, second = weights_of(before)
    for given, learned in zip((first, second, first), weights_of(after), strict=True):
        for name, value in given.items():
            assert torch.allclose(value, learned[name], atol=1e-6), name
    other = make_config(model={"locator": {"window": 5, "stem": 8}})
    with pytest.raises(ConfigError, match=r"'model\.locator'"):
        train_locator(other, rows(motif_files), None, RunOptions(tmp_path / "c"), start=start)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_network_that_is_its_teacher_learns_from_the_labels_alone(
    motif_files, make_config, make_genome, tmp_path, share
):
    """The gradient of the cross-entropy is p - t for each letter: 0 where t is what the network itself says.

    What is added to scores after training, and dropout, are no part of what is taught.
    """
    added = {"tracks": TRACKS, "window": 4, "stem": 8, "no_gene_ahead": [-1.5]}
    config = make_config(
        model={"dropout": 0.0, "locator": added}, optimizer={"teacher": share}, genomes={"auxiliary": 0}
    )
    letters = DNA.decode(np.random.default_rng(0).integers(0, 4, 4000).astype(np.uint8))
    sites = [(at, "+", 0, 1.0) for at in (900, 1900, 3500)]
    genome = make_genome({"c": letters}, {"c": sites}, {"c": [(3000, 4000, DEV)]}, {"c": ()})
    parts = divide_genomes([genome], ["promoter"], (), config)
    network = build_network(config.model)
    model, described = replace(config.model, dropout=0.5), {"name": "t", "positive": "promoter", "window": 53}
    teacher = TrainedModel(Card(model=model, classes=("promoter",), **described), (network,))
    module = LocatorModule(config, 1, parts.validation, 0, teaching_networks(teacher))
    module.network.load_state_dict(network.state_dict())
    batch = read_chunks([Chunk(parts.sources[0].strands[0], start) for start in (800, 1800)], (0, 1), config)
    module.training_step(batch, 0).backward()
    gradient = module.network.head.weight.grad.abs().max()
    assert gradient < 1e-6 if share == 1 else gradient > 1e-2


def test_a_fold_says_what_to_expect_of_a_new_species(motif_files, make_config, tmp_path):
    config = make_config(trainer={"max_epochs": 1})
    data, fold = rows(motif_files), tmp_path / "fold.safetensors"
    without = train_locator(config, data, None, RunOptions(tmp_path / "a"))
    rows_of = without.card.locator.expected
    left_out = [replace(row, species="Other", held_out="species") for row in rows_of]
    tables = {"Other, species left out, letters alone": {"auprc": {"value": 0.25}}}
    facts = replace(without.card.locator, expected=tuple(left_out))
    save_model(fold, without.networks, replace(without.card, locator=facts, metrics=tables))
    split = "Toy, region, letters alone"
    own = without.card.metrics[split]["auprc"]
    assert without.card.metrics["headline"] == {"metric": "auprc", **own, "split": split}
    found = train_locator(config, data, None, RunOptions(tmp_path / "a"), folds=[fold])
    assert found.card.locator.expected == (*rows_of, *left_out)
    assert (
        headline_metric(found.card.metrics)
        == "AUPRC of all sites 0.25, Other, species left out, letters alone"
    )
    at = ExpectedPrecision(found.card.locator).at(0.0, genes=False)
    assert at is not None
    assert at.left_out
    plain = tmp_path / "plain.safetensors"
    save_model(plain, without.networks, without.card)
    with pytest.raises(InputError, match=r"plain\.safetensors: has no figures of a species"):
        train_locator(config, data, None, RunOptions(tmp_path / "c"), folds=[plain])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"alphabet": "rna"}}, "'model.alphabet' is rna"),
        ({"stopping": {"monitor": "mcc"}}, "'stopping.monitor' is mcc"),
        ({"genomes": {"classes": ["a", "promoter"]}}, "'model.classes' is 1"),
        ({"genomes": {"classes": ["a"]}}, "is not one of 'genomes.classes'"),
        ({"model": {"max_length": 50}}, "'model.max_length' is below the 53"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, words, make_config):
    with pytest.raises(ConfigError, match=words):
        check_config(make_config(**changes))


SITES = {"known": [(500, "+", 0, 1.0), (900, "-", 0, 1.0)], "unknown": [(700, "+", 0, 1.0)]}
REGIONS = {"known": [(0, 1500, DEV)], "unknown": [(200, 1200, DEV)]}
GENES = {"known": [Gene(600, 840, "+", "a")]}


@pytest.fixture
def genome(make_genome, random_letters):
    """Two contigs, of which an annotation names the first."""

    def make(genes, **row):
        contigs = {"known": random_letters(1500, 0), "unknown": random_letters(1500, 1)}
        return make_genome(contigs, SITES, REGIONS, genes, **row)

    return make


def test_contigs_whose_genes_are_not_known_are_measured_without_genes_only(locator, genome):
    given = [(genome(GENES), "region")]
    [with_genes], [without] = (measure(locator, given, genes=genes) for genes in (True, False))
    assert (with_genes.kilobases, len(with_genes.site_block)) == (1.5, 2)
    assert (without.kilobases, len(without.site_block)) == (2.5, 3)
    assert (with_genes.genes, without.genes) == (True, False)
    assert (with_genes.species, with_genes.held_out) == ("Toy", "region")


def test_a_contig_that_is_known_to_have_no_gene_is_measured_with_genes(locator, genome):
    [found] = measure(locator, [(genome(GENES | {"unknown": []}), "region")], genes=True)
    assert (found.kilobases, len(found.site_block)) == (2.5, 3)


def test_a_species_without_known_genes_is_left_out_of_the_figures_with_genes(locator, genome):
    other = genome(None, species="Other")
    found = measure(locator, [(genome(GENES), "region"), (other, "species")], genes=True)
    assert [one.species for one in found] == ["Toy"]
    found = measure(locator, [(genome(GENES), "region"), (other, "species")], genes=False)
    assert [(one.species, one.held_out) for one in found] == [("Toy", "region"), ("Other", "species")]


def letters(gc, length, seed):
    shares = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), length, p=shares))


def test_a_new_part_of_a_genome_is_known_by_its_species(make_genome):
    genomes = [
        make_genome({"a": letters(0.3, 60_000, 0), "b": letters(0.3, 50_000, 1)}, species="Poor"),
        make_genome({"c": letters(0.6, 90_000, 2)}, species="Rich"),
        make_genome({"d": letters(0.3, PIECE - 1, 3)}, species="Contexts"),
    ]
    domain = species_domain(genomes)
    assert domain is not None
    assert domain.signature is not None
    assert tuple(entry.context for entry in domain.signature) == ("Poor", "Rich")
    for gc, species in ((0.3, "Poor"), (0.6, "Rich"), (0.45, None)):
        counter = KmerCounter(DNA)
        counter.add(letters(gc, 50_000, 9))
        assert Signature(domain.signature).nearest_context(counter.counts) == species


def test_contigs_around_sites_alone_say_nothing_of_a_genome(make_genome):
    assert species_domain([make_genome({"d": letters(0.3, 300, 3)})]) is None
