"""Which packages a verb loads: a workflow pays for them in every job."""

import subprocess
import sys

import pytest

from tables import fasta, letters, tsv, write

HEAVY = ("torch", "lightning", "pandas", "sklearn", "scipy", "scipy.stats", "pyarrow", "Bio.Seq", "pysam")
HEAVY += ("matplotlib", "transformers", "peft", "pyrodigal", "onnx", "onnxruntime", "openvino", "jinja2")
INPUT = "one.fa --model ecoli-promoter --quiet"
PROGRAM = """\
import sys
from seqray.cli.main import main
for words in {runs}:
    assert main(words) == 0, words
    print("LOADED", words[0], *({heavy} & set(sys.modules)), file=sys.stderr)
"""


@pytest.fixture
def loaded(tmp_path):
    """Heavy packages in memory after each of some commands, which run in one process, in turn."""
    write(tmp_path / "one.fa", fasta({"one": "ACGTTGCATA" * 8 + "C"}))

    def run(*commands):
        program = PROGRAM.format(runs=[command.split() for command in commands], heavy=set(HEAVY))
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("LOADED ")]
        return {verb: set(packages) for verb, *packages in lines}

    return run


def test_verbs_without_a_network_load_none(loaded):
    assert loaded("completion bash", "models", "models show ecoli-promoter") == {
        "completion": set(),
        "models": set(),
    }


def test_predict_and_scan_load_torch_alone_and_explain_no_statistics(loaded):
    found = loaded(
        f"predict {INPUT} --out predictions.tsv",
        f"scan {INPUT} --null-mb 0 --out calls.gff3 --out calls.tsv --out calls.bed",
        f"explain {INPUT} --out positions.tsv",
    )
    assert found["predict"] == found["scan"] == {"torch"}
    assert found["explain"] <= {"torch", "scipy"}  # scipy.special, for intervals


def test_split_and_an_audit_without_baselines_load_no_statistics(loaded, tmp_path):
    rows = [(letters(40, i), "np"[i % 2]) for i in range(40)]
    write(tmp_path / "labels.tsv", tsv("sequence label", rows))
    found = loaded(
        "split labels.tsv --out split.tsv --quiet", "audit split.tsv --no-baselines --out audit.tsv --quiet"
    )
    assert not set.union(*found.values()) & {"sklearn", "scipy.stats", "pandas", "torch"}


@pytest.mark.parametrize("engine", ["onnx", "auto"])
def test_predict_and_scan_by_onnx_runtime_load_no_torch(loaded, tmp_path, engine):
    found = loaded(
        f"predict {INPUT} --engine {engine} --device cpu --out predictions.tsv",
        f"scan {INPUT} --engine {engine} --device cpu --null-mb 0 --out calls.gff3",
    )
    assert found["predict"] == found["scan"] == {"onnx", "onnxruntime"}
    locator = loaded("scan one.fa --model bacteria-genome --engine onnx --quiet --out sites.gff3")
    assert not locator["scan"] & {"torch", "scipy", "pandas"}
    for name in ("predictions.tsv", "calls.gff3"):
        assert "# engine: ONNX Runtime " in (tmp_path / name).read_text()
