"""How time and memory grow with the length and the number of records, and with rows and columns.

    python benchmarks/growth.py
    python benchmarks/growth.py --only "predict, letters of a record"

On each line of the table one size grows and the others stay. What is measured is a call of the library (or
the command ``seqray train``) in a process of its own: first on the smallest input, which loads everything,
then on the input that is measured. Peers are encoders of Hugging Face with random weights on the same number
of sequences, as one batch: BertModel of the same shape, and one of DNABERT-2's size (12 layers, D 768),
which reads tokens of about 5 letters, so a fifth as many. CPU seconds are those of one thread. Memory is the
largest resident size over that before the measured call.

``exponent`` is k of seconds ~ x^k, and ``memory_exponent`` that of memory, by least squares over the largest
three sizes: smaller ones hold what does not grow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel

import seqray
from axial import resident_kb
from machine import describe, script_parser
from seqray.cli.main import main as main_of_seqray
from seqray.core.alphabet import RNA
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment
from seqray.core.serialization import from_mapping
from seqray.inference.alignments import predict_alignments
from seqray.inference.sequences import PredictOptions
from seqray.io.tables import write_table
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel
from throughput import bert_like

SEQRAY, BERT, DNABERT = "seqray", "BertModel", "BertModel of DNABERT-2's size"
LETTERS_OF_A_TOKEN = 5  # of DNABERT-2, by Zhou et al. 2024
RECORDS = 8  # whose length grows
MAX_LENGTH = 4096
SHAPE = {"d_model": 128, "heads": 4, "layers": 4, "d_ff": 512, "max_length": MAX_LENGTH}
COLUMNS = ("what", "method", "x", "cpu_s", "memory_mb", "exponent", "memory_exponent")
Work = Callable[[], object]


@dataclass(frozen=True)
class Axis:
    """One size that grows.

    Attributes
    ----------
    sizes
        Its values, ascending.
    make
        Folder and value to the call that is measured, with its input made.
    peers
        Encoders beside it.
    """

    sizes: tuple[int, ...]
    make: Callable[[Path, int], Work]
    peers: tuple[str, ...] = ()


def letters(count: int, seed: int = 0) -> str:
    """Random DNA."""
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), count))


def fasta(folder: Path, records: int, length: int) -> str:
    """A file of random records."""
    path = folder / "input.fa"
    path.write_text("".join(f">r{i}\n{letters(length, i)}\n" for i in range(records)))
    return str(path)


def alignment(rows: int, columns: int) -> Alignment:
    """A random alignment without gaps."""
    codes = np.random.default_rng(0).integers(0, 4, (rows, columns)).astype(np.uint8)
    codes.flags.writeable = False
    return Alignment("a", tuple(f"r{i}" for i in range(rows)), codes, RNA)


def random_model(kind: str = "sequence") -> TrainedModel:
    """A model with random weights."""
    torch.manual_seed(0)
    changes = {"kind": "alignment", "alphabet": "rna", "max_rows": 512} if kind == "alignment" else {}
    config = from_mapping(ModelConfig, {**SHAPE, **changes})
    card = Card(name="m", classes=("a", "b"), positive="a", window=config.max_length, model=config)
    return TrainedModel(card, (build_network(config),))


def _predict(folder: Path, records: int, length: int, model: TrainedModel | str) -> Work:
    source = fasta(folder, records, length)
    return lambda: seqray.predict(model, source)


def _align(rows: int, columns: int) -> Work:
    model, one = random_model("alignment"), alignment(rows, columns)
    return lambda: list(predict_alignments(model, [one], PredictOptions()))


def _scan(folder: Path, length: int, model: str, **options: Any) -> Work:
    source = fasta(folder, 1, length)
    return lambda: seqray.scan(model, source, **options)


def _explain(folder: Path, records: int, length: int) -> Work:
    source, model = fasta(folder, records, length), random_model()
    return lambda: seqray.explain(model, source, shuffles=0, effects=False)


def _train(folder: Path, records: int, length: int) -> Work:
    config, data = folder / "train.yaml", folder / "input.tsv"
    config.write_text(
        "name: growth\nmodel: {classes: 2, d_model: 64, heads: 4, layers: 2, d_ff: 256, max_length: "
        f"{length}}}\ndata: {{window: {length}, positive: a}}\ntrainer: {{max_epochs: 1}}\nmembers: 1\n"
    )
    rows = (f"r{i}\t{letters(length, i)}\t{'ab'[i % 2]}" for i in range(records))
    data.write_text("\n".join(["id\tsequence\tlabel", *rows, ""]))
    words = ["train", "--config", str(config), "--train", str(data), "--threads", "1", "--quiet"]
    words += ["--out", str(folder / f"{records}-{length}.safetensors")]

    def work() -> None:
        if main_of_seqray(words):
            raise SystemExit(f"failed: seqray {' '.join(words)}")

    return work


AXES = {
    "predict, records of 81 letters": Axis(
        (2000, 4000, 8000, 16000), lambda f, x: _predict(f, x, 81, "ecoli-promoter")
    ),
    "predict, letters of a record": Axis(
        (256, 512, 1024, 2048, 4096), lambda f, x: _predict(f, RECORDS, x, random_model()), (BERT, DNABERT)
    ),
    "predict, rows of an alignment of 128 columns": Axis((16, 32, 64, 128, 256), lambda f, x: _align(x, 128)),
    "predict, columns of an alignment of 32 rows": Axis(
        (64, 128, 256, 512, 1024), lambda f, x: _align(32, x)
    ),
    "scan with a locator, letters": Axis(
        (100_000, 200_000, 400_000, 800_000), lambda f, x: _scan(f, x, "bacteria-genome", genes=None)
    ),
    "scan with windows, letters": Axis(
        (25_000, 50_000, 100_000, 200_000), lambda f, x: _scan(f, x, "ecoli-promoter", null_mb=0, stride=10)
    ),
    "explain by rollout, records of 256 letters": Axis((64, 128, 256, 512), lambda f, x: _explain(f, x, 256)),
    "explain by rollout, letters of a record": Axis(
        (256, 512, 1024, 2048, 4096), lambda f, x: _explain(f, RECORDS, x)
    ),
    "train for an epoch, records of 128 letters": Axis(
        (500, 1000, 2000, 4000), lambda f, x: _train(f, x, 128)
    ),
    "train for an epoch, letters of 256 records": Axis((128, 256, 512, 1024), lambda f, x: _train(f, 256, x)),
}


# --- one measurement, in a process of its own ------------------------------------------------------------


def encoder(method: str, length: int) -> Work:
    """A peer and its batch."""
    if method == BERT:
        network = bert_like(from_mapping(ModelConfig, SHAPE))
    else:
        shape = BertConfig(
            vocab_size=4096,
            hidden_size=768,
            num_hidden_layers=12,
            num_attention_heads=12,
            max_position_embeddings=MAX_LENGTH,
        )
        network = BertModel(shape).eval()
        length = length // LETTERS_OF_A_TOKEN
    tokens = torch.randint(0, 8, (RECORDS, length))
    return torch.inference_mode()(lambda: network(tokens))


def measure_here(what: str, method: str, x: int) -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    axis = AXES[what]

    def work_on(folder: Path, size: int) -> Work:
        return axis.make(folder, size) if method == SEQRAY else encoder(method, size)

    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        work_on(Path(first), axis.sizes[0])()
        work = work_on(Path(second), x)
        before = resident_kb("VmRSS")
        clear = Path("/proc/self/clear_refs")
        if clear.exists():
            clear.write_text("5")  # the largest size starts anew, see proc(5)
        cpu = time.process_time()
        work()
        cpu = time.process_time() - cpu
        print(json.dumps([cpu, (resident_kb("VmHWM") - before) * 1024 / 1e6]))


# --- the table -------------------------------------------------------------------------------------------


def measure(what: str) -> Iterator[tuple[str, list[tuple[int, float, float]]]]:
    """Yield each method with its sizes, CPU seconds and MB."""
    axis = AXES[what]
    for method in (SEQRAY, *axis.peers):
        found = []
        for x in axis.sizes:
            command = [sys.executable, __file__, "--one", what, method, str(x)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cpu, megabytes = json.loads(done.stdout.splitlines()[-1])
            found.append((x, cpu, max(megabytes, 0.0)))
        yield method, found


def exponent(sizes: list[int], values: list[float]) -> str:
    """Exponent over the largest three sizes; empty where too little is used to tell."""
    last = np.array(values[-3:])
    if last.min() < 0.01 * last.max() or last.min() <= 0:
        return ""
    return f"{np.polyfit(np.log(sizes[-3:]), np.log(last), 1)[0]:.2f}"


def main() -> None:
    """Measure, and write the table; docs/figures.py draws it."""
    parser = script_parser(__doc__, "growth.tsv")
    parser.add_argument("--only", nargs="+", choices=AXES, default=list(AXES), metavar="WHAT")
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "METHOD", "X"), help="measure one and print it")
    arguments = parser.parse_args()
    if arguments.one:
        what, method, x = arguments.one
        measure_here(what, method, int(x))
        return
    notes, table = describe(sys.argv), []
    for what in arguments.only:
        for method, rows in measure(what):
            sizes = [x for x, _, _ in rows]
            slopes = exponent(sizes, [s for _, s, _ in rows]), exponent(sizes, [m for _, _, m in rows])
            for x, cpu, megabytes in rows:
                last = slopes if x == sizes[-1] else ("", "")
                table.append((what, method, x, f"{cpu:.3g}", f"{megabytes:.3g}", *last))
            print(*table[-1], sep="\t", flush=True)
    write_table(arguments.out, COLUMNS, table, notes)


if __name__ == "__main__":
    main()
