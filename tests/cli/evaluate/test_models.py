"""A model on labeled data: its figures, the floor, the options, and what is written."""

import gzip
import json

import pytest
from sklearn import metrics as reference

from cli.evaluate.tables import CLASSES, TEST, TRUTH, figures, probabilities, value, write_table
from tables import body, changed_model, letters, tsv, write


def test_a_model_on_labeled_data(evaluate, folder, tiny_model):
    ended = evaluate("--test test.tsv --out m.tsv")
    found, p = figures(folder / "m.tsv"), probabilities(tiny_model)
    assert ended.err.count("\n") == 1
    assert value(found, "auroc") == pytest.approx(reference.roc_auc_score(TRUTH, p), rel=1e-5)
    assert value(found, "mcc") == pytest.approx(reference.matthews_corrcoef(TRUTH, p >= 0.5), rel=1e-5)
    assert value(found, "brier") == pytest.approx(reference.brier_score_loss(TRUTH, p), rel=1e-5)
    row = found["all", "model", "promoter", "mcc"]
    assert (row["split"], row["n"], row["positives"], row["groups"]) == ("test", "60", str(TRUTH.sum()), "30")
    assert float(row["low"]) < float(row["value"]) < float(row["high"])
    assert {source for _, source, _, _ in found} == {
        *("model", "floor", "forest", "majority", "gc", "model-floor", "model-forest")
    }
    assert {subset for subset, *_ in found} == {"all", "context:species 0", "context:species 1"}
    part = value(found, "auroc", subset="context:species 1")
    assert part == pytest.approx(reference.roc_auc_score(TRUTH[1::2], p[1::2]), rel=1e-5)
    first, second, *_, note, _, last = ended.out.splitlines()
    assert first.startswith("tiny on 60 records of split test: ")
    assert second.split() == ["mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece"]
    assert "cross-validated" in note
    assert last == "positive class: promoter"


def test_training_data_give_a_floor_and_ranges_of_similarity(evaluate, folder):
    out = evaluate("--train train.tsv --test test.tsv --out m.tsv.gz").out
    found = figures(folder / "m.tsv.gz")
    assert value(found, "auroc", "floor") > 0.8  # the planted box is plain to see
    assert b"fitted on 80 training records" in gzip.decompress((folder / "m.tsv.gz").read_bytes())
    ranges = {subset for subset, *_ in found if subset.startswith("similarity:")}
    counts = [int(found[subset, "model", "promoter", "mcc"]["n"]) for subset in ranges]
    assert min(counts) >= 10
    assert sum(counts) <= 60
    assert found["all", "model", "promoter", "mcc"]["groups"] == "30"
    assert "cross-validated" not in out


def test_fasta_files_and_a_choice_of_split(evaluate, folder):
    def row(words):
        evaluate(words, "--no-floor --out x.tsv")
        found = figures(folder / "x.tsv")
        return found["all", "model", "promoter", "mcc"], value(found, "auroc")

    whole, auroc = row(" ".join(f"--class={label}={label}.fa" for label in CLASSES))
    assert whole["split"] == "all"
    _, same = row("--train train.tsv --validation test.tsv --split validation")
    assert same == pytest.approx(auroc)
    both, _ = row("--train train.tsv --validation test.tsv --split all")
    assert both["n"] == "140"


def test_threshold_and_prior(evaluate, folder, tiny_model):
    out = evaluate("--test plain.tsv --threshold 0.7 --no-floor --out m.tsv").out
    found, p = figures(folder / "m.tsv"), probabilities(tiny_model)
    assert value(found, "sensitivity") == pytest.approx(reference.recall_score(TRUTH, p >= 0.7), rel=1e-5)
    assert {source for _, source, _, _ in found} == {"model"}
    assert "have no baseline" in out
    evaluate("--test plain.tsv --prior 0.6 --no-floor --out q.tsv")
    odds = p / (1 - p) * (0.6 / 0.4) / (0.2 / 0.8)
    expected = reference.brier_score_loss(TRUTH, odds / (1 + odds))
    assert value(figures(folder / "q.tsv"), "brier") == pytest.approx(expected, rel=1e-4)


def test_another_model_on_the_same_records(evaluate, folder, tiny_model_file):
    out = evaluate("--test test.tsv --out m.tsv --against", tiny_model_file).out
    found = figures(folder / "m.tsv")
    assert value(found, "mcc", "against") == value(found, "mcc")
    row = found["all", "model-against", "promoter", "mcc"]
    assert (row["value"], row["low"], row["high"], row["p"]) == ("0", "0", "0", "1")
    assert "McNemar p 1" in out


def test_names_of_labels_and_the_order_of_rows_decide_nothing(evaluate, folder):
    names = {"promoter": "1", "background": "a=b"}
    write_table(folder / "other.tsv", [(*row[:2], names[row[2]], *row[3:]) for row in TEST])
    write_table(folder / "turned.tsv", TEST[::-1])
    found = []
    for words in (
        "test.tsv",
        "other.tsv --map 1=promoter --map a=b=background",
        "turned.tsv",
        "test.tsv --context none",  # for a model without contexts
    ):
        evaluate("--seed 1 --out a.tsv --test", words)
        found.append(figures(folder / "a.tsv"))
    assert found[1:] == found[:1] * 3


def test_flanks_that_training_had_are_cut_off(evaluate, folder, tiny_model):
    """The table that trained a model is one that evaluate reads: the same with its flanks and without."""
    training = {**tiny_model.card.training, "config": {"data": {"window": 20, "flank": 3}}}
    model = changed_model(folder / "m.safetensors", tiny_model, training=training)
    rows = [(letters(26, i), CLASSES[i % 2]) for i in range(60)]
    told = []
    for cut in (slice(None), slice(3, 23)):
        write(folder / "x.tsv", tsv("sequence label", [(sequence[cut], label) for sequence, label in rows]))
        evaluate("--test x.tsv --no-floor --out e.tsv", model=model)
        told.append(body((folder / "e.tsv").read_text()))
    assert told[0] == told[1]


def test_all_outputs_are_the_same_bytes_again_and_say_the_same(evaluate, folder):
    words = "--train train.tsv --test test.tsv --seed 3 --sample one --threads 1 --device cpu --batch-size 16"
    names = ("m.tsv", "m.json", "m.html", "m_mqc.json")
    runs = []
    for _ in range(2):
        evaluate(words, "--out m.tsv --json m.json --html m.html --multiqc m_mqc.json")
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


def test_figures_on_standard_output_leave_the_summary_to_standard_error(evaluate):
    ended = evaluate("--test test.tsv --out - --no-floor")
    assert ended.out.startswith("# seqray ")
    assert ended.err.startswith("tiny on 60 records")
    assert evaluate("--test test.tsv --out - --no-floor --quiet").err == ""


def test_without_draws_there_are_no_intervals_and_nothing_is_said_of_groups(evaluate, folder):
    out = evaluate("--test test.tsv --train train.tsv --out m.tsv", draws=0).out
    assert {row["low"] for row in figures(folder / "m.tsv").values()} == {"."}
    assert "model minus baseline: mcc" in out
    assert "no interval" not in out
