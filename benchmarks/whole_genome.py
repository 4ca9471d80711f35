"""Wall and CPU seconds and memory of scans of the whole *E. coli* genome, by the models of bacteria.

    SEQRAY_DATA=... python benchmarks/whole_genome.py
    SEQRAY_DATA=... python benchmarks/whole_genome.py --rounds 1 --models ecoli-promoter
    SEQRAY_DATA=... python benchmarks/whole_genome.py --models bacteria-genome --dtypes fp32 bf16

Each is ``seqray scan GENOME --model NAME`` in a process of its own, from its start to the table of calls, on
all cores. Locators predict the genes; models of windows scan a shuffled megabase, too. The scans take turns,
and the table has the medians of the rounds. ``same`` counts the calls at a site that the model calls in the
first precision, too, ``within_5`` those within 5 bases of one; ``most_apart`` is the largest difference of
two scores of one site.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from ecoli_tables import GENOME
from machine import Cost, add_data, describe, run, script_parser, write_and_show

MODELS = ("bacteria-genome", "ecoli-promoter", "bacteria-promoter", "bacteria-promoter-fast")
COLUMNS = (
    *("model", "dtype", "rounds", "wall_s", "wall_least", "wall_most", "cpu_s", "peak_mb"),
    *("calls", "same", "within_5", "most_apart"),
)


def scan(genome: Path, model: str, dtype: str, out: Path) -> Cost:
    """Scan the genome by the command."""
    words = ["scan", str(genome), "--model", model, "--dtype", dtype, "--quiet", "--out", str(out)]
    return run([sys.executable, "-m", "seqray", *words])


def agreement(calls: pd.DataFrame, others: pd.DataFrame) -> tuple[int, int, float]:
    """Calls at a site of the others, those within 5 bases of one, and the largest difference of scores."""
    same, near, apart = 0, 0, 0.0
    for strand in "+-":
        here, there = (table[table["strand"] == strand] for table in (calls, others))
        site, sites = np.asarray(here["site"]), np.sort(np.asarray(there["site"]))
        after = np.searchsorted(sites, site).clip(1, len(sites) - 1)
        distance = np.abs(sites[np.stack([after - 1, after])] - site).min(axis=0)
        pairs = pd.merge(here, there, on="site")
        difference = np.abs(np.asarray(pairs["score_x"]) - np.asarray(pairs["score_y"]))
        same, near = same + len(pairs), near + int((distance <= 5).sum())
        apart = max(apart, difference.max(initial=0.0))
    return same, near, apart


def main(argv: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = script_parser(__doc__, "whole_genome.tsv")
    add_data(parser)
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--dtypes", nargs="+", default=("fp32",), metavar="DTYPE")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    scans = list(product(options.models, options.dtypes))
    costs: dict[tuple[str, str], list[Cost]] = {name: [] for name in scans}
    calls: dict[tuple[str, str], pd.DataFrame] = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.tsv"
        for _ in range(options.rounds):
            for name in scans:
                costs[name].append(scan(options.data / GENOME, *name, out))
                calls[name] = pd.read_csv(out, sep="\t", comment="#")
    rows = []
    for (model, dtype), measured in costs.items():
        walls = [cost.wall for cost in measured]
        seconds = (median(walls), min(walls), max(walls), median(cost.cpu for cost in measured))
        peak = max(cost.peak_mb for cost in measured)
        table = calls[model, dtype]
        same, near, apart = agreement(table, calls[model, options.dtypes[0]])
        cost = (len(measured), *(f"{x:.1f}" for x in seconds), f"{peak:.0f}")
        rows.append((model, dtype, *cost, len(table), same, near, f"{apart:.4f}"))
    command = describe(["whole_genome.py", *(sys.argv[1:] if argv is None else argv)])
    write_and_show(options.out, COLUMNS, rows, command)


if __name__ == "__main__":
    main()
