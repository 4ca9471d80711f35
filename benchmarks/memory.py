"""Peak memory of ``seqray predict`` on a file of any size: bounded by batches, not by the file.

    python benchmarks/memory.py --megabytes 2000 --limit 1000 --out benchmarks/results/memory.tsv

Makes a FASTA file of random records with a fixed seed, classifies it with a random model of one small layer,
so that reading and writing count, not the network, and takes the largest resident size of that process from
the kernel. Ends with 1 where it is above the limit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from machine import describe, run
from seqray.core import DNA, Card, ModelConfig, from_mapping
from seqray.modelfile import save_model
from seqray.models import build_model

WINDOW = 1000
CHUNK = 1000
"""Records written at once."""
COLUMNS = ("megabytes", "records", "output_megabytes", "peak_megabytes", "seconds")


def write_model(path: Path) -> None:
    """A model that takes next to no time: a stem of stride 50, one layer of width 4."""
    stem = {"kernels": (1,), "stride": 50, "depth": 0}
    config = from_mapping(
        ModelConfig,
        {
            "d_model": 4,
            "heads": 1,
            "layers": 1,
            "d_ff": 4,
            "dropout": 0.0,
            "max_length": WINDOW,
            "stem": stem,
        },
    )
    torch.manual_seed(1)
    card = Card(
        name="memory",
        classes=("promoter", "background"),
        positive="promoter",
        window=WINDOW,
        site=0,
        model=config,
        threshold=0.5,
        prevalence=0.5,
    )
    save_model(path, [build_model(config)], card)


def write_fasta(path: Path, megabytes: int) -> int:
    """Random records of `WINDOW` letters, about so many MB in all; returns how many."""
    rng = np.random.default_rng(1)
    count = megabytes * 1_000_000 // (WINDOW + 12)
    with open(path, "w", encoding="ascii") as handle:
        for start in range(0, count, CHUNK):
            rows = min(CHUNK, count - start)
            letters = DNA.decode(rng.integers(0, 4, rows * WINDOW))
            handle.write(
                "".join(f">{start + i:09d}\n{letters[i * WINDOW : (i + 1) * WINDOW]}\n" for i in range(rows))
            )
    return count


def add_row(path: Path, row: str) -> None:
    """Add a row to a table, which begins with what its figures depend on."""
    head = [] if path.exists() else [*(f"# {line}" for line in describe(sys.argv)), "\t".join(COLUMNS)]
    with open(path, "a", encoding="utf-8") as handle:
        handle.write("\n".join([*head, row]) + "\n")


def main() -> int:
    """Make the file, classify it, compare with the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the file (default: 2000)")
    parser.add_argument("--limit", type=float, default=1000, help="MB of memory allowed (default: 1000)")
    parser.add_argument("--out", type=Path, help="add a row to this table")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, source, out = (Path(folder) / name for name in ("m.safetensors", "in.fa", "out.tsv"))
        write_model(model)
        count = write_fasta(source, args.megabytes)
        words = [sys.executable, "-m", "seqray", "predict", str(source), "--model", str(model)]
        cost = run([*words, "--out", str(out), "--threads", "1"])
        sizes = [source.stat().st_size / 1e6, count, out.stat().st_size / 1e6]
    row = "\t".join(f"{value:.0f}" for value in (*sizes, cost.peak_mb, cost.wall))
    if args.out:
        add_row(args.out, row)
    print("\t".join(COLUMNS), row, sep="\n")
    return int(cost.peak_mb > args.limit)


if __name__ == "__main__":
    sys.exit(main())
