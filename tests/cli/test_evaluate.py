"""``seqray evaluate`` from files to figures: both ways in, every option, errors, and reruns."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from sklearn import metrics as reference

from seqray.calibration.conformal import Conformal
from seqray.calibration.domain import Domain
from seqray.cli.dispatch import main
from seqray.core.alphabet import DNA
from seqray.core.records import SequenceRecord
from seqray.inference.sequences import predict_records
from seqray.modelfile import save_model
from seqray.models.build import build_model

CLASSES = ("promoter", "background")


def made_rows(n, seed, prefix):
    """Id, sequence, label, group and context; a planted box makes promoters."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        letters = "".join(rng.choice(list("ACGT"), 20))
        label = CLASSES[int(rng.random() < 0.6)]
        if label == "promoter":
            letters = letters[:6] + "TATAAT" + letters[12:]
        rows.append((f"{prefix}{i}", letters, label, f"g{i // 2}", f"species {i % 2}"))
    return rows


TEST, TRAIN = made_rows(60, 1, "t"), made_rows(80, 2, "x")
HEAD = ("id", "sequence", "label", "group", "context")


def write_table(path, rows, columns=HEAD):
    lines = ["\t".join(columns), *("\t".join(row[HEAD.index(c)] for c in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path, tiny_model):
    """Tables of labels, and predictions of the tiny model."""
    write_table(tmp_path / "test.tsv", TEST)
    write_table(tmp_path / "train.tsv", TRAIN)
    write_table(tmp_path / "other.tsv", [*TRAIN, ("odd", TRAIN[0][1], "odd", "g", "")])
    (tmp_path / "m.tsv").write_text("id\tlabel\n")
    write_table(tmp_path / "plain.tsv", TEST, ("id", "sequence", "label"))
    (tmp_path / "labels.tsv").write_text("".join(f"{row[0]}\t{row[2]}\n" for row in TEST))
    (tmp_path / "test.fa").write_text("".join(f">{row[0]}\n{row[1]}\n" for row in TEST))
    for label in CLASSES:
        fasta = "".join(f">{row[0]}\n{row[1]}\n" for row in TEST if row[2] == label)
        (tmp_path / f"{label}.fa").write_text(fasta)
    return tmp_path


@pytest.fixture
def evaluate(folder, tiny_model_file, capfd, monkeypatch):
    """Run the verb in the folder; gives exit status, standard output and standard error."""
    threads = torch.get_num_threads()
    monkeypatch.chdir(folder)

    def run(*words, model=True):
        given = ("--model", str(tiny_model_file)) if model else ()
        status = main(["evaluate", *given, "--bootstrap", "20", *map(str, words)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)


@pytest.fixture
def predictions(folder, tiny_model_file):
    words = ["predict", str(folder / "test.fa"), "--model", str(tiny_model_file), "--quiet"]
    assert main([*words, "--out", str(folder / "p.tsv")]) == 0
    assert main([*words, "--out", str(folder / "p.parquet")]) == 0
    return folder / "p.tsv"


def figures(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if str(path).endswith(".gz") else data).decode()
    columns, *rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return {(row["subset"], row["source"], row["class"], row["metric"]): row for row in found}


def value(found, metric, source="model", subset="all", label="promoter"):
    return float(found[subset, source, label, metric]["value"])


def probabilities(tiny_model):
    records = [SequenceRecord(row[0], row[1]) for row in TEST]
    return np.array([p.probabilities[0] for p in predict_records(tiny_model, records)])


TRUTH = np.array([row[2] == "promoter" for row in TEST])


# --- a model --------------------------------------------------------------------------------------


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
        return "note: the model was trained on these data" in out

    for words in (["--train", "train.tsv"], ["--test", "train.tsv"]):
        assert is_noted(*words)
    for split in ("train", "validation", "all"):
        for model in ("t", "both"):
            assert is_noted("--train", "parts.tsv", "--split", split, model=model)
    assert not is_noted("--train", "parts.tsv")  # its test part
    assert not is_noted("--train", "parts.tsv", model="both")  # training was given it, and left it out
    assert not is_noted("--test", "test.tsv")


def test_groups_on_both_sides_are_noted(evaluate, folder):
    shared = [row for row in TEST if row[3] in {r[3] for r in TRAIN[:20]}]
    write_table(folder / "few.tsv", TRAIN[:20])
    write_table(folder / "none.tsv", TRAIN[:20], ("id", "sequence", "label"))
    _, out, _ = evaluate("--train", "few.tsv", "--test", "test.tsv", "--no-floor")
    assert len(shared) == 20
    assert "note: 20 of 60 records have a group (column 'group') that training records have, too" in out
    _, out, _ = evaluate("--train", "none.tsv", "--test", "test.tsv", "--no-floor")
    assert "training records have, too" not in out


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
    assert evaluate("--test", "test.tsv", "--no-floor", "--out", "a.tsv", "--no-context")[0] == 0
    assert evaluate("--test", "test.tsv", "--no-floor", "--out", "b.tsv")[0] == 0
    assert figures(folder / "a.tsv") == figures(folder / "b.tsv")


# --- predictions ----------------------------------------------------------------------------------


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


# --- outputs --------------------------------------------------------------------------------------


def test_all_outputs_are_the_same_bytes_again_and_say_the_same(evaluate, folder):
    words = ("--train", "train.tsv", "--test", "test.tsv", "--seed", "3", "--sample", "one")
    names = ("m.tsv", "m.json", "m.html", "m_mqc.json")
    options = [
        w for pair in zip(("--out", "--json", "--html", "--multiqc"), names, strict=True) for w in pair
    ]
    runs = []
    for _ in range(2):
        assert evaluate(*words, *options, "--threads", "1", "--device", "cpu", "--batch-size", "16")[0] == 0
        runs.append([(folder / name).read_bytes() for name in names])
    assert runs[0] == runs[1]
    facts, table = json.loads(runs[0][1]), figures(folder / "m.tsv")
    for figure in facts["figures"]:
        row = table[figure["subset"], figure["source"], figure["class"], figure["metric"]]
        assert figure["value"] == (None if row["value"] == "." else float(row["value"]))
    assert facts["model"]["name"] == "tiny"
    assert json.loads(runs[0][3])["data"]["one"]["mcc"] == value(table, "mcc")
    assert str(folder) not in runs[0][0].decode()
    assert b"<script" not in runs[0][2]


def test_the_order_of_rows_decides_nothing(evaluate, folder):
    write_table(folder / "turned.tsv", TEST[::-1])
    for name in ("test", "turned"):
        assert evaluate("--test", f"{name}.tsv", "--out", f"{name}.out.tsv", "--seed", "1")[0] == 0
    one, two = (figures(folder / f"{name}.out.tsv") for name in ("test", "turned"))
    assert one == two


def test_figures_on_standard_output_leave_the_summary_to_standard_error(evaluate):
    status, out, err = evaluate("--test", "test.tsv", "--out", "-", "--no-floor")
    assert status == 0
    assert out.startswith("# seqray ")
    assert err.startswith("tiny on 60 records")
    status, out, err = evaluate("--test", "test.tsv", "--out", "-", "--no-floor", "--quiet")
    assert err == ""


def test_without_draws_there_are_no_intervals(evaluate, folder):
    assert evaluate("--test", "test.tsv", "--bootstrap", "0", "--no-floor", "--out", "m.tsv")[0] == 0
    assert {row["low"] for row in figures(folder / "m.tsv").values()} == {"."}


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


# --- errors ---------------------------------------------------------------------------------------

PREDICTED = ("--predictions", "p.tsv", "--labels", "labels.tsv")


@pytest.mark.parametrize(
    ("words", "model", "message"),
    [
        ((), False, "nothing to evaluate; give --model with --test, or --predictions with --labels"),
        (PREDICTED, True, "both --model and --predictions are given"),
        (("--test", "test.tsv", "--labels", "labels.tsv"), True, "--predictions and --labels go together"),
        (("--predictions", "p.tsv"), False, "--predictions and --labels go together"),
        (("--test", "test.tsv", "--positive", "promoter"), True, "--positive is for --predictions"),
        ((*PREDICTED, "--prior", "0.5"), False, "--prior needs --model"),
        ((*PREDICTED, "--test", "test.tsv"), False, "takes its test data from --labels"),
        ((*PREDICTED, "--groups", "column"), False, "no example has a group"),
        ((*PREDICTED, "--groups", "words"), False, "--groups words needs sequences"),
        ((*PREDICTED, "--score-column", "x"), False, "p.tsv: has no column 'x'"),
        (
            (*PREDICTED, "--positive", "x"),
            False,
            "'x' is not a class; give --positive promoter or background",
        ),
        ((*PREDICTED, "--map", "x=promoter"), False, "no example has the label 'x' that --map renames"),
        ((*PREDICTED, "--map", "promoter"), False, "'--map promoter' renames nothing"),
        ((*PREDICTED, "--map", "promoter=x"), False, "'x', which is none of promoter, background"),
        ((), True, "no training data"),
        (("--test", "none.tsv"), True, "none.tsv"),
        (("--test", "test.tsv", "--split", "train"), True, "no example of split 'train'; splits: test"),
        (
            ("--test", "test.tsv", "--alphabet", "protein"),
            True,
            "--alphabet is protein, but the model reads dna",
        ),
        (
            ("--test", "test.tsv", "--threshold", "2"),
            True,
            "--threshold is 2; a model's threshold is between 0 and 1",
        ),
        (("--test", "test.tsv", "--threshold", "x"), True, "'x' is not a number"),
        (("--test", "test.tsv", "--multiqc", "m.json"), True, "m.json: is not a name that MultiQC looks for"),
        (
            ("--test", "test.tsv", "--out", "m.parquet"),
            True,
            "m.parquet: does not end in the suffix of a TSV",
        ),
        (
            ("--test", "test.tsv", "--html", "a", "--json", "a"),
            True,
            "a: is named twice as an output",
        ),
        (
            ("--test", "test.tsv", "--out", "test.tsv"),
            True,
            "test.tsv: is an input and would be overwritten",
        ),
        (
            ("--test", "test.tsv", "--against", "m.tsv", "--out", "m.tsv"),
            True,
            "m.tsv: is an input",
        ),
        (
            ("--test", "test.tsv", "--html", "m.tsv"),
            True,
            "m.tsv: ends in the suffix of another format",
        ),
        (
            ("--test", "test.tsv", "--train", "other.tsv"),
            True,
            "has the label 'odd', which is none of promoter, background; rename it by --map odd=CLASS",
        ),
        (("--test", "test.tsv", "--html", "none/m.html"), True, "none/m.html: can't be written"),
        (("--test", "-", "--train", "-"), True, "standard input: is named twice as an input"),
        (("--test", "test.tsv", "--against", "nowhere"), True, "no shipped model is called 'nowhere'"),
        (("--test", "test.tsv", "--against", "ecoli-promotor"), True, "did you mean 'ecoli-promoter'?"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    evaluate, folder, predictions, words, model, message
):
    before = sorted(folder.iterdir())
    status, out, err = evaluate(*words, model=model)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("seqray: error: ")
    assert message in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("table", "labels", "message"),
    [
        ("id\tp_promoter\na\t.5\n", "a\tpromoter\nb\tbackground\n", "has no prediction for 'b'"),
        ("id\tp_promoter\na\t.5\na\t.5\n", "a\tpromoter\n", "p.tsv: contains the id 'a' twice"),
        ("id\tp_promoter\na\t.5\n", "a\tpromoter\na\tpromoter\n", "l.tsv: contains the id 'a' twice"),
        ("id\tscore\na\t.5\n", "a\tpromoter\n", "name the score: --score-column NAME"),
        (
            "id\tp_x\na\t.5\nb\t.1\n",
            "a\tx\nb\ty\n",
            "the positive class is not known; give --positive x or y",
        ),
        ("id\tp_x\na\t.5\nb\t.1\nc\t0\n", "a\tx\nb\ty\nc\tz\n", "one score a record, but 3 labels: x, y, z"),
        (
            "id\tp_1\na\t3\nb\t.1\n",
            "a\t1\nb\t0\n",
            "has scores outside 0 to 1; give the lowest score that is called",
        ),
        ("id\tp_a\tp_b\tp_c\nr\t.5\t.4\t.3\n", "r\ta\n", "p.tsv: probabilities are outside 0 to 1 or"),
        (
            "id\tp_a\tp_b\tp_c\nr\t.5\t.4\t.1\n",
            "r\tz\n",
            "record 'r': has the label 'z', which is none of a, b, c",
        ),
    ],
)
def test_tables_that_do_not_join(evaluate, folder, table, labels, message):
    (folder / "p.tsv").write_text(table)
    (folder / "l.tsv").write_text(labels)
    status, _, err = evaluate("--predictions", "p.tsv", "--labels", "l.tsv", model=False)
    assert status == 2
    assert message in err
    assert len(err.splitlines()) == 1


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


def test_help_is_light():
    program = "import sys; from seqray.cli.dispatch import main; main(['evaluate', '--help']); "
    program += "sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for option in ("--predictions FILE", "--against MODEL|TABLE", "--no-floor", "--multiqc FILE", "--groups"):
        assert option in done.stdout


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


def test_without_draws_nothing_is_said_of_groups(evaluate):
    _, out, _ = evaluate("--test", "test.tsv", "--train", "train.tsv", "--bootstrap", "0")
    assert "model minus floor: mcc" in out
    assert "no interval" not in out


# --- rows that the model does not know -----------------------------------------------------------


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


# --- the context of the records ------------------------------------------------------------------


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
    status, _, err = evaluate(*words, "--context", "Rich", "--no-context", model=False)
    assert (status, "both --context and --no-context" in err) == (2, True)
