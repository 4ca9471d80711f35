"""A classifier on a backbone goes through the verbs, without a network, and every misuse is one line."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
import torch

from seqray.cli.main import main
from seqray.modelfile import backbones as tokenizer
from seqray.modelfile.file import save_model
from seqray.modelfile.header import read_card

YAML = """
name: toy
model: {kind: backbone, alphabet: dna, max_length: 40, backbone: {tuning: lora, rank: 2}}
data: {window: 30, site: 12}
optimizer: {batch_size: 16, learning_rate: 1e-2}
trainer: {max_epochs: 2, accelerator: cpu}
"""


@pytest.fixture
def files(tmp_path, backbones):
    """Settings, labeled data, records and a copy of the backbone in the folder."""
    rng = random.Random(0)
    rows = ["sequence\tlabel\tsplit"]
    for i in range(120):
        letters = "".join(rng.choices("ACGT", [3, 1, 1, 1] if i % 2 else [1, 1, 1, 1], k=30))
        part = "test" if i >= 80 else ""
        rows.append(f"{letters}\t{('background', 'promoter')[i % 2]}\t{part}")
    (tmp_path / "c.yaml").write_text(YAML)
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "in.fa").write_text(
        "".join(f">r{i}\n{r.split(chr(9))[0]}\n" for i, r in enumerate(rows[1:5]))
    )
    (tmp_path / "genome.fa").write_text(f">c\n{''.join(rng.choices('ACGT', k=80))}\n")
    shutil.copytree(backbones["bpe"], tmp_path / "bb")
    return tmp_path


@pytest.fixture
def seqray(files, capfd, monkeypatch):
    """Run a verb in the folder, where the network raises; gives exit status, standard output and error."""
    threads = torch.get_num_threads()
    monkeypatch.chdir(files)
    monkeypatch.delenv("SEQRAY_BACKBONE", raising=False)

    def refuse(*arguments, **settings):
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    def run(*words):
        status = main([*map(str, words)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)


TRAIN = ("train", "--config", "c.yaml", "--train", "data.tsv", "--out", "m.safetensors", "--threads", "1")


def test_a_backbone_goes_through_the_verbs(seqray, files):
    assert seqray(*TRAIN, "--backbone", "bb", "--quiet") == (0, "", "")
    known = read_card("m.safetensors").model.backbone
    assert (known.path, known.name, known.tuning, known.rank) == (str(files / "bb"), "bb", "lora", 2)
    assert (files / "m.safetensors").stat().st_size < (files / "bb" / "model.safetensors").stat().st_size
    (files / "bb").rename(files / "moved")
    model = ("--model", "m.safetensors", "--threads", "1", "--quiet")
    moved = (*model, "--backbone", "moved")

    status, _, told = seqray("predict", "in.fa", *model)
    assert status == 2
    assert told == (
        f"seqray: error: {files / 'bb'}: the directory of the backbone does not exist; name the directory "
        "where it lies now by --backbone DIR or the variable SEQRAY_BACKBONE\n"
    )
    assert seqray("predict", "in.fa", *moved, "--out", "p.tsv") == (0, "", "")
    table = pd.read_csv("p.tsv", sep="\t", comment="#")
    assert table[["p_background", "p_promoter"]].sum(axis=1).tolist() == pytest.approx([1] * 4)

    words = (
        "--out",
        "e.tsv",
        "--html",
        "e.html",
        "--shuffles",
        "2",
        "--method",
        "rollout",
        "--method",
        "ism",
    )
    assert seqray("explain", "in.fa", *moved, *words) == (0, "", "")
    letters = pd.read_csv("e.tsv", sep="\t", comment="#")
    sums = letters[letters.method == "rollout"].groupby("record").score.sum()
    assert sums.tolist() == pytest.approx([1] * 4, abs=1e-4)
    assert len(letters) == 2 * 4 * 30

    status, printed, _ = seqray("models", "verify", "m.safetensors", "--backbone", "moved")
    assert (status, printed.split("\t")[:2]) == (0, ["m.safetensors", "ok"])
    status, _, told = seqray("export", "m.safetensors", "--out", "m.onnx")  # told without the directory
    assert (status, told.count("\n")) == (2, 1)
    assert "model 'toy' uses a backbone and cannot be converted to ONNX; use torch" in told

    assert seqray("scan", "genome.fa", *moved, "--out", "s.tsv", "--null-mb", "0")[0] == 0
    figures = ("--test", "data.tsv", "--out", "v.tsv", "--bootstrap", "10")
    assert seqray("evaluate", *moved, *figures)[0] == 0
    again = (
        "calibrate",
        "m.safetensors",
        "--backbone",
        "moved",
        "--train",
        "data.tsv",
        "--out",
        "k.safetensors",
    )
    assert seqray(*again)[0] == 0
    status, printed, _ = seqray("models", "verify", "k.safetensors")  # whose card holds the new place
    assert (status, printed.split("\t")[:2]) == (0, ["k.safetensors", "ok"])
    assert "tuning: lora" in seqray("models", "show", "m.safetensors")[1]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("explain", "in.fa", "--method", "value-rollout"),
            "value-rollout needs values that the backbone of mod",
        ),
        (("explain", "in.fa", "--heads", "h.tsv"), "model 'toy' has a backbone, whose heads can't be"),
        (
            ("predict", "in.fa", "--engine", "onnx"),
            "model 'toy' uses a backbone and cannot be converted to ONNX",
        ),
        (
            ("predict", "in.fa", "--backbone", "other"),
            "/other: is not the backbone of the model: config.json has",
        ),
    ],
)
def test_what_cannot_be_had_is_one_line(words, error, seqray, files, on_backbone):
    model = on_backbone("bpe", "lora")
    save_model("m.safetensors", model.networks, replace(model.card, name="toy"))
    shutil.copytree("bb", "other")
    with open("other/config.json", "a") as handle:
        handle.write("\n")
    before = sorted(files.iterdir())
    status, printed, told = seqray(*words, "--model", "m.safetensors", "--threads", "1")
    assert (status, printed) == (2, "")
    assert error in told
    assert told.count("\n") == 1
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "words", "error"),
    [
        ({}, ("--backbone", "nowhere"), "nowhere: the directory of the backbone does not exist"),
        ({}, (), "'model.backbone.path' names no directory; give it, or --backbone DIR"),
        ({"kind: backbone": "kind: sequence"}, (), "'model.backbone' requires 'model.kind: backbone'"),
        ({YAML: "name: x"}, ("--backbone", "bb"), "--backbone is given, but 'model.kind' is sequence"),
        ({"alphabet: dna": "alphabet: protein"}, ("--backbone", "bb"), "bb: the tokenizer does not know the"),
        ({"rank: 2": "rank: 0"}, ("--backbone", "bb"), "'model.backbone.rank' must lie between 1 and 1024"),
        ({"rank: 2": "ranks: 2"}, ("--backbone", "bb"), "did you mean 'model.backbone.rank'?"),
        ({}, ("--backbone", "bb", "--init", "ecoli-promoter"), "begins with the weights of its directory"),
    ],
)
def test_settings_that_cannot_be_used_are_one_line(change, words, error, seqray, files):
    text = YAML
    for old, new in change.items():
        text = text.replace(old, new)
    (files / "c.yaml").write_text(text)
    if "alphabet: protein" in text:  # nucleotides would be refused before
        data = files / "data.tsv"
        data.write_text(data.read_text().replace("A", "M"))
    status, printed, told = seqray(*TRAIN, *words)
    assert (status, printed) == (2, "")
    assert error in told
    assert told.count("\n") == 1
    assert not (files / "m.safetensors").exists()


@pytest.mark.parametrize("package", ["transformers", "peft"])
def test_without_the_extra_the_line_names_it(package, seqray, monkeypatch):
    tokenizer._load.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    status, _, told = seqray(*TRAIN, "--backbone", "bb")
    assert status == 2
    assert told == (
        f"seqray: error: the package '{package}' is not installed; install it: pip install 'seqray[hf]'\n"
    )


def test_other_models_load_none_of_it():
    code = (
        "import sys, seqray, seqray.cli.main; seqray.predict('ecoli-promoter', 'ACGT' * 20);"
        "print(sorted({'transformers', 'peft', 'tokenizers', 'accelerate'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
