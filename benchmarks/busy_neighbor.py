"""What a busy program beside a scan costs, where waiting threads sleep and where they spin.

    python benchmarks/busy_neighbor.py --threads 2 --rounds 3

The scan of a random sequence, alone and beside a process that computes without pause, under seqray's own
waiting policy and under the default of GNU's OpenMP (``GOMP_SPINCOUNT=300000``, which seqray leaves as
the user has set it). All four take turns; a figure is the median of the rounds. The machine should do
nothing else, and have as many processors as threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from machine import describe, script_parser, write_and_show

POLICIES = {"sleep": {}, "spin": {"GOMP_SPINCOUNT": "300000", "KMP_BLOCKTIME": "200"}}
SET = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_NUM_THREADS")
BUSY = "while True: pass"


@contextmanager
def neighbors(count: int) -> Iterator[None]:
    """Processes that compute without pause within the block."""
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def scan(fasta: Path, model: str, threads: int, policy: str) -> float:
    """Wall seconds of one scan."""
    environment = {name: value for name, value in os.environ.items() if name not in SET} | POLICIES[policy]
    words = ["scan", str(fasta), "--model", model, "--null-mb", "0", "--threads", str(threads)]
    command = [sys.executable, "-m", "seqray", *words, "--out", str(fasta.with_suffix(".gff3")), "--quiet"]
    began = time.monotonic()
    subprocess.run(command, env=environment, check=True)
    return time.monotonic() - began


def measure(args: argparse.Namespace) -> dict[tuple[str, int], list[float]]:
    """Seconds of each round, by policy and number of neighbors."""
    seconds: dict[tuple[str, int], list[float]] = {(p, n): [] for p in POLICIES for n in (0, args.neighbors)}
    with tempfile.TemporaryDirectory() as name:
        fasta = Path(name) / "random.fa"
        letters = np.random.default_rng(0).choice(list("ACGT"), args.letters)
        fasta.write_text(f">random\n{''.join(letters)}\n")
        for _ in range(args.rounds):
            for policy, count in seconds:
                with neighbors(count):
                    seconds[policy, count].append(scan(fasta, args.model, args.threads, policy))
    return seconds


def main() -> None:
    """Measure all four, and write the table."""
    parser = script_parser(__doc__, "busy_neighbor.tsv")
    add = parser.add_argument
    add("--model", default="ecoli-promoter")
    add("--letters", type=int, default=50_000)
    add("--threads", type=int, default=2)
    add("--neighbors", type=int, default=1)
    add("--rounds", type=int, default=3)
    args = parser.parse_args()
    medians = {key: statistics.median(values) for key, values in measure(args).items()}
    notes = describe(["busy_neighbor.py", *sys.argv[1:]])
    notes.append(f"{args.letters} letters, {args.threads} threads; medians of {args.rounds} rounds")
    rows = [
        (policy, count, f"{value:.2f}", f"{value / medians[policy, 0]:.2f}")
        for (policy, count), value in medians.items()
    ]
    write_and_show(args.out, ("waiting", "neighbors", "seconds", "times_alone"), rows, notes)


if __name__ == "__main__":
    main()
