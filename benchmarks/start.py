"""CPU seconds of ``predict`` and ``scan`` of one record and a plasmid, beside those of ``import torch``.

    python benchmarks/start.py --rounds 5

Each command runs in a process of its own, all in turn; a figure is the median of the rounds, after one round
that is not counted. ``times_torch`` divides it by that of ``import torch``.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from machine import describe, run, script_parser, write_and_show

ENGINES = ("torch", "onnx", "openvino")
IMPORT = "import torch"
LOCATOR, PLASMID = "bacteria-genome", 5000


def commands(folder: Path, model: str) -> dict[str, list[str]]:
    """Arguments of Python, by what is measured."""
    record = folder / "one.fa"
    record.write_text(f">one\n{'ACGTTGCATA' * 8}C\n")
    plasmid = folder / "plasmid.fa"
    letters = np.random.default_rng(0).choice([*"ACGT"], PLASMID)
    plasmid.write_text(f">plasmid\n{''.join(letters)}\n")
    made = {IMPORT: ["-c", IMPORT]}
    for what, path, name, *more in (
        ("predict", record, model),
        ("scan", record, model, "--null-mb", "0"),
        ("scan of a plasmid", plasmid, LOCATOR, "--circular"),
    ):
        words = ["-m", "seqray", what.split()[0], str(path), "--model", name, "--quiet", *more]
        for engine in ENGINES:
            made[f"{what} --engine {engine}"] = [
                *words,
                *("--engine", engine, "--out", str(folder / "out.tsv")),
            ]
    return made


def main() -> None:
    """Measure all, and write the table."""
    parser = script_parser(__doc__, "start.tsv")
    parser.add_argument("--model", default="ecoli-promoter")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        turns = commands(Path(name), arguments.model)
        seconds: dict[str, list[float]] = {what: [] for what in turns}
        for _ in range(1 + arguments.rounds):
            for what, words in turns.items():
                seconds[what].append(run([sys.executable, *words]).cpu)
    medians = {what: statistics.median(values[1:]) for what, values in seconds.items()}
    notes = describe(["start.py", *sys.argv[1:]])
    notes.append(f"one record of 81 letters, a plasmid of {PLASMID}; medians of {arguments.rounds} rounds")
    rows = [(what, f"{value:.2f}", f"{value / medians[IMPORT]:.2f}") for what, value in medians.items()]
    write_and_show(arguments.out, ("what", "cpu_s", "times_torch"), rows, notes)


if __name__ == "__main__":
    main()
