"""``seqray calibrate`` from a trained toy model and tables to a model file."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from seqray.cli.main import main
from seqray.core.model_config import ModelConfig
from seqray.inference.sequences import score_codes
from seqray.modelfile.file import build_network, load_model, save_model
from seqray.modelfile.header import read_card
from tables import fasta, table, tsv, write

YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 64}
data: {window: 40}
optimizer: {batch_size: 32, learning_rate: 3e-3}
trainer: {max_epochs: 4, accelerator: cpu}
card: {scan_threshold: 0.9}
"""
CLASSES = ("background", "promoter")
RICH = (0.15, 0.35, 0.35, 0.15)


def examples(count: int, seed: int, shares: tuple[float, ...] | None = None) -> list[tuple[str, str]]:
    """Half of them carry TATAAT, now and then with another letter; ``shares`` of A, C, G, T elsewhere."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        letters = rng.choices("ACGT", weights=shares, k=40)
        if i % 2:
            letters[17:23] = "TATAAT"
            letters[rng.randrange(17, 23)] = rng.choice("ACGT")
        rows.append(("".join(letters), CLASSES[i % 2]))
    return rows


TRAIN, FRESH = examples(800, 0), examples(600, 1)


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    """A toy model."""
    folder = tmp_path_factory.mktemp("calibrate")
    write(folder / "c.yaml", YAML)
    write(folder / "train.tsv", tsv("sequence label", TRAIN))
    words = f"train --config {folder}/c.yaml --train {folder}/train.tsv --threads 1 --quiet"
    threads = torch.get_num_threads()
    assert main([*words.split(), "--out", str(folder / "m.safetensors")]) == 0
    torch.set_num_threads(threads)
    return folder / "m.safetensors"


@pytest.fixture
def calibrate(run, toy, tmp_path):
    """Run the verb on the toy model where train.tsv and fresh.tsv are; gives what was told, and the card."""
    write(tmp_path / "train.tsv", tsv("sequence label", TRAIN))
    write(tmp_path / "fresh.tsv", tsv("sequence label", FRESH))

    def call(*words, model=toy, **more):
        ended = run("calibrate", model, "--out new.safetensors --threads 1", *words, **more)
        assert ended.out == ""
        return ended.err, read_card(tmp_path / "new.safetensors")

    return call


@pytest.fixture
def refused(run, calibrate, toy):
    """Run the verb where it must be refused."""
    return run.to("calibrate", toy, "--out x.safetensors --threads 1").refused


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_a_model_is_calibrated_and_its_weights_stay(calibrate, toy, tmp_path, method):
    err, card = calibrate("--test fresh.tsv --method", method)
    old = load_model(toy)
    before, after = load_file(toy), load_file(tmp_path / "new.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert load_model(tmp_path / "new.safetensors").card == card  # which runs the self-test
    assert card.prevalence == 0.5
    assert card.format == (1 if method == "temperature" else 2)
    assert bool(card.isotonic) == (method != "temperature")
    facts = card.training["calibrated_on"]
    assert (facts["method"], facts["examples"]) == (method, 600)
    assert facts["classes"] == {"background": 300, "promoter": 300}
    assert facts["model_sha256"] == old.sha256
    assert facts["log_loss_after"] <= facts["log_loss_before"] + 0.01
    assert facts["in_training"] == {"known": 0, "checked": 600}
    assert card.ece == pytest.approx(facts["ece_after"], rel=1e-5)
    assert card.training["data_sha256"] == old.card.training["data_sha256"]
    assert replace(card.domain, calibration=None, calibrated=None) == old.card.domain
    assert card.domain.calibration is not None
    assert card.domain.calibrated.limit == 1 << 32  # hashes of all 600
    assert f"600 sequences (300 background, 300 promoter) by {method}: ece " in err.splitlines()[0]
    assert "trained on" not in err


def test_the_default_finds_the_shift_of_a_model_that_needs_one(calibrate, tmp_path):
    """Six times as many positives for each negative move the log-odds by ln 6."""
    negatives, positives = ([row for row in FRESH if row[1] == label] for label in CLASSES)
    write(tmp_path / "few.tsv", tsv("sequence label", [*negatives[::6], *positives]))
    err, card = calibrate("--test few.tsv")
    assert "by platt: ece" in err
    assert card.isotonic


def test_a_threshold_for_scans_calls_the_same_windows_as_before(calibrate, toy, tmp_path):
    calibrate("--test fresh.tsv --method isotonic")
    models = [load_model(path) for path in (toy, tmp_path / "new.safetensors")]
    codes = np.random.default_rng(0).integers(0, 4, (400, 40)).astype(np.uint8)
    codes[::2, 17:23] = [3, 0, 3, 0, 0, 3]
    was, now = (score_codes(model, codes)[:, model.card.positive_index] for model in models)
    moved = models[1].card.info["scan_threshold"]
    assert moved != models[0].card.info["scan_threshold"] == 0.9
    clear = np.abs(was - 0.9) > 1e-4
    np.testing.assert_array_equal((was >= 0.9)[clear], (now >= moved)[clear])


def test_the_sets_of_the_new_model_cover_fresh_sequences(calibrate, run, tmp_path):
    calibrate("--validation fresh.tsv")
    more = examples(800, 2)
    write(tmp_path / "more.fa", fasta({f"s{i}": sequence for i, (sequence, _) in enumerate(more)}))
    run("predict more.fa --model new.safetensors --coverage 0.9 -q -o p.tsv")
    rows = table((tmp_path / "p.tsv").read_text())
    for label in CLASSES:
        hits = [
            label in row["set"].split("|") for row, (_, own) in zip(rows, more, strict=True) if own == label
        ]
        # 300 held-out examples and 400 fresh ones: beta-binomial of mean 0.9, standard deviation 0.023.
        assert len(hits) == 400
        assert 0.9 - 4 * 0.023 < np.mean(hits) < 0.9 + 4 * 0.023


def test_coverage_is_promised_for_the_species_that_the_model_was_calibrated_on_and_for_no_other(
    calibrate, run, toy, tmp_path
):
    def cautions(model, rows):
        write(tmp_path / "p.fa", fasta({f"s{i}": sequence for i, (sequence, _) in enumerate(rows)}))
        return run("predict p.fa --coverage 0.9 -o p.tsv --threads 1 --model", model).err

    foreign = cautions(toy, examples(400, 8, RICH))
    assert "unlike what the model was trained on" in foreign
    assert "can't be promised" in foreign
    write(tmp_path / "rich.tsv", tsv("sequence label", examples(600, 7, RICH)))
    calibrate("--test rich.tsv")
    assert "caution" not in cautions("new.safetensors", examples(400, 8, RICH))
    assert "unlike the data that the model was calibrated on" in cautions("new.safetensors", examples(400, 9))
    # 200 x 37 words of four in each class are too few to know a species by.
    write(tmp_path / "rich.tsv", tsv("sequence label", examples(400, 7, RICH)))
    assert "too little sequence" in calibrate("--test rich.tsv")[0]
    assert "unlike what the model was trained on" in cautions("new.safetensors", examples(400, 8, RICH))


def test_the_same_run_gives_the_same_bytes_and_one_fasta_a_class_the_same_card(calibrate, tmp_path):
    _, card = calibrate("--test fresh.tsv")
    first = (tmp_path / "new.safetensors").read_bytes()
    calibrate("--test fresh.tsv")
    assert (tmp_path / "new.safetensors").read_bytes() == first
    for label in CLASSES:
        records = {f"x{i}": sequence for i, (sequence, own) in enumerate(FRESH) if own == label}
        write(tmp_path / f"{label}.fa", fasta(records))
    for words in (
        "--class=background=background.fa --class=promoter=promoter.fa",
        "--test fresh.tsv --batch-size 7 --device cpu --quiet",
    ):
        err, other = calibrate(words)
        assert other.temperature == pytest.approx(card.temperature, rel=1e-4)
    assert err == ""


# --- training data --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--train", "--validation", "--test"])
def test_the_training_data_are_refused_by_whatever_name_and_in_whatever_order(refused, tmp_path, option):
    write(tmp_path / "train.tsv", tsv("sequence label", TRAIN[::-1]))
    refused(option, "train.tsv", names=("'toy'", "trained on"))


def test_examples_of_the_training_part_are_left_out(calibrate, tmp_path):
    rows = [(*row, "train" if i < 100 else "test") for i, row in enumerate(examples(300, 5))]
    write(tmp_path / "marked.tsv", tsv("sequence label split", rows))
    for words, count in (("--train marked.tsv", 200), ("--train train.tsv --test fresh.tsv", 600)):
        _, card = calibrate(words)
        assert card.training["calibrated_on"]["examples"] == count


def test_a_held_out_part_that_the_model_was_trained_on_is_a_caution(calibrate, refused, tmp_path):
    """A table that names its parts may be given for its held-out one, not as if all of it were held out."""
    rows = [(*row, "test" if i < 100 else "train") for i, row in enumerate(TRAIN)]
    write(tmp_path / "parts.tsv", tsv("sequence label split", rows))
    assert "training used all 100 of these records" in calibrate("--train parts.tsv")[0]
    refused("--test parts.tsv", names=("'train'", "--test"))


# --- labels ---------------------------------------------------------------------------------------


def test_isotonic_is_refused_for_more_than_two_classes(run, calibrate, tiny_model, tmp_path):
    config = ModelConfig(d_model=8, heads=2, layers=1, classes=3, max_length=64)
    changes = {"classes": ("a", "b", "promoter"), "window": 40, "site": None, "domain": {}, "name": "three"}
    card = replace(tiny_model.card, model=config, **changes)
    save_model(tmp_path / "three.safetensors", [build_network(config)], card)
    rows = [(row[0], "ab"[i % 4 // 2] if i % 2 else "promoter") for i, row in enumerate(examples(200, 0))]
    write(tmp_path / "three.tsv", tsv("sequence label", rows))
    words = "--test three.tsv --method"
    line = run.refused("calibrate three.safetensors --out x.safetensors", words, "isotonic", names="'three'")
    assert "temperature" in line
    _, card = calibrate(words, "auto", model="three.safetensors")
    assert list(card.conformal) == ["a", "b", "promoter"]


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_swapped_labels_are_an_error_whatever_the_method(refused, tmp_path, method):
    swapped = [(sequence, CLASSES[label == "background"]) for sequence, label in FRESH]
    write(tmp_path / "swapped.tsv", tsv("sequence label", swapped))
    refused("--test swapped.tsv --method", method, names=("'promoter'", "AUROC 0.", "swapped"))


def test_examples_of_unknown_labels_are_left_out_on_request(calibrate, tmp_path):
    write(tmp_path / "odd.tsv", tsv("sequence label", [*FRESH, ("ACGTTGCA" * 5, "terminator")]))
    err, card = calibrate("--test odd.tsv --unknown-labels drop")
    assert "1 'terminator'" in err
    assert card.training["calibrated_on"]["examples"] == 600
