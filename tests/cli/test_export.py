"""``seqray export``, and ``--engine`` of the verbs that compute."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pandas as pd
import pytest
import torch

from seqray.cli.main import main

RNG = np.random.default_rng(8)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.fa"
    rows = ["".join(RNG.choice(list("ACGT"), 20 - i % 3)) for i in range(12)]
    path.write_text("".join(f">r{i}\n{row}\n" for i, row in enumerate(rows)))
    return path


@pytest.fixture
def genome(tmp_path):
    path = tmp_path / "genome.fa"
    path.write_text(f">c\n{''.join(RNG.choice(list('ACGT'), 400))}\n")
    return path


@pytest.fixture
def seqray(capfd):
    """Run a verb; gives exit status, standard output and standard error."""
    threads = torch.get_num_threads()

    def run(*words):
        status = main([*map(str, words)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)


def test_a_model_becomes_one_graph(seqray, tiny_model_file, tmp_path):
    out = tmp_path / "m.onnx"
    status, printed, told = seqray("export", tiny_model_file, "--format", "onnx", "-o", out)
    assert (status, printed) == (0, "")
    assert told.startswith(f"wrote {out}: 1 member in one graph, logits within ")
    graph = onnx.load(out).graph
    assert [value.name for value in graph.input] == ["tokens", "mask"]
    assert [value.name for value in graph.output] == ["logits", "probabilities"]
    assert [d.dim_param for d in graph.input[0].type.tensor_type.shape.dim] == ["batch", "length"]
    assert seqray("export", tiny_model_file, "-o", out, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("no-such-model", "-o", "x.onnx"), "no shipped model is called 'no-such-model'"),
        (("ecoli-promoter", "-o", "x.bin"), "x.bin: does not end in .onnx; use .onnx"),
        (("ecoli-promoter", "-o", "-"), "--out: a model can't be exported to standard output"),
        (("ecoli-promoter", "-o", "nowhere/x.onnx"), "nowhere/x.onnx: can't be written"),
    ],
)
def test_what_cannot_be_exported_is_one_line(words, error, seqray, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, told = seqray("export", *words)
    assert status == 2
    assert told.startswith(f"seqray: error: {error}")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
@pytest.mark.parametrize("verb", ["predict", "scan"])
def test_an_engine_writes_the_table_that_torch_writes(
    verb, engine, seqray, source, genome, tiny_model_file, tmp_path
):
    path = source if verb == "predict" else genome
    tables = []
    for name in ("torch", engine):
        out = tmp_path / f"{name}.tsv"
        words = ["--threshold", 0.6, "--engine", name, "-q", "-o", out]
        assert seqray(verb, path, "-m", tiny_model_file, *words)[0] == 0
        tables.append(pd.read_csv(out, sep="\t", comment="#"))
        assert f"--engine {name}" in out.read_text().splitlines()[1]
    assert len(tables[0])
    pd.testing.assert_frame_equal(*tables, rtol=1e-4)


def test_openvino_takes_bf16_and_onnx_does_not(seqray, source, tiny_model_file):
    words = ("predict", source, "-m", tiny_model_file, "--dtype", "bf16", "-q", "--engine")
    assert seqray(*words, "openvino")[0] == 0
    status, _, told = seqray(*words, "onnx")
    assert (status, told.count("\n")) == (2, 1)
    assert "computes in fp32 only" in told


def test_a_missing_engine_is_one_line_with_the_command(seqray, source, tiny_model_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    status, out, told = seqray("predict", source, "-m", tiny_model_file, "--engine", "openvino")
    assert (status, out) == (2, "")
    assert "pip install 'seqray[openvino]'" in told
