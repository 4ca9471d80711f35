"""What the program around seqray has set changes no result, and stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqray.cli.main import main

ROOT = Path(__file__).parents[2]
PROGRAM = """
import contextlib, json, logging, os, random, sys, warnings
import numpy as np
import torch
import matplotlib
import seqray

warnings.simplefilter("ignore")
RECORDS = "data/example/promoters.fa"
host = sys.argv[1]
around = contextlib.ExitStack()
if host == "process":
    torch.set_default_dtype(torch.float64)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    np.seterr(all="raise")
    os.environ["WORLD_SIZE"] = "2"
    torch.use_deterministic_algorithms(True)
    matplotlib.rcParams.update({"text.usetex": True, "font.size": 40, "axes.facecolor": "red"})
    matplotlib.rcParams.update({"svg.fonttype": "path", "lines.linewidth": 9, "axes.grid": True})
elif host == "thread":
    torch.set_float32_matmul_precision("medium")
    around.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
    around.enter_context(torch.no_grad())
    around.enter_context(torch.inference_mode())
    around.enter_context(torch.device("meta"))


def state():
    settings = [torch.get_default_dtype(), torch.get_num_threads(), np.geterr()]
    settings += [torch.backends.mkldnn.matmul.fp32_precision, torch.backends.cuda.matmul.fp32_precision]
    settings += [torch.are_deterministic_algorithms_enabled(), torch.is_grad_enabled()]
    settings += [torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")]
    settings += [torch.get_default_device()]
    settings += [torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()]
    settings += [logging.getLogger(name).level for name in ("", "lightning.pytorch", "lightning.fabric")]
    settings += [dict(os.environ), dict(matplotlib.rcParams), list(warnings.filters)]
    return repr(settings)


torch.manual_seed(3), np.random.seed(3), random.seed(3)
rng = np.random.default_rng(0)
X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(40)]
with around:
    import lightning.pytorch, sklearn.model_selection
    before, results = state(), {}
    model = seqray.load_model("ecoli-promoter")
    records = list(seqray.read_fasta(RECORDS, model.alphabet))[:3]
    results["predict"] = seqray.predict(model, records).to_csv()
    results["predictions"] = repr(list(seqray.predict_records(model, records)))
    results["scan"] = seqray.scan("bacteria-genome", "data/example/regions.fa", genes=None).to_csv()
    for method in ("rollout", "grad-rollout", "value-rollout", "integrated-gradients", "ism"):
        frame = seqray.explain(model, records, method=method, shuffles=0)
        results[method] = frame.to_csv()
    figure = seqray.plot.logo(frame)
    results["figure"] = repr(figure._repr_png_())[-2000:]
    classifier = seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=1, members=2)
    results["fit"] = repr(classifier.fit(X, ["a", "b"] * 20).predict_proba(X[:3]).tolist())
    after = state()
changed = [pair for pair in zip(before.split(", "), after.split(", ")) if pair[0] != pair[1]]
assert before == after, changed[:9]
json.dump(results, sys.stdout)
"""


def run(tmp_path, host):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program, host],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return run(tmp_path_factory.mktemp("plain"), "plain")


@pytest.mark.parametrize("host", ["process", "thread"])
def test_settings_of_the_program_change_no_result_and_stay(tmp_path, plain, host):
    assert run(tmp_path, host) == plain


def test_a_backend_that_is_not_installed_and_a_hostile_style_cost_no_output(tmp_path):
    records = ROOT / "data/example/promoters.fa"
    words = ["explain", str(records), "-m", "ecoli-promoter", "--method", "rollout", "--no-check", "--quiet"]
    written = {}
    for host in ("plain", "hostile"):
        folder = tmp_path / host
        folder.mkdir()
        if host == "hostile":
            (folder / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\nsvg.fonttype: path\n")
        done = subprocess.run(
            [sys.executable, "-m", "seqray", *words, "--plot", "p.svg", "--out", "p.tsv"],
            cwd=folder,
            env=os.environ | ({"MPLBACKEND": "module://not_installed"} if host == "hostile" else {}),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        written[host] = (folder / "p.svg").read_bytes(), (folder / "p.tsv").read_bytes()
    assert written["plain"] == written["hostile"]


def test_the_table_is_written_where_the_figure_cannot_be_drawn(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no font")

    monkeypatch.setattr("seqray.report.plots.plot_explanations", fail)
    records, table, figure = ROOT / "data/example/promoters.fa", tmp_path / "p.tsv", tmp_path / "p.png"
    words = ["explain", str(records), "-m", "ecoli-promoter", "--method", "rollout", "--no-check"]
    assert main([*words, "--plot", str(figure), "--out", str(table)]) == 1
    assert "can't be drawn (RuntimeError: no font)" in capsys.readouterr().err
    assert table.is_file()
    assert not figure.exists()
