"""Which engine is fastest where: torch, ONNX Runtime and OpenVINO, for ``predict`` and ``scan``.

    python benchmarks/engines.py --threads 1 --rounds 9

Shipped models of 81 and 251 letters. ``predict`` is `seqray.inference.sequences.score_ragged` on sequences of
unequal lengths, so that batches are padded and masked; ``scan`` is `score_codes` on overlapping windows
of one random sequence. Both from letter codes to calibrated probabilities, as many sequences at a time as
told. All engines take turns, in another order each round; a figure is the median of the rounds, with
quartiles. Float32 throughout, but for the rows that say bf16. Seconds are those of the processor, all
threads together, which other programs on the machine change little. Start is the time from a loaded model
to the first answer, measured once: it holds making the graph, which torch does not need. ``other_digits``
is the share of sequences of which a probability is printed with other digits than torch's in float32.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from machine import describe, script_parser, take_turns, write_and_show
from seqray.core.text import format_number
from seqray.inference.engines import Engine, with_engine
from seqray.inference.sequences import Dtype, score_codes, score_ragged
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel

MODELS = ("ecoli-promoter", "arabidopsis-promoter", "bacteria-promoter-fast")
BATCHES = (1, 64)  # sequences at once: one, and what keeps the largest tensor in the cache
COUNTS = {1: 16, 64: 128}  # sequences of a turn
RUNS: tuple[tuple[Engine, Dtype], ...] = (
    ("torch", "fp32"),
    ("onnx", "fp32"),
    ("openvino", "fp32"),
    ("torch", "bf16"),
    ("openvino", "bf16"),
)
COLUMNS = (
    *("model", "work", "batch", "engine", "precision", "sequences_per_cpu_s", "q25", "q75"),
    *("times_torch_fp32", "other_digits", "start_cpu_s"),
)
Work = Callable[[], list[np.ndarray]]


@dataclass(frozen=True)
class Row:
    """One engine in one place: quartiles of its sequences per CPU second, digits, seconds to an answer."""

    model: str
    work: str
    batch: int
    engine: str
    precision: str
    low: float
    median: float
    high: float
    other: float
    start: float


def windows(window: int, count: int) -> np.ndarray:
    """Overlapping windows of one random sequence: (count, W) codes, a view."""
    codes = np.random.default_rng(0).integers(0, 4, 10 * count + window).astype(np.uint8)
    return np.lib.stride_tricks.sliding_window_view(codes, window)[: 10 * count : 10]


def unequal(window: int, count: int) -> list[np.ndarray]:
    """Random sequences between two thirds of the window and all of it."""
    rng = np.random.default_rng(1)
    return [rng.integers(0, 4, n).astype(np.uint8) for n in rng.integers(2 * window // 3, window + 1, count)]


def works(model: TrainedModel, batch: int, precision: Dtype) -> dict[str, Work]:
    """Return the two kinds of work of one engine."""
    window, count = model.card.window, COUNTS[batch]
    ragged, strided = unequal(window, count), windows(window, count)
    parts = [slice(start, start + batch) for start in range(0, count, batch)]
    return {
        "predict": lambda: [score_ragged(model, ragged[part], "auto", precision) for part in parts],
        "scan": lambda: [score_codes(model, strided[part], dtype=precision) for part in parts],
    }


def measure(name: str, rounds: int) -> list[Row]:
    """Let the engines take turns on one model."""
    plain = load_model(name)
    models: dict[tuple[Engine, Dtype], TrainedModel] = {}
    starts: dict[tuple[Engine, Dtype], float] = {}
    for key in RUNS:
        began = time.process_time()
        models[key] = with_engine(plain, *key)
        score_codes(models[key], windows(plain.card.window, 1), dtype=key[1])
        starts[key] = time.process_time() - began
    table = []
    for batch in BATCHES:
        for work in ("predict", "scan"):
            turns = {key: works(models[key], batch, key[1])[work] for key in RUNS}
            shown = {key: printed(turn()) for key, turn in turns.items()}
            for key, seconds in take_turns(turns, rounds).items():
                low, median, high = (COUNTS[batch] / t for t in reversed(statistics.quantiles(seconds, n=4)))
                other = float((shown[key] != shown[RUNS[0]]).any(axis=1).mean())
                table.append(Row(name, work, batch, *key, low, median, high, other, starts[key]))
    return table


def printed(parts: list[np.ndarray]) -> np.ndarray:
    """Probabilities (N, K) as tables print them."""
    return np.array([[format_number(value) for value in row] for part in parts for row in part.tolist()])


def cells(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """Lay the rows out, with the speed relative to torch in float32 at the same place."""
    for row in rows:
        place = (row.model, row.work, row.batch)
        [rival] = [r for r in rows if (r.model, r.work, r.batch, r.engine, r.precision) == (*place, *RUNS[0])]
        figures = [f"{value:.4g}" for value in (row.median, row.low, row.high)]
        last = (f"{row.median / rival.median:.2f}", f"{row.other:.3f}", f"{row.start:.2f}")
        yield (*place, row.engine, row.precision, *figures, *last)


def main() -> None:
    """Measure both models."""
    parser = script_parser(__doc__, "engines.tsv")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each engine")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    from importlib.metadata import version

    packages = ", ".join(f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "openvino"))
    threads = f"threads: {arguments.threads}; medians and quartiles of {arguments.rounds} interleaved rounds"
    notes = [*describe(["engines.py", *sys.argv[1:]]), f"engines: {packages}", threads]
    rows = [row for name in MODELS for row in measure(name, arguments.rounds)]
    write_and_show(arguments.out, COLUMNS, cells(rows), notes)


if __name__ == "__main__":
    main()
