"""Tables of predictions, of seqray and of others, beside labels."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics as reference

from cli.evaluate.tables import CLASSES, HEAD, TEST, TRAIN, TRUTH, figures, probabilities, value, write_table
from tables import tsv, write


@pytest.fixture
def evaluate_table(evaluate, folder):
    """Evaluate a table of predictions; gives what was said, and the figures."""

    def call(table, *words, labels="labels.tsv"):
        ended = evaluate("--predictions", table, "--labels", labels, *words, "--out m.tsv", model=None)
        return ended, figures(folder / "m.tsv")

    return call


@pytest.mark.parametrize("table", ["p.tsv", "p.parquet"])
def test_predictions_say_what_their_model_says(evaluate, evaluate_table, folder, predictions, table):
    evaluate("--test test.tsv --out a.tsv")
    one, (_, two) = figures(folder / "a.tsv"), evaluate_table(table, labels="test.tsv")
    assert set(one) == set(two)
    for key, row in one.items():
        if key[3] not in ("ece", "auprc"):  # six digits may make ties
            figure, other = (
                float(r["value"].replace(".", "nan", row["value"] == ".")) for r in (row, two[key])
            )
            assert other == pytest.approx(figure, abs=1e-4, nan_ok=True)


def test_bare_labels_need_no_sequences_and_give_no_floor(evaluate_table, folder, predictions):
    ended, found = evaluate_table("p.tsv")
    assert "without sequences" in ended.out
    assert found["all", "model", "promoter", "mcc"]["groups"] == "60"
    write(folder / "few.tsv", tsv("", [(row[0], row[2]) for row in TEST[:50]]))
    assert "10 predictions have no label" in evaluate_table("p.tsv", labels="few.tsv")[0].out


def test_scores_of_another_tool(evaluate_table, folder):
    scores = np.random.default_rng(3).normal(0, 2, 60) + 3 * TRUTH
    rows = [f"{row[0]},{score:.6f},x" for row, score in zip(TEST, scores, strict=True)]
    write(folder / "s.csv", "\n".join(["name,score,other", *rows, ""]))
    words = "--id-column name --score-column score --positive promoter --threshold 1.5 --quiet"
    ended, found = evaluate_table("s.csv", words)
    assert ended.err == ""
    assert value(found, "auroc") == pytest.approx(reference.roc_auc_score(TRUTH, scores), rel=1e-5)
    assert value(found, "mcc") == pytest.approx(reference.matthews_corrcoef(TRUTH, scores >= 1.5), rel=1e-5)
    assert ("all", "model", "promoter", "brier") not in found


def test_a_table_against_a_table(evaluate_table, folder, predictions, tiny_model):
    other = np.random.default_rng(4).random(60)
    rows = [(row[0], f"{p:.6f}", f"{1 - p:.6f}") for row, p in zip(TEST, other, strict=True)]
    write(folder / "o.tsv", tsv("id p_promoter p_background", rows))
    _, found = evaluate_table("p.tsv", "--against o.tsv --json m.json", labels="test.tsv")
    p = probabilities(tiny_model)
    expected = reference.roc_auc_score(TRUTH, p) - reference.roc_auc_score(TRUTH, other)
    assert value(found, "auroc", "model-against") == pytest.approx(expected, abs=1e-5)
    model, against = (p >= 0.5) == TRUTH, (other >= 0.5) == TRUTH
    b, c = int((model & ~against).sum()), int((against & ~model).sum())
    test = json.loads((folder / "m.json").read_text())["mcnemar"]["against"]
    assert (test["model_only"], test["other_only"]) == (b, c)
    assert test["p"] == pytest.approx(binomtest(b, b + c).pvalue, rel=1e-5)


def test_more_than_two_classes(evaluate, evaluate_table, folder):
    rng = np.random.default_rng(5)
    classes, truth = ("a", "b x", "c"), rng.integers(0, 3, 60)
    scores = np.round(rng.dirichlet(np.ones(3), 60) * 0.5 + 0.5 * np.eye(3)[truth], 6)
    write(folder / "k.tsv", tsv("id p_a p_b_x p_c", [(f"r{i}", *row) for i, row in enumerate(scores)]))
    write(folder / "l.tsv", tsv("", [(f"r{i}", classes[k]) for i, k in enumerate(truth)]))
    _, found = evaluate_table("k.tsv", "--html m.html", labels="l.tsv")
    calls = scores.argmax(axis=1)
    mcc, f1 = reference.matthews_corrcoef(truth, calls), reference.f1_score(truth, calls, average="macro")
    assert value(found, "mcc", label="all") == pytest.approx(mcc, rel=1e-5)
    assert value(found, "f1", label="macro") == pytest.approx(f1, rel=1e-5)
    expected = reference.roc_auc_score(truth == 1, scores[:, 1])
    assert value(found, "auroc", label="b x") == pytest.approx(expected, rel=1e-5)
    assert "against the rest" in (folder / "m.html").read_text()
    told = evaluate("--predictions k.tsv --labels l.tsv --threshold 0.5", model=None, status=2).err
    assert "--threshold" in told


@pytest.mark.parametrize(("name", "letters"), [("protein", "KLMNPQRSTVWY"), ("rna", "ACGU")])
def test_the_letters_of_labels_and_training_data_tell_their_alphabet(evaluate, folder, name, letters):
    """Peptides and RNA, with predictions of another tool."""
    rows = [(f"r{i}", letters[i % len(letters) :] * 3, CLASSES[i % 2], "", "") for i in range(24)]
    write_table(folder / "truth.tsv", rows)
    write_table(folder / "learn.tsv", [(f"t{row[0]}", *row[1:]) for row in rows])
    write(folder / "scores.tsv", tsv("id score", [(row[0], i % 2) for i, row in enumerate(rows)]))
    words = "--predictions scores.tsv --labels truth.tsv --train learn.tsv --positive background --out m.tsv"
    evaluate(words, "--score-column score", model=None)
    assert f"# alphabet: {name}" in (folder / "m.tsv").read_text()
    status = 2 if name == "protein" else 0
    evaluate(words, "--score-column score --alphabet dna", model=None, status=status)


def test_labels_of_0_and_1_need_no_positive_class(evaluate_table, folder):
    write(folder / "p.tsv", tsv("id p", [(row[0], 0.9 if row[2] == "promoter" else 0.2) for row in TEST]))
    write(folder / "l.tsv", tsv("", [(row[0], int(row[2] == "promoter")) for row in TEST]))
    _, found = evaluate_table("p.tsv", "--score-column p", labels="l.tsv")
    assert value(found, "mcc", label="1") == 1


def test_the_floor_beside_predictions_learns_from_training_rows_alone(evaluate_table, folder, predictions):
    parts = [(*row, ("train", "validation", "test")[i % 3]) for i, row in enumerate(TRAIN)]
    write(folder / "parts.tsv", tsv(f"{HEAD} split", parts))
    evaluate_table("p.tsv", "--train parts.tsv", labels="plain.tsv")
    known = sum(row[-1] == "train" for row in parts)
    assert f"fitted on {known} training records" in (folder / "m.tsv").read_text()


def test_scores_of_positives_alone_give_a_sensitivity(evaluate_table, folder):
    write(folder / "p.csv", "name,score\na,3\nb,1\nc,2.5\n")
    write(folder / "l.tsv", tsv("id label", [(name, 1) for name in "abc"]))
    words = "--id-column name --score-column score --positive 1 --threshold 2"
    _, found = evaluate_table("p.csv", words, labels="l.tsv")
    assert value(found, "sensitivity", label="1") == pytest.approx(2 / 3, abs=1e-6)
    assert found["all", "model", "1", "auroc"]["value"] == "."
