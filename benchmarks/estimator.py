"""What `SequenceClassifier.predict_proba` costs beside the path of ``seqray predict``, on the same sequences.

    python benchmarks/estimator.py --threads 1 --rounds 9

Both begin with a list of records in memory and end with all probabilities; the model is loaded and has
answered once. Seconds are those of the processor, which other programs on the machine change little. The
command's path is `seqray.inference.sequences.predict_records`, which also flags and names each
answer; writing the table is not counted. The two take turns, in another order each round; a figure is the
median of the rounds, with quartiles. The overhead is the median over rounds of the ratio within a round.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

import numpy as np
import torch

from machine import describe, script_parser, take_turns, write_and_show
from seqray.api.estimator import SequenceClassifier
from seqray.core.records import SequenceRecord
from seqray.inference.sequences import predict_records
from seqray.modelfile.file import load_model

MODELS = ("ecoli-promoter", "arabidopsis-promoter")
COLUMNS = ("model", "sequences", "method", "cpu_seconds", "q25", "q75", "overhead_percent")
ESTIMATOR, COMMAND = "SequenceClassifier.predict_proba", "predict_records"
Work = Callable[[], object]


def methods(name: str, count: int) -> dict[str, Work]:
    """Return what takes turns on one model: sequences of its window, made from a fixed seed."""
    model = load_model(name)
    letters = np.array(list(model.alphabet.letters))
    rows = letters[np.random.default_rng(0).integers(0, len(letters), (count, model.card.window))]
    sequences = ["".join(row) for row in rows]
    records = [SequenceRecord(f"r{i}", sequence) for i, sequence in enumerate(sequences)]
    estimator = SequenceClassifier(name, device="cpu")
    estimator.model_, estimator.classes_ = model, np.array(model.card.classes)  # as after `fit`
    return {
        ESTIMATOR: lambda: estimator.predict_proba(sequences),
        COMMAND: lambda: list(predict_records(model, records)),
    }


def rows_of(name: str, count: int, seconds: dict[str, list[float]]) -> list[list[str]]:
    """Lay the figures of one model out."""
    ratios = [a / b for a, b in zip(seconds[ESTIMATOR], seconds[COMMAND], strict=True)]
    overhead = {ESTIMATOR: f"{100 * (statistics.median(ratios) - 1):.1f}", COMMAND: ""}
    table = []
    for method, values in seconds.items():
        low, median, high = (f"{v:.4g}" for v in statistics.quantiles(values, n=4))
        table.append([name, str(count), method, median, low, high, overhead[method]])
    return table


def main() -> None:
    """Measure both models."""
    parser = script_parser(__doc__, "estimator.tsv")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each method")
    parser.add_argument("--count", type=int, default=10_000, help="sequences")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    threads = f"threads: {arguments.threads}; medians and quartiles of {arguments.rounds} interleaved rounds"
    notes = [*describe(["estimator.py", *sys.argv[1:]]), threads]
    rows: list[list[str]] = []
    for name in MODELS:
        seconds = take_turns(methods(name, arguments.count), arguments.rounds)
        rows += rows_of(name, arguments.count, seconds)
    write_and_show(arguments.out, COLUMNS, rows, notes)


if __name__ == "__main__":
    main()
