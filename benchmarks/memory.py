"""Peak memory of ``seqray predict`` and ``seqray scan`` on files of any size.

    python benchmarks/memory.py predict records --scale 1 --limit 1300 --out benchmarks/results/memory.tsv
    python benchmarks/memory.py scan contigs --scale 1 --limit 2300 --out benchmarks/results/memory.tsv

Makes a FASTA file of random letters with a fixed seed, gives it to a random model of one small layer, so
that reading and writing count, not the network, and takes the largest resident size of that process from
the kernel. ``records`` at scale 1 are 20 million records of 81 letters; ``contigs`` are 2 GB, the first
of 250 Mb, the others of 1 Mb. Two scales give the slope: what a record or a letter of the longest contig
takes. ``two`` are the first two of the contigs, which decide on the peak. Ends with 1 where the peak is above
the limit.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from machine import add_row, run, script_parser
from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig
from seqray.core.serialization import from_mapping
from seqray.modelfile.file import build_network, save_model

WINDOW = 81
CHUNK = 1_000_000
"""Letters drawn at once, and those of each further contig."""
COLUMNS = ("verb", "input", "megabytes", "records", "longest", "output_megabytes", "peak_megabytes")
COLUMNS += ("cpu_seconds", "seconds")
# No call, which takes 25 bytes; few windows, so that a run on 2 GB ends.
OPTIONS = {"predict": (), "scan": ("--threshold", "0.9999", "--stride", "1000", "--null-mb", "0.1")}


def write_model(path: Path) -> None:
    """A model that takes next to no time: a stem of stride 50, one layer of width 4."""
    stem = {"kernels": (1,), "stride": 50, "depth": 0}
    shape = {"d_model": 4, "heads": 1, "layers": 1, "d_ff": 4, "dropout": 0.0, "max_length": WINDOW}
    config = from_mapping(ModelConfig, {**shape, "stem": stem})
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
    save_model(path, [build_network(config)], card)


def lengths(kind: str, scale: float) -> Iterator[int]:
    """Length of each record."""
    if kind == "records":
        yield from (WINDOW for _ in range(round(20_000_000 * scale)))
    else:
        yield round(250_000_000 * scale)
        yield from (CHUNK for _ in range(round(1750 * scale) if kind == "contigs" else 1))


def write_fasta(path: Path, kind: str, scale: float) -> tuple[int, int]:
    """Write random records; returns how many, and the length of the longest.

    Parameters
    ----------
    path
        Where to.
    kind
        ``records``, ``contigs`` or ``two``.
    scale
        Of both, how large.
    """
    rng = np.random.default_rng(1)
    letters, used, count, longest = "", 0, 0, 0
    with open(path, "w", encoding="ascii") as handle:
        for count, length in enumerate(lengths(kind, scale), start=1):
            longest = max(longest, length)
            handle.write(f">{count:09d}\n")
            while length:
                if used == len(letters):
                    letters, used = DNA.decode(rng.integers(0, 4, CHUNK, dtype=np.uint8)), 0
                part = letters[used : used + length]
                used, length = used + len(part), length - len(part)
                handle.write(part)
            handle.write("\n")
    return count, longest


def main() -> int:
    """Make the file, run the verb on it, compare with the limit."""
    parser = script_parser(__doc__)
    parser.add_argument("verb", choices=list(OPTIONS))
    parser.add_argument("input", choices=["records", "contigs", "two"], help="contigs are for scan")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the input (default: 1)")
    parser.add_argument("--limit", type=float, default=2300, help="MB of memory allowed (default: 2300)")
    parser.add_argument("--out", type=Path, help="add a row to this table")
    parser.add_argument("--folder", help="where the input is made (default: that of temporary files)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        model, source, out = (Path(folder) / name for name in ("m.safetensors", "in.fa", "out.tsv"))
        write_model(model)
        count, longest = write_fasta(source, args.input, args.scale)
        words = [sys.executable, "-m", "seqray", args.verb, str(source), "--model", str(model), "--quiet"]
        cost = run([*words, "--out", str(out), "--threads", "1", *OPTIONS[args.verb]])
        megabytes = [file.stat().st_size / 1e6 for file in (source, out)]
    sizes = (megabytes[0], count, longest, megabytes[1], cost.peak_mb, cost.cpu, cost.wall)
    row = [args.verb, args.input, *(f"{value:.0f}" for value in sizes)]
    if args.out:
        add_row(args.out, COLUMNS, row)
    print("\t".join(COLUMNS), "\t".join(row), sep="\n")
    return int(cost.peak_mb > args.limit)


if __name__ == "__main__":
    sys.exit(main())
