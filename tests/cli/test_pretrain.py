"""``seqray pretrain``, and ``seqray train --init`` after it."""

from __future__ import annotations

import random

import pytest

from seqray.cli.main import main
from seqray.modelfile.file import load_model_file
from seqray.modelfile.initial_weights import load_pretrained

YAML = """
name: toy
model: {d_model: 16, layers: 1, heads: 2, max_length: 64}
data: {window: 40}
optimizer: {batch_size: 32, learning_rate: 3e-3}
trainer: {max_epochs: 1, accelerator: cpu}
"""


@pytest.fixture
def files(tmp_path):
    rng = random.Random(0)
    (tmp_path / "c.yaml").write_text(YAML)
    records = "".join(f">r{i}\n{''.join(rng.choices('ACGT', k=400))}\n" for i in range(5))
    (tmp_path / "a.fa").write_text(records + ">empty\n")
    rows = [f"{''.join(rng.choices('ACGT', k=40))}\t{('promoter', 'other')[i % 2]}" for i in range(40)]
    (tmp_path / "data.tsv").write_text("\n".join(["sequence\tlabel", *rows]) + "\n")
    return tmp_path


def test_weights_are_written_and_begun_with(files, capsys):
    pretrain = ["pretrain", str(files / "a.fa"), "--config", str(files / "c.yaml"), "--threads", "1"]
    assert main([*pretrain, "--out", str(files / "w.safetensors")]) == 0
    err = capsys.readouterr().err
    assert "skipped record 'empty'" in err
    assert "learned from 50 windows, 2000 letters" in err
    assert load_pretrained(files / "w.safetensors").facts["examples"] == 50

    train = ["train", "--config", str(files / "c.yaml"), "--train", str(files / "data.tsv")]
    init = ["--init", str(files / "w.safetensors"), "--out", str(files / "m.safetensors")]
    assert main([*train, *init]) == 0
    model = str(files / "m.safetensors")
    assert load_model_file(model).card.members == 1
    # A model is a start, too: fine-tuning.
    assert "--init model used" not in capsys.readouterr().err
    assert main([*train, "--init", model, "--out", str(files / "n.safetensors")]) == 0
    assert "caution: the training of the --init model used all 40 of these records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--share", "0"], "share of hidden letters is 0.0"),
        (["--out", "weights.pt"], "ends in .safetensors"),
        (
            ["--set", "data.window=400", "--set", "model.max_length=400"],
            "too few different windows to learn from",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line(files, change, message, capsys):
    change = change if "--out" in change else [*change, "--out", str(files / "w.safetensors")]
    pretrain = ["pretrain", str(files / "a.fa"), "--config", str(files / "c.yaml")]
    assert main([*pretrain, "--quiet", *change]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (files / "w.safetensors").exists()


def test_weights_of_another_shape_are_no_start(files, capsys):
    pretrain = ["pretrain", str(files / "a.fa"), "--config", str(files / "c.yaml"), "--quiet"]
    assert main([*pretrain, "--out", str(files / "w.safetensors")]) == 0
    train = ["train", "--config", str(files / "c.yaml"), "--train", str(files / "data.tsv")]
    other = ["--set", "model.d_model=32", "--init", str(files / "w.safetensors")]
    assert main([*train, *other, "--out", str(files / "m.safetensors")]) == 2
    assert "have 'model.d_model' 16, the settings 32" in capsys.readouterr().err
