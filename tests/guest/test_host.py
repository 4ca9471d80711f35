"""What the program around seqray has set changes no result, and stays as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import contextlib, json, logging, os, random, sys, warnings
import numpy as np
import torch
import matplotlib
import seqray
from seqray.explanations.methods import METHODS

warnings.simplefilter("ignore")
RECORDS = "data/example/promoters.fa"
around = contextlib.ExitStack()
if sys.argv[1] == "hostile":
    torch.set_default_dtype(torch.float64)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    np.seterr(all="raise")
    os.environ["WORLD_SIZE"] = "2"
    torch.use_deterministic_algorithms(True)
    matplotlib.rcParams.update({"text.usetex": True, "font.size": 40, "axes.facecolor": "red"})
    matplotlib.rcParams.update({"svg.fonttype": "path", "lines.linewidth": 9, "axes.grid": True})
    # and of this thread alone
    torch.set_float32_matmul_precision("medium")
    around.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
    around.enter_context(torch.inference_mode())
    around.enter_context(torch.device("meta"))
    torch.set_grad_enabled(False)


def state():
    settings = [torch.get_default_dtype(), torch.get_num_threads(), np.geterr()]
    settings += [torch.backends.mkldnn.matmul.fp32_precision, torch.backends.cuda.matmul.fp32_precision]
    settings += [torch.get_deterministic_debug_mode(), torch.is_grad_enabled()]
    settings += [torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")]
    settings += [torch.get_default_device()]
    settings += [torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()]
    settings += [logging.getLogger(name).level for name in ("", "lightning.pytorch", "lightning.fabric")]
    settings += [dict(os.environ), dict(matplotlib.rcParams), list(warnings.filters)]
    return repr(settings)


rng = np.random.default_rng(0)
X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(40)]
y = ["a", "b"] * 20
SHAPE = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}
SETTINGS = {f"model.{name}": value for name, value in SHAPE.items()}
SETTINGS |= {"trainer.max_epochs": 1, "floor": True, "data.positive": "b"}


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        kind = {"device": "cpu", "dtype": torch.float32}
        self.table = torch.nn.Embedding(5, 16, **kind)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **kind)

    def forward(self, tokens):
        return self.layer(self.table(tokens))[:, 0]


def rolled(one, tokens):
    traced = seqray.trace(one, tokens, gradients=True)
    with torch.enable_grad(), torch.inference_mode(False):
        target = traced.logits[:, 1] - traced.logits[:, 0]
    rankings = seqray.rollout(traced), seqray.value_rollout(traced), seqray.grad_rollout(traced, target)
    assert {ranking.dtype for ranking in rankings} == {torch.float32}
    return [ranking.tolist() for ranking in rankings]


torch.manual_seed(3), np.random.seed(3), random.seed(3)
network = Own()
with around:
    import lightning.pytorch, sklearn.model_selection
    before, results = state(), {}
    model = seqray.load_model("ecoli-promoter")
    records = list(seqray.read_fasta(RECORDS, model.alphabet))[:3]
    results["predict"] = seqray.predict(model, records).to_csv()
    results["predictions"] = repr(list(seqray.predict_records(model, records)))
    results["scan"] = seqray.scan("bacteria-genome", "data/example/regions.fa", genes=None).to_csv()
    frame = seqray.explain(model, records, method="grad-rollout", shuffles=2)
    results["explain"] = frame.to_csv()
    examples = [seqray.LabeledSequence(*pair, str(i)) for i, pair in enumerate(zip(X, y))]
    small = seqray.train(examples, set=SETTINGS, members=1)
    results["train"] = seqray.predict(small, X[:3]).to_csv()
    results["evaluate"] = seqray.evaluate(small, X, y, bootstrap=9).to_csv()
    for method in METHODS:
        results[method] = seqray.explain(small, X[:3], method=method, shuffles=0).to_csv()
    codes = np.stack([model.alphabet.encode(record.sequence) for record in records])
    tokens = torch.from_numpy(model.tokenizer.encode_codes(codes))
    results["trace"] = rolled(model.networks[0], tokens)
    own = torch.tensor(rng.integers(0, 5, (7, 30)), device="cpu")
    results["trace of another network"] = rolled(network, own)
    ranking = rng.random((7, 30))
    judged = seqray.faithfulness(lambda changed: torch.from_numpy(changed.numpy().mean(1)), ranking, own)
    results["faithfulness"] = repr(judged)
    figure = seqray.plot.logo(frame)
    results["figure"] = repr(figure._repr_png_())[-2000:]
    classifier = seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=1, members=2)
    results["fit"] = repr(classifier.fit(X, y).predict_proba(X[:3]).tolist())
    after = state()
changed = [pair for pair in zip(before.split(", "), after.split(", ")) if pair[0] != pair[1]]
assert before == after, changed[:9]
json.dump(results, sys.stdout)
"""


def test_settings_of_the_program_change_no_result_and_stay(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    results = []
    for host in ("plain", "hostile"):
        command, environment = [sys.executable, program, host], os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        results.append(json.loads(done.stdout))
    assert results[0] == results[1]


WORDS = ["explain", str(ROOT / "data/example/promoters.fa"), "-m", "ecoli-promoter", "--method", "rollout"]


def test_a_backend_that_is_not_installed_and_a_hostile_style_cost_no_output(run, tmp_path):
    words = [*WORDS, "--no-check", "--quiet", "--plot", "p.svg", "--out", "p.tsv"]
    run(words)
    folder = tmp_path / "hostile"
    folder.mkdir()
    (folder / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\nsvg.fonttype: path\n")
    environment = os.environ | {"MPLBACKEND": "module://not_installed"}
    command = [sys.executable, "-m", "seqray", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name in ("p.svg", "p.tsv"):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(("reason", "status"), [("no font", 1), ("failed to map segment", 2)])
def test_the_table_is_written_where_the_figure_cannot_be_drawn(run, monkeypatch, reason, status):
    def fail(*_):
        raise RuntimeError(reason)

    monkeypatch.setattr("seqray.report.plots.plot_explanations", fail)
    said = run(WORDS, "--no-check --plot p.png --out p.tsv", status=status).err
    assert f"can't be drawn (RuntimeError: {reason}); all other outputs are written" in said
    assert Path("p.tsv").is_file()
    assert not Path("p.png").exists()
