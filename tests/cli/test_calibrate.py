"""``seqray calibrate`` from a trained toy model and tables to a model file, and its errors."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.special import log_softmax

from seqray.calibration.fit import calibrated_card
from seqray.calibration.signature import TrainingSketch
from seqray.cli.calibrate import summary
from seqray.cli.main import main
from seqray.modelfile.file import load_model_file, save_model
from seqray.modelfile.header import read_card

YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 64}
data: {window: 40}
optimizer: {batch_size: 32, learning_rate: 3e-3}
trainer: {max_epochs: 4, accelerator: cpu}
card: {scan_threshold: 0.9}
"""


def table(count: int, seed: int, length: int = 40, shares: tuple[float, ...] | None = None) -> str:
    """Half of them carry TATAAT, now and then with another letter; ``shares`` of A, C, G, T elsewhere."""
    rng = random.Random(seed)
    rows = ["sequence\tlabel"]
    for i in range(count):
        letters = rng.choices("ACGT", weights=shares, k=length)
        if i % 2:
            letters[17:23] = "TATAAT"
            letters[rng.randrange(17, 23)] = rng.choice("ACGT")
        rows.append(f"{''.join(letters)}\t{'promoter' if i % 2 else 'background'}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A toy model, its training table and a table of fresh examples."""
    path = tmp_path_factory.mktemp("calibrate")
    (path / "c.yaml").write_text(YAML)
    (path / "train.tsv").write_text(table(800, 0))
    (path / "fresh.tsv").write_text(table(600, 1))
    words = [
        "train",
        "--config",
        path / "c.yaml",
        "--train",
        path / "train.tsv",
        "--out",
        path / "m.safetensors",
    ]
    threads = torch.get_num_threads()
    assert main([*map(str, words), "--threads", "1", "--quiet"]) == 0
    torch.set_num_threads(threads)
    return path


@pytest.fixture
def calibrate(folder, tmp_path, capfd):
    """Run the verb on the toy model; gives exit status, the last line told, and the new file."""
    threads = torch.get_num_threads()

    def run(*words, model=None, out=None):
        out = tmp_path / "new.safetensors" if out is None else out
        model = folder / "m.safetensors" if model is None else model
        status = main(["calibrate", str(model), "--out", str(out), "--threads", "1", *map(str, words)])
        printed = capfd.readouterr()
        assert printed.out == ""
        return status, printed.err, Path(out)

    yield run
    torch.set_num_threads(threads)


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_a_model_is_calibrated_and_its_weights_stay(calibrate, folder, method):
    status, err, out = calibrate("--test", folder / "fresh.tsv", "--method", method)
    assert status == 0
    old, new = load_model_file(folder / "m.safetensors"), load_model_file(out)  # which runs the self-test
    before, after = load_file(folder / "m.safetensors"), load_file(out)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    card = new.card
    assert card.prevalence == 0.5
    assert card.format == (1 if method == "temperature" else 2)
    assert bool(card.isotonic) == (method != "temperature")
    facts = card.training["calibrated_on"]
    assert (facts["method"], facts["examples"]) == (method, 600)
    assert facts["classes"] == {"background": 300, "promoter": 300}
    assert facts["model_sha256"] == old.sha256
    assert len(facts["sha256"]) == 64
    assert facts["log_loss_after"] <= facts["log_loss_before"] + 0.01
    assert card.ece == pytest.approx(facts["ece_after"], rel=1e-5)
    assert card.training["data_sha256"] == old.card.training["data_sha256"]
    assert old.card.domain.items() <= card.domain.items()
    assert card.domain.keys() - old.card.domain.keys() == {"calibration", "calibrated"}
    assert TrainingSketch.of_calibration(card).limit == 1 << 32  # hashes of all 600
    *lines, resources = err.splitlines()
    assert resources.startswith("seqray: resources: ")
    assert lines[0].startswith(
        f"calibrated on 600 sequences (300 background, 300 promoter) by {method}: ece "
    )
    assert lines[-1] == f"wrote {out}"
    assert facts["in_training"] == {"known": 0, "checked": 600}
    assert not any("trained on" in line or "can't check" in line for line in lines)


def test_the_default_finds_the_shift_of_a_model_that_needs_one(calibrate, folder):
    """Six times as many positives for each negative move the log-odds by ln 6."""
    few = folder / "few.tsv"
    header, *rows = (folder / "fresh.tsv").read_text().splitlines()
    negatives = [row for row in rows if "background" in row]
    positives = [row for row in rows if row not in negatives]
    few.write_text("\n".join([header, *negatives[::6], *positives]) + "\n")
    status, err, out = calibrate("--test", few)
    assert (status, "by platt: ece" in err) == (0, True)
    assert load_model_file(out).card.isotonic


def test_a_threshold_for_scans_calls_the_same_windows_as_before(calibrate, folder):
    from seqray.inference.sequences import score_codes

    _, _, out = calibrate("--test", folder / "fresh.tsv", "--method", "isotonic")
    old, new = load_model_file(folder / "m.safetensors"), load_model_file(out)
    codes = np.random.default_rng(0).integers(0, 4, (400, 40)).astype(np.uint8)
    codes[::2, 17:23] = [3, 0, 3, 0, 0, 3]
    was, now = (score_codes(model, codes)[:, model.card.positive_index] for model in (old, new))
    moved = new.card.info["scan_threshold"]
    assert moved != old.card.info["scan_threshold"] == 0.9
    clear = np.abs(was - 0.9) > 1e-4
    np.testing.assert_array_equal((was >= 0.9)[clear], (now >= moved)[clear])


def test_the_sets_of_the_new_model_cover_fresh_sequences(calibrate, folder, tmp_path):
    _, _, out = calibrate("--validation", folder / "fresh.tsv")
    lines = table(800, 2).splitlines()[1:]
    (tmp_path / "more.fa").write_text("".join(f">s{i}\n{line.split()[0]}\n" for i, line in enumerate(lines)))
    words = [
        "predict",
        tmp_path / "more.fa",
        "--model",
        out,
        "--coverage",
        "0.9",
        "-q",
        "-o",
        tmp_path / "p.tsv",
    ]
    assert main(list(map(str, words))) == 0
    rows = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines() if line[0] != "#"][1:]
    for label in ("background", "promoter"):
        hits = [
            label in row[-1].split("|") for row, line in zip(rows, lines, strict=True) if line.endswith(label)
        ]
        # 300 held-out examples and 400 fresh ones: beta-binomial of mean 0.9, standard deviation 0.023.
        assert len(hits) == 400
        assert 0.9 - 4 * 0.023 < np.mean(hits) < 0.9 + 4 * 0.023


@pytest.fixture
def cautions_of(tmp_path, capfd):
    """What ``predict --coverage 0.9`` says of the sequences of a table."""

    def run(model: Path, rows: str) -> str:
        lines = [line.split()[0] for line in rows.splitlines()[1:]]
        (tmp_path / "p.fa").write_text("".join(f">s{i}\n{line}\n" for i, line in enumerate(lines)))
        words = [
            "predict",
            tmp_path / "p.fa",
            "--model",
            model,
            "--coverage",
            "0.9",
            "-o",
            tmp_path / "p.tsv",
        ]
        assert main([*map(str, words), "--threads", "1"]) == 0
        return capfd.readouterr().err

    return run


def test_coverage_is_promised_for_the_species_that_the_model_was_calibrated_on_and_for_no_other(
    calibrate, cautions_of, folder, tmp_path
):
    rich = (0.15, 0.35, 0.35, 0.15)
    fresh = table(400, 8, shares=rich)
    foreign = cautions_of(folder / "m.safetensors", fresh)
    assert "this file is unlike what the model was trained on" in foreign
    assert "--coverage 0.9 can't be promised" in foreign
    (tmp_path / "rich.tsv").write_text(table(600, 7, shares=rich))
    _, _, out = calibrate("--test", tmp_path / "rich.tsv")
    assert "caution" not in cautions_of(out, fresh)
    assert "unlike the data that the model was calibrated on" in cautions_of(out, table(400, 9))


def test_too_few_sequences_to_know_a_species_by_leave_the_caution_and_say_so(
    calibrate, cautions_of, folder, tmp_path
):
    rich = (0.15, 0.35, 0.35, 0.15)
    (tmp_path / "rich.tsv").write_text(table(400, 7, shares=rich))  # 200 x 37 words of four in each class
    _, err, out = calibrate("--test", tmp_path / "rich.tsv")
    assert "there are too few letters to describe where these sequences come from" in err
    assert "unlike what the model was trained on" in cautions_of(out, table(400, 8, shares=rich))


def test_the_same_run_gives_the_same_bytes_from_a_pipe_packed_or_one_fasta_a_class(
    calibrate, folder, tmp_path
):
    first = calibrate("--test", folder / "fresh.tsv")[2].read_bytes()
    assert calibrate("--test", folder / "fresh.tsv")[2].read_bytes() == first
    (tmp_path / "f.tsv.gz").write_bytes(gzip.compress((folder / "fresh.tsv").read_bytes()))
    assert calibrate("--test", tmp_path / "f.tsv.gz")[2].read_bytes() == first
    rows = [line.split("\t") for line in table(600, 1).splitlines()[1:]]
    words = []
    for label in ("background", "promoter"):
        text = "".join(f">x{i}\n{s}\n" for i, (s, other) in enumerate(rows) if other == label)
        (tmp_path / f"{label}.fa").write_text(text)
        words.append(f"--class={label}={tmp_path / label}.fa")
    status, _, out = calibrate(*words)
    assert status == 0
    card, of_table = read_card(out), read_card(tmp_path / "new.safetensors")
    assert card.temperature == pytest.approx(of_table.temperature)


def test_the_training_part_of_a_table_is_left_out(calibrate, folder, tmp_path):
    head, *rows = table(300, 5).splitlines()
    marked = [f"{row}\t{'train' if i < 100 else 'test'}" for i, row in enumerate(rows)]
    (tmp_path / "marked.tsv").write_text("\n".join([f"{head}\tsplit", *marked]) + "\n")
    status, _, out = calibrate("--train", tmp_path / "marked.tsv")
    assert status == 0
    assert read_card(out).training["calibrated_on"]["examples"] == 200


@pytest.mark.parametrize("option", ["--train", "--validation", "--test"])
def test_the_training_data_are_refused_by_whatever_name(calibrate, folder, option):
    status, err, out = calibrate(option, folder / "train.tsv")
    assert status == 2
    assert "these are the data that model 'toy' was trained on" in err
    assert not out.exists()


def test_data_that_do_not_fit_are_refused_in_one_line(calibrate, folder, tmp_path):
    cases = {
        "few.tsv": (
            table(30, 3),
            "few.tsv: 15 held-out examples of class 'background'; calibration needs 20 or more of each",
        ),
        "long.tsv": (
            table(100, 3, length=41),
            "record 'row1': 41 letters, and the window of model 'toy' holds 40",
        ),
        "label.tsv": (table(100, 3).replace("background", "other"), "record 'row1': has the label 'other'"),
        "train.tsv": (
            table(4, 3)
            .replace("label", "label\tsplit")
            .replace("ound\n", "ound\ttrain\n")
            .replace("oter\n", "oter\ttrain\n"),
            "all examples are of split 'train'",
        ),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_text(content)
        status, err, out = calibrate("--train", tmp_path / name)
        assert (status, len(err.splitlines())) == (2, 1), err
        assert words in err
        assert not out.exists()


def test_outputs_that_cannot_be_are_refused(calibrate, folder, tmp_path):
    data = ("--test", folder / "fresh.tsv")
    assert "ends in .safetensors" in calibrate(*data, out=tmp_path / "new.bin")[1]
    assert "would be overwritten" in calibrate(*data, out=folder / "m.safetensors")[1]
    assert "its folder does not exist" in calibrate(*data, out=tmp_path / "no" / "m.safetensors")[1]
    assert "no shipped model is called 'nonsense'" in calibrate(*data, model="nonsense")[1]
    assert "no sequences to calibrate on; give --test TABLE" in calibrate()[1]


def test_quiet_says_nothing_and_batches_change_nothing(calibrate, folder):
    _, err, out = calibrate("--test", folder / "fresh.tsv", "--quiet")
    assert err == ""
    temperature = read_card(out).temperature
    _, _, out = calibrate("--test", folder / "fresh.tsv", "--batch-size", "7", "--device", "cpu")
    assert read_card(out).temperature == pytest.approx(temperature, rel=1e-4)


def test_isotonic_is_refused_for_more_than_two_classes(calibrate, tiny_model, folder, tmp_path):
    from seqray.core.model_config import ModelConfig
    from seqray.models.build import build_model

    config = ModelConfig(d_model=8, heads=2, layers=1, classes=3, max_length=64)
    card = replace(
        tiny_model.card,
        classes=("a", "b", "promoter"),
        model=config,
        window=40,
        site=None,
        domain={},
        name="three",
    )
    save_model(tmp_path / "three.safetensors", [build_model(config)], card)
    rows = [
        f"{row.split()[0]}\t{'ab'[i % 4 // 2] if i % 2 else 'promoter'}"
        for i, row in enumerate(table(200, 0).splitlines()[1:])
    ]
    (tmp_path / "three.tsv").write_text("\n".join(["sequence\tlabel", *rows]) + "\n")
    words = ("--test", tmp_path / "three.tsv")
    status, err, _ = calibrate(*words, "--method", "isotonic", model=tmp_path / "three.safetensors")
    assert status == 2
    assert "two classes, model 'three' has 3; use the method temperature" in err
    status, _, out = calibrate(*words, "--method", "auto", model=tmp_path / "three.safetensors")
    assert status == 0
    assert list(read_card(out).conformal) == ["a", "b", "promoter"]


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_swapped_labels_are_an_error_whatever_the_method(calibrate, folder, tmp_path, method):
    swap = {"promoter": "background", "background": "promoter"}
    head, *rows = (folder / "fresh.tsv").read_text().splitlines()
    cells = [row.split("\t") for row in rows]
    swapped = ["\t".join(swap.get(cell, cell) for cell in row) for row in cells]
    (tmp_path / "swapped.tsv").write_text("\n".join([head, *swapped]) + "\n")
    status, err, out = calibrate("--test", tmp_path / "swapped.tsv", "--method", method)
    assert status == 2
    assert "ranks 'promoter' below the rest (AUROC 0." in err
    assert "see that the labels are not swapped" in err
    assert not out.exists()


def test_what_the_data_cannot_tell_is_cautioned_against(tiny_model):
    """Classes that part: the temperature is cut. Labels by chance: no better than the shares."""
    card = replace(tiny_model.card, training={})
    y = np.arange(200) % 2
    easy = log_softmax(np.stack((np.zeros(200), np.where(y, 9.0, -9.0)), axis=1), axis=1)
    noise = log_softmax(np.random.default_rng(0).normal(size=(200, 2)), axis=1)
    found, facts = calibrated_card(card, easy, y, np.arange(200))
    text = summary(replace(found, training={"calibrated_on": facts | {"classes": {}}}), "x")
    assert facts["at_bounds"] == ["temperature"]
    assert any("reached the limit of its range: temperature;" in line for line in text)
    assert any("can't check whether any of these are among them" in line for line in text)
    found, facts = calibrated_card(card, noise, y, np.arange(200), "platt")
    text = summary(replace(found, training={"calibrated_on": facts | {"classes": {}}}), "x")
    assert facts["log_loss_of_shares"] == pytest.approx(np.log(2), rel=1e-5)
    assert any("no better than the share of each class, whose log loss is 0.693" in line for line in text)


def test_help_names_every_option(capsys):
    assert main(["calibrate", "--help"]) == 0
    text = capsys.readouterr().out
    for option in (
        "MODEL",
        "--test TABLE",
        "--class LABEL=FASTA",
        "--out",
        "--method",
        "--batch-size",
        "--quiet",
    ):
        assert option in text
    assert "Examples whose table says split 'train'" in text


def test_the_training_data_are_known_in_another_order_and_under_their_own_split(calibrate, folder, tmp_path):
    head, *rows = (folder / "train.tsv").read_text().splitlines()
    mixed = tmp_path / "mixed.tsv"
    mixed.write_text("\n".join([head, *reversed(rows)]) + "\n")
    assert "was trained on" in calibrate("--test", mixed)[1]
    # A table that names its parts may be given for its held-out one, not as if all of it were held out.
    parts = tmp_path / "parts.tsv"
    marked = [f"{row}\t{'test' if i < 100 else 'train'}" for i, row in enumerate(rows)]
    parts.write_text("\n".join([f"{head}\tsplit", *marked]) + "\n")
    status, err, out = calibrate("--train", parts)
    assert status == 0
    assert "caution: the model's training used all 100 of these records" in err
    status, err, out = calibrate("--test", parts, out=tmp_path / "other.safetensors")
    assert status == 2
    assert "is of the split 'train', but --test" in err
    assert not out.exists()


def test_rows_without_a_split_are_training_beside_rows_with_one(calibrate, folder, tmp_path):
    status, _, out = calibrate("--train", folder / "train.tsv", "--test", folder / "fresh.tsv")
    assert status == 0
    assert read_card(out).training["calibrated_on"]["examples"] == 600


def test_examples_of_unknown_labels_are_left_out_on_request(calibrate, folder, tmp_path):
    (tmp_path / "odd.tsv").write_text(table(600, 1) + "ACGTTGCA" * 5 + "\tterminator\n")
    status, err, _ = calibrate("--test", tmp_path / "odd.tsv")
    assert status == 2
    assert "has the label 'terminator'" in err
    status, err, out = calibrate("--test", tmp_path / "odd.tsv", "--unknown-labels", "drop")
    assert status == 0
    assert err.startswith("examples of labels that the model does not know are left out: 1 'terminator'\n")
    assert load_model_file(out).card.training["calibrated_on"]["examples"] == 600
