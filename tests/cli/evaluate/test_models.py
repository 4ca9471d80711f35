"""A model on labeled data: its figures, the floor, and the options."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as reference

from cli.evaluate.tables import CLASSES, TEST, TRUTH, figures, probabilities, value, write_table
from seqray.cli.main import main
from seqray.modelfile.file import save_model


def test_a_model_on_labeled_data(evaluate, folder, tiny_model):
    status, out, err = evaluate("--test", "test.tsv", "--out", "m.tsv")
    found, p = figures(folder / "m.tsv"), probabilities(tiny_model)
    assert status == 0
    assert [line.split(":")[1] for line in err.splitlines()] == [" resources"]
    assert value(found, "auroc") == pytest.approx(reference.roc_auc_score(TRUTH, p), rel=1e-5)
    assert value(found, "mcc") == pytest.approx(reference.matthews_corrcoef(TRUTH, p >= 0.5), rel=1e-5)
    assert value(found, "brier") == pytest.approx(reference.brier_score_loss(TRUTH, p), rel=1e-5)
    row = found["all", "model", "promoter", "mcc"]
    assert (row["split"], row["n"], row["positives"], row["groups"]) == ("test", "60", str(TRUTH.sum()), "30")
    assert float(row["low"]) < float(row["value"]) < float(row["high"])
    assert {source for _, source, _, _ in found} == {"model", "floor", "majority", "gc", "model-floor"}
    assert {subset for subset, *_ in found} == {"all", "context:species 0", "context:species 1"}
    part = value(found, "auroc", subset="context:species 1")
    assert part == pytest.approx(reference.roc_auc_score(TRUTH[1::2], p[1::2]), rel=1e-5)
    lines = out.splitlines()
    assert (
        lines[0] == f"tiny on 60 records of split test: {TRUTH.sum()} promoter, {60 - TRUTH.sum()} background"
    )
    assert lines[1].split() == ["mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece"]
    assert "without training data the floor and the rules are cross-validated" in lines[-1]


def test_training_data_give_a_floor_and_ranges_of_similarity(evaluate, folder):
    status, out, _ = evaluate(
        "--train", "train.tsv", "--test", "test.tsv", "--out", "m.tsv.gz", "--groups", "none"
    )
    found = figures(folder / "m.tsv.gz")
    header = gzip.decompress((folder / "m.tsv.gz").read_bytes()).decode()
    assert status == 0
    assert value(found, "auroc", "floor") > 0.8  # the planted box is plain to see
    assert "fitted on 80 training records" in header
    ranges = {subset for subset, *_ in found if subset.startswith("similarity:")}
    counts = [int(found[subset, "model", "promoter", "mcc"]["n"]) for subset in ranges]
    assert sum(counts) == 60
    assert found["all", "model", "promoter", "mcc"]["groups"] == "60"
    assert "cross-validated" not in out


def test_fasta_files_and_a_choice_of_split(evaluate, folder):
    fastas = [f"{label}={label}.fa" for label in CLASSES]
    words = [f"--class={pair}" for pair in fastas]
    assert evaluate(*words, "--out", "a.tsv")[0] == 0
    assert evaluate(*(f"--test-class={pair}" for pair in fastas), "--out", "b.tsv", "--no-floor")[0] == 0
    one, two = figures(folder / "a.tsv"), figures(folder / "b.tsv")
    assert one["all", "model", "promoter", "mcc"]["split"] == "all"
    assert two["all", "model", "promoter", "mcc"]["split"] == "test"
    assert value(one, "auroc") == value(two, "auroc")
    words = ("--train", "train.tsv", "--validation", "test.tsv")
    assert evaluate(*words, "--split", "validation", "--out", "c.tsv", "--no-floor")[0] == 0
    assert value(figures(folder / "c.tsv"), "auroc") == pytest.approx(value(two, "auroc"))
    assert evaluate(*words, "--split", "all", "--out", "d.tsv", "--no-floor")[0] == 0
    assert figures(folder / "d.tsv")["all", "model", "promoter", "mcc"]["n"] == "140"


def test_threshold_prior_and_no_floor(evaluate, folder, tiny_model):
    status, out, _ = evaluate("--test", "plain.tsv", "--threshold", "0.7", "--no-floor", "--out", "m.tsv")
    found, p = figures(folder / "m.tsv"), probabilities(tiny_model)
    assert status == 0
    assert value(found, "sensitivity") == pytest.approx(reference.recall_score(TRUTH, p >= 0.7), rel=1e-5)
    assert {source for _, source, _, _ in found} == {"model"}
    assert "note: --no-floor: these figures have no floor" in out
    evaluate("--test", "plain.tsv", "--prior", "0.6", "--no-floor", "--out", "q.tsv")
    odds = p / (1 - p) * (0.6 / 0.4) / (0.2 / 0.8)
    expected = reference.brier_score_loss(TRUTH, odds / (1 + odds))
    assert value(figures(folder / "q.tsv"), "brier") == pytest.approx(expected, rel=1e-4)


def test_another_model_on_the_same_records(evaluate, folder, tiny_model_file, tiny_model):
    status, out, _ = evaluate("--test", "test.tsv", "--against", tiny_model_file, "--out", "m.tsv")
    found = figures(folder / "m.tsv")
    assert status == 0
    assert value(found, "mcc", "against") == value(found, "mcc")
    row = found["all", "model-against", "promoter", "mcc"]
    assert (row["value"], row["low"], row["high"], row["p"]) == ("0", "0", "0", "1")
    assert "records that only one gets right: model 0, against 0; McNemar p 1" in out


def test_labels_of_another_name(evaluate, folder):
    renamed = [(*row[:2], {"promoter": "1", "background": "a=b"}[row[2]], *row[3:]) for row in TEST]
    write_table(folder / "other.tsv", renamed)
    words = ("--map", "1=promoter", "--map", "a=b=background", "--no-floor")
    assert evaluate("--test", "other.tsv", *words, "--out", "a.tsv")[0] == 0
    assert evaluate("--test", "test.tsv", "--no-floor", "--out", "b.tsv")[0] == 0
    assert figures(folder / "a.tsv") == figures(folder / "b.tsv")


def test_no_context_changes_nothing_for_a_model_without_contexts(evaluate, folder):
    assert evaluate("--test", "test.tsv", "--no-floor", "--out", "a.tsv", "--context", "none")[0] == 0
    assert evaluate("--test", "test.tsv", "--no-floor", "--out", "b.tsv")[0] == 0
    assert figures(folder / "a.tsv") == figures(folder / "b.tsv")


def test_flanks_that_training_had_are_cut_off(tmp_path, tiny_model, capsys):
    """The table that trained a model is one that evaluate reads: the same with its flanks and without."""
    config = {"data": {"window": 20, "flank": 3}}
    card = replace(tiny_model.card, window=20, training={**tiny_model.card.training, "config": config})
    save_model(tmp_path / "m.safetensors", tiny_model.networks, card)
    rng = np.random.default_rng(0)
    rows = [("".join(rng.choice(list("ACGT"), 26)), ("promoter", "background")[i % 2]) for i in range(60)]
    told = []
    for name, cut in (("whole", slice(None)), ("cut", slice(3, 23))):
        lines = "".join(f"{letters[cut]}\t{label}\n" for letters, label in rows)
        (tmp_path / f"{name}.tsv").write_text("sequence\tlabel\n" + lines)
        words = [
            "evaluate",
            "--model",
            str(tmp_path / "m.safetensors"),
            "--test",
            str(tmp_path / f"{name}.tsv"),
        ]
        assert main([*words, "--no-floor", "--out", str(tmp_path / f"{name}.e.tsv")]) == 0
        lines = (tmp_path / f"{name}.e.tsv").read_text().splitlines()
        told.append([line for line in lines if not line.startswith("#")])
    assert told[0] == told[1]
    capsys.readouterr()
