"""Wall and CPU seconds and memory of scans of the whole *E. coli* genome, by the models of bacteria.

    SEQRAY_DATA=... python benchmarks/whole_genome.py
    SEQRAY_DATA=... python benchmarks/whole_genome.py --rounds 1 --models ecoli-promoter

Each is ``seqray scan GENOME --model NAME`` in a process of its own, from its start to the table of calls, on
all cores. Locators predict the genes; models of windows scan a shuffled megabase, too. The models take turns,
and the table has the medians of the rounds.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from ecoli_tables import GENOME
from machine import Cost, add_data, describe, run, script_parser, write_and_show

MODELS = ("bacteria-genome", "ecoli-promoter", "bacteria-promoter", "bacteria-promoter-fast")
COLUMNS = ("model", "rounds", "wall_s", "wall_least", "wall_most", "cpu_s", "peak_mb", "calls")


def scan(genome: Path, model: str, out: Path) -> Cost:
    """Scan the genome by the command."""
    words = ["scan", str(genome), "--model", model, "--quiet", "--out", str(out)]
    return run([sys.executable, "-m", "seqray", *words])


def count_calls(table: Path) -> int:
    """Rows below the header."""
    return sum(not line.startswith("#") for line in table.read_text(encoding="utf-8").splitlines()) - 1


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "whole_genome.tsv")
    add_data(parser)
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    costs: dict[str, list[Cost]] = {name: [] for name in options.models}
    calls = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.tsv"
        for _ in range(options.rounds):
            for name in options.models:
                costs[name].append(scan(options.data / GENOME, name, out))
                calls[name] = count_calls(out)
    rows = []
    for name, found in costs.items():
        walls = [cost.wall for cost in found]
        seconds = (median(walls), min(walls), max(walls), median(cost.cpu for cost in found))
        peak = max(cost.peak_mb for cost in found)
        rows.append((name, len(found), *(f"{x:.1f}" for x in seconds), f"{peak:.0f}", calls[name]))
    command = describe(["whole_genome.py", *(sys.argv[1:] if argv is None else argv)])
    write_and_show(options.out, COLUMNS, rows, command)


if __name__ == "__main__":
    main()
