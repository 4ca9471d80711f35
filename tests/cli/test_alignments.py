"""Alignments through the verbs ``train``, ``predict``, ``evaluate`` and ``explain``."""

import random

import numpy as np
import pandas as pd
import pytest

from seqray.cli.main import main
from tables import fasta, letters, tsv, write

YAML = """
name: families
model: {kind: alignment, alphabet: rna, d_model: 16, layers: 1, heads: 2, max_rows: 4, max_length: 20}
data: {window: 20, positive: paired, validation: 0.2}
optimizer: {batch_size: 16, learning_rate: 5e-3}
trainer: {max_epochs: 8, accelerator: cpu}
"""
OF_QUERIES = (
    YAML.replace("kind: alignment, ", "").replace("max_rows: 4, ", "").replace("epochs: 8", "epochs: 1")
)
LABELS = ("paired", "other")
TRUTH = [LABELS[i % 2] for i in range(60)]


def stockholm(name: str, *rows: str) -> str:
    lines = "".join(f"s{i} {row}\n" for i, row in enumerate(rows))
    return f"# STOCKHOLM 1.0\n#=GF AC {name}\n{lines}//\n"


def family(rng: random.Random, label: str) -> list[str]:
    """Family `paired`: rows are copies of the query; `other`: rows are anything. The query tells nothing."""
    query = "".join(rng.choices("ACGU", k=16))
    return [query, *(query if label == "paired" else "".join(rng.choices("ACGU", k=16)) for _ in range(3))]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Alignments with labels, and a model of them."""
    folder, rng = tmp_path_factory.mktemp("alignments"), random.Random(0)
    for part, count in (("train", 240), ("test", 60)):
        labels = [(f"{part}{i}", LABELS[i % 2]) for i in range(count)]
        blocks = [stockholm(name, *family(rng, label)) for name, label in labels]
        write(folder / f"{part}.sto", "".join(blocks))
        write(folder / f"{part}.tsv", tsv("id label", labels))
    write(folder / "c.yaml", YAML)
    words = f"train --config {folder}/c.yaml --train {folder}/train.sto --quiet --threads 1"
    out = ["--alignment-labels", f"{folder}/train.tsv", "--out", f"{folder}/m.safetensors"]
    assert main([*words.split(), *out]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """The same files in the folder of the run."""
    for path in made.iterdir():
        if path.is_file():
            write(tmp_path / path.name, path.read_bytes())
    return tmp_path


@pytest.fixture
def predict(run, folder):
    return run.to("predict --model m.safetensors")


def scores(ended) -> list[float]:
    return [float(row["p_paired"]) for row in ended.rows]


def share_right(rows):
    return np.mean([row["label"] == label for row, label in zip(rows, TRUTH, strict=True)])


# --- predict --------------------------------------------------------------------------------------


def test_predict_writes_a_row_an_alignment(predict):
    ended = predict("test.sto")
    assert [row["id"] for row in ended.rows] == [f"test{i}" for i in range(60)]
    assert {row["length"] for row in ended.rows} == {"16"}  # of the query
    assert share_right(ended.rows) > 0.8
    assert abs(share_right(predict("test.sto --query-only").rows) - 0.5) < 0.2
    rough = np.array(scores(predict("test.sto --dtype bf16")))
    assert 0 < np.abs(rough - scores(ended)).max() < 0.1


def test_an_alignment_alone_gets_the_score_that_it_gets_among_others(predict, folder):
    write(folder / "one.sto", (folder / "test.sto").read_text().split("//\n")[7] + "//\n")
    assert scores(predict("one.sto")) == pytest.approx(scores(predict("test.sto"))[7:8], abs=1e-5)


def test_separate_sequences_of_one_length_are_not_taken_for_an_alignment_in_silence(predict, folder):
    rows = [letters(20, i, "ACGU") for i in range(30)]
    related = [rows[0][:-1] + "ACGU"[i % 4] for i in range(30)]
    for name, found in (("separate", rows), ("family", related)):
        write(folder / f"{name}.fa", fasta({f"s{i}": row for i, row in enumerate(found)}))
        said = "'separate', have no gaps" in predict(f"{name}.fa").err
        assert said == (name == "separate")


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_files_of_one_alignment_each_are_answered_together(run, folder, verb):
    write(folder / "one.fa", ">q\nACGUACGUACGUACGU\n>r\nACGUACGUACGUACGU\n")
    write(folder / "two.a3m", ">q\nGGGGACGUACGUACGU\n>r\nACcaGUACGUACGUACGU\n")
    tables = []
    for names in ("one.fa two.a3m", "one.fa", "two.a3m"):
        run(verb, names, "--model m.safetensors --quiet --out x.tsv")
        tables.append(pd.read_csv(folder / "x.tsv", sep="\t", comment="#"))
    both, *alone = tables
    assert list(both.iloc[:, 0].unique()) == ["one", "two"]
    pd.testing.assert_frame_equal(both, pd.concat(alone, ignore_index=True), rtol=1e-4)


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("predict w.sto", "--skipped s.tsv"),
        ("explain w.sto", "--no-check"),
        ("evaluate --test w.sto", "--alignment-labels l.tsv"),
    ],
)
def test_alignments_that_are_read_in_part_are_counted(run, alignment_model_file, tmp_path, verb, more):
    """The first has two columns more than the tiny model reads."""
    row = letters(26, 5, "ACGU")
    write(tmp_path / "w.sto", stockholm("wide", row, row) + stockholm("fit", row[2:], row[2:]))
    write(tmp_path / "l.tsv", tsv("id label", [("wide", "tRNA"), ("fit", "miRNA")]))
    ended = run(verb, more, "--threads 1 --out x.tsv --model", alignment_model_file)
    text = (tmp_path / "x.tsv").read_text()
    assert "1 of 2 alignments have letters in more than 24 columns" in ended.err + text
    assert verb != "predict w.sto" or text.count("truncated") == 1


# --- train and evaluate ---------------------------------------------------------------------------


def test_evaluate_measures_it_and_the_query_alone_is_worth_nothing(run, folder):
    evaluate = run.to("evaluate --model m.safetensors --test test.sto --out e.tsv --alignment-labels")
    evaluate("test.tsv --quiet")
    figures = pd.read_csv(folder / "e.tsv", sep="\t", comment="#").query("metric == 'auroc'")
    auroc = {source: rows["value"].iloc[0] for source, rows in figures.groupby("source")}
    assert float(auroc["model"]) > 0.9
    assert abs(float(auroc.get("floor", 0.5)) - 0.5) < 0.25  # words of the query
    write(folder / "few.tsv", "".join((folder / "test.tsv").read_text().splitlines(keepends=True)[:-2]))
    assert "few.tsv: no label for 2 alignments" in evaluate("few.tsv").err


def test_models_of_queries_and_of_alignments_are_compared_in_both_directions(run, folder):
    """The window of 8 is shorter than the queries."""
    write(folder / "s.yaml", OF_QUERIES.replace("window: 20", "window: 8").replace("length: 20", "length: 8"))
    data = "--train train.sto --alignment-labels train.tsv --query-only --threads 1 --quiet"
    run("train --config s.yaml --out s.safetensors", data)
    for words in (
        "--model s.safetensors --query-only --against m.safetensors",
        "--model m.safetensors --against s.safetensors",
    ):
        run("evaluate --test test.sto --alignment-labels test.tsv --quiet --out both.tsv", words)
        table = pd.read_csv(folder / "both.tsv", sep="\t", comment="#")
        assert {"model", "against"} <= set(table["source"])


def test_pretraining_reads_alignments_and_training_begins_with_it(run, folder):
    config = "--config c.yaml --set trainer.max_epochs=1 --threads 1"
    err = run("pretrain train.sto --out w.safetensors", config).err
    assert "240 alignments, 15360 letters" in err  # 240 of 4 by 16
    data = "--train train.sto --alignment-labels train.tsv --quiet"
    run("train --init w.safetensors --out i.safetensors", config, data)
