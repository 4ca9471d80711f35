"""Tables of predictions, of seqray and of others, beside labels."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics as reference

from cli.evaluate.tables import CLASSES, HEAD, TEST, TRAIN, TRUTH, figures, probabilities, value, write_table


@pytest.mark.parametrize("table", ["p.tsv", "p.parquet"])
def test_predictions_say_what_their_model_says(evaluate, folder, predictions, table):
    assert evaluate("--test", "test.tsv", "--out", "a.tsv")[0] == 0
    assert evaluate("--predictions", table, "--labels", "test.tsv", "--out", "b.tsv", model=False)[0] == 0
    one, two = figures(folder / "a.tsv"), figures(folder / "b.tsv")
    assert set(one) == set(two)
    for key, row in one.items():
        if key[3] not in ("ece", "auprc"):  # six digits may make ties
            assert float(two[key]["value"].replace(".", "nan", row["value"] == ".")) == pytest.approx(
                float(row["value"].replace(".", "nan", row["value"] == ".")), abs=1e-4, nan_ok=True
            )


def test_bare_labels_need_no_sequences_and_give_no_floor(evaluate, folder, predictions):
    status, out, _ = evaluate(
        "--predictions", "p.tsv", "--labels", "labels.tsv", "--out", "m.tsv", model=False
    )
    assert status == 0
    assert "the labels come without sequences: these figures have no floor" in out
    assert figures(folder / "m.tsv")["all", "model", "promoter", "mcc"]["groups"] == "60"


def test_scores_of_another_tool_from_a_pipe(evaluate, folder, tiny_model, monkeypatch):
    scores = np.random.default_rng(3).normal(0, 2, 60) + 3 * TRUTH
    text = "name,score,other\n" + "".join(
        f"{row[0]},{score:.6f},x\n" for row, score in zip(TEST, scores, strict=True)
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status, _, err = evaluate(
        *("--predictions", "-", "--labels", "labels.tsv", "--id-column", "name", "--score-column", "score"),
        *("--positive", "promoter", "--threshold", "1.5", "--out", "m.tsv", "--quiet"),
        model=False,
    )
    assert (status, err) == (0, "")
    found = figures(folder / "m.tsv")
    assert value(found, "auroc") == pytest.approx(reference.roc_auc_score(TRUTH, scores), rel=1e-5)
    assert value(found, "mcc") == pytest.approx(reference.matthews_corrcoef(TRUTH, scores >= 1.5), rel=1e-5)
    assert ("all", "model", "promoter", "brier") not in found


def test_a_table_against_a_table(evaluate, folder, predictions, tiny_model):
    rng = np.random.default_rng(4)
    other = rng.random(60)
    lines = [f"{row[0]}\t{p:.6f}\t{1 - p:.6f}" for row, p in zip(TEST, other, strict=True)]
    (folder / "o.tsv").write_text("\n".join(["id\tp_promoter\tp_background", *lines]) + "\n")
    words = ("--predictions", "p.tsv", "--labels", "test.tsv", "--against", "o.tsv", "--json", "m.json")
    assert evaluate(*words, "--out", "m.tsv", model=False)[0] == 0
    found, facts = figures(folder / "m.tsv"), json.loads((folder / "m.json").read_text())
    p = probabilities(tiny_model)
    expected = reference.roc_auc_score(TRUTH, p) - reference.roc_auc_score(TRUTH, other)
    assert value(found, "auroc", "model-against") == pytest.approx(expected, abs=1e-5)
    model, against = (p >= 0.5) == TRUTH, (other >= 0.5) == TRUTH
    b, c = int((model & ~against).sum()), int((against & ~model).sum())
    test = facts["mcnemar"]["against"]
    assert (test["model_only"], test["other_only"]) == (b, c)
    assert test["p"] == pytest.approx(binomtest(b, b + c).pvalue, rel=1e-5)


def test_more_than_two_classes(evaluate, folder):
    rng = np.random.default_rng(5)
    classes, truth = ("a", "b x", "c"), rng.integers(0, 3, 60)
    scores = np.round(rng.dirichlet(np.ones(3), 60) * 0.5 + 0.5 * np.eye(3)[truth], 6)
    lines = [f"r{i}\t" + "\t".join(f"{v:.6f}" for v in row) for i, row in enumerate(scores)]
    (folder / "k.tsv").write_text("\n".join(["id\tp_a\tp_b_x\tp_c", *lines]) + "\n")
    (folder / "kl.tsv").write_text("".join(f"r{i}\t{classes[k]}\n" for i, k in enumerate(truth)))
    words = ("--predictions", "k.tsv", "--labels", "kl.tsv", "--out", "m.tsv", "--html", "m.html")
    assert evaluate(*words, model=False)[0] == 0
    found, calls = figures(folder / "m.tsv"), scores.argmax(axis=1)
    assert value(found, "mcc", label="all") == pytest.approx(
        reference.matthews_corrcoef(truth, calls), rel=1e-5
    )
    assert value(found, "f1", label="macro") == pytest.approx(
        reference.f1_score(truth, calls, average="macro"), rel=1e-5
    )
    assert value(found, "auroc", label="b x") == pytest.approx(
        reference.roc_auc_score(truth == 1, scores[:, 1]), rel=1e-5
    )
    assert "against the rest" in (folder / "m.html").read_text()
    status, _, err = evaluate(*words[:4], "--threshold", "0.5", model=False)
    assert status == 2
    assert "--threshold is for two classes, these are 3" in err


def test_the_letters_of_labels_and_training_data_tell_their_alphabet(evaluate, folder):
    """Peptides and RNA, with predictions of another tool."""
    for name, letters in {"protein": "KLMNPQRSTVWY", "rna": "ACGU"}.items():
        rows = [(f"r{i}", letters[i % len(letters) :] * 3, CLASSES[i % 2], "", "") for i in range(24)]
        write_table(folder / "truth.tsv", rows)
        write_table(folder / "learn.tsv", [(f"t{row[0]}", *row[1:]) for row in rows])
        scores = "".join(f"{row[0]}\t{i % 2}\n" for i, row in enumerate(rows))
        (folder / "scores.tsv").write_text(f"id\tscore\n{scores}")
        words = ["--predictions", "scores.tsv", "--labels", "truth.tsv", "--train", "learn.tsv"]
        words += ["--score-column", "score", "--positive", "background", "--out", "m.tsv"]
        assert evaluate(*words, model=False)[0] == 0
        assert f"# alphabet: {name}" in (folder / "m.tsv").read_text()
        assert evaluate(*words, "--alphabet", "dna", model=False)[0] == (2 if name == "protein" else 0)


def test_predictions_without_a_label_are_told(evaluate, folder, predictions):
    (folder / "few.tsv").write_text("".join(f"{row[0]}\t{row[2]}\n" for row in TEST[:50]))
    status, out, _ = evaluate("--predictions", "p.tsv", "--labels", "few.tsv", model=False)
    assert status == 0
    assert "note: 10 predictions have no label in use and are left out" in out


def test_labels_of_0_and_1_need_no_positive_class(evaluate, folder):
    lines = [f"{row[0]}\t{0.9 if row[2] == 'promoter' else 0.2}" for row in TEST]
    (folder / "p.tsv").write_text("\n".join(["id\tp", *lines]) + "\n")
    (folder / "l.tsv").write_text("".join(f"{row[0]}\t{int(row[2] == 'promoter')}\n" for row in TEST))
    words = ("--predictions", "p.tsv", "--labels", "l.tsv", "--score-column", "p", "--out", "m.tsv")
    assert evaluate(*words, model=False)[0] == 0
    assert value(figures(folder / "m.tsv"), "mcc", label="1") == 1


def test_the_floor_beside_predictions_learns_from_training_rows_alone(evaluate, folder, predictions):
    parts = [(*row, ("train", "validation", "test")[i % 3]) for i, row in enumerate(TRAIN)]
    lines = ["\t".join((*HEAD, "split")), *("\t".join(row) for row in parts)]
    (folder / "parts.tsv").write_text("\n".join(lines) + "\n")
    words = ("--predictions", predictions, "--labels", "plain.tsv", "--train", "parts.tsv")
    assert evaluate(*words, "--out", "f.tsv", model=False)[0] == 0
    known = sum(row[-1] == "train" for row in parts)
    assert f"fitted on {known} training records" in (folder / "f.tsv").read_text()
    status, _, err = evaluate(*words, "--validation", "parts.tsv", model=False)
    assert status == 2
    assert "leave out --validation, --test and --test-class" in err


def test_scores_of_positives_alone_give_a_sensitivity(evaluate, folder):
    (folder / "p.csv").write_text("name,score\na,3\nb,1\nc,2.5\n")
    (folder / "l.tsv").write_text("id\tlabel\na\t1\nb\t1\nc\t1\n")
    columns = ("--id-column", "name", "--score-column", "score", "--positive", "1", "--threshold", "2")
    words = ("--predictions", "p.csv", "--labels", "l.tsv", *columns, "-o", "o.tsv")
    assert evaluate(*words, model=False)[0] == 0
    found = figures(folder / "o.tsv")
    assert value(found, "sensitivity", label="1") == pytest.approx(2 / 3, abs=1e-6)
    assert found["all", "model", "1", "auroc"]["value"] == "."


def test_the_score_of_the_other_class_is_refused(evaluate, folder):
    (folder / "p.tsv").write_text("id\tp_x\na\t.9\nb\t.2\n")
    (folder / "l.tsv").write_text("id\tlabel\na\tx\nb\ty\n")
    words = ("--predictions", "p.tsv", "--labels", "l.tsv", "--score-column", "p_x", "--positive", "y")
    status, _, err = evaluate(*words, model=False)
    assert status == 2
    assert "'p_x' holds the probabilities of 'x', and 'y' is positive; give --score-column p_y, or" in err
