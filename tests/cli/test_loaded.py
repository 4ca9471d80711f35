"""Which packages a verb loads: a workflow pays for them in every job."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "lightning", "pandas", "sklearn", "scipy", "scipy.stats", "pyarrow", "Bio.Seq", "pysam")
HEAVY += ("matplotlib", "transformers", "pyrodigal", "onnx", "onnxruntime", "openvino", "jinja2")
INPUT = ("one.fa", "--model", "ecoli-promoter", "--quiet")
PROGRAM = """\
import sys
from seqray.cli.main import main
for words in {runs}:
    assert main(words) == 0, words
    print("LOADED", words[0], *({heavy} & set(sys.modules)), file=sys.stderr)
"""


def loaded(folder, *runs):
    """Heavy packages in memory after each of some commands, which run in one process, in turn."""
    program = PROGRAM.format(runs=[list(words) for words in runs], heavy=set(HEAVY))
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("LOADED ")]
    return [(verb, set(packages)) for verb, *packages in lines]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.fa").write_text(f">one\n{'ACGTTGCATA' * 8}C\n")
    return tmp_path


def test_verbs_without_a_network_load_none(folder):
    assert loaded(folder, ["completion", "bash"], ["models"]) == [("completion", set()), ("models", set())]


def test_predict_and_scan_load_torch_alone_and_explain_no_statistics(folder):
    found = loaded(
        folder,
        ["predict", *INPUT, "--out", "predictions.tsv"],
        ["scan", *INPUT, "--null-mb", "0", "--out", "calls.gff3", "--out", "calls.tsv", "--out", "calls.bed"],
        ["explain", *INPUT, "--out", "positions.tsv"],
    )
    assert found[:2] == [("predict", {"torch"}), ("scan", {"torch"})]
    assert found[2][1] <= {"torch", "scipy"}  # scipy.special, for intervals


def test_split_and_an_audit_without_baselines_load_no_statistics(folder):
    rows = (f"{'ACGT'[i % 4] * 20}{'GATTACA'[i % 7] * 20}\t{'np'[i % 2]}\n" for i in range(40))
    (folder / "labels.tsv").write_text("sequence\tlabel\n" + "".join(rows))
    split = ["split", "labels.tsv", "--out", "split.tsv", "--quiet"]
    audit = ["audit", "split.tsv", "--no-baselines", "--out", "audit.tsv", "--quiet"]
    for _, packages in loaded(folder, split, audit):
        assert not packages & {"sklearn", "scipy.stats", "pandas", "torch"}


@pytest.mark.parametrize("engine", ["onnx", "auto"])
def test_predict_and_scan_by_onnx_runtime_load_no_torch(folder, engine):
    found = loaded(
        folder,
        ["predict", *INPUT, "--engine", engine, "--device", "cpu", "--out", "predictions.tsv"],
        ["scan", *INPUT, "--engine", engine, "--device", "cpu", "--null-mb", "0", "--out", "calls.gff3"],
    )
    assert found == [("predict", {"onnx", "onnxruntime"}), ("scan", {"onnx", "onnxruntime"})]
    assert "# engine: ONNX Runtime " in (folder / "predictions.tsv").read_text()
    assert "# engine: ONNX Runtime " in (folder / "calls.gff3").read_text()
