"""Records that the model does not know, has learned, or that are unlike its training data."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from cli.evaluate.tables import CLASSES, TEST, TRAIN, figures, other_strand, write_table
from seqray.calibration.conformal import fit_ranks
from seqray.calibration.domain import fit_domain
from seqray.calibration.signature import make_sketch
from seqray.core.alphabet import DNA, canonical_strand
from seqray.modelfile.file import build_network, save_model
from tables import changed_model, tsv, write


@pytest.fixture
def told(evaluate):
    """What is said beside the figures, by default of the tiny model on the test set."""
    return lambda words="--test test.tsv", **more: evaluate(words, "--no-floor", **more).out


def trained_on(rows):
    """What a card says of a model that was trained on these rows."""
    text = "".join(sorted({f"{letters}\t{label}\n" for _, letters, label, *_ in rows}))
    return {"content_sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_data_that_the_model_was_trained_on_are_noted(told, folder, tiny_model):
    t, both = (
        changed_model(folder / f"{name}.safetensors", tiny_model, training=trained_on(rows))
        for name, rows in (("t", TRAIN), ("both", [*TEST, *TRAIN]))
    )
    parts = [(*row[:3], "test") for row in TEST]
    parts += [(*row[:3], ("train", "validation")[i % 2]) for i, row in enumerate(TRAIN)]
    write(folder / "parts.tsv", tsv("id sequence label split", parts))
    note = "note: the model's training used these data"
    assert all(note in told(words, model=t) for words in ("--train train.tsv", "--test train.tsv"))
    for split in ("train", "validation", "all"):
        assert all(note in told(f"--train parts.tsv --split {split}", model=model) for model in (t, both))
    assert note not in told("--train parts.tsv", model=t)  # its test part
    assert note not in told("--train parts.tsv", model=both)  # training was given it, and left it out
    assert note not in told(model=t)
    out = told(f"--test train.tsv --against {t}")
    assert "note: against: the model's training used these data" in out
    assert note not in out


def test_a_part_of_the_training_data_is_noted_with_its_share(run, told, folder):
    write(
        folder / "c.yaml",
        "model: {d_model: 8, layers: 1, heads: 2, max_length: 32}\n"
        "data: {window: 20}\ntrainer: {max_epochs: 1, accelerator: cpu}\n",
    )
    write_table(folder / "learned.tsv", TRAIN, "id sequence label")
    run("train --config c.yaml --train learned.tsv --out new.safetensors --threads 1 -q")

    def note(rows):
        write_table(folder / "x.tsv", rows)
        lines = told("--test x.tsv", model="new.safetensors").splitlines()
        return "".join(line for line in lines if "training used" in line)

    assert "used all 40 of these records" in note(TRAIN[::2])
    assert "used 15 of these 60 records" in note([*other_strand(TRAIN[:15]), *TEST[:45]])
    for known, share in ((4, "slightly too good"), (6, "slightly too good"), (7, "what it remembers")):
        said = note([*TRAIN[:known], *TEST[: 60 - known]])  # 7 %, 10 % and 12 %
        assert f"used {known} of these 60 records" in said
        assert share in said
    assert note(TEST) == ""


def test_data_that_the_model_was_calibrated_on_are_noted(told, folder, tiny_model):
    write_table(folder / "half.tsv", TEST[::2])
    used = [canonical_strand(row[1], DNA) for row in TEST[::2]]
    domain = replace(tiny_model.card.domain, calibrated=make_sketch(used))
    model = changed_model(folder / "c.safetensors", tiny_model, domain=domain)
    assert "calibrated on all 30 of these records" in told("--test half.tsv", model=model)
    assert "calibrated on 30 of these 60 records" in told(model=model)
    assert "calibrated on" not in told("--test train.tsv", model=model)


def test_records_that_training_holds_or_is_related_to_are_noted(told, folder):
    write_table(folder / "leak.tsv", [*TRAIN, *other_strand(TEST[:7])], "id sequence label")
    assert "7 of 60 records are also in the training data" in told("--test test.tsv --train leak.tsv")
    write_table(folder / "few.tsv", TRAIN[:20])
    write_table(folder / "none.tsv", TRAIN[:20], "id sequence label")
    shared = [row for row in TEST if row[3] in {r[3] for r in TRAIN[:20]}]
    out = told("--train few.tsv --test test.tsv")
    assert f"{len(shared)} of 60 records have a group" in out
    assert "the training data that" not in out
    assert "have a group" not in told("--train none.tsv --test test.tsv")


def test_a_large_group_is_noted_by_its_name(told, folder):
    rows = [(*row[:3], "NA" if i < 13 else f"g{i}", "") for i, row in enumerate(TEST)]
    write_table(folder / "na.tsv", rows, "id sequence label group")
    write_table(folder / "few.tsv", rows[2:], "id sequence label group")
    assert "the group 'NA' has 13 of 60 records" in told("--test na.tsv")
    assert "the group" not in told("--test few.tsv")


def test_rows_of_unknown_labels_are_left_out_on_request(evaluate, told, folder, predictions):
    odd = ("extra", TEST[0][1], "odd", "g", "")
    write_table(folder / "odd.tsv", [odd, *TEST])
    write_table(folder / "odd.labels.tsv", [odd, *TEST], "id label")
    labeled = told("--test odd.tsv --unknown-labels drop")
    predicted = told("--predictions p.tsv --labels odd.labels.tsv --unknown-labels drop", model=None)
    for out in (labeled, predicted):
        assert "1 'odd'" in out
        assert f"on {len(TEST)} records" in out
    write_table(folder / "odd.tsv", [odd])
    assert "odd" in evaluate("--test odd.tsv --unknown-labels drop", status=2).err


def test_coverage_that_is_not_kept_is_noted_by_class(told, folder, tiny_model):
    """Held-out examples had .999 of their class, and the labels are those of the model: no set holds one."""
    p = np.repeat([[0.999999, 1e-6], [1e-6, 0.999999]], 400, axis=0)
    held_out = fit_ranks(p, np.repeat([0, 1], 400), tiny_model.card.classes)
    out = told(model=changed_model(folder / "held.safetensors", tiny_model, conformal=held_out))
    assert "they hold 0.00 of promoter, 0.00 of" in out
    assert "100% of the label sets at a coverage of 0.9 are empty" in out
    assert "label sets" not in told()


@pytest.fixture
def two_species(folder, tiny_model):
    """The tiny model with two contexts, whose training sequences differ in composition."""
    rng = np.random.default_rng(3)
    shares = {"Poor in GC": (0.4, 0.1, 0.1, 0.4), "Rich in GC": (0.1, 0.4, 0.4, 0.1)}
    codes = np.concatenate([rng.choice(4, p=p, size=(800, 20)).astype(np.uint8) for p in shares.values()])
    config = replace(tiny_model.card.model, contexts=tuple(shares))
    domain = fit_domain(codes, DNA, contexts=np.repeat(list(shares), 800).tolist())
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = build_network(config)
        for parameter in network.parameters():
            parameter.detach().normal_(0, 0.5)
    card = replace(tiny_model.card, model=config, domain=domain, self_test={})
    save_model(folder / "two.safetensors", [network], card)
    rich = rng.choice(4, p=shares["Rich in GC"], size=(700, 20)).astype(np.uint8)
    rows = [(f"r{i}", DNA.decode(row), CLASSES[i % 2]) for i, row in enumerate(rich)]
    write_table(folder / "rich.tsv", rows, "id sequence label")
    return "two.safetensors"


def test_records_are_recognized_or_read_as_asked(evaluate, folder, two_species):
    found, said = {}, {}
    for context in ("auto", "Rich", "Poor", "none"):
        words = f"--test rich.tsv --no-floor --out x.tsv --context {context}"
        said[context] = evaluate(words, model=two_species, draws=0).out
        found[context] = {key: row["value"] for key, row in figures(folder / "x.tsv").items()}
    assert found["auto"] == found["Rich"]
    assert len({tuple(found[name].items()) for name in ("Rich", "Poor", "none")}) == 3
    assert "all records are read as Rich in GC" in said["auto"]
    assert "all records are read as Poor in GC" in said["Poor"]
