"""``seqray evaluate`` in a folder with tables of labels."""

from __future__ import annotations

import pytest
import torch

from cli.evaluate.tables import CLASSES, TEST, TRAIN, write_table
from seqray.cli.main import main


@pytest.fixture
def folder(tmp_path, tiny_model):
    """Tables of labels, and predictions of the tiny model."""
    write_table(tmp_path / "test.tsv", TEST)
    write_table(tmp_path / "train.tsv", TRAIN)
    write_table(tmp_path / "other.tsv", [*TRAIN, ("odd", TRAIN[0][1], "odd", "g", "")])
    write_table(tmp_path / "long.tsv", [("x", "A" * 21, "promoter", "g", ""), *TEST])
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
        given += () if "--bootstrap" in words else ("--bootstrap", "20")
        status = main(["evaluate", *given, *map(str, words)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)


@pytest.fixture
def predictions(folder, tiny_model_file):
    words = ["predict", str(folder / "test.fa"), "--model", str(tiny_model_file), "--quiet"]
    assert main([*words, "--out", str(folder / "p.tsv")]) == 0
    assert main([*words, "--out", str(folder / "p.parquet")]) == 0
    return folder / "p.tsv"
