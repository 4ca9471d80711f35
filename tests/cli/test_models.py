"""``seqray models`` and ``seqray export``: what they print, find and write."""

import hashlib
import json
import sys

import onnx
import pandas as pd
import pytest

from seqray.modelfile import header
from tables import changed_model, fasta, letters, write

FIGURE = {"metric": "mcc", "split": "grouped", "value": 0.815, "low": 0.79, "high": 0.841}


@pytest.fixture
def shelf(run, tiny_model, tmp_path, monkeypatch):
    """A zoo of two models, in the folder of the run."""
    metrics = {"headline": FIGURE}
    changed_model(
        tmp_path / "ecoli.safetensors", tiny_model, name="ecoli", summary="E. coli", metrics=metrics
    )
    changed_model(tmp_path / "arabidopsis.safetensors", tiny_model, name="arabidopsis", summary="A. thaliana")
    monkeypatch.setattr(header, "FOLDER", tmp_path)
    return tmp_path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("command", ["models", "models list"])
def test_the_list_fits_a_terminal(shelf, run, tiny_model, command):
    summary = " ".join(["of a species"] * 9)
    changed_model(shelf / "long.safetensors", tiny_model, name="long", summary=summary)
    lines = run(command).out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == ["arabidopsis", "ecoli", "long"]
    assert lines[2:4] == [
        f"{'ecoli':26}E. coli",
        f"{'':26}MCC 0.81 (0.79 to 0.84), grouped; 1 network, 0.0 MB",
    ]
    assert max(map(len, lines)) <= 80
    (shelf / "long.safetensors").unlink()
    rows = json.loads(run(command, "--json").out)
    assert [(row["name"], row["window"]) for row in rows] == [("arabidopsis", 20), ("ecoli", 20)]
    assert rows[0]["size"] == (shelf / "arabidopsis.safetensors").stat().st_size


def test_an_empty_zoo_is_an_empty_list_and_verifying_nothing_is_not_ok(shelf, run, monkeypatch):
    monkeypatch.setattr(header, "FOLDER", shelf / "none")
    assert run("models").out == ""
    run.refused("models verify")


@pytest.mark.parametrize("name", ["ecoli", "ecoli.safetensors"])
def test_a_card_is_shown_to_people_and_as_json(shelf, run, name):
    lines = run("models show", name).out.splitlines()
    assert {"name: ecoli", "reads: sequences of 20 bases"} < set(lines)
    assert {"name: ecoli", "window: 20"} < set(run("models show --full", name).out.splitlines())
    assert lines[-1] == f"sha256: {sha256(shelf / 'ecoli.safetensors')}"
    for words in (f"{name} --json", f"--json {name}"):
        card = json.loads(run("models show", words).out)
        assert card["classes"] == ["promoter", "background"]
        assert card["sha256"] == sha256(shelf / "ecoli.safetensors")


def test_all_models_are_verified_and_a_damaged_one_stops_no_other(shelf, run):
    rows = [line.split("\t") for line in run("models verify").out.splitlines()]
    assert [row[:2] for row in rows] == [["arabidopsis", "ok"], ["ecoli", "ok"]]
    assert rows[1][2] == sha256(shelf / "ecoli.safetensors")
    names = ("name", "status", "sha256")
    assert json.loads(run("models verify --json").out) == [dict(zip(names, row, strict=True)) for row in rows]
    for name, results in (("arabidopsis", ["failed", "ok"]), ("ecoli", ["failed", "failed"])):
        content = (shelf / f"{name}.safetensors").read_bytes()
        write(shelf / f"{name}.safetensors", content[:-1] + bytes([content[-1] ^ 1]))
        ended = run("models verify", status=2)
        assert [line.split("\t")[1] for line in ended.out.splitlines()] == results
        assert ended.err.count("\n") == 1
    for words in ("verify --json", "--json verify"):
        damaged, *others = json.loads(run("models", words, status=2).out)
        assert (damaged["name"], damaged["status"], "checksum" in damaged["reason"]) == (
            "arabidopsis",
            "failed",
            True,
        )
        assert [row["status"] for row in others] == ["failed"]
    assert "2 of 2 models" in ended.err
    assert "sha256sum" in run("models verify", write(shelf / "calls.tsv", "contig\n"), status=2).err


# --- export, and engines --------------------------------------------------------------------------


def test_a_model_becomes_one_graph(run, tiny_model_file, tmp_path):
    ended = run("export --format onnx -o m.onnx", tiny_model_file)
    assert ended.out == ""
    assert "1 member in one graph" in ended.err
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [value.name for value in graph.input] == ["tokens", "mask"]
    assert [value.name for value in graph.output] == ["logits", "probabilities"]
    assert [d.dim_param for d in graph.input[0].type.tensor_type.shape.dim] == ["batch", "length"]
    assert run("export --quiet -o m.onnx", tiny_model_file).err == ""


@pytest.fixture
def on_engine(run, tiny_model_file, tmp_path):
    """Run a verb with the tiny model where in.fa and genome.fa are."""
    write(tmp_path / "in.fa", fasta({f"r{i}": letters(20 - i % 3, i) for i in range(12)}))
    write(tmp_path / "genome.fa", fasta({"c": letters(400)}))
    return lambda verb, *words, **more: run(verb, "-q --model", tiny_model_file, *words, **more)


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
@pytest.mark.parametrize("verb", ["predict in.fa", "scan genome.fa"])
def test_an_engine_writes_the_table_that_torch_writes(on_engine, verb, engine, tmp_path):
    tables = []
    for name in ("torch", engine):
        on_engine(verb, f"--threshold 0.6 --engine {name} -o {name}.tsv")
        tables.append(pd.read_csv(tmp_path / f"{name}.tsv", sep="\t", comment="#"))
    assert len(tables[0])
    pd.testing.assert_frame_equal(*tables, rtol=1e-4)


def test_openvino_takes_bf16_and_may_be_missing(on_engine, monkeypatch):
    on_engine("predict in.fa --dtype bf16 --engine openvino")
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert "pip install openvino" in on_engine("predict in.fa --engine openvino", status=2).err
