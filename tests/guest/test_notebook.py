"""A kernel of Jupyter: it has an event loop, a backend for figures, a handler of Ctrl-C, no program file."""

from pathlib import Path

import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import seqray

ROOT = Path(__file__).parents[2]
SETUP = """
import asyncio, os, signal, warnings
import lightning
import numpy as np
import seqray
from seqray.cli.main import main

warnings.simplefilter("ignore")
backend = os.environ["MPLBACKEND"]
assert backend.startswith("module://matplotlib_inline")
RECORDS = "data/example/promoters.fa"
rng = np.random.default_rng(0)
X, y = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(40)], ["a", "b"] * 20
model = seqray.load_model("ecoli-promoter")
model
"""
DRAW = """
letters = seqray.explain(model, list(seqray.read_fasta(RECORDS, model.alphabet))[:1], shuffles=0)
seqray.plot.logo(letters)
"""
DRAW_WITH_PYPLOT = """
import matplotlib.pyplot as plt
assert plt.get_backend() == backend
plt.plot([1, 2])
plt.show()
"""
COMMAND = """
words = ["explain", RECORDS, "-m", "ecoli-promoter", "--method", "rollout", "--no-check", "--quiet"]
assert main([*words, "--plot", f"{FOLDER}/p.svg", "--out", f"{FOLDER}/p.tsv"]) == 0
assert os.environ["MPLBACKEND"] == backend == plt.get_backend()
"""
FIT = """
classifier = seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=2, members=2, verbose=True)
print(classifier.fit(X, y).predict_proba(X[:3]).tolist())
"""
INTERRUPT = """
class Interrupt(lightning.Callback):
    def on_train_batch_end(self, *_):
        signal.raise_signal(signal.SIGINT)


examples = [seqray.LabeledSequence(*pair, str(i)) for i, pair in enumerate(zip(X, y))]
handler = signal.getsignal(signal.SIGINT)
try:
    seqray.train(examples, set={"data.positive": "b"}, members=1, callbacks=[Interrupt()])
except KeyboardInterrupt:
    print("interrupted")
assert signal.getsignal(signal.SIGINT) == handler
"""
TOGETHER = """
def predict():
    return seqray.predict(model, RECORDS).to_csv()


one, other = await asyncio.gather(asyncio.to_thread(predict), asyncio.to_thread(predict))
assert one == other == predict()
print(one)
"""
CELLS = (SETUP, DRAW, DRAW_WITH_PYPLOT, COMMAND, FIT, INTERRUPT, TOGETHER)


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """What each cell gives, by its kind, in a kernel that begins in the folder of the project."""
    monkeypatch.setenv("HOME", str(tmp_path))
    cells = [new_code_cell(cell.replace("{FOLDER}", str(tmp_path))) for cell in CELLS]
    notebook = new_notebook(cells=cells)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    )
    client.execute()
    kinds = []
    for cell in notebook.cells:
        shown = {kind: data for output in cell.outputs for kind, data in output.get("data", {}).items()}
        text = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
        kinds.append(shown | {"printed": text})
    return kinds


def test_a_notebook_predicts_explains_draws_fits_and_is_interrupted(outputs, tmp_path):
    setup, drawn, by_pyplot, command, fitted, interrupted, predicted = outputs
    assert "<table>" in setup["text/html"]
    assert {"image/png"} <= drawn.keys() & by_pyplot.keys()
    assert (tmp_path / "p.svg").is_file()
    assert command["printed"] == ""
    assert interrupted["printed"] == "interrupted\n"
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(40)]
    classifier = seqray.SequenceClassifier(d_model=16, heads=2, layers=1, epochs=2, members=2)
    expected = classifier.fit(X, ["a", "b"] * 20).predict_proba(X[:3]).tolist()
    assert fitted["printed"].endswith(f"{expected}\n")
    expected = seqray.predict("ecoli-promoter", ROOT / "data/example/promoters.fa")
    assert predicted["printed"] == expected.to_csv() + "\n"
