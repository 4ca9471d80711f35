"""Records that the model does not know, has learned, or that are unlike its training data."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from cli.evaluate.tables import CLASSES, TEST, TRAIN, figures, write_table
from seqray.calibration.conformal import Conformal
from seqray.calibration.domain import Domain
from seqray.calibration.signature import TrainingSketch
from seqray.cli.main import main
from seqray.core.alphabet import DNA, canonical_strand
from seqray.modelfile.file import save_model
from seqray.models.build import build_model


def test_data_that_the_model_was_trained_on_are_noted(evaluate, folder, tiny_model, tmp_path):
    for name, given in (("t", TRAIN), ("both", [*TEST, *TRAIN])):
        rows = sorted({f"{letters}\t{label}\n" for _, letters, label, *_ in given})
        known = {"content_sha256": hashlib.sha256("".join(rows).encode()).hexdigest()}
        card = replace(tiny_model.card, training=known)
        save_model(tmp_path / f"{name}.safetensors", tiny_model.networks, card)
    names = ("id", "sequence", "label", "split")
    parts = [(*row[:3], "test") for row in TEST] + [
        (*row[:3], ("train", "validation")[i % 2]) for i, row in enumerate(TRAIN)
    ]
    (tmp_path / "parts.tsv").write_text("\n".join("\t".join(row) for row in (names, *parts)) + "\n")

    def is_noted(*words, model="t"):
        status, out, err = evaluate("--model", f"{model}.safetensors", *words, "--no-floor", model=False)
        assert status == 0, err
        return "note: the model's training used these data" in out

    for words in (["--train", "train.tsv"], ["--test", "train.tsv"]):
        assert is_noted(*words)
    for split in ("train", "validation", "all"):
        for model in ("t", "both"):
            assert is_noted("--train", "parts.tsv", "--split", split, model=model)
    assert not is_noted("--train", "parts.tsv")  # its test part
    assert not is_noted("--train", "parts.tsv", model="both")  # training was given it, and left it out
    assert not is_noted("--test", "test.tsv")


def test_the_other_model_is_checked_like_the_first(evaluate, folder, tiny_model, tmp_path):
    rows = sorted({f"{letters}\t{label}\n" for _, letters, label, *_ in TEST})
    known = {"content_sha256": hashlib.sha256("".join(rows).encode()).hexdigest()}
    save_model(tmp_path / "t.safetensors", tiny_model.networks, replace(tiny_model.card, training=known))
    status, out, err = evaluate("--test", "test.tsv", "--against", "t.safetensors", "--no-floor")
    assert status == 0, err
    assert "note: against: the model's training used these data" in out
    assert "note: the model was trained" not in out


def test_data_that_the_model_was_calibrated_on_are_noted(evaluate, folder, tiny_model, tmp_path):
    write_table(tmp_path / "half.tsv", TEST[::2])
    used = [canonical_strand(row[1], DNA) for row in TEST[::2]]
    domain = {**tiny_model.card.domain, "calibrated": TrainingSketch.fit(used).to_mapping()}
    save_model(tmp_path / "c.safetensors", tiny_model.networks, replace(tiny_model.card, domain=domain))

    def printed(table):
        words = ("--model", "c.safetensors", "--test", table, "--no-floor")
        status, out, err = evaluate(*words, model=False)
        assert status == 0, err
        return out

    assert "note: the model was calibrated on all 30 of these records: brier, log_loss" in printed("half.tsv")
    assert "note: the model was calibrated on 30 of these 60 records" in printed("test.tsv")
    assert "calibrated on" not in printed("train.tsv")


def test_records_that_the_floor_remembers_are_noted(evaluate, folder):
    letters = {"A": "T", "C": "G", "G": "C", "T": "A"}
    turned = [(row[0], "".join(letters[c] for c in reversed(row[1])), row[2]) for row in TEST[:7]]
    write_table(folder / "leak.tsv", [*TRAIN, *turned], ("id", "sequence", "label"))
    words = ("--test", "test.tsv", "--no-floor", "--train")
    assert (
        "note: 7 of 60 records are also in the training data that the floor learns"
        in evaluate(*words, "leak.tsv")[1]
    )
    assert "the floor learns" not in evaluate(*words, "train.tsv")[1]


def test_a_large_group_is_noted_by_its_name(evaluate, folder):
    missing = [(*row[:3], "NA" if i < 13 else f"g{i}", "") for i, row in enumerate(TEST)]
    write_table(folder / "na.tsv", missing, ("id", "sequence", "label", "group"))
    write_table(folder / "few.tsv", missing[2:], ("id", "sequence", "label", "group"))
    assert (
        "note: the group 'NA' has 13 of 60 records, drawn as one"
        in evaluate("--test", "na.tsv", "--no-floor")[1]
    )
    assert "drawn as one" not in evaluate("--test", "few.tsv", "--no-floor")[1]


def test_a_part_of_the_training_data_is_noted_with_its_share(evaluate, folder, tmp_path):
    (tmp_path / "c.yaml").write_text(
        "model: {d_model: 8, layers: 1, heads: 2, max_length: 32}\n"
        "data: {window: 20}\ntrainer: {max_epochs: 1, accelerator: cpu}\n"
    )
    letters = {"A": "T", "C": "G", "G": "C", "T": "A"}
    turned = [(row[0], "".join(letters[c] for c in reversed(row[1])), *row[2:]) for row in TRAIN[:15]]
    write_table(tmp_path / "learned.tsv", TRAIN, ("id", "sequence", "label"))
    write_table(tmp_path / "half.tsv", TRAIN[::2])
    write_table(tmp_path / "turned.tsv", [*turned, *TEST[:45]])
    words = ["--config", "c.yaml", "--train", "learned.tsv", "--out", "new.safetensors"]
    assert main(["train", *words, "--threads", "1", "-q"]) == 0

    def printed(table):
        words = ("--model", "new.safetensors", "--test", table, "--no-floor")
        status, out, err = evaluate(*words, model=False)
        assert status == 0, err
        return out

    assert "note: the model's training used all 40 of these records: the figures show" in printed("half.tsv")
    assert "note: the model's training used 15 of these 60 records" in printed("turned.tsv")
    for known, share in ((4, "slightly too good"), (6, "slightly too good"), (7, "what it remembers")):
        write_table(tmp_path / "few.tsv", [*TRAIN[:known], *TEST[: 60 - known]])  # 7 %, 10 % and 12 %
        said = printed("few.tsv")
        assert f"note: the model's training used {known} of these 60 records: the figures " in said
        assert share in said
    assert "training used" not in printed("test.tsv")


def test_groups_on_both_sides_are_noted(evaluate, folder):
    shared = [row for row in TEST if row[3] in {r[3] for r in TRAIN[:20]}]
    write_table(folder / "few.tsv", TRAIN[:20])
    write_table(folder / "none.tsv", TRAIN[:20], ("id", "sequence", "label"))
    _, out, _ = evaluate("--train", "few.tsv", "--test", "test.tsv", "--no-floor")
    assert len(shared) == 20
    assert "note: 20 of 60 records have a group (column 'group') that training records have, too" in out
    _, out, _ = evaluate("--train", "none.tsv", "--test", "test.tsv", "--no-floor")
    assert "training records have, too" not in out


def test_rows_of_unknown_labels_are_left_out_on_request(evaluate, folder):
    words = ("--test", "other.tsv", "--no-floor", "--out", "x.tsv")
    status, _, err = evaluate(*words)
    assert status == 2
    assert "or give --unknown-labels drop" in err
    status, out, _ = evaluate(*words, "--unknown-labels", "drop")
    assert status == 0
    assert "note: examples of labels that the model does not know are left out: 1 'odd'" in out
    assert f"on {len(TRAIN)} records" in out


def test_rows_of_unknown_labels_are_left_out_of_tables_of_predictions(evaluate, predictions, folder):
    rows = [("extra", TEST[0][1], "odd", "g", ""), *TEST]
    write_table(folder / "odd.tsv", rows, ("id", "label"))
    words = ("--predictions", "p.tsv", "--labels", "odd.tsv", "--unknown-labels", "drop")
    status, out, _ = evaluate(*words, model=False)
    assert status == 0
    assert f"on {len(TEST)} records" in out
    assert "1 'odd'" in out


def test_data_of_unknown_labels_alone_are_an_error(evaluate, folder):
    write_table(folder / "odd.tsv", [("a", TEST[0][1], "odd", "g", "")])
    status, _, err = evaluate("--test", "odd.tsv", "--unknown-labels", "drop")
    assert status == 2
    assert "no example has a label of the model, but odd; its classes are promoter, background" in err


def test_records_shorter_than_all_of_training_are_noted(evaluate, folder):
    short = [(name, letters[:12], *rest) for name, letters, *rest in TEST]
    write_table(folder / "short.tsv", short)
    status, out, _ = evaluate("--test", "short.tsv", "--no-floor")
    assert status == 0
    assert "note: 60 of 60 records (100%) are shorter than any sequence" in out
    assert "shorter than" not in evaluate("--test", "test.tsv", "--no-floor")[1]


def test_coverage_that_is_not_kept_is_noted_by_class(evaluate, folder, tiny_model):
    """Held-out examples had .999 of their class, and the labels are those of the model: no set holds one."""
    p = np.repeat([[0.999999, 1e-6], [1e-6, 0.999999]], 400, axis=0)
    table = Conformal.fit(p, np.repeat([0, 1], 400), tiny_model.card.classes).to_mapping()
    save_model(folder / "held.safetensors", tiny_model.networks, replace(tiny_model.card, conformal=table))
    words = ("--model", "held.safetensors", "--test", "test.tsv", "--no-floor")
    status, out, _ = evaluate(*words, model=False)
    assert status == 0
    assert "label sets at a coverage of 0.9 do not keep it here: they hold 0.00 of promoter, 0.00 of" in out
    assert "note: 100% of the label sets at a coverage of 0.9 are empty" in out
    assert "label sets" not in evaluate("--test", "test.tsv", "--no-floor")[1]


@pytest.fixture
def two_species(folder, tiny_model):
    """The tiny model with two contexts, whose training sequences differ in composition."""
    rng = np.random.default_rng(3)
    shares = {"Poor in GC": (0.4, 0.1, 0.1, 0.4), "Rich in GC": (0.1, 0.4, 0.4, 0.1)}
    codes = np.concatenate([rng.choice(4, p=p, size=(800, 20)).astype(np.uint8) for p in shares.values()])
    config = replace(tiny_model.card.model, contexts=tuple(shares))
    domain = Domain.fit(codes, DNA, contexts=np.repeat(list(shares), 800).tolist()).to_mapping()
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = build_model(config)
        for parameter in network.parameters():
            parameter.detach().normal_(0, 0.5)
    card = replace(tiny_model.card, model=config, domain=domain, self_test={})
    save_model(folder / "two.safetensors", [network], card)
    lines = ["id\tsequence\tlabel"]
    for i, row in enumerate(rng.choice(4, p=shares["Rich in GC"], size=(700, 20)).astype(np.uint8)):
        lines.append(f"r{i}\t{DNA.decode(row)}\t{CLASSES[i % 2]}")
    (folder / "rich.tsv").write_text("\n".join(lines) + "\n")
    return folder / "two.safetensors"


def test_records_are_recognized_or_read_as_asked(evaluate, two_species):
    words = (
        "--model",
        two_species,
        "--test",
        "rich.tsv",
        "--no-floor",
        "--groups",
        "none",
        "--bootstrap",
        "0",
    )
    found, said = {}, {}
    for context in ("auto", "Rich", "Poor", "none"):
        status, said[context], _ = evaluate(*words, "--context", context, "--out", "x.tsv", model=False)
        assert status == 0
        found[context] = {key: row["value"] for key, row in figures(two_species.parent / "x.tsv").items()}
    assert found["auto"] == found["Rich"]
    assert len({tuple(found[name].items()) for name in ("Rich", "Poor", "none")}) == 3
    assert "all records are read as Rich in GC, which they are like (--context auto)" in said["auto"]
    assert "all records are read as Poor in GC (--context)" in said["Poor"]
    assert "gets none" in said["none"]
