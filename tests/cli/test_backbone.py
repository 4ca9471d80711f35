"""A classifier on a backbone goes through the verbs, without a network, and misuse is one line."""

import random
import shutil
import socket
import sys

import pandas as pd
import pytest

from seqray.modelfile import backbones as tokenizer
from seqray.modelfile.header import read_card
from tables import changed_model, fasta, letters, tsv, write

YAML = """
name: toy
model: {kind: backbone, alphabet: dna, max_length: 40, backbone: {tuning: lora, rank: 2}}
data: {window: 30, site: 12}
optimizer: {batch_size: 16, learning_rate: 1e-2}
trainer: {max_epochs: 2, accelerator: cpu}
"""
TRAIN = "train --config c.yaml --train data.tsv --out m.safetensors --threads 1"


@pytest.fixture
def seqray(run, tmp_path, backbones, monkeypatch):
    """Run a verb where settings, labeled data, records and a backbone are; the network raises."""
    rng, rows = random.Random(0), []
    for i in range(120):
        weights = [3, 1, 1, 1] if i % 2 else [1, 1, 1, 1]
        label = ("background", "promoter")[i % 2]
        rows.append(("".join(rng.choices("ACGT", weights, k=30)), label, "test" if i >= 80 else ""))
    write(tmp_path / "c.yaml", YAML)
    write(tmp_path / "data.tsv", tsv("sequence label split", rows))
    write(tmp_path / "in.fa", fasta({f"r{i}": row[0] for i, row in enumerate(rows[:4])}))
    write(tmp_path / "genome.fa", fasta({"c": letters(80)}))
    shutil.copytree(backbones["bpe"], tmp_path / "bb")
    monkeypatch.delenv("SEQRAY_BACKBONE", raising=False)

    def refuse(*arguments, **settings):
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return run


def test_a_backbone_goes_through_the_verbs(seqray, tmp_path):
    seqray(TRAIN, "--backbone bb --quiet")
    known = read_card("m.safetensors").model.backbone
    assert (known.path, known.name, known.tuning, known.rank) == (str(tmp_path / "bb"), "bb", "lora", 2)
    weights = tmp_path / "bb" / "model.safetensors"
    assert (tmp_path / "m.safetensors").stat().st_size < weights.stat().st_size
    (tmp_path / "bb").rename(tmp_path / "moved")
    model = "--model m.safetensors --threads 1 --quiet"
    moved = f"{model} --backbone moved"

    told = seqray("predict in.fa", model, status=2).err
    assert all(name in told for name in (str(tmp_path / "bb"), "--backbone DIR", "SEQRAY_BACKBONE"))
    rows = seqray("predict in.fa", moved).rows
    sums = [float(row["p_background"]) + float(row["p_promoter"]) for row in rows]
    assert sums == pytest.approx([1] * 4)

    seqray("explain in.fa", moved, "--out e.tsv --html e.html --shuffles 2 --method rollout --method ism")
    positions = pd.read_csv("e.tsv", sep="\t", comment="#")
    sums = positions[positions.method == "rollout"].groupby("record").score.sum()
    assert sums.tolist() == pytest.approx([1] * 4, abs=1e-4)
    assert len(positions) == 2 * 4 * 30

    assert seqray("models verify m.safetensors --backbone moved").out.startswith("m.safetensors\tok")
    seqray.refused("export m.safetensors --out m.onnx", names=("'toy'", "ONNX"))  # told without the directory
    seqray("scan genome.fa", moved, "--out s.tsv --null-mb 0")
    seqray("evaluate", moved, "--test data.tsv --out v.tsv --bootstrap 10")
    seqray("calibrate m.safetensors --backbone moved --train data.tsv --out k.safetensors")
    # Its card holds the new place.
    assert seqray("models verify k.safetensors").out.startswith("k.safetensors\tok")
    assert "tuning: lora" in seqray("models show --full m.safetensors").out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("explain in.fa --method value-rollout", ("value-rollout", "backbone")),
        ("explain in.fa --heads h.tsv", ("'toy'", "heads")),
        ("predict in.fa --engine onnx", ("'toy'", "ONNX")),
        ("predict in.fa --backbone other", ("/other", "config.json")),
    ],
)
def test_what_cannot_be_had_is_one_line(words, names, seqray, on_backbone, tmp_path):
    changed_model(tmp_path / "m.safetensors", on_backbone("bpe", "lora"), name="toy")
    shutil.copytree("bb", "other")
    with open("other/config.json", "a") as handle:
        handle.write("\n")
    seqray.refused(words, "--model m.safetensors --threads 1", names=names)


def test_a_backbone_that_does_not_fit_is_one_line(seqray, tmp_path):
    seqray.refused(TRAIN, "--backbone bb --init ecoli-promoter", names="model.kind")
    write(tmp_path / "c.yaml", YAML.replace("dna", "protein"))
    data = tmp_path / "data.tsv"
    write(data, data.read_text().replace("A", "M"))  # nucleotides would be refused before
    seqray.refused(TRAIN, "--backbone bb", names=("bb", "tokenizer"))


@pytest.mark.parametrize("package", ["transformers", "peft"])
def test_without_the_extra_the_line_names_it(package, seqray, monkeypatch):
    tokenizer._load.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    told = seqray(TRAIN, "--backbone bb", status=2).err
    assert told.count("\n") == 1
    assert f"'{package}'" in told
    assert "seqray with its extra 'hf'" in told
