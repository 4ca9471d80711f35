"""Alignments through the verbs ``train``, ``predict`` and ``evaluate``, and wrong combinations."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import seqray
from seqray.cli.main import main
from seqray.core.errors import ConfigError

YAML = """
name: families
model: {kind: alignment, alphabet: rna, d_model: 16, layers: 1, heads: 2, max_rows: 4, max_length: 20}
data: {window: 20, positive: paired, validation: 0.2}
optimizer: {batch_size: 16, learning_rate: 5e-3}
trainer: {max_epochs: 8, accelerator: cpu}
"""


def stockholm(rng: random.Random, name: str, label: str) -> str:
    """Family `paired`: rows are copies of the query; `other`: rows are anything. The query tells nothing."""
    query = "".join(rng.choices("ACGU", k=16))
    rows = [query] + [query if label == "paired" else "".join(rng.choices("ACGU", k=16)) for _ in range(3)]
    lines = "".join(f"s{i} {row}\n" for i, row in enumerate(rows))
    return f"# STOCKHOLM 1.0\n#=GF AC {name}\n{lines}//\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("alignments"), random.Random(0)
    for part, count in (("train", 240), ("test", 60)):
        names = [(f"{part}{i}", ("paired", "other")[i % 2]) for i in range(count)]
        (folder / f"{part}.sto").write_text("".join(stockholm(rng, *name) for name in names))
        rows = "".join(f"{name}\t{label}\n" for name, label in names)
        (folder / f"{part}.tsv").write_text("id\tlabel\n" + rows)
    (folder / "c.yaml").write_text(YAML)
    train = ["train", "--config", str(folder / "c.yaml"), "--train", str(folder / "train.sto"), "--quiet"]
    labels = ["--alignment-labels", str(folder / "train.tsv"), "--threads", "1"]
    assert main([*train, *labels, "--out", str(folder / "m.safetensors")]) == 0
    return folder


def evaluated(folder, *more):
    words = ["evaluate", "--model", str(folder / "m.safetensors"), "--test", str(folder / "test.sto")]
    words += ["--alignment-labels", str(folder / "test.tsv"), "--quiet", "--out", str(folder / "e.tsv")]
    assert main([*words, *more]) == 0
    return pd.read_csv(folder / "e.tsv", sep="\t", comment="#")


def share_right(labels, truth):
    return sum(a == b for a, b in zip(labels, truth, strict=True)) / len(truth)


def test_separate_sequences_of_one_length_are_not_taken_for_an_alignment_in_silence(folder, tmp_path, capsys):
    rng = random.Random(4)
    rows = ["".join(rng.choices("ACGU", k=20)) for _ in range(30)]
    letters = {"separate": rows, "family": [rows[0][:-1] + rng.choice("ACGU") for _ in rows]}
    for name, found in letters.items():
        fasta = tmp_path / f"{name}.fa"
        fasta.write_text("".join(f">s{i}\n{row}\n" for i, row in enumerate(found)))
        out = str(tmp_path / "p.tsv")
        assert main(["predict", str(fasta), "--model", str(folder / "m.safetensors"), "--out", out]) == 0
        said = "1 of 1 alignments, such as 'separate', have no gaps" in capsys.readouterr().err
        assert said == (name == "separate")


def test_predict_writes_a_row_an_alignment(folder):
    words = ["predict", str(folder / "test.sto"), "--model", str(folder / "m.safetensors"), "--quiet"]
    assert main([*words, "--out", str(folder / "p.tsv")]) == 0
    table = pd.read_csv(folder / "p.tsv", sep="\t", comment="#")
    assert list(table["id"]) == [f"test{i}" for i in range(60)]
    assert set(table["length"]) == {16}  # of the query
    truth = [("paired", "other")[i % 2] for i in range(60)]
    assert share_right(table["label"], truth) > 0.8
    assert main([*words, "--dtype", "bf16", "--out", str(folder / "rough.tsv")]) == 0
    rough = pd.read_csv(folder / "rough.tsv", sep="\t", comment="#")
    assert 0 < np.abs(rough["p_paired"].to_numpy() - table["p_paired"].to_numpy()).max() < 0.1


@pytest.fixture
def wide(tmp_path):
    """Two alignments of which the first has two columns more than the tiny model reads, and their labels."""
    rng = random.Random(5)
    row = "".join(rng.choices("ACGU", k=26))
    (tmp_path / "l.tsv").write_text("id\tlabel\nwide\ttRNA\nfit\tmiRNA\n")
    blocks = [f"#=GF AC wide\nq {row}\nr {row}\n//\n", f"#=GF AC fit\nq {row[2:]}\nr {row[2:]}\n//\n"]
    path = tmp_path / "w.sto"
    path.write_text("# STOCKHOLM 1.0\n" + "# STOCKHOLM 1.0\n".join(blocks))
    return path


def test_alignments_of_one_name_in_two_files_say_where_their_ids_come_from(
    alignment_model_file, tmp_path, capsys
):
    files = [tmp_path / folder / "fam.fa" for folder in ("a", "b")]
    for path in files:
        path.parent.mkdir()
        path.write_text(">q\nACGU\n>r\nACGU\n")
    assert main(["predict", *map(str, files), "--model", str(alignment_model_file)]) == 2
    assert "else the name of the file), or read the file with --duplicates rename" in capsys.readouterr().err


CUT = "1 of 2 alignments have letters in more than 24 columns: the 24 columns with the most letters are read"


def test_predict_says_which_alignments_it_reads_in_part(alignment_model_file, wide, tmp_path, capsys):
    out = tmp_path / "p.tsv"
    words = ["predict", str(wide), "--model", str(alignment_model_file), "--threads", "1", "--out", str(out)]
    assert main(words) == 0
    assert CUT in capsys.readouterr().err.splitlines()
    table = pd.read_csv(out, sep="\t", comment="#")
    assert ["truncated" in flags for flags in table["flags"]] == [True, False]


def test_explain_says_which_alignments_it_reads_in_part(alignment_model_file, wide, tmp_path, capsys):
    words = ["explain", str(wide), "--model", str(alignment_model_file), "--threads", "1", "--no-check"]
    assert main([*words, "--out", str(tmp_path / "x.tsv")]) == 0
    assert CUT in capsys.readouterr().err.splitlines()


def test_evaluate_says_how_many_alignments_it_reads_in_part(alignment_model_file, wide, tmp_path, capsys):
    words = ["evaluate", "--model", str(alignment_model_file), "--test", str(wide), "--threads", "1"]
    words += ["--alignment-labels", str(tmp_path / "l.tsv"), "--out", str(tmp_path / "e.tsv")]
    assert main(words) == 0
    assert CUT in (tmp_path / "e.tsv").read_text()


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_files_of_one_alignment_each_are_answered_together(folder, tmp_path, verb):
    texts = [">q\nACGUACGUACGUACGU\n>r\nACGUACGUACGUACGU\n", ">q\nGGGGACGUACGUACGU\n>r\nACcaGUACGUACGUACGU\n"]
    files = [tmp_path / "one.fa", tmp_path / "two.a3m"]
    for path, text in zip(files, texts, strict=True):
        path.write_text(text)
    words = [verb, *map(str, files), "--model", str(folder / "m.safetensors"), "--quiet"]
    assert main([*words, "--out", str(tmp_path / "all.tsv")]) == 0
    table = pd.read_csv(tmp_path / "all.tsv", sep="\t", comment="#")
    alone = []
    for path in files:
        assert main([verb, str(path), *words[3:], "--out", str(tmp_path / "one.tsv")]) == 0
        alone.append(pd.read_csv(tmp_path / "one.tsv", sep="\t", comment="#"))
    assert list(table.iloc[:, 0].unique()) == ["one", "two"]
    pd.testing.assert_frame_equal(table, pd.concat(alone, ignore_index=True), rtol=1e-4)


def test_an_alignment_alone_gets_the_score_that_it_gets_among_others(folder):
    lines = (folder / "test.sto").read_text().split("//\n")
    (folder / "one.sto").write_text(lines[7] + "//\n")
    for name, out in (("one", "q1"), ("test", "q2")):
        words = ["predict", str(folder / f"{name}.sto"), "--model", str(folder / "m.safetensors"), "--quiet"]
        assert main([*words, "--out", str(folder / f"{out}.tsv")]) == 0
    one, all_ = (pd.read_csv(folder / f"{out}.tsv", sep="\t", comment="#") for out in ("q1", "q2"))
    assert list(one["p_paired"]) == pytest.approx(list(all_["p_paired"])[7:8], abs=1e-5)


def test_evaluate_measures_it_and_the_query_alone_is_worth_nothing(folder):
    table = evaluated(folder)
    auroc = table[(table["metric"] == "auroc") & (table["source"] == "model")]
    assert float(auroc["value"].iloc[0]) > 0.9
    floor = table[(table["metric"] == "auroc") & (table["source"] == "floor")]  # words of the query
    assert floor.empty or abs(float(floor["value"].iloc[0]) - 0.5) < 0.25
    whole = ["predict", str(folder / "test.sto"), "--model", str(folder / "m.safetensors"), "--quiet"]
    assert main([*whole, "--query-only", "--out", str(folder / "alone.tsv")]) == 0
    alone = pd.read_csv(folder / "alone.tsv", sep="\t", comment="#")
    truth = [("paired", "other")[i % 2] for i in range(60)]
    assert abs(share_right(alone["label"], truth) - 0.5) < 0.2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rows", "3", "--query-only"], "--query-only and --rows disagree"),
    ],
)
def test_what_disagrees_is_one_line(folder, words, message, capsys):
    predict = ["predict", str(folder / "test.sto"), "--model", str(folder / "m.safetensors"), "--quiet"]
    assert main([*predict, *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_more_rows_than_the_model_reads_are_refused(alignment_model_file, wide, verb, capsys):
    words = [verb, str(wide), "--model", str(alignment_model_file), "--quiet", "--rows"]
    assert main([*words, "6"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "6 rows are asked for, and model 'tiny-alignments' reads 5 rows at most" in err
    assert main([*words, "5"]) == 0


@pytest.mark.parametrize("verb", ["scan", "calibrate"])
def test_verbs_for_sequences_refuse_a_model_of_alignments(folder, verb, capsys):
    (folder / "long.fa").write_text(">a\n" + "ACGU" * 20 + "\n")
    model = str(folder / "m.safetensors")
    words = [str(folder / "long.fa"), "--model", model, "--out", str(folder / "c.gff3")]
    if verb == "calibrate":
        words = [model, "--train", str(folder / "train.tsv"), "--out", str(folder / "c.safetensors")]
    assert main([verb, *words]) == 2
    error = "model 'families' reads alignments; give a model that reads sequences"
    assert capsys.readouterr().err == f"seqray: error: {error}\n"


def test_the_library_refuses_a_model_of_alignments_where_sequences_are_meant(folder):
    with pytest.raises(ConfigError, match="reads alignments"):
        seqray.scan(str(folder / "m.safetensors"), ["ACGU" * 20])


def test_evaluate_of_sequences_takes_the_queries_where_asked(folder, capsys):
    words = ["evaluate", "--model", "ecoli-promoter", "--test", str(folder / "test.sto"), "--quiet"]
    words += ["--alignment-labels", str(folder / "test.tsv"), "--out", str(folder / "x.tsv")]
    assert main(words) == 2
    assert "--alignment-labels is for models that read alignments" in capsys.readouterr().err
    renamed = ["--map", "paired=promoter", "--map", "other=background"]
    assert main([*words, "--query-only", *renamed]) == 0
    assert len(pd.read_csv(folder / "x.tsv", sep="\t", comment="#"))


def test_alignments_without_a_label_are_counted(folder, capsys):
    few = folder / "few.tsv"
    few.write_text("".join((folder / "test.tsv").read_text().splitlines(keepends=True)[:-2]))
    words = ["evaluate", "--model", str(folder / "m.safetensors"), "--test", str(folder / "test.sto")]
    assert main([*words, "--alignment-labels", str(few), "--out", str(folder / "few-figures.tsv")]) == 0
    assert f"seqray: {few}: no label for 2 alignments, left out\n" in capsys.readouterr().err


def test_models_of_both_kinds_are_compared_in_both_directions(folder, capsys):
    yaml = (
        YAML.replace("kind: alignment, ", "").replace("max_rows: 4, ", "").replace("length: 20", "length: 8")
    )
    (folder / "s.yaml").write_text(yaml.replace("window: 20", "window: 8").replace("epochs: 8", "epochs: 1"))
    data = ["--train", str(folder / "train.sto"), "--alignment-labels", str(folder / "train.tsv"), "--quiet"]
    train = ["train", "--config", str(folder / "s.yaml"), *data, "--query-only", "--threads", "1"]
    alone, whole = str(folder / "s.safetensors"), str(folder / "m.safetensors")
    # The window of 8 is shorter than the queries.
    assert main([*train, "--out", alone]) == 0
    test = ["--test", str(folder / "test.sto"), "--alignment-labels", str(folder / "test.tsv"), "--quiet"]
    for words in (
        ["--model", alone, "--query-only", "--against", whole],
        ["--model", whole, "--against", alone],
    ):
        assert main(["evaluate", *words, *test, "--out", str(folder / "both.tsv")]) == 0
        table = pd.read_csv(folder / "both.tsv", sep="\t", comment="#")
        assert {"model", "against"} <= set(table["source"])


def test_pretraining_reads_alignments_and_training_begins_with_it(folder, capsys):
    config = ["--config", str(folder / "c.yaml"), "--set", "trainer.max_epochs=1", "--threads", "1"]
    weights = str(folder / "w.safetensors")
    assert main(["pretrain", str(folder / "train.sto"), *config, "--out", weights]) == 0
    assert "learned from 240 alignments, 15360 letters" in capsys.readouterr().err  # 240 of 4 by 16
    data = ["--train", str(folder / "train.sto"), "--alignment-labels", str(folder / "train.tsv"), "--quiet"]
    assert main(["train", *config, *data, "--init", weights, "--out", str(folder / "i.safetensors")]) == 0


def test_options_for_alignments_are_refused_by_a_model_of_sequences(folder, capsys):
    (folder / "s.fa").write_text(">a\n" + "ACGT" * 20 + "\n")
    assert (
        main(["predict", str(folder / "s.fa"), "--model", "ecoli-promoter", "--query-only", "--quiet"]) == 2
    )
    assert "--query-only is for models that read alignments" in capsys.readouterr().err


def test_sequences_learn_from_the_queries_of_alignments(folder):
    yaml = YAML.replace("kind: alignment, ", "").replace("max_rows: 4, ", "")
    (folder / "q.yaml").write_text(yaml.replace("max_epochs: 8", "max_epochs: 1"))
    train = ["train", "--config", str(folder / "q.yaml"), "--train", str(folder / "train.sto"), "--quiet"]
    labels = ["--alignment-labels", str(folder / "train.tsv"), "--query-only", "--threads", "1"]
    assert main([*train, *labels, "--out", str(folder / "q.safetensors")]) == 0
