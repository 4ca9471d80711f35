"""What ``seqray split`` costs, and which planted relatives it finds.

    python benchmarks/split_cost.py [--sizes 20000 200000]

Random windows of 81 letters; a tenth of them are ancestors of five relatives each, every second one on the
other strand: four in which so many letters were replaced that the identity is 0.95, 0.90, 0.85 and 0.80
(exactly, or the next above), and one of 0.90 with one letter lost and one gained. Recall is the share of
relatives that lie in the group of their ancestor; ``joined`` counts groups that hold more than one family,
which chance alone can make. Time and memory are those of the command as a whole: reading, grouping, dealing,
the proof by alignment, writing. ``--tool mmseqs`` stands beside it where MMseqs2 is installed.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from machine import Cost, describe, read_table, run
from seqray.core import DNA, reverse_complement
from seqray.io.tables import write_table

LETTERS = 81
KINDS = {"0.95": 0.95, "0.90": 0.90, "0.85": 0.85, "0.80": 0.80, "0.90 and a gap": 0.90}
FAMILIES = 0.1  # ancestors, of all sequences


def relative(ancestor: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Change letters, none of them to itself; with a gap, take one out and put one in elsewhere."""
    codes = ancestor.copy()
    places = rng.choice(LETTERS, math.floor(LETTERS * (1 - KINDS[kind]) + 1e-9), replace=False)
    codes[places] = (codes[places] + rng.integers(1, 4, len(places))) % 4
    if "gap" in kind:
        codes = np.delete(codes, rng.integers(10, LETTERS - 10))
        codes = np.insert(codes, rng.integers(10, LETTERS - 10), rng.integers(4))
    return codes.astype(np.uint8)


def write_families(path: Path, count: int, seed: int = 0) -> int:
    """Write a labeled table whose ids are ``<family>|<kind>``; returns the number of families."""
    rng = np.random.default_rng(seed)
    ancestors = int(count * FAMILIES)
    singles = count - ancestors * (1 + len(KINDS))
    with open(path, "w", encoding="ascii") as handle:
        handle.write("sequence\tlabel\tid\n")
        for family in range(ancestors + singles):
            ancestor = rng.integers(0, 4, LETTERS).astype(np.uint8)
            kinds = {"ancestor": ancestor}
            if family < ancestors:
                kinds |= {kind: relative(ancestor, kind, rng) for kind in KINDS}
            for place, (kind, codes) in enumerate(kinds.items()):
                letters = DNA.decode(codes)
                letters = reverse_complement(letters, DNA) if place % 2 else letters
                handle.write(f"{letters}\t{'ab'[family % 2]}\t{family}|{kind}\n")
    return ancestors + singles


def measure(path: Path, families: int) -> dict[str, str]:
    """Recall of each kind, groups made, and groups of several families."""
    ancestor: dict[str, str] = {}
    relatives: list[tuple[str, str, str]] = []
    members: dict[str, set[str]] = {}
    for row in read_table(path):
        family, _, kind = row["id"].partition("|")
        members.setdefault(row["group"], set()).add(family)
        if kind == "ancestor":
            ancestor[family] = row["group"]
        else:
            relatives.append((family, kind, row["group"]))
    found = {
        kind: [ancestor[family] == group for family, k, group in relatives if k == kind] for kind in KINDS
    }
    figures = {f"recall {kind}": f"{np.mean(hits):.4f}" for kind, hits in found.items()}
    joined = sum(len(families) > 1 for families in members.values())
    return {"families": str(families), "groups": str(len(members)), "joined": str(joined)} | figures


def split(table: Path, out: Path, tool: str) -> Cost:
    """Run the command with its defaults."""
    words = [sys.executable, "-m", "seqray", "split", str(table), "--out", str(out), "--tool", tool]
    return run([*words, "--proof", f"{out}.proof", "--quiet"])


def highest(proof: Path) -> dict[str, str]:
    """Highest identity across the boundaries of test and validation."""
    return {f"highest, {row['boundary']}": row["max"] for row in read_table(proof) if row["class"] == "all"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "split_cost.tsv")
    args = parser.parse_args()
    tools = ["seqray"] + ["mmseqs"] * bool(shutil.which("mmseqs"))
    rows: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "in.tsv", Path(folder) / "out.tsv"
        for count in args.sizes:
            families = write_families(table, count)
            for tool in tools:
                cost = split(table, out, tool)
                spent = {"seconds": f"{cost.wall:.1f}", "cpu": f"{cost.cpu:.1f}", "MB": f"{cost.peak_mb:.0f}"}
                figures = measure(out, families) | highest(Path(f"{out}.proof"))
                rows.append({"sequences": str(count), "tool": tool} | spent | figures)
    lines = [*describe(sys.argv), "mmseqs: " + ("beside it" if len(tools) > 1 else "not installed")]
    write_table(args.out, list(rows[0]), [list(row.values()) for row in rows], lines)


if __name__ == "__main__":
    main()
